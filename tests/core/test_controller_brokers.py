"""Brokers as members: registration, fencing and its elections, controlled shutdown, and unregistering."""

import msgspec
import pytest

from headrace.core.controller.image import MetadataImage
from headrace.core.controller.partition_states import PartitionState, PartitionStates
from headrace.core.controller.records import (
    BrokerRegistrationChangeRecord,
    Endpoint,
    FeatureRange,
    PartitionRecord,
    RecordError,
    RegisterBrokerRecord,
    TopicRecord,
    UnregisterBrokerRecord,
    decode_record,
)
from headrace.core.controller.settings import ControllerSettings
from headrace.model.errors import ErrorCode
from headrace.model.ids import NO_NODE, LeaderEpoch, NodeId, TopicId
from tests.core.controllers import TestedController, one_broker


@pytest.fixture
def states_read(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The partitions whose states were read, which is what a decision costs."""
    read: list[int] = []
    state = PartitionStates._state

    def noted(states: PartitionStates, index: int) -> PartitionState:
        read.append(index)
        return state(states, index)

    monkeypatch.setattr(PartitionStates, "_state", noted)
    return read


OTHER_PROCESS = {"incarnation": b"2" * 16}
OTHER_DIRECTORY = {"metadata_directory": b"d" * 16}


def two_brokers() -> TestedController:
    """Broker 1 leads partition 0 of the topic, broker 2 leads partition 1."""
    controller = TestedController()
    controller.start_broker(1)
    controller.start_broker(2)
    controller.create_one("orders", -1, assignments=[(0, [NodeId(1)]), (1, [NodeId(2)])])
    return controller


def leaders(controller: TestedController, topic: str = "orders") -> list[tuple[int, int]]:
    return [(state.leader, state.leader_epoch) for state in controller.image.topics[topic].partitions]


class TestRegistration:
    def test_the_epoch_is_the_offset_of_the_registration(self) -> None:
        controller = one_broker()
        for node_id in (2, 1, 2):
            offset = controller.image.version
            epoch = controller.register(node_id, **OTHER_PROCESS).broker_epoch
            record = next(each for each in reversed(controller.log) if isinstance(each, RegisterBrokerRecord))
            assert (record.node_id, record.broker_epoch, epoch) == (node_id, offset, offset)

    def test_a_registered_broker_is_fenced_and_hidden_from_clients(self) -> None:
        controller = one_broker()
        controller.register(2)
        assert controller.image.brokers[NodeId(2)].fenced
        assert [node for node, _ in controller.image.endpoints("PLAINTEXT")] == [1]
        controller.beat(2, controller.image.brokers[NodeId(2)].broker_epoch)
        assert [node for node, _ in controller.image.endpoints("PLAINTEXT")] == [1, 2]

    def test_what_the_former_process_led_has_no_leader_until_the_new_one_is_unfenced(self) -> None:
        controller = two_brokers()
        epoch = controller.register(2, **OTHER_PROCESS).broker_epoch
        assert leaders(controller) == [(1, 0), (NO_NODE, 1)]
        controller.beat(2, epoch)
        assert leaders(controller) == [(1, 0), (2, 2)]

    def test_a_second_process_with_the_node_id_of_a_running_one_is_refused(self) -> None:
        controller = one_broker()
        before = controller.image.copy()
        refused = controller.register(1, session_is_live=True, **OTHER_PROCESS, **OTHER_DIRECTORY)
        assert refused.error == ErrorCode.DUPLICATE_BROKER_REGISTRATION
        assert refused.message is not None
        assert "host-1 (127.0.0.1:9093): give this broker another node.id" in refused.message
        assert controller.image == before

    def test_it_is_accepted_once_the_session_is_over(self) -> None:
        controller = one_broker()
        assert not controller.register(1, session_is_live=False, **OTHER_PROCESS, **OTHER_DIRECTORY).error

    def test_a_new_process_on_the_same_directory_proves_that_the_former_one_is_dead(self) -> None:
        controller = one_broker()
        assert not controller.register(1, session_is_live=True, **OTHER_PROCESS).error

    def test_a_process_that_lost_its_registration_does_not_take_it_back(self) -> None:
        controller = TestedController()
        first = controller.start_broker(1)
        controller.start_broker(1, session_is_live=True, **OTHER_PROCESS)  # the folder was copied
        refused = controller.register(1, session_is_live=True, previous_epoch=first)
        assert refused.error == ErrorCode.DUPLICATE_BROKER_REGISTRATION

    def test_a_process_may_repeat_its_registration(self) -> None:
        controller = TestedController()
        first = controller.start_broker(1)
        again = controller.register(1, session_is_live=True, previous_epoch=first)
        assert again.broker_epoch > first

    def test_a_registration_of_an_earlier_release_is_replaced(self) -> None:
        controller = TestedController()
        controller.apply(RegisterBrokerRecord(NodeId(1), bytes(16), 0, (), None, "here"))
        assert not controller.register(1, session_is_live=True, **OTHER_PROCESS).error

    @pytest.mark.parametrize(
        ("fields", "error", "message"),
        [
            ({"cluster_id": "other"}, ErrorCode.INCONSISTENT_CLUSTER_ID, "belongs to cluster other, this is cluster"),
            ({"features": ()}, ErrorCode.UNSUPPORTED_VERSION, "uses metadata.version 27, which this broker does not"),
            (
                {"features": [FeatureRange("metadata.version", 28, 30)]},
                ErrorCode.UNSUPPORTED_VERSION,
                "the cluster uses metadata.version 27, this broker supports 28 to 30",
            ),
            ({"endpoints": []}, ErrorCode.INVALID_REGISTRATION, "must have 1 to 16 listeners"),
            ({"endpoints": [Endpoint("A", "x", 1, "")] * 2}, ErrorCode.INVALID_REGISTRATION, "different names"),
            ({"endpoints": [Endpoint("A", "", 1, "")]}, ErrorCode.INVALID_REGISTRATION, "A of broker 2 has no address"),
            ({"endpoints": [Endpoint("A", "x", 0, "")]}, ErrorCode.INVALID_REGISTRATION, "port 0"),
        ],
    )
    def test_a_broker_that_cannot_belong_to_the_cluster_is_refused(
        self, fields: dict[str, object], error: ErrorCode, message: str
    ) -> None:
        controller = one_broker()
        refused = controller.register(2, **fields)
        assert refused.error == error
        assert refused.message is not None
        assert message in refused.message
        assert NodeId(2) not in controller.image.brokers

    def test_a_feature_that_the_cluster_does_not_use_may_be_unknown_to_it(self) -> None:
        controller = one_broker()
        newer = FeatureRange("headrace.future.version", 0, 3)
        assert not controller.register(2, features=[*controller.image.brokers[NodeId(1)].features, newer]).error

    def test_the_number_of_brokers_is_limited(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("headrace.core.controller.brokers.BROKERS_MAX", 1)
        controller = one_broker()
        assert controller.register(2).error == ErrorCode.POLICY_VIOLATION
        assert not controller.register(1).error


class TestHeartbeats:
    def test_a_broker_is_unfenced_once_it_has_applied_its_registration(self) -> None:
        controller = one_broker()
        epoch = controller.register(2).broker_epoch
        behind = controller.beat(2, epoch, metadata_offset=epoch - 1)
        assert (behind.is_caught_up, behind.is_fenced) == (False, True)
        reached = controller.beat(2, epoch, metadata_offset=epoch)
        assert (reached.is_caught_up, reached.is_fenced) == (True, False)
        assert not controller.image.brokers[NodeId(2)].fenced

    def test_a_heartbeat_that_changes_nothing_writes_nothing(self) -> None:
        controller = TestedController()
        epoch = controller.start_broker(1)
        written = len(controller.log)
        assert controller.beat(1, epoch) == (ErrorCode.NONE, None, True, False, False)
        assert len(controller.log) == written

    def test_another_epoch_has_to_register_again(self) -> None:
        controller = TestedController()
        epoch = controller.start_broker(1)
        for node_id, wrong in ((1, epoch - 1), (1, epoch + 1), (2, epoch)):
            assert controller.beat(node_id, wrong).error == ErrorCode.STALE_BROKER_EPOCH

    def test_a_broker_can_ask_to_be_fenced_and_unfenced(self) -> None:
        controller = two_brokers()
        epoch = controller.image.brokers[NodeId(1)].broker_epoch
        assert controller.beat(1, epoch, wants_fence=True).is_fenced
        assert leaders(controller) == [(NO_NODE, 1), (2, 0)]
        assert not controller.beat(1, epoch).is_fenced
        assert leaders(controller) == [(1, 2), (2, 0)]


class TestFencing:
    def test_the_partitions_of_a_fenced_broker_have_no_leader(self) -> None:
        controller = two_brokers()
        epoch = controller.image.brokers[NodeId(2)].broker_epoch
        controller.carry_out(controller.fence_broker(NodeId(2), epoch))
        assert leaders(controller) == [(1, 0), (NO_NODE, 1)]
        written = len(controller.log)
        controller.carry_out(controller.fence_broker(NodeId(2), epoch))
        assert len(controller.log) == written

    def test_a_broker_that_registered_again_is_left_alone(self) -> None:
        controller = two_brokers()
        before = controller.image.brokers[NodeId(2)].broker_epoch
        controller.start_broker(2, **OTHER_PROCESS)
        stale = controller.carry_out(controller.fence_broker(NodeId(2), before))
        assert stale.error == ErrorCode.STALE_BROKER_EPOCH
        assert not controller.image.brokers[NodeId(2)].fenced

    def test_other_brokers_that_wait_are_not_elected(self) -> None:
        controller = two_brokers()
        for broker in tuple(controller.image.brokers.values()):
            controller.carry_out(controller.fence_broker(broker.node_id, broker.broker_epoch))
        controller.beat(1, controller.image.brokers[NodeId(1)].broker_epoch)
        assert leaders(controller) == [(1, 2), (NO_NODE, 1)]

    def test_partitions_of_a_deleted_topic_are_not_elected(self) -> None:
        controller = two_brokers()
        epoch = controller.image.brokers[NodeId(2)].broker_epoch
        controller.carry_out(controller.fence_broker(NodeId(2), epoch))
        controller.delete("orders")
        assert not controller.beat(2, epoch).is_fenced

    def test_a_lost_broker_whose_partitions_have_three_replicas_costs_what_it_changes(
        self, states_read: list[int]
    ) -> None:
        controller = TestedController()
        for node in range(100):
            controller.start_broker(node)
        for number in range(1_000):
            topic_id = TopicId(number.to_bytes(16, "big"))
            controller.apply(TopicRecord(f"topic-{number}", topic_id))
            for index in range(100):
                nodes = tuple(NodeId((number + index + step) % 100) for step in range(3))
                controller.apply(
                    PartitionRecord(topic_id, index, nodes, nodes, nodes[0], LeaderEpoch(0), 0, (bytes(16),) * 3)
                )
        epoch = controller.image.brokers[NodeId(2)].broker_epoch
        states_read.clear()
        decision = controller.fence_broker(NodeId(2), epoch)
        assert len(decision.records) == 3_001
        assert len(states_read) <= 2 * 3_000, "of 100,000"
        controller.carry_out(decision)
        assert not [topic for topic, _ in controller.image.partitions_of_member(NodeId(2))]
        assert all(
            len(state.isr) == 3 - (2 in state.replicas) and state.leader == state.isr[0]
            for topic in controller.image.topics.values()
            for state in topic.partitions
        )

    def test_a_lost_broker_among_many_partitions_costs_what_it_changes(self, states_read: list[int]) -> None:
        controller = TestedController(ControllerSettings())
        controller.start_broker(1)
        controller.start_broker(2)
        for number in range(200):
            topic_id = TopicId(number.to_bytes(16, "big"))
            controller.apply(TopicRecord(f"topic-{number}", topic_id))
            for index in range(500):
                nodes = (NodeId(2 if index % 100 == 0 else 1),)
                controller.apply(
                    PartitionRecord(topic_id, index, nodes, nodes, nodes[0], LeaderEpoch(0), 0, (bytes(16),))
                )
        epoch = controller.image.brokers[NodeId(2)].broker_epoch
        states_read.clear()
        decision = controller.fence_broker(NodeId(2), epoch)
        assert len(decision.records) == 1_001
        assert len(states_read) <= 2 * 1_000, "of 100,000"
        controller.carry_out(decision)
        decisions = controller.beat(2, epoch)
        assert not decisions.is_fenced
        assert all(state.leader == state.replicas[0] for state in controller.image.topics["topic-7"].partitions)


class TestControlledShutdown:
    def test_it_takes_the_leadership_and_fences_the_broker(self) -> None:
        controller = two_brokers()
        epoch = controller.image.brokers[NodeId(2)].broker_epoch
        state = controller.beat(2, epoch, wants_shut_down=True)
        assert state.should_shut_down
        assert controller.image.brokers[NodeId(2)].in_controlled_shutdown
        assert leaders(controller) == [(1, 0), (NO_NODE, 1)]
        written = len(controller.log)
        assert controller.beat(2, epoch, wants_shut_down=True).should_shut_down
        assert controller.beat(2, epoch).is_fenced  # it does not come back under this epoch
        assert len(controller.log) == written

    def test_the_next_process_begins_without_it(self) -> None:
        controller = two_brokers()
        controller.beat(2, controller.image.brokers[NodeId(2)].broker_epoch, wants_shut_down=True)
        controller.start_broker(2, **OTHER_PROCESS)
        assert not controller.image.brokers[NodeId(2)].in_controlled_shutdown
        assert leaders(controller) == [(1, 0), (2, 2)]


class TestUnregistering:
    def test_a_stopped_broker_is_removed(self) -> None:
        controller = two_brokers()
        broker = controller.image.brokers[NodeId(2)]
        running = controller.carry_out(controller.unregister_broker(NodeId(2)))
        assert running.error == ErrorCode.INVALID_REQUEST
        assert running.message is not None
        assert "stop it first" in running.message
        controller.carry_out(controller.fence_broker(NodeId(2), broker.broker_epoch))
        assert not controller.carry_out(controller.unregister_broker(NodeId(2))).error
        assert list(controller.image.brokers) == [1]
        unknown = controller.carry_out(controller.unregister_broker(NodeId(2)))
        assert unknown.error == ErrorCode.BROKER_ID_NOT_REGISTERED

    def test_it_gets_its_partitions_back_when_it_returns(self) -> None:
        controller = two_brokers()
        broker = controller.image.brokers[NodeId(2)]
        controller.carry_out(controller.fence_broker(NodeId(2), broker.broker_epoch))
        controller.carry_out(controller.unregister_broker(NodeId(2)))
        controller.start_broker(2, **OTHER_PROCESS)
        assert leaders(controller) == [(1, 0), (2, 2)]


class TestRecords:
    def test_a_registration_of_an_earlier_release_is_read_as_unfenced(self) -> None:
        fields = msgspec.msgpack.encode([1, bytes(16), 5, [["PLAINTEXT", "here", 9092, "PLAINTEXT"]], None, "here"])
        endpoint = Endpoint("PLAINTEXT", "here", 9092, "PLAINTEXT")
        record = decode_record(b"\x00\x00" + fields)
        assert record == RegisterBrokerRecord(NodeId(1), bytes(16), 5, (endpoint,), None, "here")
        assert not record.fenced

    @pytest.mark.parametrize(
        "record",
        [
            BrokerRegistrationChangeRecord(NodeId(1), 7, fenced=True),
            BrokerRegistrationChangeRecord(NodeId(2), 0, fenced=True),
            UnregisterBrokerRecord(NodeId(1), 7),
            UnregisterBrokerRecord(NodeId(2), 0),
        ],
    )
    def test_a_change_of_a_broker_that_is_not_registered_is_not_applied(self, record: object) -> None:
        image = MetadataImage()
        image.apply(RegisterBrokerRecord(NodeId(1), bytes(16), 0, (), None, "here"))
        before = image.copy()
        with pytest.raises(RecordError, match="is not registered"):
            image.apply(record)  # type: ignore[arg-type]
        assert image == before
