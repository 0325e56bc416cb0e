"""A removed access rule counts at once, also for requests that wait and on connections that were let through before."""

from dataclasses import replace
from typing import Any

import pytest

from headrace.log.names import SCANS
from headrace.model.access import AclResourceType, Operation
from headrace.model.errors import ErrorCode
from headrace.wire.apis import ApiKey
from headrace.wire.messages import (
    consumer_group_heartbeat,
    create_topics,
    find_coordinator,
    list_metadata_changes,
    offset_commit,
    scan_manifest,
    scan_release,
)
from tests.broker.virtual import Client
from tests.security.ruled_broker import ADMIN, STRANGER, allow, create, forbid, rule, ruled_broker
from tests.transactions.wire import TransactionClient, known, wait_loaded

TOPIC, GROUP, CLUSTER, ID = (
    AclResourceType.TOPIC,
    AclResourceType.GROUP,
    AclResourceType.CLUSTER,
    AclResourceType.TRANSACTIONAL_ID,
)
LONG_MS = 30_000
READ_TOPIC = (TOPIC, Operation.READ)
REFUSED = ErrorCode.TOPIC_AUTHORIZATION_FAILED


@pytest.fixture
def broker():
    return ruled_broker().with_topic("t", partitions=2)


@pytest.fixture
def client(broker):
    return Client(broker, from_host=STRANGER)


def parked_fetch(client, *partitions, **options):
    request = client.send_fetch(*(("t", index, 0) for index in partitions), wait_ms=LONG_MS, **options)
    client._broker.steps()
    assert not client.has_answer(request)
    return request


def test_a_parked_fetch_is_refused_without_waiting_for_records(broker, client):
    allow(broker, STRANGER, READ_TOPIC)
    request = parked_fetch(client, 0, 1)
    began_ms = broker.machine.clock.monotonic_ms()
    forbid(broker, STRANGER)
    answer = client.wait(request)
    assert [each.error_code for each in answer.responses[0].partitions] == [REFUSED, REFUSED]
    assert broker.machine.clock.monotonic_ms() - began_ms < 1_000


def test_a_parked_fetch_of_a_session_is_refused_too(broker, client):
    allow(broker, STRANGER, READ_TOPIC)
    first = client.wait(client.send_fetch(("t", 0, 0), session_epoch=0))
    request = client.send_fetch(wait_ms=LONG_MS, session_id=first.session_id, session_epoch=1)
    broker.steps()
    assert not client.has_answer(request)
    forbid(broker, STRANGER)
    assert client.wait(request).responses[0].partitions[0].error_code == REFUSED


def test_other_rules_leave_a_parked_fetch_parked(broker, client):
    allow(broker, STRANGER, READ_TOPIC)
    allow(broker, "10.9.9.9", READ_TOPIC)
    request = parked_fetch(client, 0)
    forbid(broker, "10.9.9.9")
    broker.steps()
    assert not client.has_answer(request)
    broker.client().produce("t")
    assert not client.wait(request).responses[0].partitions[0].error_code


def test_equal_produce_requests_are_refused(broker, client):
    allow(broker, STRANGER, (TOPIC, Operation.WRITE))
    content = client.batch()
    for _ in range(5):
        assert not client.produce_error("t", content=content)
    assert any(each.produce_shapes for each in broker.node.broker.client_connections.open()), "the short path is taken"
    forbid(broker, STRANGER)
    assert client.produce_error("t", content=content) == REFUSED
    allow(broker, STRANGER, (TOPIC, Operation.WRITE))
    assert not client.produce_error("t", content=content)


