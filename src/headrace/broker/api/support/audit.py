"""Notes of requests for the audit log: the resources that they change, and the parts that were refused.

Values of configs, salts, tokens and records are never in it.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import is_dataclass
from typing import Any

from headrace.broker.audit_log import AuditLog
from headrace.broker.net.connection import Connection
from headrace.core.access.acls import AccessRule
from headrace.core.access.audit import AuditEvent, AuditKind, AuditOutcome
from headrace.core.access.rule_text import label, rule_sentence
from headrace.core.access.sasl import SaslState
from headrace.core.controller.records import ResourceKind
from headrace.model.access import USER, Principal, ScramMechanism
from headrace.model.errors import ErrorCode, error_name
from headrace.wire.apis import ApiKey

_SUFFIX = "_AUTHORIZATION_FAILED"
LACKS_PERMISSION = {
    int(code): code.name.removesuffix(_SUFFIX).lower().replace("_", "-")
    for code in ErrorCode
    if code.name.endswith(_SUFFIX)
}
"""The error codes of refusals, each with the type of the resource."""
_NAMES = ("name", "topic", "topic_name", "resource_name", "group_id", "user", "feature", "transactional_id")
"""Fields that name the resource of a part of a response."""
AUTO_CREATION = "create_topics_automatically"


def _topics(parts: Iterable[Any]) -> list[str]:
    return [f"topic {part.name or part.topic_id.hex()}" for part in parts]


def _partitions(topics: Iterable[Any], *, name: str = "name") -> list[str]:
    return [f"topic {getattr(topic, name)}" for topic in topics]


def _configs(resources: Iterable[Any]) -> list[str]:
    """Name the resources and their configs, without values, which may be secrets."""
    found = []
    for each in resources:
        kind = {ResourceKind.TOPIC: "topic", ResourceKind.BROKER: "broker"}.get(each.resource_type, "resource")
        names = ", ".join(config.name for config in each.configs)
        found.append(f"{kind} {each.resource_name or 'default'}: {names}")
    return found


def _rules(creations: Iterable[Any]) -> list[str]:
    return [
        rule_sentence(
            AccessRule(
                each.resource_type, each.resource_name, each.resource_pattern_type, each.principal, each.host,
                each.operation, each.permission_type,
            )
        )
        for each in creations
    ]  # fmt: skip


def _filters(filters: Iterable[Any]) -> list[str]:
    return [
        rule_sentence(
            AccessRule(
                each.resource_type_filter, each.resource_name_filter or "any", each.pattern_type_filter,
                each.principal_filter or "any principal", each.host_filter or "*", each.operation, each.permission_type,
            )
        )
        for each in filters
    ]  # fmt: skip


def _users(request: Any) -> list[str]:
    return [
        f"{verb} {each.name} {label(ScramMechanism, each.mechanism)}"
        for verb, parts in (("set", request.upsertions), ("remove", request.deletions))
        for each in parts
    ]


def _quotas(entries: Iterable[Any]) -> list[str]:
    """Name the entities and their quotas, without the numbers."""
    found = []
    for entry in entries:
        entity = ", ".join(f"{each.entity_type} {each.entity_name or 'default'}" for each in entry.entity)
        found.append(f"{entity}: {', '.join(change.key for change in entry.ops)}")
    return found


def _features(request: Any) -> list[str]:
    return [f"feature {each.feature} to {each.max_version_level}" for each in request.feature_updates]


CHANGES: Mapping[ApiKey, Callable[[Any], list[str]]] = {
    ApiKey.CREATE_TOPICS: lambda request: [f"topic {topic.name}" for topic in request.topics],
    ApiKey.DELETE_TOPICS: lambda request: [
        *_topics(request.topics),
        *(f"topic {name}" for name in request.topic_names),
    ],
    ApiKey.DELETE_RECORDS: lambda request: _partitions(request.topics),
    ApiKey.CREATE_ACLS: lambda request: _rules(request.creations),
    ApiKey.DELETE_ACLS: lambda request: _filters(request.filters),
    ApiKey.ALTER_CONFIGS: lambda request: _configs(request.resources),
    ApiKey.INCREMENTAL_ALTER_CONFIGS: lambda request: _configs(request.resources),
    ApiKey.CREATE_PARTITIONS: lambda request: [f"topic {topic.name} to {topic.count}" for topic in request.topics],
    ApiKey.DELETE_GROUPS: lambda request: [f"group {name}" for name in request.groups_names],
    ApiKey.OFFSET_DELETE: lambda request: [f"group {request.group_id}", *_partitions(request.topics)],
    ApiKey.ELECT_LEADERS: lambda request: _partitions(request.topic_partitions or (), name="topic"),
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: lambda request: _partitions(request.topics),
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: _users,
    ApiKey.CREATE_DELEGATION_TOKEN: lambda request: [f"token of {request.owner_principal_name or 'the caller'}"],
    ApiKey.RENEW_DELEGATION_TOKEN: lambda request: ["token"],
    ApiKey.EXPIRE_DELEGATION_TOKEN: lambda request: ["token"],
    ApiKey.ALTER_CLIENT_QUOTAS: lambda request: _quotas(request.entries),
    ApiKey.UPDATE_FEATURES: _features,
    ApiKey.UNREGISTER_BROKER: lambda request: [f"broker {request.broker_id}"],
    ApiKey.ADD_RAFT_VOTER: lambda request: [f"voter {request.voter_id}"],
    ApiKey.REMOVE_RAFT_VOTER: lambda request: [f"voter {request.voter_id}"],
    ApiKey.CREATE_INVITATION: lambda request: ["invitation"],
    ApiKey.WRITE_TXN_MARKERS: lambda request: [f"producer {marker.producer_id}" for marker in request.markers],
    ApiKey.ABORT_BATCH: lambda request: [f"owner {request.owner}"],
}
"""The APIs whose requests are changes, each with the resources that a request changes."""


class AuditedRequest:
    """A request of a client while it is handled."""

    __slots__ = ("_asked", "_client_id", "_connection", "_key", "_log", "_principal", "_request_id", "_subject")

    def __init__(
        self, log: AuditLog, connection: Connection, *, key: int, request_id: int, client_id: str, request: Any
    ) -> None:
        self._log = log
        self._connection = connection
        self._principal = connection.principal
        self._key = ApiKey(key)
        self._request_id = request_id
        self._client_id = client_id
        self._subject = getattr(request, "group_id", None) or getattr(request, "transactional_id", None) or ""
        """The group or transactional id of a request without parts."""
        name_changes = CHANGES.get(self._key)
        is_trial = getattr(request, "validate_only", False)
        self._asked = None if name_changes is None or is_trial else tuple(name_changes(request))

    def answered(self, response: Any, *, has_error: bool, wall_ms: int) -> bool:
        """Note what the response says; return whether it waits for the line to be written."""
        if self._key is ApiKey.SASL_AUTHENTICATE:
            self._note_login(response, wall_ms)
            return False
        errors = tuple(_errors(response, self._subject)) if has_error else ()
        refused = tuple(error for error in errors if error[1] in LACKS_PERMISSION)
        if self._asked is not None:
            self.changed(self._asked, errors, wall_ms)
            return True
        if refused:
            names = tuple(dict.fromkeys(f"{LACKS_PERMISSION[code]} {name}".rstrip() for name, code in refused))
            codes = tuple(dict.fromkeys(error_name(code) for _, code in refused))
            self._note(AuditKind.REFUSAL, AuditOutcome.REFUSED, wall_ms, names, codes)
        return False

    def changed(self, resources: tuple[str, ...], errors: tuple[tuple[str, int], ...], wall_ms: int) -> None:
        outcome = AuditOutcome.DONE
        if errors:
            is_refused = all(code in LACKS_PERMISSION for _, code in errors)
            outcome = AuditOutcome.REFUSED if is_refused else AuditOutcome.FAILED
            if 0 < len(errors) < len(resources):
                outcome = AuditOutcome.PARTLY_DONE
        texts = tuple(f"{name}: {error_name(code)}" if name else error_name(code) for name, code in errors)
        self._note(AuditKind.CHANGE, outcome, wall_ms, resources, texts)

    def created_topics(self, names: Iterable[str], wall_ms: int) -> None:
        """Note topics that the broker creates because the request names them; its response says whether they exist."""
        resources = tuple(f"topic {name}" for name in names)
        self._note(AuditKind.CHANGE, AuditOutcome.DONE, wall_ms, resources, action=AUTO_CREATION)

    def _note_login(self, response: Any, wall_ms: int) -> None:
        session = self._connection.sasl
        if session is None or session.state is SaslState.MESSAGE:
            return  # more messages follow
        is_rejected = session.state is SaslState.REJECTED
        if session.rejection is not None and not is_rejected:
            return  # the refusal of its token is noted, and this is the end of that exchange
        is_admitted = not response.error_code and not is_rejected
        error = ErrorCode.SASL_AUTHENTICATION_FAILED if is_rejected else response.error_code
        self._note(
            AuditKind.LOGIN,
            AuditOutcome.DONE if is_admitted else AuditOutcome.REFUSED,
            wall_ms,
            errors=() if is_admitted else (error_name(error),),
            action=session.mechanism,
            principal=self._connection.principal if is_admitted else Principal(USER, session.refused_user),
        )

    def _note(
        self,
        kind: AuditKind,
        outcome: AuditOutcome,
        wall_ms: int,
        resources: tuple[str, ...] = (),
        errors: tuple[str, ...] = (),
        *,
        action: str = "",
        principal: Principal | None = None,
    ) -> None:
        self._log.note(
            AuditEvent(
                kind=kind,
                action=action or self._key.name.lower(),
                principal=str(principal or self._principal),
                address=self._connection.peer_host,
                listener=self._connection.listener_name,
                outcome=outcome,
                wall_ms=wall_ms,
                request_id=self._request_id,
                client_id=self._client_id,
                resources=resources,
                errors=errors,
            )
        )


def _errors(message: Any, name: str) -> Iterator[tuple[str, int]]:
    """Yield the name of each part of a response that has an error, and its code."""
    name = next((str(found) for field in _NAMES if (found := getattr(message, field, None))), name)
    code = getattr(message, "error_code", 0)
    if code:
        yield name, code
    for field in getattr(message, "__slots__", ()):
        parts = getattr(message, field)
        if isinstance(parts, tuple) and parts and is_dataclass(parts[0]):
            for part in parts:
                yield from _errors(part, name)
