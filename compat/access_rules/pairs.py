"""Random sets of access rules, and random requests of the users that they name."""

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from random import Random
from typing import Any, NamedTuple

from headrace.core.access.acls import AccessRule, PatternType, Permission
from headrace.core.controller.access_rules import OPERATIONS
from headrace.model.access import CLUSTER_NAME, AclResourceType, Operation
from headrace.model.errors import ErrorCode
from headrace.wire.apis import ApiKey
from tests.security.access_requests import CASES, AccessCase

USERS = ("alice", "bob")
TOPICS = ("a", "ab", "b")
"""Topics that exist."""

ABSENT = "abc"
NAMES = (*TOPICS, ABSENT)
PATTERNS = ("a", "ab", "abc", "b")
OWNERS = ("User:x", "User:y", "*")
"""Owners of tokens that others may ask for; the requests name the first."""

HOSTS = ("*", "*", "*", "127.0.0.1", "10.1.2.3")
"""More rules apply than not."""

RULES_MAX = 40
PRIVATE_FROM = 32_000
"""API keys from here on are Headrace's own."""

LEFT_OUT = (ApiKey.ADD_RAFT_VOTER, ApiKey.REMOVE_RAFT_VOTER)
"""Kafka answers them only with a quorum of the newer kind."""

AUTHORIZATION = frozenset(code for code in ErrorCode if code.name.endswith("AUTHORIZATION_FAILED"))
LISTED = {
    ApiKey.METADATA: "name",
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: "name",
    ApiKey.LIST_GROUPS: "group_id",
    ApiKey.LIST_TRANSACTIONS: "transactional_id",
}
"""Responses that leave out what the client may not see, with the field that names it. What exists on one broker may be
about to appear on the other, but for what the administrator creates again for every set.
"""

KAFKA_CASES = tuple(case for case in CASES if case.key < PRIVATE_FROM and case.key not in LEFT_OUT)


class RandomRequest(NamedTuple):
    user: str
    case: AccessCase
    name: str

    def __str__(self) -> str:
        return f"{self.case.key.name} ({KAFKA_CASES.index(self.case)}) of {self.user} on {self.name!r}"


def rules(random: Random) -> tuple[AccessRule, ...]:
    """Return one set of rules, without repetitions."""
    return tuple({_rule(random): None for _ in range(random.randint(1, RULES_MAX))})


def _rule(random: Random) -> AccessRule:
    kind = random.choice(
        (AclResourceType.TOPIC, AclResourceType.TOPIC, AclResourceType.GROUP, AclResourceType.TRANSACTIONAL_ID,
         AclResourceType.CLUSTER, AclResourceType.USER)
    )  # fmt: skip
    pattern, name = PatternType.LITERAL, CLUSTER_NAME
    if kind == AclResourceType.USER:
        name = random.choice(OWNERS)
    elif kind != AclResourceType.CLUSTER:
        pattern = random.choice((PatternType.LITERAL, PatternType.PREFIXED))
        name = random.choice(PATTERNS if pattern == PatternType.PREFIXED else (*PATTERNS, "*"))
    return AccessRule(
        kind,
        name,
        pattern,
        f"User:{random.choice((*USERS, '*'))}",
        random.choice(HOSTS),
        random.choice((*sorted(OPERATIONS[kind]), Operation.ALL, Operation.ALL)),
        random.choice((Permission.ALLOW, Permission.ALLOW, Permission.ALLOW, Permission.DENY)),
    )


def request(random: Random) -> RandomRequest:
    names: tuple[str, ...]
    case = random.choice(KAFKA_CASES)
    # Topics and groups stay: a deleted one would have to be created again on both.
    names = NAMES
    if case.key in (ApiKey.DELETE_TOPICS, ApiKey.DELETE_GROUPS):
        names = (ABSENT,)
    elif case.key == ApiKey.OFFSET_DELETE:
        names = TOPICS  # without the group there is no word of its topics
    return RandomRequest(random.choice(USERS), case, random.choice(names))


def verdict(key: ApiKey, response: object) -> tuple[Any, ...]:
    """Return what a response says about access: its errors of authorization with their places, and what it lists."""
    error = getattr(response, "error_code", ErrorCode.NONE)
    # Kafka repeats the error of a whole request in some of its parts.
    places = [("", error)] if error in AUTHORIZATION else error_codes(response)
    found = sorted({(place, ErrorCode(code).name) for place, code in places if code in AUTHORIZATION})
    listed = sorted(_listed(response, LISTED[key])) if key in LISTED else []
    return found, listed, sorted(_operations(response, ""))


def error_codes(message: Any, path: str = "") -> Iterator[tuple[str, int]]:
    """Yield the errors of a response at any depth, with their places."""
    for place, name, value in _parts(message, path):
        if is_dataclass(value):
            yield from error_codes(value, place)
        elif name.endswith("error_code") and value:
            yield place, value


def _listed(message: Any, wanted: str) -> Iterator[str]:
    for _, name, value in _parts(message, ""):
        if is_dataclass(value):
            yield from _listed(value, wanted)
        elif name == wanted and value in TOPICS:
            yield value


def _operations(message: Any, subject: str) -> Iterator[tuple[str, int]]:
    """Yield what a response says that the client may do, and with what."""
    names = [value for _, name, value in _parts(message, "") if name in ("name", "group_id") and value is not None]
    subject = str(names[0]) if names else subject
    for _, name, value in _parts(message, ""):
        if is_dataclass(value):
            yield from _operations(value, subject)
        elif name.endswith("authorized_operations") and subject in ("", *TOPICS):
            yield subject, value


def _parts(message: Any, path: str) -> Iterator[tuple[str, str, Any]]:
    """Yield place, name and value of every field; the place of an element is that of its array."""
    for field in fields(message):
        value = getattr(message, field.name)
        for each in value if isinstance(value, tuple) else (value,):
            yield f"{path}.{field.name}", field.name, each
