"""A broker of a cluster opens the partitions that it holds, and tells clients where the others are."""

import pytest

from headrace.core.controller.records import PartitionChangeRecord
from headrace.model.errors import ErrorCode as E
from headrace.wire.apis import ApiKey
from headrace.wire.messages import create_partitions, describe_configs
from tests.broker.other_brokers import (
    OTHER,
    OTHER_HOST,
    OTHER_PORT,
    THIS,
    commit_and_wait,
    create_elsewhere,
    elect,
    registration,
)
from tests.broker.virtual import BROKER_RESOURCE, HOST, LONG_MS, PORT, VirtualBroker


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
