"""Reassignments: begin, replace, stop and complete them, and raise internal topics."""

import pytest

from headrace.core.controller.commands import IsrAlteration, IsrChange, IsrMember, IsrResult
from headrace.core.controller.partition_states import PartitionState
from headrace.core.controller.reassignments import ReassignmentResult, WantedReplicas, reassignments
from headrace.core.controller.settings import ControllerSettings
from headrace.model.errors import ErrorCode
from headrace.model.ids import NO_NODE, NodeId
from tests.core.controllers import TestedController, replayed

OFFSETS = "__consumer_offsets"


def nodes(*numbers: int) -> tuple[NodeId, ...]:
    return tuple(map(NodeId, numbers))


class Cluster:
    """Five brokers on five hosts, and a topic on brokers 1 and 2."""

    def __init__(self, brokers: int = 5) -> None:
        self.controller = TestedController(
            ControllerSettings(replication_factor_max=4, internal_replication={OFFSETS: 3})
        )
        for node in range(1, brokers + 1):
            self.controller.start_broker(node)
        self.controller.create_one("orders", -1, assignments=[(0, nodes(1, 2))])

    def state(self, topic: str = "orders", partition: int = 0) -> PartitionState:
        return self.controller.image.topics[topic].partitions[partition]

    def move(self, *target: int, topic: str = "orders", partition: int = 0, factor: bool = True) -> ReassignmentResult:
        wanted = WantedReplicas(topic, partition, nodes(*target))
        decision = self.controller.reassign([wanted], allow_factor_change=factor)
        (result,) = self.controller.carry_out(decision)
        return result

    def stop(self) -> ReassignmentResult:
        (result,) = self.controller.carry_out(self.controller.reassign([WantedReplicas("orders", 0, None)]))
        return result

    def in_sync(self, *members: int, topic: str = "orders") -> IsrResult:
        """Let the leader commit an in-sync set."""
        state, image = self.state(topic), self.controller.image
        isr = tuple(IsrMember(node, image.brokers[node].broker_epoch) for node in nodes(*members))
        change = IsrChange(image.topics[topic].topic_id, 0, state.leader_epoch, state.partition_epoch, isr)
        epoch = image.brokers[state.leader].broker_epoch
        alteration = IsrAlteration(node_id=state.leader, broker_epoch=epoch, changes=[change])
        (result,) = self.controller.carry_out(self.controller.alter_isrs(alteration)).results
        return result


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


def test_a_partition_moves_when_its_new_replicas_are_in_sync(cluster: Cluster) -> None:
    assert not cluster.move(3, 2).error
    moving = cluster.state()
    assert (moving.replicas, moving.isr, moving.leader) == ((3, 2, 1), (2, 1), 1)
    assert (moving.adding, moving.removing) == ((3,), (1,))
    assert moving.leader_epoch == 1  # the leader begins an epoch in which it knows its new follower
    (listed,) = reassignments(cluster.controller.image, None)
    assert (listed.topic, listed.partition, listed.adding, listed.removing) == ("orders", 0, (3,), (1,))
    assert list(reassignments(cluster.controller.image, [("orders", [1]), ("others", [0])])) == []
    result = cluster.in_sync(1, 2, 3)
    assert result.error == ErrorCode.NEW_LEADER_ELECTED
    moved = cluster.state()
    assert (moved.replicas, moved.isr, moved.leader, moved.leader_epoch) == ((3, 2), (3, 2), 3, 2)
    assert (moved.adding, moved.removing, moved.directories) == ((), (), (bytes(16),) * 2)
    assert list(reassignments(cluster.controller.image, None)) == []
    assert replayed(cluster.controller.log) == cluster.controller.image


def test_further_replicas_leave_the_leader(cluster: Cluster) -> None:
    cluster.move(1, 2, 3)
    assert cluster.in_sync(1, 2, 3).error == ErrorCode.NONE
    grown = cluster.state()
    assert (grown.replicas, grown.leader, grown.adding) == ((1, 2, 3), 1, ())


