"""Elections that are requested, due for balance, or follow from changed configs."""

import pytest

from headrace.core.controller.commands import AlterableConfig, AlterOperation, BrokerHeartbeat, ConfigAlteration
from headrace.core.controller.elections import ElectionResult
from headrace.core.controller.partition_changes import Election
from headrace.core.controller.partition_states import PartitionState
from headrace.core.controller.records import PartitionChangeRecord, ResourceKind
from headrace.model.errors import ErrorCode
from headrace.model.ids import NO_NODE, NodeId
from tests.core.controllers import TestedController

ORDERS = ("orders", [0])


class Cluster:
    """Three brokers and a topic with one partition on all of them, which broker 1 leads."""

    def __init__(self) -> None:
        self.controller = TestedController()
        self.epochs = {node: self.controller.start_broker(node) for node in (1, 2, 3)}
        self.controller.create_one("orders", -1, assignments=[(0, [NodeId(node) for node in (1, 2, 3)])])

    @property
    def state(self) -> PartitionState:
        return self.controller.image.topics["orders"].partitions[0]

    def stop(self, *nodes: int) -> None:
        for node in nodes:
            self.controller.carry_out(self.controller.fence_broker(NodeId(node), self.epochs[node]))

    def start(self, *nodes: int) -> None:
        for node in nodes:
            self.controller.beat(node, self.epochs[node])

    def beat(self, node: int) -> BrokerHeartbeat:
        offset = self.controller.image.version
        return BrokerHeartbeat(
            node_id=NodeId(node), broker_epoch=self.epochs[node], metadata_offset=offset, wants_shut_down=True
        )

    def elect(self, election: Election, *wanted: tuple[str, list[int]]) -> tuple[ElectionResult, ...]:
        return self.controller.carry_out(self.controller.elect_leaders(election, wanted or None))

    def join(self, *nodes: int) -> None:
        """Let replicas catch up."""
        isr = tuple(node for node in self.state.replicas if node in (*self.state.isr, *nodes))
        topic_id = self.controller.image.topics["orders"].topic_id
        self.controller.apply(PartitionChangeRecord(topic_id, 0, isr=isr, elr=()))

    def set(self, value: str | None, *, name: str = "min.insync.replicas", topic: str | None = "orders") -> None:
        kind = ResourceKind.BROKER if topic is None else ResourceKind.TOPIC
        operation = AlterOperation.DELETE if value is None else AlterOperation.SET
        changes = [AlterableConfig(name, operation, value)]
        (result,) = self.controller.carry_out(
            self.controller.alter_configs(
                [ConfigAlteration(resource_kind=kind, resource_name=topic or "", changes=changes)]
            )
        )
        assert not result.error, result.message


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


def errors(results: tuple[ElectionResult, ...]) -> list[ErrorCode]:
    return [result.error for result in results]


class TestPreferred:
    def test_the_first_replica_leads_again_once_it_is_in_sync(self, cluster: Cluster) -> None:
        cluster.stop(1)
        cluster.start(1)
        assert (cluster.state.leader, cluster.state.isr) == (2, (2, 3))
        (result,) = cluster.elect(Election.PREFERRED, ORDERS)
        assert result.error == ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE
        assert result.message == "the preferred leader, broker 1, is not in sync, not running or impaired"
        cluster.join(1)
        assert errors(cluster.elect(Election.PREFERRED, ORDERS)) == [ErrorCode.NONE]
        assert (cluster.state.leader, cluster.state.isr) == (1, (1, 2, 3))

    def test_what_needs_no_election_is_named_only_if_it_was_asked_for(self, cluster: Cluster) -> None:
        assert errors(cluster.elect(Election.PREFERRED, ORDERS)) == [ErrorCode.ELECTION_NOT_NEEDED]
        assert cluster.elect(Election.PREFERRED) == ()

    def test_unknown_partitions(self, cluster: Cluster) -> None:
        results = cluster.elect(Election.PREFERRED, ("orders", [1, -1]), ("nowhere", [0]))
        assert errors(results) == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION] * 3

    def test_leaders_are_balanced_where_the_first_replica_is_in_sync(self, cluster: Cluster) -> None:
        cluster.stop(1)
        cluster.start(1)
        assert cluster.controller.carry_out(cluster.controller.balance_leaders(["orders", "deleted"])) == 0
        cluster.join(1)
        assert cluster.controller.carry_out(cluster.controller.balance_leaders(["orders"])) == 1
        assert cluster.state.leader == 1
        assert cluster.controller.carry_out(cluster.controller.balance_leaders(["orders"])) == 0


