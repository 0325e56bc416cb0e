"""Creating, deleting and growing topics: Kafka's error codes, helpful messages, and the records that follow."""

import pytest

from headrace.core.controller.commands import (
    PARTITIONS_PER_REQUEST_MAX,
    CreatableTopic,
    PartitionGrowth,
    TopicResult,
    TopicToDelete,
)
from headrace.core.controller.partition_states import PartitionState
from headrace.core.controller.records import TopicRecord
from headrace.core.controller.settings import ControllerSettings
from headrace.model.errors import ErrorCode
from headrace.model.ids import NO_TOPIC_ID, LeaderEpoch, NodeId, TopicId
from tests.core.controllers import TestedController, one_broker

ONE, TWO, THREE = NodeId(1), NodeId(2), NodeId(3)


def three_brokers() -> TestedController:
    controller = TestedController()
    for node in (1, 2, 3):
        controller.start_broker(node)
    return controller


class TestCreate:
    def test_a_topic_gets_its_partitions_id_and_configs(self) -> None:
        controller = one_broker()
        result = controller.create_one("orders", 2, configs=[("retention.ms", "1000")])
        assert result == TopicResult("orders", result.topic_id, ErrorCode.NONE, None, 2, 1)
        topic = controller.image.topics["orders"]
        assert topic is controller.image.topics_by_id[result.topic_id]
        assert topic.partitions == [PartitionState((ONE,), (ONE,), ONE, LeaderEpoch(0), 0, (bytes(16),))] * 2
        assert controller.image.topic_configs("orders") == {"retention.ms": "1000"}
        assert controller.image.partition("orders", 1) == topic.partitions[1]
        assert controller.image.partition("orders", 2) is None
        assert controller.image.partition_count == 2

    def test_minus_one_takes_the_defaults(self) -> None:
        controller = TestedController(type(one_broker().settings)(default_partition_count=6))
        controller.start_broker(1)
        assert controller.create_one("orders", -1).partition_count == 6

    def test_validate_only_answers_the_same_and_changes_nothing(self) -> None:
        controller = one_broker()
        good, bad = controller.create(
            CreatableTopic(name="a", partition_count=3), CreatableTopic(name="!"), validate_only=True
        )
        assert (good.error, good.partition_count, good.topic_id) == (ErrorCode.NONE, 3, NO_TOPIC_ID)
        assert bad.error is ErrorCode.INVALID_TOPIC_EXCEPTION
        assert not controller.image.topics

    @pytest.mark.parametrize(
        ("name", "told"),
        [
            ("", "must not be empty"),
            (".", 'cannot be named "."'),
            ("..", 'cannot be named ".."'),
            ("a" * 250, "250 characters: at most 249"),
            ("a b", "illegal characters"),
            ("käse", "illegal characters"),
            ("a/b", "illegal characters"),
            ("a\n", "illegal characters"),
        ],
    )
    def test_illegal_names(self, name: str, told: str) -> None:
        result = one_broker().create_one(name)
        assert result.error is ErrorCode.INVALID_TOPIC_EXCEPTION
        assert result.message is not None
        assert told in result.message

    @pytest.mark.parametrize("name", ["a" * 249, "A.b_c-9", "...", "__internal"])
    def test_legal_names(self, name: str) -> None:
        assert one_broker().create_one(name).error is ErrorCode.NONE

    def test_a_name_that_exists(self) -> None:
        controller = one_broker()
        controller.create_one("orders")
        result = controller.create_one("orders")
        assert (result.error, result.message) == (ErrorCode.TOPIC_ALREADY_EXISTS, 'topic "orders" already exists')

    def test_names_that_differ_only_in_dots_and_underscores(self) -> None:
        controller = one_broker()
        controller.create_one("a.b")
        result = controller.create_one("a_b")
        assert result.error is ErrorCode.INVALID_TOPIC_EXCEPTION
        assert result.message is not None
        assert 'existing topic "a.b"' in result.message
        first, second = controller.create(CreatableTopic(name="x.y"), CreatableTopic(name="x_y"))
        assert (first.error, second.error) == (ErrorCode.NONE, ErrorCode.INVALID_TOPIC_EXCEPTION)

    def test_a_name_listed_twice_is_refused_once(self) -> None:
        results = one_broker().create(CreatableTopic(name="a"), CreatableTopic(name="b"), CreatableTopic(name="a"))
        assert [(result.name, result.error) for result in results] == [
            ("a", ErrorCode.INVALID_REQUEST),
            ("b", ErrorCode.NONE),
        ]

    def test_the_clusters_own_log_cannot_be_created(self) -> None:
        assert one_broker().create_one("__cluster_metadata").error is ErrorCode.TOPIC_AUTHORIZATION_FAILED

    @pytest.mark.parametrize("count", [0, -2, -(2**31)])
    def test_impossible_partition_counts(self, count: int) -> None:
        assert one_broker().create_one("a", count).error is ErrorCode.INVALID_PARTITIONS

    @pytest.mark.parametrize("factor", [0, -2, 2, 32767])
    def test_impossible_replication_factors(self, factor: int) -> None:
        assert one_broker().create_one("a", 1, replication_factor=factor).error is ErrorCode.INVALID_REPLICATION_FACTOR

    @pytest.mark.parametrize("count", [PARTITIONS_PER_REQUEST_MAX + 1, 2**31 - 1])
    def test_too_many_partitions_in_one_request(self, count: int) -> None:
        controller = one_broker()
        results = controller.create(
            CreatableTopic(name="a", partition_count=count), CreatableTopic(name="b", partition_count=1)
        )
        assert [result.error for result in results] == [ErrorCode.POLICY_VIOLATION] * 2

    def test_a_full_cluster(self) -> None:
        controller = one_broker(topics_max=2, partitions_max=5)
        assert controller.create_one("a", 3).error is ErrorCode.NONE
        result = controller.create_one("b", 3)
        assert result.error is ErrorCode.POLICY_VIOLATION
        assert result.message is not None
        assert "headrace.partitions.max" in result.message
        assert controller.create_one("b", 1).error is ErrorCode.NONE
        result = controller.create_one("c", 1)
        assert result.message is not None
        assert "headrace.topics.max" in result.message

    def test_wrong_configs_name_the_nearest_right_one(self) -> None:
        result = one_broker().create_one("orders", configs=[("retention.minutes", "5")])
        assert result.error is ErrorCode.INVALID_CONFIG
        assert result.message is not None
        assert 'unknown config "retention.minutes" for topic "orders": did you mean "retention.ms"?' in result.message

    @pytest.mark.parametrize(
        "configs",
        [
            [("retention.ms", "soon")],
            [("retention.ms", None)],
            [("cleanup.policy", "burn")],
            [("min.compaction.lag.ms", "5"), ("max.compaction.lag.ms", "4")],
        ],
    )
    def test_wrong_config_values(self, configs: list[tuple[str, str | None]]) -> None:
        controller = one_broker()
        assert controller.create_one("orders", configs=configs).error is ErrorCode.INVALID_CONFIG
        assert not controller.image.topics

    def test_one_bad_topic_does_not_stop_the_others(self) -> None:
        controller = one_broker()
        controller.create(CreatableTopic(name="good"), CreatableTopic(name="bad!"), CreatableTopic(name="fine"))
        assert list(controller.image.topics) == ["good", "fine"]