def test_fewer_replicas_take_effect_at_once(cluster: Cluster) -> None:
    cluster.move(2)
    assert (cluster.state().replicas, cluster.state().isr, cluster.state().leader) == ((2,), (2,), 2)
    assert cluster.state().leader_epoch == 1


def test_another_order_changes_the_preferred_leader_alone(cluster: Cluster) -> None:
    cluster.move(2, 1)
    state = cluster.state()
    assert (state.replicas, state.leader, state.leader_epoch, state.adding) == ((2, 1), 1, 0, ())


def test_a_newer_target_replaces_the_older_one(cluster: Cluster) -> None:
    cluster.move(3, 2)
    cluster.move(4, 2)
    moving = cluster.state()
    assert (moving.replicas, moving.adding, moving.removing) == ((4, 2, 1), (4,), (1,))
    before = len(cluster.controller.log)
    cluster.move(4, 2)  # as it is already
    assert len(cluster.controller.log) == before


def test_a_newer_target_keeps_a_replica_that_has_every_record(cluster: Cluster) -> None:
    configs = [("min.insync.replicas", "1")]
    cluster.controller.create_one("one", -1, assignments=[(0, nodes(1))], configs=configs)
    cluster.move(3, 4, topic="one")
    cluster.in_sync(1, 3, topic="one")
    epoch = cluster.controller.image.brokers[NodeId(1)].broker_epoch
    cluster.controller.carry_out(cluster.controller.fence_broker(NodeId(1), epoch))
    assert (cluster.state("one").isr, cluster.state("one").leader) == ((3,), 3)
    result = cluster.move(5, topic="one")
    assert result.error == ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assert result.message == "of replicas [3], which have every record, none stays: add one of them, or wait"
    assert (cluster.state("one").replicas, cluster.state("one").leader) == ((3, 4, 1), 3)
    assert not cluster.move(3, 5, topic="one").error
    assert (cluster.state("one").replicas, cluster.state("one").leader) == ((3, 5, 1), 3)


def test_a_move_is_stopped(cluster: Cluster) -> None:
    assert cluster.stop().error == ErrorCode.NO_REASSIGNMENT_IN_PROGRESS
    cluster.move(3, 4)
    assert not cluster.stop().error
    state = cluster.state()
    assert (state.replicas, state.isr, state.leader) == ((1, 2), (1, 2), 1)
    assert (state.adding, state.removing, state.leader_epoch) == ((), (), 2)


@pytest.mark.parametrize("minimum", ["1", "2"])
def test_a_move_is_stopped_only_while_a_former_replica_has_every_record(cluster: Cluster, minimum: str) -> None:
    configs = [("min.insync.replicas", minimum)]
    cluster.controller.create_one("one", -1, assignments=[(0, nodes(1))], configs=configs)
    cluster.move(3, 4, topic="one")
    cluster.in_sync(1, 3, topic="one")
    epoch = cluster.controller.image.brokers[NodeId(1)].broker_epoch
    cluster.controller.carry_out(cluster.controller.fence_broker(NodeId(1), epoch))
    assert cluster.state("one").isr == (3,)
    (result,) = cluster.controller.carry_out(cluster.controller.reassign([WantedReplicas("one", 0, None)]))
    if minimum == "1":  # replica 3 alone has committed further records
        assert result.error == ErrorCode.INVALID_REPLICA_ASSIGNMENT
        assert (cluster.state("one").leader, cluster.state("one").replicas) == (3, (3, 4, 1))
    else:
        assert result.error == ErrorCode.NONE
        state = cluster.state("one")
        assert (state.replicas, state.leader, state.isr, state.elr) == ((1,), NO_NODE, (), (1,))


