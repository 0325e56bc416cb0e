"""Logs of a leader and its followers for tests: histories of several leaders, and everything that must agree."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from random import Random

from headrace.log.config import LogConfig
from headrace.log.partition_log import PartitionLog
from headrace.wire.records.builder import NewRecord, build_batch
from headrace.wire.records.header import HEADER, stamp
from headrace.wire.records.markers import Marker, control_batch

from .transactions_world import index_of
from .world import NOW_MS, bytes_of, fields_of

PRODUCERS = 3


def sent(log: PartitionLog, offset: int, *, max_bytes: int = 1 << 20) -> memoryview:
    """Bytes that a leader sends to a follower that asks for this offset; empty at the end of the log."""
    part = log.read(offset, max_bytes, log.end_offset, True)
    return memoryview(bytearray(bytes_of(log.disk, part) if part is not None else b""))


def split(record_set: memoryview) -> list[memoryview]:
    """Cut a record set into its batches."""
    found, at = [], 0
    while at < len(record_set):
        size = HEADER.unpack_from(record_set, at)[1] + 12
        found.append(record_set[at : at + size])
        at += size
    return found


def catch_up(follower: PartitionLog, leader: PartitionLog, *, max_bytes: int = 1 << 20, wall_ms: int = NOW_MS) -> None:
    while follower.end_offset < leader.end_offset:
        follower.replicated.append([sent(leader, follower.end_offset, max_bytes=max_bytes)], wall_ms)


@dataclass
class Writer:
    """A leader's producers: plain, idempotent and transactional batches, and markers, as a seed draws them."""

    random: Random
    sequences: dict[int, int] = field(default_factory=dict)
    epochs: dict[int, int] = field(default_factory=dict)
    open: set[int] = field(default_factory=set)
    value: int = 0

    def write(self, log: PartitionLog, leader_epoch: int, turns: int = 1) -> None:
        for _ in range(turns):
            for _ in range(self.random.randrange(1, 6)):
                self._stage(log, leader_epoch)
            log.write_staged()

    def follow(self, log: PartitionLog) -> None:
        """Go on after another history: producers continue where this log knows them."""
        self.open = set(log.producers.open)
        self.sequences, self.epochs = {}, {}
        for producer_id, state in log.producers.states():
            self.epochs[producer_id] = state.epoch
            self.sequences[producer_id] = state.batches[-1][1] + 1 if state.batches else 0

    def _stage(self, log: PartitionLog, leader_epoch: int) -> None:
        producer_id = self.random.randrange(-1, PRODUCERS)
        wall_ms = NOW_MS + self.value
        if producer_id in self.open and self.random.randrange(3) == 0:
            self._end(log, producer_id, leader_epoch, wall_ms)
            return
        count = self.random.randrange(1, 4)
        records = []
        for _ in range(count):
            self.value += 1
            value = b"%d:" % self.value + bytes(self.random.randrange(300))
            records.append(NewRecord(wall_ms + self.random.randrange(-5, 5), None, value))
        transactional = producer_id >= 0 and (producer_id in self.open or self.random.randrange(2) == 0)
        sequence = self.sequences.get(producer_id, 0)
        batch = build_batch(
            records,
            producer_id=producer_id,
            producer_epoch=self.epochs.get(producer_id, 0) if producer_id >= 0 else -1,
            base_sequence=sequence if producer_id >= 0 else -1,
            transactional=transactional,
        )
        if producer_id >= 0:
            self.sequences[producer_id] = sequence + count
        if transactional:
            self.open.add(producer_id)
        log.stage(memoryview(batch), fields_of(batch), leader_epoch, wall_ms)

    def _end(self, log: PartitionLog, producer_id: int, leader_epoch: int, wall_ms: int) -> None:
        self.open.discard(producer_id)
        epoch = self.epochs.get(producer_id, 0)
        if self.random.randrange(2):  # a newer protocol's marker brings a new epoch
            epoch = self.epochs[producer_id] = epoch + 1
            self.sequences[producer_id] = 0
        commit = bool(self.random.randrange(2))
        batch = control_batch(
            producer_id=producer_id, producer_epoch=epoch, commit=commit, coordinator_epoch=0, timestamp=wall_ms
        )
        log.transactions.stage_marker(memoryview(batch), fields_of(batch), Marker(commit, 0), leader_epoch, wall_ms)


def content(log: PartitionLog) -> bytes:
    """Bytes of all batches, one segment after the other."""
    return b"".join(segment_bytes(log, base) for base in log.bases)


def segment_bytes(log: PartitionLog, base_offset: int) -> bytes:
    segment = log.segments[log.bases.index(base_offset)]
    return log.disk.read(log.files.handle(segment.log), segment.size, 0)


def state_of(log: PartitionLog) -> dict[str, object]:
    """Everything that a log derives from its batches, whatever path they took.

    Without the time of a producer's last marker, which a snapshot does not store.
    """
    return {
        "end": (log.start_offset, log.end_offset, log.staged_end_offset, log.size_bytes),
        "epochs": list(zip(log.epochs.epochs, log.epochs.starts, strict=True)),
        "producers": {
            producer_id: (
                state.epoch,
                list(state.batches),
                state.coordinator_epoch,
                state.transaction_start_offset,
            )
            for producer_id, state in log.producers.states()
        },
        "open": dict(log.producers.open),
        "aborted": index_of(log),
        "newest": max(segment.max_timestamp for segment in log.segments),
    }


def check_equal(found: PartitionLog, expected: PartitionLog) -> None:
    assert content(found) == content(expected)
    assert state_of(found) == state_of(expected)


def check_indexes(log: PartitionLog) -> None:
    """Every batch is found through the indexes, and every entry of them names one."""
    for segment in log.segments:
        at, boundaries = 0, {}
        raw = segment_bytes(log, segment.base_offset)
        while at < len(raw):
            fields = HEADER.unpack_from(raw, at)
            boundaries[at] = (fields[0], fields[0] + fields[6])
            found = segment.find(fields[0])
            assert found is not None
            assert found[0] == at
            at += fields[1] + 12
        entries = [segment.index.entry(place) for place in range(len(segment.index))]
        assert all(boundaries[position][1] == segment.base_offset + last for last, position in entries)
        assert [position for _last, position in entries] == sorted({position for _last, position in entries})


def restamped(batches: Iterable[bytearray], *, first_offset: int, leader_epoch: int) -> list[memoryview]:
    """Batches as a leader would have stamped them, without a leader's log."""
    found, offset = [], first_offset
    for batch in batches:
        stamp(batch, base_offset=offset, leader_epoch=leader_epoch)
        offset += fields_of(batch)[6] + 1
        found.append(memoryview(batch))
    return found


def joined(batches: Sequence[memoryview]) -> memoryview:
    return memoryview(bytearray(b"".join(batches)))


SMALL = LogConfig(
    segment_bytes=2000,
    index_interval_bytes=200,
    preallocation_bytes_min=512,
    preallocation_bytes_max=8192,
    snapshot_interval_bytes=1500,
    unclean_tail_bytes_max=4000,
    retention_ms=-1,
    file_delete_delay_ms=0,
)
