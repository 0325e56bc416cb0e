"""Every API and a client that lacks one operation, or all: Kafka's error, no change, and no word of what exists."""

import dataclasses
import re
from typing import Any

import pytest

from headrace.broker.api import describe_topic_partitions
from headrace.broker.api.access_table import CHECKS, WITHOUT_CHECK
from headrace.broker.api.registry import SERVED
from headrace.core.access.acls import Permission
from headrace.core.controller.access_rules import OPERATIONS
from headrace.model.access import AclResourceType, Operation
from headrace.model.errors import ErrorCode
from headrace.wire.apis import ApiKey
from headrace.wire.messages import find_coordinator
from tests.broker.virtual import Client
from tests.security.access_requests import CASES
from tests.security.ruled_broker import ADMIN, RESOURCES, STRANGER, create, rule, ruled_broker
from tests.transactions.wire import TransactionClient, wait_loaded

EXISTING, MISSING = "secret", "absent"
ADDRESS = re.compile("0x[0-9a-f]+")
"""The address of an object, in its representation."""

ASKED_LATER = {
    (ApiKey.COMMIT_BATCH, Operation.WRITE, AclResourceType.TOPIC),
    (ApiKey.CREATE_DELEGATION_TOKEN, Operation.CREATE_TOKENS, AclResourceType.USER),
    (ApiKey.LIST_METADATA_CHANGES, Operation.DESCRIBE, AclResourceType.TOPIC),
}
"""Checks that need more than one request or a login: test_batch_apis.py, test_metadata_changes.py and
test_token_logins.py have their tests.
"""


def host_without(operation, resource_type):
    """The address of a client that may do everything but this."""
    return f"10.1.{int(resource_type)}.{int(operation)}"


def secured_broker():
    broker = ruled_broker()
    denied = {(check.operation, check.resource_type) for checks in CHECKS.values() for check in checks}
    rules = []
    for operation, resource_type in sorted(each for each in denied if each[0] in OPERATIONS[each[1]]):
        host = host_without(operation, resource_type)
        rules.append(rule(resource_type, host, operation, Permission.DENY))
        rules += [rule(each, host, Operation.ALL) for each in RESOURCES]
    create(broker, rules)
    return broker


def populated():
    """A broker with a topic, groups, a transaction and a batch owner of one name."""
    broker = secured_broker().with_topic(EXISTING, partitions=2)
    admin = TransactionClient(broker, EXISTING)
    admin.find(EXISTING)
    wait_loaded(broker)
    admin.ask(
        ApiKey.FIND_COORDINATOR, 4, find_coordinator.FindCoordinatorRequest(key_type=0, coordinator_keys=(EXISTING,))
    )
    admin.initialized()
    assert admin.add(0, topic=EXISTING) == [ErrorCode.NONE]
    for key in (ApiKey.OFFSET_COMMIT, ApiKey.CONSUMER_GROUP_HEARTBEAT, ApiKey.BEGIN_BATCH_WRITER):
        case = next(each for each in CASES if each.key == key)
        broker.run_until(lambda case=case: not errors_in(send(broker, case, EXISTING, ADMIN)))
    return broker


def send(broker, case, name, host):
    version = case.version if case.version >= 0 else next(api.max_version for api in SERVED if api.key == case.key)
    client = Client(broker, from_host=host)
    answer = client.ask(case.key, version, case.request(name, version))
    client.close()
    broker.steps(5)
    return answer


def errors_in(message):
    """Every error code in a response, at any depth."""
    found = set()
    for field in dataclasses.fields(message):
        value = getattr(message, field.name)
        for each in value if isinstance(value, tuple) else (value,):
            if dataclasses.is_dataclass(each):
                found |= errors_in(each)
            elif field.name.endswith("error_code") and each:
                found.add(ErrorCode(each))
    return found


def folder(disk, path="data"):
    """The content of every file below the folder, without the checkpoints, which the broker writes every minute."""
    found: dict[str, bytes] = {}
    for name in disk.list_directory(path):
        inner = f"{path}/{name}"
        if disk.is_directory(inner):
            found |= folder(disk, inner)
        elif not name.endswith("-checkpoint"):
            file = disk.open(inner, writable=False)
            found[inner] = disk.read(file, disk.size(file), 0)
            disk.close(file)
    return found


