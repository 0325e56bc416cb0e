"""In-sync sets that leaders ask for: which changes count, and why the others are refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.core.controller.commands import (
    PARTITIONS_PER_REQUEST_MAX,
    IsrAlteration,
    IsrChange,
    IsrMember,
    IsrResult,
    IsrResults,
)
from headrace.core.controller.partition_states import PartitionState
from headrace.core.controller.records import PartitionChangeRecord
from headrace.model.errors import ErrorCode
from headrace.model.ids import NodeId, TopicId
from tests.core.controllers import TestedController

ONE, TWO, THREE = (NodeId(node) for node in (1, 2, 3))


class Led:
    """A topic on three brokers; broker 1 leads its partitions."""

    def __init__(self, partitions: int = 1) -> None:
        self.controller = TestedController()
        for node in (1, 2, 3):
            self.controller.start_broker(node)
        assignments = [(index, [ONE, TWO, THREE]) for index in range(partitions)]
        self.controller.create_one("orders", -1, assignments=assignments)
        self.topic_id = self.controller.image.topics["orders"].topic_id

    def state(self, partition: int = 0) -> PartitionState:
        return self.controller.image.topics["orders"].partitions[partition]

    def epoch(self, node: int) -> int:
        return self.controller.image.brokers[NodeId(node)].broker_epoch

    def members(self, *nodes: int) -> tuple[IsrMember, ...]:
        return tuple(IsrMember(NodeId(node), self.epoch(node)) for node in nodes)

    def change(self, *nodes: int, partition: int = 0, **others: object) -> IsrChange:
        state = self.state()
        change = IsrChange(
            self.topic_id, partition, state.leader_epoch, state.partition_epoch, isr=self.members(*nodes)
        )
        return change._replace(**others)  # type: ignore[arg-type]

    def alter(self, *changes: IsrChange, node: int = 1, epoch: int | None = None) -> IsrResults:
        broker_epoch = self.epoch(node) if epoch is None else epoch
        alteration = IsrAlteration(node_id=NodeId(node), broker_epoch=broker_epoch, changes=changes)
        return self.controller.carry_out(self.controller.alter_isrs(alteration))

    def alter_one(self, change: IsrChange, node: int = 1) -> IsrResult:
        (result,) = self.alter(change, node=node).results
        return result


def test_a_leader_removes_a_replica_and_takes_it_back() -> None:
    led = Led()
    shrunk = led.alter_one(led.change(1, 3))
    assert (shrunk.error, shrunk.isr, shrunk.leader, shrunk.leader_epoch) == (ErrorCode.NONE, (1, 3), 1, 0)
    assert led.state().isr == (1, 3)
    assert shrunk.partition_epoch == led.state().partition_epoch == 1
    grown = led.alter_one(led.change(3, 2, 1))
    assert grown.isr == led.state().isr == (1, 2, 3)  # in the order of the replicas
    assert grown.partition_epoch == led.state().partition_epoch == 2
    assert led.state().leader_epoch == 0  # the leader is the same


def test_the_set_that_is_in_force_already_changes_nothing() -> None:
    led = Led()
    before = len(led.controller.log)
    result = led.alter_one(led.change(1, 2, 3))
    assert (result.error, result.isr, result.partition_epoch) == (ErrorCode.NONE, (1, 2, 3), 0)
    assert len(led.controller.log) == before


@pytest.mark.parametrize(
    ("others", "error"),
    [
        ({"topic_id": TopicId(b"x" * 16)}, ErrorCode.UNKNOWN_TOPIC_ID),
        ({"partition": 1}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ({"partition": -1}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ({"leader_epoch": 1}, ErrorCode.NOT_CONTROLLER),
        ({"partition_epoch": 2}, ErrorCode.NOT_CONTROLLER),
        ({"leader_epoch": -1}, ErrorCode.FENCED_LEADER_EPOCH),
        ({"partition_epoch": 0}, ErrorCode.INVALID_UPDATE_VERSION),
        ({"isr": ()}, ErrorCode.INVALID_REQUEST),
        ({"isr": (IsrMember(ONE, 0), IsrMember(ONE, 0))}, ErrorCode.INVALID_REQUEST),
        ({"isr": (IsrMember(ONE, 0), IsrMember(NodeId(9), 0))}, ErrorCode.INVALID_REQUEST),
        ({"isr": (IsrMember(TWO, 0),)}, ErrorCode.INVALID_REQUEST),
    ],
)
def test_a_change_that_does_not_fit_the_state_is_refused(others: dict[str, object], error: ErrorCode) -> None:
    led = Led()
    led.alter_one(led.change(1, 2))
    before = led.controller.image.copy()
    result = led.alter_one(led.change(1, **others))
    assert result.error == error
    assert result.message
    assert led.controller.image == before


def test_a_broker_that_does_not_lead_the_partition_is_refused() -> None:
    led = Led()
    assert led.alter_one(led.change(1, 2), node=2).error == ErrorCode.INVALID_REQUEST


def test_a_broker_of_another_epoch_is_refused_whole() -> None:
    led = Led()
    refused = led.alter(led.change(1, 2), epoch=led.epoch(1) - 1)
    assert (refused.error, refused.results) == (ErrorCode.STALE_BROKER_EPOCH, ())
    assert led.state().isr == (1, 2, 3)


def test_a_replica_that_restarted_since_is_not_in_sync_by_its_former_fetches() -> None:
    led = Led()
    led.alter_one(led.change(1, 3))
    as_fetched = led.change(1, 2, 3)
    led.controller.register(2, incarnation=b"2" * 16)
    led.controller.beat(2, led.epoch(2))
    refused = led.alter_one(as_fetched)
    assert refused.error == ErrorCode.INELIGIBLE_REPLICA
    assert refused.message is not None
    assert "registered with epoch" in refused.message
    assert led.alter_one(led.change(1, 2, 3)).error == ErrorCode.NONE


@pytest.mark.parametrize("way", ["fenced", "shutting down", "unregistered"])
def test_a_replica_on_a_broker_that_is_gone_is_not_in_sync(way: str) -> None:
    led = Led()
    led.alter_one(led.change(1, 3))
    change = led.change(1, 2, 3)
    if way == "shutting down":
        led.controller.beat(2, led.epoch(2), wants_shut_down=True)
    else:
        led.controller.carry_out(led.controller.fence_broker(TWO, led.epoch(2)))
    if way == "unregistered":
        led.controller.carry_out(led.controller.unregister_broker(TWO))
    assert led.alter_one(change).error == ErrorCode.INELIGIBLE_REPLICA
    assert led.state().isr == (1, 3)


def test_each_partition_has_its_own_result() -> None:
    led = Led(partitions=2)
    first, second, again = led.alter(
        led.change(1, 2), led.change(1, 2, partition=1, partition_epoch=-1), led.change(1)
    ).results
    assert (first.error, second.error, again.error) == (
        ErrorCode.NONE,
        ErrorCode.INVALID_UPDATE_VERSION,
        ErrorCode.INVALID_REQUEST,
    )
    assert (led.state(0).isr, led.state(1).isr) == ((1, 2), (1, 2, 3))


def test_a_request_with_too_many_partitions_is_refused() -> None:
    led = Led()
    refused = led.alter(*[led.change(1)] * (PARTITIONS_PER_REQUEST_MAX + 1))
    assert refused.error == ErrorCode.INVALID_REQUEST


@given(
    leader_epoch=st.integers(-1, 2),
    partition_epoch=st.integers(-1, 4),
    members=st.lists(st.tuples(st.sampled_from((1, 2, 3, 4)), st.booleans()), max_size=4),
    sender=st.sampled_from((1, 2)),
)
def test_only_changes_of_the_current_state_with_current_members_are_committed(
    leader_epoch: int, partition_epoch: int, members: list[tuple[int, bool]], sender: int
) -> None:
    led = Led()
    led.alter_one(led.change(1, 2))
    led.alter_one(led.change(1, 2, 3))
    before = led.state()
    isr = tuple(
        IsrMember(NodeId(node), (led.epoch(node) if node <= 3 else 0) - (not current)) for node, current in members
    )
    written = len(led.controller.log)
    result = led.alter_one(led.change(leader_epoch=leader_epoch, partition_epoch=partition_epoch, isr=isr), node=sender)
    nodes = {node for node, _ in members}
    valid = (
        sender == before.leader
        and (leader_epoch, partition_epoch) == (before.leader_epoch, before.partition_epoch)
        and len(nodes) == len(members)
        and {1} <= nodes <= {1, 2, 3}
        and all(current for _, current in members)
    )
    assert (result.error == ErrorCode.NONE) == valid
    changes = [record for record in led.controller.log[written:] if isinstance(record, PartitionChangeRecord)]
    assert bool(changes) == (valid and nodes != set(before.isr))
    if valid:
        assert led.state().isr == tuple(node for node in before.replicas if node in nodes)
    else:
        assert led.state() == before
