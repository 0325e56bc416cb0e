from dataclasses import fields
from typing import Any

import pytest

from headrace.client.core.calls import Call, PendingCall
from headrace.client.core.cluster import Cluster
from headrace.client.core.consumer import ConsumerCore, ConsumerSettings
from headrace.client.core.fetch_requests import FetchSettings
from headrace.client.core.partition_reader import open_batch
from headrace.client.errors import BadResponse, BrokerError, BrokerUnreachable
from headrace.client.types import EARLIEST, LATEST, Broker, ConsumerRecord, IsolationLevel
from headrace.model.errors import ErrorCode
from headrace.model.ids import TopicPartition
from headrace.wire.messages import fetch, list_offsets, metadata
from headrace.wire.records.builder import NewRecord, build_batch
from headrace.wire.records.compression import Compression

TOPIC_ID = bytes(range(16))
T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
FETCH_OPTIONS = {field.name for field in fields(FetchSettings)}


def batch(base_offset: int, *values: bytes, **options: Any) -> bytes:
    new = [NewRecord(1000 + base_offset + n, b"k", value) for n, value in enumerate(values)]
    return bytes(build_batch(new, base_offset=base_offset, **options))


class World:
    """A consumer core and the leader of topic t, whose answers are set per partition."""

    def __init__(self, *, partitions: int = 1, subscribe: bool = True, has_ids: bool = True, **options: Any) -> None:
        self.cluster = Cluster()
        fetches = FetchSettings(**{name: options.pop(name) for name in set(options) & FETCH_OPTIONS})
        self.core = ConsumerCore(
            ConsumerSettings(**{"reset_to": EARLIEST, "fetches": fetches, **options}), self.cluster
        )
        self.partitions = partitions
        self.topic_id = TOPIC_ID if has_ids else bytes(16)
        self.logs: dict[int, list[bytes]] = {n: [] for n in range(partitions)}
        """Whole batches by partition."""
        self.starts = dict.fromkeys(range(partitions), 0)
        self.fetch_errors: dict[int, list[int]] = {}
        self.lookup_errors: list[int] = []
        self.aborted: list[tuple[int, int]] = []
        self.hints: list[tuple[int, int, str, int]] = []
        """Node id, epoch, host and port of the leader that refusals name."""
        self.preferred: list[int] = []
        self.now_ms = 0.0
        self.calls: list[Call] = []
        self.pending: list[PendingCall] = []
        if subscribe:
            self.core.subscribe(["t"])

    def step(self) -> None:
        """Ask what is due, answer all of it, let a little time pass."""
        calls, _wakeup_ms = self.core.poll(self.now_ms)
        for pending in calls:
            self.calls.append(pending.call)
            pending.completed(self.answer(pending.call.message), self.now_ms)
        self.now_ms += 150

    def read(self, steps: int = 6, records_max: int = 100) -> list[ConsumerRecord]:
        taken: list[ConsumerRecord] = []
        for _ in range(steps):
            self.step()
            taken += self.core.take(records_max)
        return taken

    def answer(self, message: Any) -> Any:
        if isinstance(message, metadata.MetadataRequest):
            return self._metadata()
        if isinstance(message, list_offsets.ListOffsetsRequest):
            return self._offsets(message)
        return self._fetch(message)

    def _metadata(self) -> metadata.MetadataResponse:
        partitions = tuple(
            metadata.MetadataResponsePartition(partition_index=n, leader_id=1, leader_epoch=3)
            for n in range(self.partitions)
        )
        topic = metadata.MetadataResponseTopic(name="t", topic_id=self.topic_id, partitions=partitions)
        broker = metadata.MetadataResponseBroker(node_id=1, host="here", port=1)
        return metadata.MetadataResponse(brokers=(broker,), topics=(topic,))

    def _end(self, partition: int) -> int:
        log = self.logs[partition]
        if not log:
            return self.starts[partition]
        base, delta = (int.from_bytes(log[-1][at : at + size], "big") for at, size in ((0, 8), (23, 4)))
        return base + delta + 1

    def _offsets(self, request: list_offsets.ListOffsetsRequest) -> list_offsets.ListOffsetsResponse:
        def find(wanted: list_offsets.ListOffsetsRequestPartition) -> list_offsets.ListOffsetsResponsePartition:
            index, time = wanted.partition_index, wanted.timestamp
            offset = {EARLIEST: self.starts[index], LATEST: self._end(index)}.get(time, time - 1000)
            error = self.lookup_errors.pop() if self.lookup_errors else 0
            if offset > self._end(index):
                offset = -1
            return list_offsets.ListOffsetsResponsePartition(partition_index=index, offset=offset, error_code=error)

        return list_offsets.ListOffsetsResponse(
            topics=tuple(
                list_offsets.ListOffsetsResponseTopic(name=topic.name, partitions=tuple(map(find, topic.partitions)))
                for topic in request.topics
            )
        )

    def _fetch(self, request: fetch.FetchRequest) -> fetch.FetchResponse:
        def read(wanted: fetch.FetchRequestPartition) -> fetch.FetchResponsePartition:
            index = wanted.partition
            errors = self.fetch_errors.get(index, [])
            if errors:
                leader = fetch.FetchResponseCurrentLeader(
                    leader_id=self.hints[0][0] if self.hints else -1,
                    leader_epoch=self.hints[0][1] if self.hints else -1,
                )
                return fetch.FetchResponsePartition(
                    partition_index=index, error_code=errors.pop(), current_leader=leader
                )
            if not self.starts[index] <= wanted.fetch_offset <= self._end(index):
                return fetch.FetchResponsePartition(partition_index=index, error_code=ErrorCode.OFFSET_OUT_OF_RANGE)
            found = [
                one
                for one in self.logs[index]
                if int.from_bytes(one[:8], "big") + int.from_bytes(one[23:27], "big") >= wanted.fetch_offset
            ]
            return fetch.FetchResponsePartition(
                partition_index=index,
                records=b"".join(found),
                high_watermark=self._end(index),
                preferred_read_replica=self.preferred.pop() if self.preferred else -1,
                aborted_transactions=tuple(
                    fetch.FetchResponseAbortedTransaction(producer_id=producer_id, first_offset=first_offset)
                    for producer_id, first_offset in self.aborted
                ),
            )

        return fetch.FetchResponse(
            node_endpoints=tuple(
                fetch.FetchResponseNodeEndpoint(node_id=node, host=host, port=port)
                for node, _epoch, host, port in self.hints
            ),
            responses=tuple(
                fetch.FetchResponseTopic(
                    topic="" if self.topic_id == TOPIC_ID else topic.topic,
                    topic_id=topic.topic_id,
                    partitions=tuple(map(read, topic.partitions)),
                )
                for topic in request.topics
            ),
        )


