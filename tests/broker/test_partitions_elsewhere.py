"""A broker of a cluster opens the partitions that it holds, and tells clients where the others are."""

from typing import Any

import pytest

from headrace.broker.cluster.controller_host import ControllerHost
from headrace.core.controller.records import BrokerRegistrationChangeRecord, PartitionChangeRecord
from headrace.model.errors import ErrorCode as E
from headrace.model.limits import FETCH_PARTITIONS_PER_SLICE
from headrace.wire.apis import ApiKey
from headrace.wire.messages import (
    create_partitions,
    describe_cluster,
    describe_configs,
    list_offsets,
    offset_for_leader_epoch,
)
from tests.broker.other_brokers import (
    NO_LEADER,
    OTHER,
    OTHER_HOST,
    OTHER_PORT,
    THIS,
    commit_and_wait,
    create_elsewhere,
    elect,
    election,
    registration,
)
from tests.broker.virtual import BROKER_RESOURCE, HOST, LONG_MS, PORT, VirtualBroker, produce_request


@pytest.fixture
def broker():
    broker = VirtualBroker()
    commit_and_wait(broker, registration(rack="b"))
    return broker


@pytest.fixture
def client(broker):
    return broker.client()


def folders(broker):
    return sorted(name for name in broker.machine.disk.list_directory("data") if name.startswith("t-"))


def test_only_the_partitions_of_this_broker_are_opened(broker, client):
    create_elsewhere(client, "t", THIS, OTHER)
    assert folders(broker) == ["t-0"]
    assert client.produce_error("t", 0) == E.NONE
    assert client.produce_error("t", 1) == E.NOT_LEADER_OR_FOLLOWER
    assert client.fetch("t", 1).error_code == E.NOT_LEADER_OR_FOLLOWER
    assert client.produce_error("t", 2) == E.UNKNOWN_TOPIC_OR_PARTITION
    broker.restart()
    assert folders(broker) == ["t-0"]
    assert broker.client().fetch("t", 1).error_code == E.NOT_LEADER_OR_FOLLOWER


def test_metadata_names_the_leader_of_every_partition_and_its_address(broker, client):
    create_elsewhere(client, "t", THIS, OTHER)
    answer = client.metadata("t")
    known = [(each.node_id, each.host, each.port, each.rack) for each in answer.brokers]
    assert known == [(THIS, HOST, PORT, None), (OTHER, OTHER_HOST, OTHER_PORT, "b")]
    found = answer.topics[0].partitions
    assert [(each.error_code, each.leader_id, each.isr_nodes, each.offline_replicas) for each in found] == [
        (E.NONE, THIS, (THIS,), ()),
        (E.NONE, OTHER, (OTHER,), ()),
    ]


def test_partitions_that_are_added_elsewhere_are_not_opened(broker, client):
    create_elsewhere(client, "t", THIS)
    assignment = create_partitions.CreatePartitionsRequestAssignment(broker_ids=(OTHER,))
    topic = create_partitions.CreatePartitionsRequestTopic(name="t", count=2, assignments=(assignment,))
    request = create_partitions.CreatePartitionsRequest(topics=(topic,), timeout_ms=LONG_MS)
    assert client.ask(ApiKey.CREATE_PARTITIONS, 3, request).results[0].error_code == E.NONE
    assert client.produce_error("t", 1) == E.NOT_LEADER_OR_FOLLOWER
    assert folders(broker) == ["t-0"]


def test_a_partition_that_gets_a_replica_here_is_opened(broker, client):
    create_elsewhere(client, "t", OTHER)
    elect(broker, "t", 0, THIS, replicas=(THIS,))
    broker.run_until(lambda: broker.partition("t") is not None)
    assert client.produce_error("t") == E.NONE


def test_a_partition_that_moves_to_another_broker_keeps_its_folder_until_the_next_start(broker, client):
    create_elsewhere(client, "t", THIS)
    client.produce("t")
    elect(broker, "t", 0, OTHER, replicas=(OTHER,))
    assert client.produce_error("t") == E.NOT_LEADER_OR_FOLLOWER
    assert folders(broker) == ["t-0"]
    broker.restart()
    (kept,) = folders(broker)
    assert kept.startswith("t-0.")
    assert kept.endswith("-stray")
    assert "belongs to no partition" in "".join(broker.log_lines)


