"""The core that reads ranges: limits, gaps, moves and bad answers, against a leader made of lists."""

from typing import Any

import pytest

from headrace.client.core.calls import PendingCall
from headrace.client.core.cluster import Cluster
from headrace.client.core.fetch_requests import FetchSettings
from headrace.client.core.ranges import FetchedBytes, RangeReader
from headrace.client.errors import BadResponse, BrokerError, BrokerUnreachable, UnsupportedByBroker
from headrace.client.types import EARLIEST_LOCAL
from headrace.model.errors import ErrorCode
from headrace.model.ids import TopicPartition
from headrace.wire.messages import fetch, list_offsets, metadata
from headrace.wire.records.builder import NewRecord, build_batch

TOPIC_ID = bytes(range(16))
STEPS_MAX = 100


def batch(base_offset: int, count: int, value: bytes = b"v") -> bytes:
    return bytes(build_batch([NewRecord(1, None, value)] * count, base_offset=base_offset))


class Leaders:
    """Two nodes; partition n is led by node `leaders[n]`, and what it holds are batches by base offset."""

    def __init__(self, logs: dict[int, dict[int, bytes]], ends: dict[int, int], **settings: Any) -> None:
        self.logs, self.ends = logs, ends
        self.leaders = {index: 1 + index % 2 for index in logs}
        self.errors: dict[int, list[Any]] = {}
        self.cluster = Cluster()
        self.settings = FetchSettings(**settings)
        self.now_ms = 0.0
        self.fetches: list[tuple[int, fetch.FetchRequest]] = []
        self.epoch = 0
        self.local_starts: dict[int, int] = {}
        """Of partitions whose beginning is in remote storage."""
        self.unread = 0
        """Number of times that nothing will be read from remote storage in time."""
        self.followers: dict[int, int] = {}
        """By partition the node that those with a rack are sent to."""
        self.look_ups: list[tuple[int, list_offsets.ListOffsetsRequest]] = []
        self.look_up_errors: list[Any] = []

    def reader(self, ranges: dict[int, tuple[int, int]], held_bytes_max: int = 10_000) -> RangeReader:
        wanted = {TopicPartition("t", index): bounds for index, bounds in ranges.items()}
        return RangeReader(self.settings, self.cluster, wanted, held_bytes_max=held_bytes_max)

    def read(self, reader: RangeReader) -> list[FetchedBytes]:
        pieces: list[Any] = []
        for _ in range(STEPS_MAX):
            if reader.is_done():
                return pieces
            calls, _wakeup_ms = reader.poll(self.now_ms)
            for pending in calls:
                self.answer(pending)
            while (piece := reader.take()) is not None:
                pieces.append(piece)
            self.now_ms += 50
        raise AssertionError(f"not read: {reader.unread()}")

    def answer(self, pending: PendingCall) -> None:
        message = pending.call.message
        if isinstance(message, metadata.MetadataRequest):
            pending.completed(self.metadata(), self.now_ms)
            return
        if isinstance(message, list_offsets.ListOffsetsRequest):
            assert pending.call.min_version == 8
            self.look_ups.append((pending.call.target, message))
            wrong = self.look_up_errors.pop(0) if self.look_up_errors else None
            pending.completed(wrong or self.looked_up(message), self.now_ms)
            return
        self.fetches.append((pending.call.target, message))
        pending.completed(self.fetched(pending.call.target, message), self.now_ms)

    def metadata(self) -> metadata.MetadataResponse:
        partitions = tuple(
            metadata.MetadataResponsePartition(partition_index=index, leader_id=node, leader_epoch=self.epoch)
            for index, node in self.leaders.items()
        )
        brokers = tuple(metadata.MetadataResponseBroker(node_id=node, host="h", port=node) for node in (1, 2))
        topic = metadata.MetadataResponseTopic(name="t", topic_id=TOPIC_ID, partitions=partitions)
        return metadata.MetadataResponse(brokers=brokers, topics=(topic,))

    def looked_up(self, request: list_offsets.ListOffsetsRequest) -> list_offsets.ListOffsetsResponse:
        (asked,) = request.topics[0].partitions
        assert asked.timestamp == EARLIEST_LOCAL
        found = list_offsets.ListOffsetsResponsePartition(
            partition_index=asked.partition_index, offset=self.local_starts.get(asked.partition_index, 0)
        )
        return list_offsets.ListOffsetsResponse(
            topics=(list_offsets.ListOffsetsResponseTopic(name="t", partitions=(found,)),)
        )

    def fetched(self, node: int, request: fetch.FetchRequest) -> Any:
        room, answers = request.max_bytes, []
        for wanted in request.topics[0].partitions:
            index = wanted.partition
            if self.errors.get(index):
                wrong = self.errors[index].pop(0)
                if isinstance(wrong, Exception):
                    return wrong
                answers.append(fetch.FetchResponsePartition(partition_index=index, error_code=wrong))
                continue
            follower = self.followers.get(index, -1)
            if self.leaders[index] == node and follower >= 0 and request.rack_id:
                sent_on = fetch.FetchResponsePartition(
                    partition_index=index, high_watermark=self.ends[index], preferred_read_replica=follower
                )
                answers.append(sent_on)
                continue
            if node not in (self.leaders[index], follower):
                code = ErrorCode.NOT_LEADER_OR_FOLLOWER
                answers.append(fetch.FetchResponsePartition(partition_index=index, error_code=code))
                continue
            found = b""
            is_remote = wanted.fetch_offset < self.local_starts.get(index, 0)
            self.unread -= is_remote
            is_unread = (is_remote and self.unread >= 0) or node == follower
            for base_offset, data in () if is_unread else self.logs[index].items():
                last = base_offset + int.from_bytes(data[23:27], "big")
                if last < wanted.fetch_offset:
                    continue
                is_very_first = not answers and not found
                if not is_very_first and len(data) > min(room, wanted.partition_max_bytes - len(found)):
                    break
                found += data
                room -= len(data)
            answers.append(
                fetch.FetchResponsePartition(
                    partition_index=index,
                    records=found,
                    high_watermark=self.ends[index],
                    last_stable_offset=self.ends[index],
                )
            )
        topic = fetch.FetchResponseTopic(topic_id=TOPIC_ID, partitions=tuple(answers))
        return fetch.FetchResponse(responses=(topic,))