def values(records: list[ConsumerRecord]) -> list[bytes | None]:
    return [record.value for record in records]


@pytest.mark.parametrize("has_ids", [True, False])
def test_a_topic_is_read_from_its_beginning(has_ids: bool) -> None:
    world = World(has_ids=has_ids)
    world.logs[0] = [batch(0, b"a", b"b"), batch(2, b"c", compression=Compression.GZIP)]
    read = world.read()
    assert read[0] == ConsumerRecord("t", 0, 0, 1000, b"k", b"a", ())
    assert values(read) == [b"a", b"b", b"c"]
    assert world.core.position(T0) == 3
    fetches = [call for call in world.calls if isinstance(call.message, fetch.FetchRequest)]
    assert {call.max_version for call in fetches} == {fetch.MAX_VERSION if has_ids else 12}
    assert fetches[0].message.topics[0].partitions[0].current_leader_epoch == 3


def test_latest_skips_what_is_there() -> None:
    world = World(reset_to=LATEST)
    world.logs[0] = [batch(0, b"old")]
    assert world.read() == []
    world.logs[0].append(batch(1, b"new"))
    assert values(world.read()) == [b"new"]


def test_a_batch_is_cut_at_the_position() -> None:
    world = World(subscribe=False)
    world.logs[0] = [batch(0, b"a", b"b", b"c")]
    world.core.assign([T0])
    world.core.seek(T0, 1)
    assert values(world.read()) == [b"b", b"c"]


def test_seek_drops_what_was_fetched_before() -> None:
    world = World()
    world.logs[0] = [batch(0, b"a", b"b", b"c")]
    assert values(world.read(records_max=1, steps=3)) == [b"a"]
    world.core.seek(T0, 0)
    assert values(world.read()) == [b"a", b"b", b"c"]


def test_an_answer_from_before_a_seek_is_ignored() -> None:
    world = World()
    world.logs[0] = [batch(0, b"a"), batch(1, b"b")]
    world.step()
    world.step()
    calls, _wakeup_ms = world.core.poll(world.now_ms)
    (late,) = calls
    world.core.seek(T0, 1)
    late.completed(world.answer(late.call.message), world.now_ms)
    assert values(world.read()) == [b"b"]


def test_by_time() -> None:
    world = World()
    world.logs[0] = [batch(0, b"a", b"b"), batch(2, b"c")]
    world.read()
    world.core.seek_to_time(T0, 1001)
    assert values(world.read()) == [b"b", b"c"]
    world.core.seek_to_time(T0, 5000)
    assert world.read() == []
    assert world.core.position(T0) == 3, "after the last record is the end"