def test_a_topic_that_was_deleted_and_created_again_meanwhile_has_no_old_record(broker, client):
    create_elsewhere(client, "t", THIS)
    client.produce("t", content=client.batch(b"old"))
    # The broker is as good as down: it does not learn of the changes before its next start.
    broker.node.broker.partitions.apply = lambda delta, image: None
    assert client.delete_topic("t") == E.NONE
    create_elsewhere(client, "t", THIS)
    broker.machine.kill()
    broker.boot()
    reader = broker.client()
    assert reader.read_all("t") == []
    assert reader.produce("t", content=reader.batch(b"new")).base_offset == 0
    assert reader.read_all("t") == [b"new"]


def test_a_topic_that_was_created_again_elsewhere_has_no_old_record(broker, client):
    create_elsewhere(client, "t", THIS)
    client.produce("t", content=client.batch(b"old"))
    broker.node.broker.partitions.apply = lambda delta, image: None
    assert client.delete_topic("t") == E.NONE
    create_elsewhere(client, "t", OTHER)
    broker.machine.kill()
    broker.boot()
    assert broker.client().fetch("t").error_code == E.NOT_LEADER_OR_FOLLOWER
    elect(broker, "t", 0, THIS, replicas=(THIS,))
    broker.run_until(lambda: broker.partition("t") is not None)
    assert broker.client().read_all("t") == []


def test_a_partition_whose_in_sync_set_changes_serves_on(broker, client):
    create_elsewhere(client, "t", THIS)
    topic_id = client.topic_id("t")
    commit_and_wait(broker, PartitionChangeRecord(topic_id, 0, isr=(THIS,)))
    assert client.produce_error("t") == E.NONE
    assert broker.partition("t").role.partition_epoch == 1


def test_a_full_disk_refuses_new_topics_only_where_no_other_broker_exists(broker, client):
    alone = VirtualBroker()
    for each in (alone, broker):
        (directory,) = each.node.broker.partitions.directories
        directory.space.full = True
    refused = alone.client().create_topic("t")
    assert (refused.error_code, "log directories are full" in refused.error_message) == (E.KAFKA_STORAGE_ERROR, True)
    create_elsewhere(client, "t", OTHER)


def test_only_a_broker_itself_describes_its_configs(client):
    def described(node_id):
        resource = describe_configs.DescribeConfigsRequestResource(
            resource_type=BROKER_RESOURCE, resource_name=str(node_id), configuration_keys=("node.id",)
        )
        request = describe_configs.DescribeConfigsRequest(resources=(resource,))
        return client.ask(ApiKey.DESCRIBE_CONFIGS, 4, request).results[0]

    assert described(THIS).configs[0].value == str(THIS)
    refused = described(OTHER)
    assert (refused.error_code, refused.configs) == (E.INVALID_REQUEST, ())
    assert "ask broker 2 itself" in refused.error_message


def hint(response, answer):
    """Where an answer sends its client: the leader, its epoch, and the addresses in the response."""
    leader = answer.current_leader
    addresses = [(each.node_id, each.host, each.port, each.rack) for each in response.node_endpoints]
    return leader.leader_id, leader.leader_epoch, addresses


NO_HINT: tuple[int, int, list[Any]] = (-1, -1, [])
OTHER_ADDRESS = (OTHER, OTHER_HOST, OTHER_PORT, "b")


@pytest.mark.parametrize(("version", "is_named"), [(9, False), (10, True), (12, True)])
def test_an_error_of_produce_names_the_leader(broker, client, version, is_named):
    create_elsewhere(client, "t", THIS, OTHER)
    elect(broker, "t", 1, OTHER)
    both = [(1, client.batch()), (0, client.batch())]
    response = client.ask(ApiKey.PRODUCE, version, produce_request([("t", both)], version=version))
    missed, written = response.responses[0].partition_responses
    assert (missed.error_code, written.error_code) == (E.NOT_LEADER_OR_FOLLOWER, E.NONE)
    assert hint(response, missed) == ((OTHER, 1, [OTHER_ADDRESS]) if is_named else NO_HINT)
    assert written.current_leader.leader_id == -1


def test_a_repeated_produce_request_learns_of_the_new_leader(broker, client):
    create_elsewhere(client, "t", THIS)
    for _ in range(3):
        assert client.produce_error("t", version=11) == E.NONE
    elect(broker, "t", 0, OTHER)
    response = client.wait(client.send_produce("t", version=11))
    answer = response.responses[0].partition_responses[0]
    assert answer.error_code == E.NOT_LEADER_OR_FOLLOWER
    assert hint(response, answer) == (OTHER, 1, [OTHER_ADDRESS])


