"""Access rules of a cluster: a rule that is removed at one broker counts on the open connections to all of them.

The clients have no logins: the rules tell them apart by their addresses, which are all on the loopback interface.
"""

import time
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from headrace.client import Admin
from headrace.core.access.acls import AccessRule, PatternType, Permission, RuleFilter
from headrace.model.access import CLUSTER_NAME, AclResourceType, Operation
from headrace.model.configs.access import STANDARD_AUTHORIZER
from headrace.model.errors import ErrorCode
from headrace.testing import EmbeddedCluster
from headrace.wire.apis import ApiKey, codec
from headrace.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.broker.virtual import fetch_request
from tests.security.raw import Raw

pytestmark = pytest.mark.process

ADMIN, READER = "127.0.0.1", "127.0.0.9"
FETCH_VERSION = 12
PARKED_MS = 60_000
PARKED_S_MAX = 30.0
"""Answers that take longer may come from the end of the fetch's own wait."""


@pytest.fixture(scope="module")
def cluster() -> Iterator[EmbeddedCluster]:
    configs = {"authorizer.class.name": STANDARD_AUTHORIZER, "allow.everyone.if.no.acl.found": "true"}
    with EmbeddedCluster(brokers=3, config=configs) as running:
        yield running


def rule(kind: AclResourceType, name: str, host: str, operation: Operation) -> AccessRule:
    return AccessRule(kind, name, PatternType.LITERAL, "User:*", host, operation, Permission.ALLOW)


def send_fetch(connection: Any, partition: int, wait_ms: int) -> None:
    request = fetch_request([("t", partition, 0)], wait_ms=wait_ms)
    connection.send(ApiKey.FETCH, FETCH_VERSION, codec(ApiKey.FETCH).encode_request(request, FETCH_VERSION))


def error_of_fetch(connection: Any) -> int:
    frame = connection.read()
    answer = codec(ApiKey.FETCH).decode_response(memoryview(frame), 5, len(frame), FETCH_VERSION)
    error: int = answer.responses[0].partitions[0].error_code  # type: ignore[attr-defined]
    return error


def wait_until_allowed(connection: Any, partition: int) -> None:
    deadline = time.monotonic() + PARKED_S_MAX
    send_fetch(connection, partition, 0)
    while error_of_fetch(connection):
        assert time.monotonic() < deadline, "the rule does not reach the broker"
        time.sleep(0.05)
        send_fetch(connection, partition, 0)


def test_a_removed_rule_counts_at_every_broker(cluster: EmbeddedCluster) -> None:
    cluster.create_topic("t", partitions=3)
    reading = rule(AclResourceType.TOPIC, "t", READER, Operation.READ)
    everything = [
        rule(AclResourceType.TOPIC, "*", ADMIN, Operation.ALL),
        rule(AclResourceType.CLUSTER, CLUSTER_NAME, ADMIN, Operation.ALL),
    ]
    with ExitStack() as stack:
        admin = stack.enter_context(Admin(cluster.bootstrap_servers))
        assert not any(each.error for each in admin.create_access_rules([*everything, reading]).values())
        addresses = [address.strip() for address in cluster.bootstrap_servers.split(",")]
        asked = MetadataRequest(topics=(MetadataRequestTopic(name="t"),))
        found = stack.enter_context(Raw(addresses[0])).ask(ApiKey.METADATA, 9, asked)
        brokers = {broker.node_id: f"{broker.host}:{broker.port}" for broker in found.brokers}
        leaders = {part.partition_index: brokers[part.leader_id] for part in found.topics[0].partitions}
        assert len(set(leaders.values())) == 3
        readers = {part: stack.enter_context(Raw(leaders[part], source=READER)) for part in leaders}
        for part, connection in readers.items():
            wait_until_allowed(connection, part)
            send_fetch(connection, part, PARKED_MS)
        gone = RuleFilter(*reading)
        admin.delete_access_rules(gone)
        began = time.monotonic()
        refused = [error_of_fetch(connection) for connection in readers.values()]
        assert refused == [ErrorCode.TOPIC_AUTHORIZATION_FAILED] * 3
        assert time.monotonic() - began < PARKED_S_MAX
        for part, connection in readers.items():
            send_fetch(connection, part, 0)
            assert error_of_fetch(connection) == ErrorCode.TOPIC_AUTHORIZATION_FAILED