def test_what_comes_while_a_time_is_looked_up_is_not_passed_over() -> None:
    world = World()
    world.logs[0] = [batch(0, b"a", b"b"), batch(2, b"c")]
    world.read()
    world.core.seek_to_time(T0, 1004)
    world.step()
    world.logs[0].append(batch(3, b"d", b"e"))
    assert values(world.read()) == [b"e"], "the record of that time came before the end was asked for"


def test_partitions_take_turns() -> None:
    world = World(partitions=2)
    world.logs[0] = [batch(0, *[b"zero"] * 4)]
    world.logs[1] = [batch(0, *[b"one"] * 4)]
    world.step()
    world.step()
    world.step()
    taken = [values(world.core.take(2)) for _ in range(4)]
    assert sorted(taken[:2]) == [[b"one"] * 2, [b"zero"] * 2]
    assert taken[2] == taken[0]


def test_a_partition_is_fetched_again_only_when_no_more_than_a_fetch_of_it_is_left() -> None:
    world = World(partition_bytes_max=60)
    world.logs[0] = [batch(0, b"a", b"b")]
    for _ in range(6):
        world.step()
    assert sum(isinstance(call.message, fetch.FetchRequest) for call in world.calls) == 1
    assert values(world.core.take(1)) == [b"a"]
    world.step()
    fetched = [call.message for call in world.calls if isinstance(call.message, fetch.FetchRequest)]
    assert [request.topics[0].partitions[0].fetch_offset for request in fetched] == [0, 2]
    assert values(world.core.take(9)) == [b"b"]


def test_aborted_records_are_hidden_from_read_committed() -> None:
    def marker(base_offset: int, kind: int, producer_id: int) -> bytes:
        new = [NewRecord(1, bytes((0, 0, 0, kind)), bytes(6))]
        options = {"control": True, "transactional": True, "producer_id": producer_id, "producer_epoch": 0}
        return bytes(build_batch(new, base_offset=base_offset, **options))

    one = {"transactional": True, "producer_id": 1, "producer_epoch": 0, "base_sequence": 0}
    two = {**one, "producer_id": 2}
    log = [
        batch(0, b"aborted", **one),
        batch(1, b"kept", **two),
        batch(2, b"plain"),
        marker(3, 0, 1),
        batch(4, b"later", **one),
        marker(5, 1, 1),
        marker(6, 1, 2),
    ]
    for isolation, expected in (
        (IsolationLevel.READ_COMMITTED, [b"kept", b"plain", b"later"]),
        (IsolationLevel.READ_UNCOMMITTED, [b"aborted", b"kept", b"plain", b"later"]),
    ):
        world = World(isolation=isolation)
        world.logs[0] = log
        world.aborted = [(1, 0)]
        assert values(world.read()) == expected
        assert world.core.position(T0) == 7


def test_whole_batches_and_records_share_a_position() -> None:
    world = World()
    world.logs[0] = [batch(0, b"a", b"b"), batch(2, b"c")]
    for _ in range(4):
        world.step()
    assert values(world.core.take(1)) == [b"a"]
    (rest,) = world.core.take_batches()
    assert values(open_batch(rest)) == [b"b"]
    (last,) = world.core.take_batches()
    assert (values(open_batch(last)), last.end) == ([b"c"], 3)
    assert world.core.take_batches() == []
    assert world.core.position(T0) == 3


def test_a_paused_partition_keeps_what_it_has() -> None:
    world = World(partitions=2)
    world.logs = {0: [batch(0, b"zero")], 1: [batch(0, b"one")]}
    for _ in range(4):
        world.step()
    world.core.pause([T0])
    assert values(world.read()) == [b"one"]
    assert world.core.paused() == (T0,)
    world.core.resume([T0])
    assert values(world.read()) == [b"zero"]


def test_a_refusal_that_names_the_leader_needs_no_metadata() -> None:
    world = World()
    world.logs[0] = [batch(0, b"a")]
    for _ in range(2):
        world.step()
    world.hints = [(2, 4, "there", 2)]
    world.fetch_errors[0] = [ErrorCode.NOT_LEADER_OR_FOLLOWER]
    world.core.seek(T0, 0)
    world.calls.clear()
    world.step()
    assert world.cluster.leader(T0) == 2
    world.step()
    assert world.calls[-1].target == 2
    assert values(world.core.take(9)) == [b"a"]