def bounds_of(pieces: list[FetchedBytes]) -> dict[int, list[tuple[int, int]]]:
    found: dict[int, list[tuple[int, int]]] = {}
    for piece in pieces:
        found.setdefault(piece.partition.partition, []).append((piece.begin, piece.end))
    return found


def test_gaps_are_passed_over_and_an_empty_end_is_an_end() -> None:
    logs = {0: {0: batch(0, 2), 10: batch(10, 1)}, 1: {5: batch(5, 3)}, 2: {}, 3: {90: batch(90, 1)}}
    world = Leaders(logs, {0: 50, 1: 50, 2: 50, 3: 91})
    reader = world.reader({0: (0, 50), 1: (6, 7), 2: (3, 9), 3: (0, 80)})
    assert bounds_of(world.read(reader)) == {0: [(0, 11)], 1: [(6, 7)]}


def test_pieces_follow_each_other_without_a_hole() -> None:
    logs = {0: {number * 3: batch(number * 3, 3, bytes(300)) for number in range(20)}}
    world = Leaders(logs, {0: 60}, partition_bytes_max=2_500)
    pieces = world.read(world.reader({0: (4, 58)}))
    bounds = [(piece.begin, piece.end) for piece in pieces]
    assert bounds[0][0] == 4
    assert bounds[-1][1] == 58
    assert [end for _begin, end in bounds[:-1]] == [begin for begin, _end in bounds[1:]]
    assert len(bounds) > 5


def test_what_is_held_and_asked_for_stays_within_the_limit() -> None:
    logs = {index: {n: batch(n, 1, bytes(900)) for n in range(12)} for index in range(4)}
    world = Leaders(logs, dict.fromkeys(logs, 12), partition_bytes_max=1_000)
    reader = world.reader(dict.fromkeys(logs, (0, 12)), held_bytes_max=3_000)
    pieces: list[FetchedBytes] = []
    held = 0
    for _ in range(STEPS_MAX):
        calls, _wakeup_ms = reader.poll(world.now_ms)
        asked = sum(pending.call.message.max_bytes for pending in calls if pending.call.api is fetch)
        assert held + asked <= 3_000
        for pending in calls:
            world.answer(pending)
        world.now_ms += 50
        held = reader._held_bytes
        if not calls and (piece := reader.take()) is not None:
            pieces.append(piece)
            held = reader._held_bytes
        if reader.is_done():
            break
    assert {index: len(found) for index, found in bounds_of(pieces).items()} == dict.fromkeys(logs, 12)


def test_a_partition_that_got_nothing_for_lack_of_room_is_not_taken_for_read() -> None:
    logs = {0: {n: batch(n, 1, bytes(900)) for n in range(9)}, 2: {n: batch(n, 1, bytes(900)) for n in range(9)}}
    world = Leaders(logs, {0: 9, 2: 9}, bytes_max=1_000)
    pieces = world.read(world.reader({0: (0, 9), 2: (0, 9)}))
    assert bounds_of(pieces) == {index: [(n, n + 1) for n in range(9)] for index in (0, 2)}


