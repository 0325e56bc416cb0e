"""A new leader that lacks what was read (KIP-320): found out before anything more is read, and told or undone."""

from typing import Any

import pytest

from headrace.client.errors import BrokerUnreachable, LogTruncated, UnsupportedByBroker
from headrace.client.types import EARLIEST
from headrace.model.errors import ErrorCode
from headrace.wire.messages import fetch, metadata, offset_for_leader_epoch

from .test_consumer_core import T0, World, batch


class ElectingWorld(World):
    """A leader whose epoch can grow; it answers for the ends of epochs from its own batches."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.epoch = 3
        self.check_faults: list[Any] = []
        self.checks: list[tuple[int, int]] = []
        self.is_forgetful = False

    def elect(self, *log: bytes) -> None:
        """Another leader with this log takes over."""
        self.epoch += 1
        self.logs[0] = list(log)

    def _fetch(self, request: fetch.FetchRequest) -> fetch.FetchResponse:
        if any(each.current_leader_epoch < self.epoch for topic in request.topics for each in topic.partitions):
            self.fetch_errors[0] = [ErrorCode.FENCED_LEADER_EPOCH]
        return super()._fetch(request)

    def _metadata(self) -> metadata.MetadataResponse:
        found = super()._metadata()
        partitions = tuple(
            metadata.MetadataResponsePartition(
                partition_index=each.partition_index, leader_id=1, leader_epoch=self.epoch
            )
            for each in found.topics[0].partitions
        )
        topic = metadata.MetadataResponseTopic(name="t", topic_id=self.topic_id, partitions=partitions)
        return metadata.MetadataResponse(brokers=found.brokers, topics=(topic,))

    def answer(self, message: Any) -> Any:
        if not isinstance(message, offset_for_leader_epoch.OffsetForLeaderEpochRequest):
            return super().answer(message)
        fault = self.check_faults.pop(0) if self.check_faults else 0
        if isinstance(fault, Exception):
            return fault
        (wanted,) = message.topics[0].partitions
        self.checks.append((wanted.current_leader_epoch, wanted.leader_epoch))
        epoch, end = -1, -1
        for one in self.logs[0]:
            own = int.from_bytes(one[12:16], "big")
            if own <= wanted.leader_epoch and not self.is_forgetful:
                epoch, end = own, int.from_bytes(one[:8], "big") + int.from_bytes(one[23:27], "big") + 1
        answer = offset_for_leader_epoch.OffsetForLeaderEpochResponsePartition(
            partition=0, error_code=fault, leader_epoch=epoch, end_offset=end
        )
        topic = offset_for_leader_epoch.OffsetForLeaderEpochResponseTopic(topic="t", partitions=(answer,))
        return offset_for_leader_epoch.OffsetForLeaderEpochResponse(topics=(topic,))


def old(base_offset: int, *values: bytes) -> bytes:
    return batch(base_offset, *values, leader_epoch=3)


def new(base_offset: int, *values: bytes) -> bytes:
    return batch(base_offset, *values, leader_epoch=4)


def values(world: World) -> list[bytes]:
    return [record.value for record in world.read(steps=10)]


def test_a_leader_that_has_everything_is_asked_once() -> None:
    world = ElectingWorld()
    world.logs[0] = [old(0, b"a", b"b")]
    assert values(world) == [b"a", b"b"]
    assert world.checks == []
    world.elect(old(0, b"a", b"b"), new(2, b"c"))
    assert values(world) == [b"c"]
    assert world.checks == [(4, 3)]


def test_what_was_cut_off_is_read_again_where_a_reset_is_allowed() -> None:
    world = ElectingWorld()
    world.logs[0] = [old(0, b"a"), old(1, b"lost"), old(2, b"lost too")]
    assert len(values(world)) == 3
    world.elect(old(0, b"a"), new(1, b"b"), new(2, b"c"), new(3, b"d"))
    assert values(world) == [b"b", b"c", b"d"], "without the check only d would have come"
    assert world.core.position(T0) == 4


def test_what_was_cut_off_is_reported_where_no_reset_is_allowed() -> None:
    world = ElectingWorld(reset_to=None, subscribe=False)
    world.core.assign([T0])
    world.core.seek(T0, 0)
    world.logs[0] = [old(0, b"a"), old(1, b"lost"), old(2, b"lost too")]
    assert len(values(world)) == 3
    world.elect(old(0, b"a"), new(1, b"b"), new(2, b"c"), new(3, b"d"))
    with pytest.raises(LogTruncated, match=r"t-0 lost records from offset 1 on that were read up to 3") as raised:
        values(world)
    assert (raised.value.partition, raised.value.offset, raised.value.diverged_at) == (T0, 3, 1)
    with pytest.raises(LogTruncated):
        values(world)
    world.core._readings.errors.clear()
    world.core.seek(T0, 1)
    assert values(world) == [b"b", b"c", b"d"]


def test_a_leader_that_knows_nothing_of_the_epoch() -> None:
    world = ElectingWorld(reset_to=EARLIEST)
    world.logs[0] = [old(0, b"a")]
    assert values(world) == [b"a"]
    world.is_forgetful = True
    world.elect(new(0, b"x"), new(1, b"y"))
    assert values(world) == [b"x", b"y"]


def test_what_was_not_handed_out_is_only_fetched_again() -> None:
    world = ElectingWorld()
    world.logs[0] = [old(0, b"a"), old(1, b"lost")]
    for _ in range(4):
        world.step()
    assert [record.value for record in world.core.take(1)] == [b"a"]
    world.elect(old(0, b"a"), new(1, b"b"))
    for _ in range(10):
        world.step()
    assert [record.value for record in world.core.take(10)] == [b"b"]
    assert world.checks == [(4, 3)]


def test_a_question_that_fails_is_asked_again_and_an_old_broker_is_not_asked() -> None:
    world = ElectingWorld()
    world.logs[0] = [old(0, b"a")]
    assert values(world) == [b"a"]
    world.check_faults = [BrokerUnreachable("gone"), ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.UNKNOWN_LEADER_EPOCH]
    world.elect(old(0, b"a"), new(1, b"b"))
    assert values(world) == [b"b"]
    world.check_faults = [UnsupportedByBroker("old")]
    world.elect(old(0, b"a"), new(1, b"b"), batch(2, b"c", leader_epoch=5))
    assert values(world) == [b"c"]
    assert not world.check_faults


def test_committed_offsets_are_checked_by_their_epochs() -> None:
    world = ElectingWorld(subscribe=False)
    world.epoch = 4
    world.core.assign([T0], needs_committed=True)
    world.logs[0] = [old(0, b"a"), new(1, b"b"), new(2, b"c")]
    world.core.begin_at_committed(T0, 3, 3)
    assert values(world) == [b"b", b"c"]
    assert world.checks[0] == (4, 3)