def test_equal_offset_commits_are_refused(broker, client):
    allow(broker, STRANGER, READ_TOPIC, (GROUP, Operation.READ))
    broker.client().ask(ApiKey.FIND_COORDINATOR, 4, find_coordinator.FindCoordinatorRequest(coordinator_keys=("g",)))
    partition = offset_commit.OffsetCommitRequestPartition(partition_index=0, committed_offset=1)
    topic = offset_commit.OffsetCommitRequestTopic(name="t", partitions=(partition,))
    request = offset_commit.OffsetCommitRequest(group_id="g", topics=(topic,))

    def commit():
        return client.ask(ApiKey.OFFSET_COMMIT, 8, request).topics[0].partitions[0].error_code

    broker.run_until(lambda: not commit())
    assert [commit() for _ in range(4)] == [0] * 4
    (connection,) = [each for each in broker.node.broker.client_connections.open() if each.commits]
    assert connection.commits.template is not None, "the short path is taken"
    forbid(broker, STRANGER)
    assert commit() == ErrorCode.GROUP_AUTHORIZATION_FAILED


def manifest(client, *topics, lease_id=bytes(16)):
    request = scan_manifest.ScanManifestRequest(
        lease_id=lease_id,
        lease_ms=LONG_MS,
        topics=tuple(
            scan_manifest.ScanManifestRequestTopic(
                name=name, partitions=(scan_manifest.ScanManifestRequestPartition(partition_index=0),)
            )
            for name in topics
        ),
    )
    return client.ask(ApiKey.SCAN_MANIFEST, 0, request)


def scan_folders(broker):
    disk = broker.machine.disk
    return disk.list_directory(f"data/{SCANS}") if disk.exists(f"data/{SCANS}") else []


def test_a_scan_lease_ends_with_the_rule(broker, client):
    broker.client().produce("t")
    allow(broker, STRANGER, READ_TOPIC, (CLUSTER, Operation.CLUSTER_ACTION))
    answer = manifest(client, "t")
    assert not answer.topics[0].partitions[0].error_code
    assert scan_folders(broker)
    began_ms = broker.machine.clock.monotonic_ms()
    forbid(broker, STRANGER)
    broker.run_until(lambda: not scan_folders(broker))
    assert broker.machine.clock.monotonic_ms() - began_ms < 1_000
    assert manifest(client, lease_id=answer.lease_id).error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


@pytest.mark.parametrize("lacking", [READ_TOPIC, (CLUSTER, Operation.CLUSTER_ACTION)])
def test_a_scan_needs_read_and_cluster_action(broker, client, lacking):
    allow(broker, STRANGER, *{READ_TOPIC, (CLUSTER, Operation.CLUSTER_ACTION)} - {lacking})
    answer = manifest(client, "t")
    assert answer.topics[0].partitions[0].error_code == REFUSED
    assert answer.lease_id == bytes(16)
    assert answer.directories == ()


def test_a_lease_belongs_to_its_principal(broker, client, monkeypatch):
    broker.client().produce("t")
    lease_id = manifest(broker.client(), "t").lease_id
    (lease,) = broker.node.broker.scans._leases.values()
    monkeypatch.setattr(lease, "client", lease.client._replace(principal="User:other"))
    client.ask(ApiKey.SCAN_RELEASE, 0, scan_release.ScanReleaseRequest(lease_id=lease_id))
    broker.steps()
    assert scan_folders(broker), "the release of another principal is passed over"


def test_a_wait_for_changes_of_the_metadata_ends_with_the_rule(broker, client):
    allow(broker, STRANGER, (CLUSTER, Operation.DESCRIBE), (TOPIC, Operation.DESCRIBE))

    def ask(version, wait_ms=0):
        request = list_metadata_changes.ListMetadataChangesRequest(after_version=version, wait_ms=wait_ms)
        return client.send(ApiKey.LIST_METADATA_CHANGES, 0, request)

    version = client.wait(ask(-1)).version
    request = ask(version, LONG_MS)
    broker.steps()
    assert not client.has_answer(request)
    forbid(broker, STRANGER)
    assert client.wait(request).error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED


def test_changes_of_topics_are_shown_to_those_who_may_describe_them(broker, client):
    allow(broker, STRANGER, (CLUSTER, Operation.DESCRIBE))
    admin, seen = broker.client(), []
    for each in (admin, client):
        each.version = each.ask(
            ApiKey.LIST_METADATA_CHANGES, 0, list_metadata_changes.ListMetadataChangesRequest()
        ).version
    admin.create_topic("new")
    for each in (admin, client):
        request = list_metadata_changes.ListMetadataChangesRequest(after_version=each.version)
        seen.append([topic.name for topic in each.ask(ApiKey.LIST_METADATA_CHANGES, 0, request).topics])
    assert seen == [["new"], []]