@pytest.mark.parametrize(("version", "is_named"), [(15, False), (16, True), (17, True)])
def test_an_error_of_fetch_names_the_leader(broker, client, version, is_named):
    create_elsewhere(client, "t", THIS, OTHER)
    topic_id = client.topic_id("t")
    response = client.wait(client.send_fetch((topic_id, 1, 0), (topic_id, 0, 0), version=version, by_id=True))
    missed, read = response.responses[0].partitions
    assert (missed.error_code, read.error_code) == (E.NOT_LEADER_OR_FOLLOWER, E.NONE)
    assert hint(response, missed) == ((OTHER, 0, [OTHER_ADDRESS]) if is_named else NO_HINT)
    assert read.current_leader.leader_id == -1


def test_a_parked_fetch_learns_of_the_new_leader(broker, client):
    create_elsewhere(client, "t", THIS)
    waiting = client.send_fetch((client.topic_id("t"), 0, 0), version=17, by_id=True, wait_ms=LONG_MS)
    broker.steps()
    elect(broker, "t", 0, OTHER)
    response = client.wait(waiting)
    assert hint(response, response.responses[0].partitions[0]) == (OTHER, 1, [OTHER_ADDRESS])


@pytest.mark.parametrize("versions", [(13,), (12,), (10,), (9,), (12, 11)], ids=str)
def test_a_parked_produce_request_learns_of_the_new_leader(versions):
    """Unless the connection has used several versions: its encoded responses do not say which one they have."""
    broker = VirtualBroker().with_topic("own", partitions=2, flush_messages=1)
    commit_and_wait(broker, registration(rack="b"))
    client = broker.client()
    for version in versions[1:]:
        client.produce("own", 1, version=version)
    broker.hold_syncs()
    contents = [("own" if versions[0] < 13 else client.topic_id("own"), [(0, client.batch()), (1, client.batch())])]
    request = produce_request(contents, acks=-1, timeout_ms=LONG_MS, version=versions[0])
    waiting = client.send(ApiKey.PRODUCE, versions[0], request)
    ends = [broker.partition("own", index).log.end_offset for index in (0, 1)]
    broker.run_until(lambda: [broker.partition("own", index).log.end_offset for index in (0, 1)] > ends)
    broker.steps()
    commit_and_wait(broker, election(broker, "own", 0, OTHER), election(broker, "own", 1, OTHER))
    response = client.wait(waiting)
    refused = response.responses[0].partition_responses
    assert [(each.index, each.error_code, each.base_offset) for each in refused] == [
        (0, E.NOT_LEADER_OR_FOLLOWER, -1),
        (1, E.NOT_LEADER_OR_FOLLOWER, -1),
    ]
    is_named = len(versions) == 1 and versions[0] >= 10
    for each in refused:
        assert hint(response, each) == ((OTHER, 1, [OTHER_ADDRESS]) if is_named else NO_HINT)


def test_a_fetch_of_many_partitions_names_each_leader(broker, client):
    create_elsewhere(client, "t", *[OTHER] * (FETCH_PARTITIONS_PER_SLICE + 1))
    topic_id = client.topic_id("t")
    wanted = [(topic_id, index, 0) for index in range(FETCH_PARTITIONS_PER_SLICE + 1)]
    response = client.wait(client.send_fetch(*wanted, version=17, by_id=True))
    answers = [answer for topic in response.responses for answer in topic.partitions]
    assert {hint(response, answer)[:2] for answer in answers} == {(OTHER, 0)}
    assert hint(response, answers[-1])[2] == [OTHER_ADDRESS]


def test_a_fenced_client_learns_of_the_new_epoch(broker, client):
    create_elsewhere(client, "t", THIS)
    elect(broker, "t", 0, THIS)
    topic_id = client.topic_id("t")
    response = client.wait(client.send_fetch((topic_id, 0, 0), version=17, by_id=True, leader_epoch=0))
    answer = response.responses[0].partitions[0]
    assert answer.error_code == E.FENCED_LEADER_EPOCH
    assert hint(response, answer) == (THIS, 1, [(THIS, HOST, PORT, None)])


def test_a_partition_without_a_leader_has_no_hint(broker, client):
    create_elsewhere(client, "t", THIS)
    elect(broker, "t", 0, NO_LEADER)
    response = client.wait(client.send_fetch((client.topic_id("t"), 0, 0), version=17, by_id=True))
    assert hint(response, response.responses[0].partitions[0]) == NO_HINT
    (described,) = client.metadata("t").topics[0].partitions
    assert (described.error_code, described.leader_id) == (E.LEADER_NOT_AVAILABLE, -1)


