"""ElectLeaders, reassignments and reports of log ends, on a whole node and between nodes."""

import pytest

from headrace.core.controller.commands import CreatableTopic, IsrAlteration, IsrChange, IsrMember
from headrace.core.controller.settings import ControllerSettings
from headrace.model.errors import ErrorCode
from headrace.model.ids import NO_NODE, NodeId
from headrace.wire.apis import ApiKey
from headrace.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsRequestPartition,
    AlterPartitionReassignmentsRequestTopic,
)
from headrace.wire.messages.check_records import CheckRecordsRequest
from headrace.wire.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsRequestTopic,
)
from headrace.wire.messages.elect_leaders import ElectLeadersRequest, ElectLeadersRequestTopic
from headrace.wire.messages.list_partition_reassignments import ListPartitionReassignmentsRequest
from headrace.wire.messages.report_log_ends import ReportLogEndsRequest, ReportLogEndsRequestPartition
from headrace.wire.messages.report_replica_faults import (
    ReportReplicaFaultsRequest,
    ReportReplicaFaultsRequestPartition,
)
from tests.cluster.admin_requests import create, describe, each_version, image, topic
from tests.cluster.pairs import TWO, Pair

ONE = NodeId(1)
BOOT = {"boot_id": "first", "metadata_directory": b"d" * 16}


def elect(client, *names, election_type=0, version=2):
    wanted = tuple(ElectLeadersRequestTopic(topic=name, partitions=(0,)) for name in names) if names else None
    request = ElectLeadersRequest(election_type=election_type, topic_partitions=wanted)
    return client.ask(ApiKey.ELECT_LEADERS, version, request)


def move(client, *replicas, name="orders", version=1):
    partition = AlterPartitionReassignmentsRequestPartition(partition_index=0, replicas=replicas)
    wanted = AlterPartitionReassignmentsRequestTopic(name=name, partitions=(partition,))
    request = AlterPartitionReassignmentsRequest(topics=(wanted,))
    return client.ask(ApiKey.ALTER_PARTITION_REASSIGNMENTS, version, request)