def test_a_transaction_gets_no_partition_of_a_topic_that_its_producer_may_not_write(broker):
    """The transaction would end with a marker in it."""
    allow(broker, STRANGER, (ID, Operation.ALL))
    producer = TransactionClient(broker, from_host=STRANGER)
    producer.find("id")
    wait_loaded(broker)
    producer.initialized()
    assert producer.wait(producer.send_write(b"x")).responses[0].partition_responses[0].error_code == REFUSED
    assert not known(broker).partitions


@pytest.mark.parametrize("version", [0, 4, 12])
def test_a_topic_that_the_client_may_not_create_is_refused(broker, client, version):
    allow(broker, STRANGER, (TOPIC, Operation.DESCRIBE))
    (topic,) = client.metadata("missing", version=version, allow_creation=True).topics
    assert topic.error_code == REFUSED
    assert "missing" not in broker.node.broker.image.topics
    allow(broker, STRANGER, (TOPIC, Operation.CREATE))
    client.metadata("missing", version=version, allow_creation=True)
    assert "missing" in broker.node.broker.image.topics


@pytest.mark.parametrize(("host", "error"), [(ADMIN, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION), (STRANGER, REFUSED)])
def test_no_client_reads_the_metadata_log(broker, host, error):
    client = Client(broker, from_host=host)
    answer = client.wait(client.send_fetch(("__cluster_metadata", 0, 0)))
    assert [each.error_code for each in answer.responses[0].partitions] == [error]


def test_no_client_fetches_as_a_replica(broker):
    client = broker.client()
    answer = client.wait(client.send_fetch(("t", 0, 0), replica_id=1))
    assert answer.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED


@pytest.mark.parametrize("version", [0, 7])
def test_no_client_creates_the_metadata_log(broker, version):
    topic = create_topics.CreateTopicsRequestTopic(name="__cluster_metadata", num_partitions=1, replication_factor=1)
    request = create_topics.CreateTopicsRequest(topics=(topic,), timeout_ms=LONG_MS)
    (topic,) = broker.client().ask(ApiKey.CREATE_TOPICS, version, request).topics
    assert topic.error_code == REFUSED


def test_a_regular_expression_matches_what_the_member_may_describe(broker, client):
    """And the group follows the rules: its assignment changes when they do."""
    broker.with_topic("secret")
    ids = {name: broker.client().topic_id(name) for name in ("t", "secret")}
    allow(broker, STRANGER, (GROUP, Operation.READ))
    create(broker, [replace(rule(TOPIC, STRANGER, Operation.DESCRIBE), resource_name="t")])
    broker.client().ask(ApiKey.FIND_COORDINATOR, 4, find_coordinator.FindCoordinatorRequest(coordinator_keys=("g",)))
    joining = consumer_group_heartbeat.ConsumerGroupHeartbeatRequest(
        group_id="g", member_id="m", rebalance_timeout_ms=LONG_MS, subscribed_topic_regex=".*", topic_partitions=()
    )
    joined: list[Any] = []

    def join():
        joined[:] = [client.ask(ApiKey.CONSUMER_GROUP_HEARTBEAT, 1, joining)]
        return not joined[0].error_code

    broker.run_until(join)
    assert [each.topic_id for each in joined[0].assignment.topic_partitions] == [ids["t"]]
    create(broker, [replace(rule(TOPIC, STRANGER, Operation.DESCRIBE), resource_name="secret")])
    again = replace(joining, member_epoch=joined[0].member_epoch, topic_partitions=None)
    answer = client.ask(ApiKey.CONSUMER_GROUP_HEARTBEAT, 1, again)
    assert {each.topic_id for each in answer.assignment.topic_partitions} == set(ids.values())