@pytest.mark.parametrize(
    ("target", "error", "message"),
    [
        ((), ErrorCode.INVALID_REPLICA_ASSIGNMENT, "at least one replica"),
        ((1, 1), ErrorCode.INVALID_REPLICA_ASSIGNMENT, "name a broker twice"),
        ((1, 9), ErrorCode.INVALID_REPLICA_ASSIGNMENT, "broker 9, which is not registered"),
        ((1, 2, 3, 4, 5), ErrorCode.INVALID_REPLICA_ASSIGNMENT, "at most 4 replicas"),
    ],
)
def test_targets_that_cannot_be(cluster: Cluster, target: tuple[int, ...], error: ErrorCode, message: str) -> None:
    before = cluster.controller.image.copy()
    result = cluster.move(*target)
    assert result.error == error
    assert result.message is not None
    assert message in result.message
    assert cluster.controller.image == before


@pytest.mark.parametrize("target", [(4,), (5,)], ids=["at once", "when the new replica is in sync"])
def test_fewer_replicas_of_the_first_partition_lower_the_minimum_of_the_others(
    cluster: Cluster, target: tuple[int, ...]
) -> None:
    cluster.controller.create_one("two", -1, assignments=[(0, nodes(4, 1, 2)), (1, nodes(1, 2, 3))])
    for node in nodes(3, 2):
        epoch = cluster.controller.image.brokers[node].broker_epoch
        cluster.controller.carry_out(cluster.controller.fence_broker(node, epoch))
    assert (cluster.state("two", 1).isr, cluster.state("two", 1).elr) == ((1,), (2,))
    cluster.move(*target, topic="two")
    if target == (5,):
        assert cluster.state("two", 1).elr == (2,)
        cluster.in_sync(4, 1, 5, topic="two")
    assert cluster.controller.image.topics["two"].replication_factor == 1
    assert (cluster.state("two", 1).isr, cluster.state("two", 1).elr) == ((1,), ())  # 1 commits alone from now on
    cluster.move(4, 1, 5, topic="two")
    assert cluster.state("two", 1).elr == ()


def test_the_number_of_replicas_is_kept_if_the_request_says_so(cluster: Cluster) -> None:
    assert cluster.move(1, 2, 3, factor=False).error == ErrorCode.INVALID_REPLICATION_FACTOR
    assert cluster.move(3, 4, factor=False).error == ErrorCode.NONE
    assert cluster.move(3, 5, factor=False).error == ErrorCode.NONE


def test_partitions_that_do_not_exist_or_are_listed_twice(cluster: Cluster) -> None:
    assert cluster.move(1, topic="nowhere").error == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert cluster.move(1, partition=1).error == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    twice = [WantedReplicas("orders", 0, nodes(3)), WantedReplicas("orders", 0, nodes(4))]
    (result,) = cluster.controller.reassign(twice).response
    assert result.error == ErrorCode.INVALID_REQUEST


class TestInternalTopics:
    def test_they_get_replicas_when_there_are_hosts_for_them(self) -> None:
        cluster = Cluster(brokers=2)
        controller = cluster.controller
        controller.create_one(OFFSETS, -1, assignments=[(index, nodes(1)) for index in range(4)])
        assert controller.carry_out(controller.raise_internal_topics()) == 4
        for state in controller.image.topics[OFFSETS].partitions:
            assert (state.replicas, state.isr, state.adding, state.leader) == ((1, 2), (1,), (2,), 1)
        assert controller.carry_out(controller.raise_internal_topics()) == 0
        controller.start_broker(3, host="host-1")
        assert controller.carry_out(controller.raise_internal_topics()) == 0  # no further host

    def test_new_replicas_are_spread(self) -> None:
        cluster = Cluster()
        controller = cluster.controller
        controller.create_one(OFFSETS, -1, assignments=[(index, nodes(1)) for index in range(4)])
        assert controller.carry_out(controller.raise_internal_topics()) == 4
        for state in controller.image.topics[OFFSETS].partitions:
            assert len(state.replicas) == 3
        added = [node for state in controller.image.topics[OFFSETS].partitions for node in state.adding]
        assert all(added.count(NodeId(node)) == 2 for node in (2, 3, 4, 5))

    def test_other_topics_and_older_levels_stay(self) -> None:
        cluster = Cluster()
        controller = cluster.controller
        controller.create_one("mine", -1, assignments=[(0, nodes(1))])
        assert controller.raise_internal_topics().records == ()
