"""Placement of new partitions: evenly over hosts, then racks, then brokers, and evenly over successive topics."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.core.controller.broker_image import BrokerImage
from headrace.core.controller.commands import Refused
from headrace.core.controller.placement import Placement
from headrace.core.controller.records import FeatureLevelRecord
from headrace.core.controller.settings import ControllerSettings
from headrace.model.errors import ErrorCode
from headrace.model.ids import NodeId
from tests.core.controllers import TestedController, one_broker


def broker(node_id: int, host: str = "", rack: str | None = None, *, fenced: bool = False) -> BrokerImage:
    return BrokerImage(NodeId(node_id), bytes(16), 0, {}, rack, host or f"host-{node_id}", fenced)


def spread(counts: dict, keys: set) -> int:
    found = [counts.get(key, 0) for key in keys]
    return max(found) - min(found)


def assert_even(brokers: list[BrokerImage], leaders: list[NodeId]) -> None:
    """Assert that hosts differ by one partition at most, and so do the brokers of each host."""
    host_of = {each.node_id: each.host for each in brokers}
    by_broker = Counter(leaders)
    by_host = Counter(host_of[node] for node in leaders)
    assert spread(by_host, set(host_of.values())) <= 1
    for host in host_of.values():
        assert spread(by_broker, {node for node, where in host_of.items() if where == host}) <= 1


clusters = st.lists(
    st.tuples(st.sampled_from(["a", "b", "c", "d"]), st.sampled_from([None, "left", "right"])), min_size=1, max_size=9
).map(lambda places: [broker(number, host, rack) for number, (host, rack) in enumerate(places)])
topic_sizes = st.lists(st.integers(1, 13), min_size=1, max_size=12)


@given(clusters, topic_sizes)
def test_each_topic_and_all_topics_together_are_even_over_hosts_and_over_their_brokers(
    brokers: list[BrokerImage], sizes: list[int]
) -> None:
    counts: Counter[NodeId] = Counter()
    everything: list[NodeId] = []
    for size in sizes:
        leaders = [nodes[0] for nodes in Placement(brokers, counts).place(size, 1)]
        assert_even(brokers, leaders)
        everything += leaders
        counts.update(leaders)
    by_host = Counter(brokers[node].host for node in everything)
    assert spread(by_host, {each.host for each in brokers}) <= 1


@given(clusters, topic_sizes)
def test_topics_of_one_request_are_placed_like_those_of_several(brokers: list[BrokerImage], sizes: list[int]) -> None:
    together = Placement(brokers, {})
    counts: Counter[NodeId] = Counter()
    for size in sizes:
        alone = Placement(brokers, counts).place(size, 1)
        assert together.place(size, 1) == alone
        counts.update(nodes[0] for nodes in alone)


@given(clusters, st.integers(1, 12), st.integers(1, 4))
def test_replicas_are_on_different_hosts_while_there_are_enough(
    brokers: list[BrokerImage], partitions: int, factor: int
) -> None:
    if factor > len(brokers):
        with pytest.raises(Refused):
            Placement(brokers, {}).place(partitions, factor)
        return
    hosts = len({each.host for each in brokers})
    for nodes in Placement(brokers, {}).place(partitions, factor):
        assert len(set(nodes)) == factor
        assert len({brokers[node].host for node in nodes}) == min(factor, hosts)


def test_hosts_of_different_racks_take_turns() -> None:
    racks = ("left", "left", "right", "right")
    brokers = [broker(number, rack=rack) for number, rack in enumerate(racks)]
    leaders = [nodes[0] for nodes in Placement(brokers, {}).place(2, 1)]
    assert {racks[node] for node in leaders} == {"left", "right"}
    (nodes,) = Placement(brokers, {}).place(1, 2)
    assert {racks[node] for node in nodes} == {"left", "right"}


def test_shards_of_one_host_share_what_the_host_gets() -> None:
    shards = [broker(number, host="big" if number < 4 else "small") for number in range(5)]
    leaders = Counter(nodes[0] for nodes in Placement(shards, {}).place(16, 1))
    assert leaders == {0: 2, 1: 2, 2: 2, 3: 2, 4: 8}


def test_a_new_broker_gets_its_share_of_new_topics_and_not_all_of_them() -> None:
    brokers = [broker(number) for number in range(3)]
    busy = {NodeId(0): 1_000, NodeId(1): 1_000}
    assert Counter(nodes[0] for nodes in Placement(brokers, busy).place(7, 1)) == {0: 2, 1: 2, 2: 3}
    assert [nodes[0] for nodes in Placement(brokers, busy).place(1, 1)] == [2]


def test_topics_that_come_and_go_do_not_pile_up_on_one_broker() -> None:
    controller = TestedController()
    for node_id in (1, 2, 3):
        controller.start_broker(node_id)
    for number in range(40):
        controller.create_one(f"topic-{number}")
        if number >= 6:
            controller.delete(f"topic-{number - 6}")
    leaders = Counter(topic.partitions[0].leader for topic in controller.image.topics.values())
    assert max(leaders.values()) - min(leaders.values()) <= 2  # it was even before the last topic was deleted
    assert len(leaders) == 3


def test_a_growing_topic_stays_even() -> None:
    controller = TestedController()
    for node_id in (1, 2):
        controller.start_broker(node_id)
    controller.create_one("other", 3)
    controller.create_one("orders", 2)
    controller.start_broker(3)
    controller.grow("orders", 3)
    assert [state.leader for state in controller.image.topics["orders"].partitions][2] == 3
    controller.grow("orders", 9)
    leaders = Counter(state.leader for state in controller.image.topics["orders"].partitions)
    assert leaders == {1: 3, 2: 3, 3: 3}


def test_fenced_brokers_and_brokers_in_controlled_shutdown_get_nothing_new() -> None:
    controller = TestedController()
    epochs = {node_id: controller.start_broker(node_id) for node_id in (1, 2, 3)}
    controller.beat(2, epochs[2], wants_fence=True)
    controller.beat(3, epochs[3], wants_shut_down=True)
    controller.create_one("orders", 6)
    assert {state.leader for state in controller.image.topics["orders"].partitions} == {1}
    controller.beat(2, epochs[2])
    controller.grow("orders", 12)
    assert Counter(state.leader for state in controller.image.topics["orders"].partitions) == {1: 6, 2: 6}


def test_no_broker_that_takes_partitions() -> None:
    controller = one_broker()
    controller.register(1)
    refused = controller.create_one("orders")
    assert refused.error is ErrorCode.INVALID_REPLICATION_FACTOR
    assert refused.message is not None
    assert "all 1 brokers are fenced or shutting down" in refused.message


def test_a_new_topic_has_a_replica_on_each_of_three_hosts() -> None:
    controller = TestedController()
    controller.start_broker(1, host="left")
    assert controller.create_one("one").replication_factor == 1
    controller.start_broker(2, host="left")
    controller.start_broker(3, host="right")
    assert controller.create_one("two").replication_factor == 2  # two replicas on one host would be lost together
    controller.start_broker(4, host="middle")
    controller.start_broker(5, host="far")
    assert controller.create_one("three").replication_factor == 3
    (state,) = controller.image.topics["three"].partitions
    assert len({controller.image.brokers[node].host for node in state.replicas}) == 3


def test_a_default_of_the_operator_is_not_limited_by_hosts() -> None:
    controller = TestedController(ControllerSettings(default_replication_factor=3, replication_factor_max=3))
    for node in (1, 2):
        controller.start_broker(node, host="same")
    refused = controller.create_one("orders")
    assert refused.error is ErrorCode.INVALID_REPLICATION_FACTOR
    assert refused.message is not None
    assert "needs more brokers than the 2 that are registered" in refused.message
    controller.start_broker(3, host="same")
    assert controller.create_one("orders").replication_factor == 3


def test_a_broker_that_restarts_gets_replicas_which_are_not_in_sync_and_do_not_lead() -> None:
    controller = TestedController()
    epochs = {node: controller.start_broker(node) for node in (1, 2, 3)}
    controller.carry_out(controller.fence_broker(NodeId(2), epochs[2]))
    controller.create_one("orders", 6)
    for state in controller.image.topics["orders"].partitions:
        assert set(state.replicas) == {1, 2, 3}
        assert (set(state.isr), state.replicas[2]) == ({1, 3}, 2)
        assert state.leader == state.replicas[0] != 2


def test_brokers_that_run_are_preferred_to_others_of_equal_hosts() -> None:
    controller = TestedController()
    epochs = {node: controller.start_broker(node, host="same") for node in (1, 2, 3, 4)}
    controller.carry_out(controller.fence_broker(NodeId(2), epochs[2]))
    controller.create_one("orders", 6, replication_factor=3)
    assert {node for state in controller.image.topics["orders"].partitions for node in state.replicas} == {1, 3, 4}


def test_several_replicas_need_a_level_at_which_every_broker_copies_records() -> None:
    controller = TestedController()
    for node in (1, 2, 3):
        controller.start_broker(node)
    controller.apply(FeatureLevelRecord("metadata.version", 25))
    refused = controller.create_one("orders", replication_factor=2)
    assert refused.error is ErrorCode.INVALID_REPLICATION_FACTOR
    assert refused.message is not None
    assert "needs metadata.version 26, the cluster is at 25: raise it by UpdateFeatures" in refused.message
    by_hand = controller.create_one("orders", -1, assignments=[(0, [NodeId(1), NodeId(2)])])
    assert by_hand.error is ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assert controller.create_one("orders").replication_factor == 1