def test_a_client_that_knows_a_newer_epoch_than_this_broker_retries_here(broker, client):
    create_elsewhere(client, "t", THIS)
    elect(broker, "t", 0, OTHER)
    assert client.fetch("t", leader_epoch=0).error_code == E.FENCED_LEADER_EPOCH
    assert client.fetch("t", leader_epoch=1).error_code == E.NOT_LEADER_OR_FOLLOWER
    assert client.fetch("t", leader_epoch=2).error_code == E.UNKNOWN_LEADER_EPOCH
    for epoch, error in ((0, E.FENCED_LEADER_EPOCH), (1, E.NOT_LEADER_OR_FOLLOWER), (2, E.UNKNOWN_LEADER_EPOCH)):
        asked = list_offsets.ListOffsetsRequestPartition(partition_index=0, current_leader_epoch=epoch, timestamp=-1)
        topic = list_offsets.ListOffsetsRequestTopic(name="t", partitions=(asked,))
        request = list_offsets.ListOffsetsRequest(replica_id=-1, topics=(topic,))
        assert client.ask(ApiKey.LIST_OFFSETS, 7, request).topics[0].partitions[0].error_code == error
        wanted = offset_for_leader_epoch.OffsetForLeaderEpochRequestPartition(
            partition=0, current_leader_epoch=epoch, leader_epoch=0
        )
        by_epoch = offset_for_leader_epoch.OffsetForLeaderEpochRequestTopic(topic="t", partitions=(wanted,))
        asking = offset_for_leader_epoch.OffsetForLeaderEpochRequest(replica_id=-1, topics=(by_epoch,))
        assert client.ask(ApiKey.OFFSET_FOR_LEADER_EPOCH, 4, asking).topics[0].partitions[0].error_code == error


def test_a_fenced_broker_is_left_out_and_its_partitions_have_no_leader(broker, client):
    create_elsewhere(client, "t", THIS, OTHER)
    commit_and_wait(broker, BrokerRegistrationChangeRecord(OTHER, 1, fenced=True))
    answer = client.metadata("t")
    assert [each.node_id for each in answer.brokers] == [THIS]
    found = answer.topics[0].partitions[1]
    assert (found.error_code, found.leader_id, found.isr_nodes) == (E.LEADER_NOT_AVAILABLE, -1, ())
    assert (found.replica_nodes, found.offline_replicas) == ((OTHER,), (OTHER,))
    response = client.wait(client.send_fetch((client.topic_id("t"), 1, 0), version=17, by_id=True))
    assert hint(response, response.responses[0].partitions[0]) == NO_HINT
    commit_and_wait(broker, BrokerRegistrationChangeRecord(OTHER, 1, fenced=False))
    assert client.metadata("t").topics[0].partitions[1].leader_id == OTHER


def test_describe_cluster_shows_fenced_brokers_on_request(broker, client):
    commit_and_wait(broker, BrokerRegistrationChangeRecord(OTHER, 1, fenced=True))

    def described(version, *, include_fenced=False):
        request = describe_cluster.DescribeClusterRequest(include_fenced_brokers=include_fenced)
        answer = client.ask(ApiKey.DESCRIBE_CLUSTER, version, request)
        return [(each.broker_id, each.is_fenced) for each in answer.brokers]

    assert described(1) == described(2) == [(THIS, False)]
    assert described(2, include_fenced=True) == [(THIS, False), (OTHER, True)]


@pytest.mark.parametrize("active", [THIS, OTHER, 77, None])
def test_a_broker_names_itself_as_the_controller(client, monkeypatch, active):
    """It forwards to the active controller, which clients need not reach and which may just have died."""
    monkeypatch.setattr(ControllerHost, "active_controller", active)
    answered = {client.metadata("t").controller_id}
    answered |= {client.ask(ApiKey.DESCRIBE_CLUSTER, 1, describe_cluster.DescribeClusterRequest()).controller_id}
    assert answered == {THIS}


def test_a_leader_without_the_listener_of_the_client_is_not_named(broker, client):
    create_elsewhere(client, "t", OTHER)
    assert client.metadata("t").topics[0].partitions[0].leader_id == OTHER
    commit_and_wait(broker, registration(listener="INSIDE"))
    answer = client.metadata("t")
    assert [each.node_id for each in answer.brokers] == [THIS]
    (found,) = answer.topics[0].partitions
    assert (found.error_code, found.leader_id, found.offline_replicas) == (E.LEADER_NOT_AVAILABLE, -1, (OTHER,))