def state(broker):
    node = broker.node.broker
    starts = {replica.log.path: replica.log.start_offset for replica in node.partitions}
    return node.image.version, len(node.scans._leases), starts, folder(broker.machine.disk)


@pytest.fixture(scope="module")
def broker():
    return populated()


@pytest.fixture(scope="module")
def asked():
    with pytest.MonkeyPatch.context() as monkeypatch:
        return recorded(monkeypatch)


def recorded(monkeypatch):
    """The operations on types of resources that the handler of each case asks about, if all of them are allowed."""
    broker = populated()
    found: dict[str, set[Any]] = {}
    access = broker.node.broker.access
    decide = access._decide
    monkeypatch.setattr(describe_topic_partitions, "authorized_operations", lambda *_operations: 0)
    for case in CASES:
        seen = found[named(case)] = set()

        def record(principal, host, operation, resource_type, name, seen=seen):
            seen.add((operation, resource_type))
            return decide(principal, host, operation, resource_type, name)

        access._decide = record
        send(broker, case, EXISTING, ADMIN)
        access._decide = decide
    return found


def named(case):
    return f"{case.key.name}-{CASES.index(case)}"


def test_every_served_api_is_in_the_table_and_the_matrix():
    served = {api.key for api in SERVED}
    assert set(CHECKS) == served
    assert {key for key, checks in CHECKS.items() if not checks} == set(WITHOUT_CHECK)
    assert {case.key for case in CASES} == served - set(WITHOUT_CHECK)


@pytest.mark.parametrize("case", CASES, ids=named)
def test_a_client_without_rights_gets_the_error_and_changes_nothing(broker, case):
    before = state(broker)
    answer = send(broker, case, EXISTING, STRANGER)
    assert errors_in(answer) == ({case.error} if case.error else set())
    assert state(broker) == before
    if case.error is None:
        assert EXISTING not in repr(answer)


@pytest.mark.parametrize("case", CASES, ids=named)
def test_a_client_without_rights_does_not_learn_what_exists(broker, case):
    existing, missing = (repr(send(broker, case, name, STRANGER)) for name in (EXISTING, MISSING))
    assert ADDRESS.sub("", existing.replace(EXISTING, MISSING)) == ADDRESS.sub("", missing)


@pytest.mark.parametrize("case", CASES, ids=named)
def test_a_client_that_lacks_one_operation_gets_its_error(broker, asked, case):
    lacking = [
        check
        for check in CHECKS[case.key]
        if (check.operation, check.resource_type) in asked[named(case)] and not check.is_alternative
    ]
    for check in lacking:
        before = state(broker)
        answer = send(broker, case, EXISTING, host_without(check.operation, check.resource_type))
        is_left_out = check.error is None or (case.lists_topics and check.resource_type == AclResourceType.TOPIC)
        if not is_left_out:
            assert errors_in(answer) == {check.error}, check
            assert state(broker) == before, check


def test_handlers_check_what_the_table_says(broker, asked):
    found: dict[ApiKey, set[Any]] = {key: set() for key in CHECKS}
    for case in CASES:
        found[case.key] |= asked[named(case)]
    listed = {key: {(check.operation, check.resource_type) for check in checks} for key, checks in CHECKS.items()}
    assert {key: operations - listed[key] for key, operations in found.items() if operations - listed[key]} == {}
    alternatives = {
        (key, check.operation, check.resource_type)
        for key, checks in CHECKS.items()
        for check in checks
        if check.is_alternative
    }
    unasked = {(key, *each) for key, operations in listed.items() for each in operations - found[key]}
    assert unasked - alternatives == ASKED_LATER


def test_the_first_lookup_of_a_client_without_rights_creates_no_internal_topic():
    broker = secured_broker()
    for case in CASES:
        if case.key in (ApiKey.FIND_COORDINATOR, ApiKey.ADD_OFFSETS_TO_TXN, ApiKey.JOIN_GROUP):
            send(broker, case, EXISTING, STRANGER)
    assert dict(broker.node.broker.image.topics) == {}