class TestElectLeaders:
    @each_version(ApiKey.ELECT_LEADERS)
    def test_every_version(self, client, version):
        create(client, topic("orders"))
        response = elect(client, "orders", "nowhere", version=version)
        orders, nowhere = response.replica_election_results
        assert (orders.topic, orders.partition_result[0].error_code) == ("orders", ErrorCode.ELECTION_NOT_NEEDED)
        assert nowhere.partition_result[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert "broker 1 leads the partition already" in orders.partition_result[0].error_message
        assert response.error_code == ErrorCode.NONE

    def test_all_partitions_need_none(self, client):
        create(client, topic("orders"))
        assert elect(client).replica_election_results == ()

    def test_an_unknown_type(self, client):
        response = elect(client, "orders", election_type=7)
        assert response.error_code == ErrorCode.INVALID_REQUEST
        assert response.replica_election_results[0].partition_result[0].error_code == ErrorCode.INVALID_REQUEST


class TestReassignments:
    @each_version(ApiKey.ALTER_PARTITION_REASSIGNMENTS)
    def test_every_version(self, client, version):
        create(client, topic("orders"))
        response = move(client, 9, version=version)
        (orders,) = response.responses
        assert (response.error_code, orders.name) == (ErrorCode.NONE, "orders")
        (partition,) = orders.partitions
        assert partition.error_code == ErrorCode.INVALID_REPLICA_ASSIGNMENT
        assert "broker 9, which is not registered" in partition.error_message
        assert move(client, 1, version=version).responses[0].partitions[0].error_code == ErrorCode.NONE

    def test_none_is_under_way(self, client):
        create(client, topic("orders"))
        response = client.ask(ApiKey.LIST_PARTITION_REASSIGNMENTS, 0, ListPartitionReassignmentsRequest(topics=None))
        assert (response.error_code, response.topics) == (ErrorCode.NONE, ())


class TestDefaults:
    def test_a_cluster_of_one_host_has_one_replica_and_a_minimum_of_one(self, client, node):
        create(client, topic("orders", -1, -1))
        assert len(image(node).topics["orders"].partitions[0].replicas) == 1
        (minimum,) = describe(client, 2, "orders", keys=("min.insync.replicas",)).configs
        assert (minimum.value, minimum.config_source) == ("1", 5)


@pytest.fixture
def pair():
    pair = Pair()
    pair.controller.configure(ControllerSettings(replication_factor_max=3))
    return pair


def created(pair, *replicas, **configs):
    pair.register(**BOOT)
    pair.beat(pair.image.brokers[TWO].broker_epoch)
    new = CreatableTopic(name="orders", assignments=[(0, [NodeId(node) for node in replicas])], configs=configs.items())
    proposal = pair.controller.create_topics([new])
    pair.peers.run_until(lambda: proposal.outcome is not None)
    assert not proposal.outcome[0].error, proposal.outcome
    return pair.image.brokers[TWO].broker_epoch


def state(pair):
    return pair.image.topics["orders"].partitions[0]


def report(pair, epoch, *, broker_id=2, end_offset=10):
    topic_id = pair.image.topics["orders"].topic_id
    end = ReportLogEndsRequestPartition(topic_id=topic_id, partition_index=0, leader_epoch=0, end_offset=end_offset)
    request = ReportLogEndsRequest(broker_id=broker_id, broker_epoch=epoch, partitions=(end,))
    return pair.ask(ApiKey.REPORT_LOG_ENDS, 0, request).error_code


def test_a_node_reports_its_own_logs_alone(pair):
    epoch = created(pair, 2, 1)
    assert report(pair, epoch, broker_id=1) == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    assert report(pair, epoch) == ErrorCode.NONE
    assert (state(pair).leader, state(pair).leader_epoch) == (2, 0)


def test_a_replica_that_alone_had_every_record_leads_after_its_report(pair):
    epoch = created(pair, 2, 1)
    topic_id = pair.image.topics["orders"].topic_id
    pair.controller.propose(lambda controller: controller.alter_isrs(isr_without_one(controller, topic_id, epoch)))
    pair.peers.run_until(lambda: state(pair).isr == (2,))
    restarted = pair.register(**BOOT | {"boot_id": "second"}, incarnation=b"2" * 16).broker_epoch
    assert (state(pair).leader, state(pair).isr, state(pair).last_known_elr) == (NO_NODE, (), (2,))
    pages = DescribeTopicPartitionsRequest(topics=(DescribeTopicPartitionsRequestTopic(name="orders"),))
    (described,) = pair.ask(ApiKey.DESCRIBE_TOPIC_PARTITIONS, 0, pages).topics
    assert described.partitions[0].last_known_elr == (2,)
    assert report(pair, restarted) == ErrorCode.NONE
    pair.peers.steps()
    assert state(pair).leader == NO_NODE  # the broker is fenced still
    pair.beat(restarted)
    assert report(pair, restarted) == ErrorCode.NONE
    pair.peers.run_until(lambda: state(pair).leader == 2)
    assert (state(pair).isr, state(pair).last_known_elr) == ((2,), ())
    assert pair.one.said("broker 2 leads, because its log ends at offset 10")


def isr_without_one(controller, topic_id, epoch):
    current = controller.image.topics_by_id[topic_id].partitions[0]
    change = IsrChange(topic_id, 0, current.leader_epoch, current.partition_epoch, (IsrMember(TWO, epoch),))
    return IsrAlteration(node_id=TWO, broker_epoch=epoch, changes=[change])


def report_fault(pair, epoch, *, broker_id=2, fault=0, leader_epoch=0):
    topic_id = pair.image.topics["orders"].topic_id
    faulty = ReportReplicaFaultsRequestPartition(
        topic_id=topic_id, partition_index=0, leader_epoch=leader_epoch, fault=fault
    )
    request = ReportReplicaFaultsRequest(broker_id=broker_id, broker_epoch=epoch, partitions=(faulty,))
    return pair.ask(ApiKey.REPORT_REPLICA_FAULTS, 0, request).error_code


def test_a_node_reports_faults_of_its_own_replicas_alone(pair):
    epoch = created(pair, 2, 1)
    assert report_fault(pair, epoch, broker_id=1) == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    assert report_fault(pair, epoch, fault=3) == ErrorCode.INVALID_REQUEST
    assert report_fault(pair, epoch, leader_epoch=7) == ErrorCode.NONE
    assert report_fault(pair, epoch - 1) == ErrorCode.NONE
    pair.peers.steps()
    assert (state(pair).leader, state(pair).leader_epoch) == (2, 0)
    assert report_fault(pair, epoch) == ErrorCode.NONE
    pair.peers.run_until(lambda: state(pair).leader == 1)
    assert state(pair).isr == (1,)


def test_records_are_checked_for_those_who_know_the_leader(pair):
    created(pair, 1, 2)
    topic_id = pair.image.topics["orders"].topic_id

    def check(topic_id=topic_id, partition=0, leader_epoch=0, offset=0):
        request = CheckRecordsRequest(
            topic_id=topic_id, partition_index=partition, leader_epoch=leader_epoch, offset=offset
        )
        return pair.ask(ApiKey.CHECK_RECORDS, 0, request).error_code

    pair.peers.run_until(lambda: check() == ErrorCode.NONE)
    assert check(offset=-5) == check(offset=1 << 62) == ErrorCode.NONE, "there is nothing to check"
    assert check(topic_id=bytes(16)) == ErrorCode.UNKNOWN_TOPIC_ID
    assert check(partition=7) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert check(leader_epoch=9) == ErrorCode.UNKNOWN_LEADER_EPOCH