def test_a_moved_leader_is_found_and_a_broken_connection_tried_again() -> None:
    world = Leaders({0: {0: batch(0, 2)}}, {0: 2})
    reader = world.reader({0: (0, 2)})
    world.errors[0] = [BrokerUnreachable("cut"), ErrorCode.LEADER_NOT_AVAILABLE]
    for _ in range(6):
        for pending in reader.poll(world.now_ms)[0]:
            world.answer(pending)
        world.now_ms += 50
    world.leaders[0], world.epoch = 2, 1
    assert bounds_of(world.read(reader)) == {0: [(0, 2)]}
    assert [node for node, _request in world.fetches][:2] == [1, 1]


@pytest.mark.parametrize(
    ("wrong", "kind"),
    [
        (ErrorCode.TOPIC_AUTHORIZATION_FAILED, BrokerError),
        (ErrorCode.OFFSET_OUT_OF_RANGE, BrokerError),
        (UnsupportedByBroker("too old"), UnsupportedByBroker),
    ],
)
def test_what_cannot_get_better_is_raised_behind_what_came(wrong: Any, kind: type[Exception]) -> None:
    world = Leaders({0: {0: batch(0, 1), 1: batch(1, 1)}}, {0: 2}, partition_bytes_max=60)
    reader = world.reader({0: (0, 2)})
    for _ in range(4):
        for pending in reader.poll(world.now_ms)[0]:
            world.answer(pending)
        world.errors[0] = [wrong] if world.fetches else []
    assert reader.take() is not None
    with pytest.raises(kind):
        reader.take()


def test_an_answer_without_what_was_asked_for_is_refused() -> None:
    world = Leaders({0: {0: batch(0, 1)}}, {0: 9})
    reader = world.reader({0: (5, 9)})
    whole = batch(5, 1)
    world.logs[0] = {5: whole[:8] + bytes(4) + whole[12:]}
    with pytest.raises(BadResponse):
        world.read(reader)


def test_what_does_not_come_from_remote_storage_in_time_is_not_taken_for_read() -> None:
    world = Leaders({0: {0: batch(0, 2), 2: batch(2, 2)}}, {0: 4})
    world.local_starts[0], world.unread = 2, 3
    assert bounds_of(world.read(world.reader({0: (0, 4)}))) == {0: [(0, 4)]}
    assert [node for node, _request in world.look_ups] == [1] * 3


def test_nothing_from_remote_storage_is_no_end() -> None:
    world = Leaders({0: {0: batch(0, 2), 2: batch(2, 2)}}, {0: 4})
    world.local_starts[0], world.unread = 2, STEPS_MAX
    with pytest.raises(AssertionError, match="t-0 from 0 to 4"):
        world.read(world.reader({0: (0, 4)}))
    assert len(world.fetches) < STEPS_MAX / 2, "it is asked again without a pause"


def test_what_a_follower_does_not_have_is_asked_of_the_leader() -> None:
    world = Leaders({0: {0: batch(0, 2)}}, {0: 4}, rack="r")
    world.followers[0] = 2
    assert bounds_of(world.read(world.reader({0: (0, 4)}))) == {0: [(0, 2)]}
    asked = [(node, request.rack_id) for node, request in world.fetches]
    assert asked == [(1, "r"), (2, "r"), (1, ""), (1, "r"), (2, "r"), (1, "")]
    assert [node for node, _request in world.look_ups] == [1]


def test_an_empty_place_beside_a_full_one_is_no_end() -> None:
    """As in an answer that was put together while it waited: what came last found no room."""
    world = Leaders({0: {0: batch(0, 1, bytes(900))}, 2: {0: batch(0, 1)}}, {0: 1, 2: 1})
    reader = world.reader({0: (0, 1), 2: (0, 1)})
    held_back = world.logs[0].pop(0)
    while not world.fetches:
        for pending in reader.poll(world.now_ms)[0]:
            world.answer(pending)
    world.logs[0] = {0: held_back}
    assert bounds_of(world.read(reader)) == {0: [(0, 1)], 2: [(0, 1)]}


@pytest.mark.parametrize(
    ("wrong", "look_ups"),
    [(UnsupportedByBroker("too old"), 1), (BrokerUnreachable("cut"), 2), (list_offsets.ListOffsetsResponse(), 2)],
)
def test_an_end_that_cannot_be_asked_about(wrong: Any, look_ups: int) -> None:
    world = Leaders({0: {0: batch(0, 1)}}, {0: 9})
    world.look_up_errors = [wrong]
    assert bounds_of(world.read(world.reader({0: (0, 9)}))) == {0: [(0, 1)]}
    assert len(world.look_ups) == look_ups


def test_a_known_end_is_not_waited_for() -> None:
    world = Leaders({0: {0: batch(0, 1)}}, {0: 9})
    world.read(world.reader({0: (0, 9)}))
    assert [request.max_wait_ms for _node, request in world.fetches] == [500, 0]