class TestUnclean:
    def test_any_live_replica_leads_if_it_is_asked_for(self, cluster: Cluster) -> None:
        assert errors(cluster.elect(Election.UNCLEAN, ORDERS)) == [ErrorCode.ELECTION_NOT_NEEDED]
        cluster.set("1")
        cluster.stop(3, 2, 1)
        (result,) = cluster.elect(Election.UNCLEAN, ORDERS)
        assert result.error == ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE
        assert result.message == "no replica is on a broker that runs: start one of 1, 2, 3"
        cluster.start(3)
        assert cluster.state.leader == NO_NODE
        assert errors(cluster.elect(Election.UNCLEAN)) == [ErrorCode.NONE]
        assert (cluster.state.leader, cluster.state.isr) == (3, (3,))


class TestConfigs:
    def test_a_lower_minimum_ends_the_eligibility_of_replicas_that_lack_what_it_commits(self, cluster: Cluster) -> None:
        cluster.stop(3, 2)
        assert (cluster.state.isr, cluster.state.elr) == ((1,), (2,))
        cluster.set("1")
        assert (cluster.state.isr, cluster.state.elr) == ((1,), ())
        cluster.stop(1)
        cluster.start(2)
        assert cluster.state.leader == NO_NODE

    def test_a_minimum_that_is_not_reached_either_keeps_them(self, cluster: Cluster) -> None:
        cluster.stop(3, 2)
        cluster.set("3")
        assert cluster.state.elr == (2,)
        cluster.set(None)
        assert cluster.state.elr == (2,)

    def test_the_minimum_of_the_cluster_counts_for_topics_without_one(self, cluster: Cluster) -> None:
        cluster.controller.create_one(
            "own",
            -1,
            assignments=[(0, [NodeId(node) for node in (1, 2, 3)])],
            configs=[("min.insync.replicas", "2")],
        )
        cluster.stop(3, 2)
        cluster.set("1", topic=None)
        assert cluster.state.elr == ()
        assert cluster.controller.image.topics["own"].partitions[0].elr == (2,)

    def test_allowing_unclean_elections_elects_for_partitions_that_wait(self, cluster: Cluster) -> None:
        cluster.set("1")
        cluster.stop(3, 2, 1)
        cluster.start(3)
        assert cluster.state.leader == NO_NODE
        cluster.set("true", name="unclean.leader.election.enable")
        assert cluster.state.leader == 3

    def test_a_topic_that_allows_them_is_led_as_soon_as_a_replica_returns(self, cluster: Cluster) -> None:
        cluster.set("1")
        cluster.set("true", name="unclean.leader.election.enable")
        cluster.stop(3, 2, 1)
        cluster.start(2)
        assert (cluster.state.leader, cluster.state.isr) == (2, (2,))


class TestControlledShutdown:
    def test_leaders_move_first_and_the_broker_stops_when_all_know(self, cluster: Cluster) -> None:
        cluster.controller.create_one("alone", -1, assignments=[(0, [NodeId(1)])])
        state = cluster.controller.carry_out(
            cluster.controller.heartbeat(cluster.beat(1), moves_are_seen=lambda: False)
        )
        assert (state.should_shut_down, state.is_fenced) == (False, False)
        assert (cluster.state.leader, cluster.state.isr) == (2, (2, 3))
        assert cluster.controller.image.topics["alone"].partitions[0].leader == 1  # served until the end
        waiting = cluster.controller.heartbeat(cluster.beat(1), moves_are_seen=lambda: False)
        assert (waiting.records, waiting.response.should_shut_down) == ((), False)
        over = cluster.controller.carry_out(cluster.controller.heartbeat(cluster.beat(1), moves_are_seen=lambda: True))
        assert over.should_shut_down
        assert cluster.controller.image.topics["alone"].partitions[0].leader == NO_NODE
        broker = cluster.controller.image.brokers[NodeId(1)]
        assert (broker.fenced, broker.in_controlled_shutdown) == (True, True)

    def test_a_follower_stops_at_once(self, cluster: Cluster) -> None:
        state = cluster.controller.carry_out(
            cluster.controller.heartbeat(cluster.beat(3), moves_are_seen=lambda: False)
        )
        assert state.should_shut_down
        assert cluster.state.isr == (1, 2)