def test_a_nearer_replica_is_read_until_it_refuses() -> None:
    world = World(rack="here")
    world.logs[0] = [batch(0, b"a")]
    for _ in range(2):
        world.step()
    world.cluster.brokers[7] = Broker(7, "near", 7, "here")
    world.preferred = [7]
    world.core.seek(T0, 0)
    world.calls.clear()
    world.step()
    world.step()
    targets = [call.target for call in world.calls if isinstance(call.message, fetch.FetchRequest)]
    assert targets == [1, 7]
    world.fetch_errors[0] = [ErrorCode.OFFSET_OUT_OF_RANGE]
    world.step()
    world.step()
    targets = [call.target for call in world.calls if isinstance(call.message, fetch.FetchRequest)]
    assert targets == [1, 7, 7, 1]
    assert world.core.position(T0) == 0


def test_control_batches_and_gaps_move_the_position() -> None:
    world = World()
    marker = bytes(
        build_batch(
            [NewRecord(1, b"\x00\x00\x00\x01", b"\x00\x00\x00\x00\x00\x00")],
            base_offset=1,
            control=True,
            transactional=True,
            producer_id=1,
            producer_epoch=0,
        )
    )
    world.logs[0] = [batch(0, b"a"), marker, batch(7, b"b")]
    assert values(world.read()) == [b"a", b"b"]
    assert world.core.position(T0) == 8


def test_an_offset_that_is_gone_begins_again() -> None:
    world = World()
    world.starts[0] = 5
    world.logs[0] = [batch(5, b"f")]
    world.read()
    world.core.seek(T0, 2)
    assert values(world.read()) == [b"f"]


def test_an_offset_that_is_gone_without_a_reset_is_an_error() -> None:
    world = World(reset_to=None, subscribe=False)
    world.core.assign([T0])
    world.starts[0] = 5
    world.core.seek(T0, 2)
    with pytest.raises(BrokerError, match="OFFSET_OUT_OF_RANGE") as raised:
        world.read()
    assert raised.value.code == ErrorCode.OFFSET_OUT_OF_RANGE


@pytest.mark.parametrize("error", [ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode(56)])
def test_errors_that_pass(error: ErrorCode) -> None:
    world = World()
    world.logs[0] = [batch(0, b"a")]
    world.fetch_errors[0] = [error]
    world.lookup_errors = [ErrorCode.LEADER_NOT_AVAILABLE]
    assert values(world.read(10)) == [b"a"]
    assert sum(isinstance(call.message, metadata.MetadataRequest) for call in world.calls) >= 2


def test_errors_that_do_not_pass_are_raised() -> None:
    world = World(partitions=2)
    world.logs[1] = [batch(0, b"a")]
    world.fetch_errors[0] = [ErrorCode.TOPIC_AUTHORIZATION_FAILED]
    world.step()
    world.step()
    world.step()
    assert values(world.core.take(10)) == [b"a"], "what is good comes first"
    with pytest.raises(BrokerError, match="TOPIC_AUTHORIZATION_FAILED"):
        world.core.take(10)


def test_a_broken_connection_is_tried_again() -> None:
    world = World()
    world.logs[0] = [batch(0, b"a")]
    for _ in range(4):
        calls, _wakeup_ms = world.core.poll(world.now_ms)
        for pending in calls:
            pending.completed(BrokerUnreachable("cut"), world.now_ms)
        world.now_ms += 150
        world.step()
        world.now_ms += 150
    assert values(world.read()) == [b"a"]


def test_damaged_records_are_reported_and_can_be_passed_over() -> None:
    world = World()
    damaged = bytearray(batch(1, b"b"))
    damaged[-1] ^= 1
    world.logs[0] = [batch(0, b"a"), bytes(damaged), batch(2, b"c")]
    assert values(world.read(3)) == [b"a"]
    with pytest.raises(BadResponse, match="t-0 is damaged at offset 1"):
        world.core.take(10)
    world.core.seek(T0, 2)
    assert values(world.read()) == [b"c"]


def test_bytes_that_are_not_batches() -> None:
    world = World()
    world.logs[0] = [batch(0, b"a"), bytes(100)]
    with pytest.raises(BadResponse, match="t-0"):
        world.read()


def test_new_partitions_are_read_from_their_beginning() -> None:
    world = World(reset_to=LATEST)
    world.read()
    world.partitions = 2
    world.logs[1] = [batch(0, b"early")]
    world.starts[1] = 0
    world.cluster.mark_wrong()
    assert values(world.read()) == [b"early"]
    assert world.core.assignment() == (T0, T1)


def test_assign_keeps_what_is_read_already() -> None:
    world = World(partitions=2)
    world.logs[0] = [batch(0, b"a")]
    world.read()
    world.core.assign([T0])
    assert world.core.position(T0) == 1
    assert world.core.assignment() == (T0,)