class TestAssignments:
    def test_replicas_chosen_by_hand(self) -> None:
        controller = three_brokers()
        result = controller.create_one("a", -1, assignments=[(1, [THREE, ONE]), (0, [TWO, THREE])])
        assert (result.error, result.partition_count, result.replication_factor) == (ErrorCode.NONE, 2, 2)
        partitions = controller.image.topics["a"].partitions
        assert [(state.replicas, state.leader) for state in partitions] == [((TWO, THREE), TWO), ((THREE, ONE), THREE)]

    @pytest.mark.parametrize(
        ("assignments", "error"),
        [
            ([(0, [ONE]), (2, [ONE])], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
            ([(1, [ONE])], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
            ([(0, [ONE]), (0, [TWO])], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
            ([(0, [])], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
            ([(0, [ONE, ONE])], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
            ([(0, [NodeId(9)])], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
            ([(0, [ONE, TWO]), (1, [ONE])], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ],
    )
    def test_wrong_assignments(self, assignments: list[tuple[int, list[NodeId]]], error: ErrorCode) -> None:
        controller = three_brokers()
        assert controller.create_one("a", -1, assignments=assignments).error is error
        assert not controller.image.topics

    def test_counts_beside_an_assignment(self) -> None:
        controller = three_brokers()
        assert controller.create_one("a", 1, assignments=[(0, [ONE])]).error is ErrorCode.INVALID_REQUEST
        assert (
            controller.create_one("a", -1, replication_factor=1, assignments=[(0, [ONE])]).error
            is ErrorCode.INVALID_REQUEST
        )

    def test_more_replicas_than_a_partition_may_have_are_refused(self) -> None:
        controller = TestedController(ControllerSettings(replication_factor_max=2))
        for node_id in (1, 2, 3):
            controller.start_broker(node_id)
        refused = controller.create_one("a", 1, replication_factor=3)
        assert refused.error is ErrorCode.INVALID_REPLICATION_FACTOR
        assert refused.message == ("replication factor 3 is not supported: a partition has at most 2 replicas")
        by_hand = controller.create_one("a", -1, assignments=[(0, [ONE, TWO, THREE])])
        assert by_hand.error is ErrorCode.INVALID_REPLICA_ASSIGNMENT

    def test_a_fenced_broker_gets_no_partition_by_hand(self) -> None:
        controller = three_brokers()
        controller.register(3)
        refused = controller.create_one("a", -1, assignments=[(0, [THREE])])
        assert refused.error is ErrorCode.INVALID_REPLICA_ASSIGNMENT
        assert refused.message is not None
        assert "fenced or shutting down" in refused.message
        assert controller.create_one("a", -1, assignments=[(0, [THREE, ONE])]).error is ErrorCode.NONE
        state = controller.image.topics["a"].partitions[0]
        assert (state.leader, state.isr) == (ONE, (ONE,))

    def test_placement_spreads_leaders_and_replicas(self) -> None:
        controller = three_brokers()
        controller.create_one("a", 6, replication_factor=2)
        partitions = controller.image.topics["a"].partitions
        assert sorted(state.leader for state in partitions) == [1, 1, 2, 2, 3, 3]
        assert all(len(set(state.replicas)) == 2 for state in partitions)

    def test_placement_prefers_other_machines(self) -> None:
        controller = TestedController()
        for node, host in ((1, "left"), (2, "left"), (3, "left"), (4, "right")):
            controller.start_broker(node, host=host)
        controller.create_one("a", 8, replication_factor=2)
        for state in controller.image.topics["a"].partitions:
            assert NodeId(4) in state.replicas


class TestDelete:
    def test_by_name_and_by_id(self) -> None:
        controller = one_broker()
        controller.create_one("a", 3, configs=[("retention.ms", "1")])
        topic_id = controller.create_one("b").topic_id
        results = controller.carry_out(
            controller.delete_topics([TopicToDelete(name="a"), TopicToDelete(topic_id=topic_id)])
        )
        assert [(result.name, result.error) for result in results] == [("a", ErrorCode.NONE), ("b", ErrorCode.NONE)]
        assert not controller.image.topics
        assert not controller.image.topics_by_id
        assert not controller.image.configs
        assert controller.image.partition_count == 0

    def test_what_does_not_exist(self) -> None:
        controller = one_broker()
        by_name, by_id = controller.delete_topics(
            [TopicToDelete(name="a"), TopicToDelete(topic_id=TopicId(b"x" * 16))]
        ).response
        assert by_name.error is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert by_id.error is ErrorCode.UNKNOWN_TOPIC_ID

    def test_named_twice_both_ways_or_not_at_all(self) -> None:
        controller = one_broker()
        topic_id = controller.create_one("a").topic_id
        for doomed, told in (
            ([TopicToDelete(name="a"), TopicToDelete(name="a")], "more than once"),
            ([TopicToDelete(topic_id=topic_id), TopicToDelete(topic_id=topic_id)], "more than once"),
            ([TopicToDelete(name="a", topic_id=topic_id)], "either by its name or by its id"),
            ([TopicToDelete()], "either by its name or by its id"),
        ):
            (result,) = controller.delete_topics(doomed).response
            assert result.error is ErrorCode.INVALID_REQUEST
            assert result.message is not None
            assert told in result.message
        first, second = controller.delete_topics([TopicToDelete(name="a"), TopicToDelete(topic_id=topic_id)]).response
        assert (first.error, second.error) == (ErrorCode.NONE, ErrorCode.INVALID_REQUEST)

    def test_deletion_can_be_disabled(self) -> None:
        controller = one_broker(topic_deletion_enabled=False)
        controller.create_one("a")
        (result,) = controller.delete_topics([TopicToDelete(name="a")]).response
        assert result.error is ErrorCode.TOPIC_DELETION_DISABLED

    def test_a_name_can_be_used_again_with_another_id(self) -> None:
        controller = one_broker()
        first = controller.create_one("a", configs=[("retention.ms", "1")]).topic_id
        controller.carry_out(controller.delete_topics([TopicToDelete(name="a")]))
        second = controller.create_one("a").topic_id
        assert first != second
        assert controller.image.topic_configs("a") == {}


class TestGrow:
    def grow(self, controller: TestedController, count: int, **others: object) -> TopicResult:
        growth = PartitionGrowth(name="orders", partition_count=count, **others)  # type: ignore[arg-type]
        (result,) = controller.carry_out(controller.create_partitions([growth]))
        return result

    def test_new_partitions_follow_the_old_ones(self) -> None:
        controller = one_broker()
        controller.create_one("orders", 2)
        assert self.grow(controller, 5).error is ErrorCode.NONE
        assert len(controller.image.topics["orders"].partitions) == 5

    def test_partitions_only_grow(self) -> None:
        controller = one_broker()
        controller.create_one("orders", 4)
        result = self.grow(controller, 2)
        assert result.error is ErrorCode.INVALID_PARTITIONS
        assert result.message == 'topic "orders" has 4 partitions, but 2 were requested: partitions can only grow'
        assert self.grow(controller, 4).error is ErrorCode.INVALID_PARTITIONS
        assert self.grow(controller, -1).error is ErrorCode.INVALID_PARTITIONS

    def test_unknown_repeated_and_too_many(self) -> None:
        controller = one_broker()
        assert self.grow(controller, 2).error is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        controller.create_one("orders", 1)
        growth = PartitionGrowth(name="orders", partition_count=2)
        (result,) = controller.create_partitions([growth, growth]).response
        assert result.error is ErrorCode.INVALID_REQUEST
        assert self.grow(controller, 2**31 - 1).error is ErrorCode.POLICY_VIOLATION

    def test_validate_only(self) -> None:
        controller = one_broker()
        controller.create_one("orders", 1)
        decision = controller.create_partitions([PartitionGrowth(name="orders", partition_count=2)], validate_only=True)
        assert decision.records == ()
        assert decision.response[0].error is ErrorCode.NONE

    def test_assignments(self) -> None:
        controller = three_brokers()
        controller.create_one("orders", 1, replication_factor=2)
        assert self.grow(controller, 3, assignments=[[ONE, TWO]]).error is ErrorCode.INVALID_REPLICA_ASSIGNMENT
        assert self.grow(controller, 2, assignments=[[ONE]]).error is ErrorCode.INVALID_REPLICA_ASSIGNMENT
        assert self.grow(controller, 2, assignments=[[THREE, TWO]]).error is ErrorCode.NONE
        assert controller.image.topics["orders"].partitions[1].leader == THREE


def test_a_decision_changes_nothing_until_its_records_are_applied() -> None:
    controller = one_broker()
    version = controller.image.version
    decision = controller.create_topics([CreatableTopic(name="a")], topic_ids=[TopicId(b"i" * 16)])
    assert decision.records[0] == TopicRecord("a", TopicId(b"i" * 16))
    assert "a" not in controller.image.topics
    assert controller.image.version == version
