"""Append what a leader sent: batches that have their offsets, leader epochs and append times already.

Everything is checked before the first byte is written, and the state in memory follows each write. So a refused batch,
or a disk without space, leaves a log that ends after the last whole batch before it.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from headrace.wire.errors import ProtocolError
from headrace.wire.records.batch_walk import (
    LEADER_EPOCH_MAX,
    BatchFault,
    BatchPlace,
    WalkBounds,
    fault_at,
    walk_batches,
)
from headrace.wire.records.header import (
    ATTRIBUTES,
    BASE_OFFSET,
    CONTROL_BIT,
    LEADER_EPOCH,
    LENGTH,
    LOG_OVERHEAD,
    MAX_TIMESTAMP,
    PRODUCER_ID,
    HeaderFields,
)
from headrace.wire.records.markers import Marker, read_marker

from . import names
from .errors import DamagedBatch, RefusedBatch, ReplicaDiverged, is_transient
from .files import create_empty
from .flush import Flusher
from .segment import RELATIVE_OFFSET_MAX

if TYPE_CHECKING:
    from .partition_log import PartitionLog


class _Checked:
    """The good prefix of what the leader sent, and the refusal of the batch after it."""

    __slots__ = ("buffers", "markers", "noted", "places", "refusal")

    def __init__(self) -> None:
        self.buffers: list[memoryview] = []
        self.places: list[BatchPlace] = []
        self.noted: list[tuple[int, HeaderFields]] = []
        """Position and header of the batches that change more than the end of the log."""
        self.markers: dict[int, Marker] = {}
        """Transaction markers by their offset."""
        self.refusal: RefusedBatch | None = None


class ReplicatedAppends:
    def __init__(self, log: "PartitionLog", flusher: Flusher) -> None:
        self._log = log
        self._flusher = flusher
        self._gaps_marked = False

    def append(
        self,
        batches: Sequence[memoryview],
        wall_ms: int,
        *,
        leader_epoch_max: int = LEADER_EPOCH_MAX,
        gaps: bool = False,
    ) -> int:
        """HOT. Append batches as their leader stamped them, and return the new end offset.

        Each buffer holds one or more whole batches; its bytes are not changed, and not kept. A batch of a leader epoch
        above `leader_epoch_max`, the current one, is refused. `gaps`: the leader's log may lack offsets; a log that is
        or was compacted here may do so anyway.

        Raises DamagedBatch or ReplicaDiverged for the first batch that is refused; those before it are appended.
        An OSError is that of the disk: if it is transient, the log continues at its end offset; otherwise it failed.
        """
        log = self._log
        assert not log.is_truncating, "a log that is truncated takes nothing"
        assert not log.staged, "staged batches must be written before those of another leader"
        gaps = gaps or log.gaps or log.config.compact
        size_max = log.config.replicated_batch_bytes_max
        checked = self._check(batches, WalkBounds(log.end_offset, log.epochs.latest, leader_epoch_max, size_max, gaps))
        if checked.places:
            log.appended_wall_ms = wall_ms
            try:
                if gaps and not self._gaps_marked and _has_gap(checked.places, log.end_offset):
                    self._mark_gaps()
                self._write(checked, wall_ms)
            except OSError as error:
                log.failed = True
                if is_transient(error):
                    log.remove_unwritten()
                    log.failed = False
                raise
            finally:
                log.staged_end_offset = log.end_offset
        if checked.refusal is not None:
            raise checked.refusal
        return log.end_offset

    # Checks

    def _check(self, batches: Sequence[memoryview], bounds: WalkBounds) -> _Checked:
        """Check the buffers one after the other, up to the first batch that is refused."""
        checked = _Checked()
        for buffer in batches:
            places, noted, end = walk_batches(buffer, bounds)
            unreadable = _read_markers(buffer, noted, checked.markers)
            if unreadable is not None:
                end, offset, text = unreadable
                places = [place for place in places if place[0] < offset]
                noted = [entry for entry in noted if entry[0] < end]
                checked.refusal = DamagedBatch(
                    self._log.topic_partition, places[-1][1] + 1 if places else bounds.next_offset, text
                )
            checked.noted += noted
            checked.places += places
            if end:
                checked.buffers.append(buffer[:end])
                epoch = noted[-1][1][LEADER_EPOCH] if noted else bounds.leader_epoch
                bounds = bounds._replace(next_offset=places[-1][1] + 1, leader_epoch=epoch)
            if end < len(buffer):
                checked.refusal = checked.refusal or self._refusal(buffer, end, bounds)
                break
        return checked

    def _refusal(self, buffer: memoryview, position: int, bounds: WalkBounds) -> RefusedBatch:
        partition = self._log.topic_partition
        fault, text = fault_at(buffer, position, bounds)
        assert fault, "a batch without a fault was refused"
        if fault <= BatchFault.CHECKSUM:
            return DamagedBatch(partition, bounds.next_offset, text)
        return ReplicaDiverged(partition, bounds.next_offset, int.from_bytes(buffer[position : position + 8]), text)

    # Writes

    def _write(self, checked: _Checked, wall_ms: int) -> None:
        """Write the batches, one segment after the other, and note the effects of each group that is written."""
        log, places, noted = self._log, checked.places, checked.noted
        total = sum([place[3] for place in places])
        _base, last, timestamp, _size = places[-1]
        if log.active.has_room(total, last, timestamp, log.config, log.appended_wall_ms):
            log.write_group(checked.buffers, places, total)
            self._note(noted, checked.markers, wall_ms)
            return
        begin = written = done = 0
        while begin < len(places):
            self._leave_far_segment(places[begin])
            end = log.end_of_group(places, begin)
            size = sum(place[3] for place in places[begin:end])
            log.write_group(_cut(checked.buffers, written, written + size), places[begin:end], size)
            behind = next(
                (at for at in range(done, len(noted)) if noted[at][1][BASE_OFFSET] >= log.end_offset), len(noted)
            )
            self._note(noted[done:behind], checked.markers, wall_ms)
            begin, written, done = end, written + size, behind

    def _note(self, noted: Sequence[tuple[int, HeaderFields]], markers: Mapping[int, Marker], wall_ms: int) -> None:
        """HOT. Note written batches in leader epochs, producers and transactions."""
        log = self._log
        epochs, producers = log.epochs, log.producers
        for _position, fields in noted:
            base = fields[BASE_OFFSET]
            if fields[LEADER_EPOCH] > epochs.latest:
                epochs.assign(fields[LEADER_EPOCH], base)
            if fields[PRODUCER_ID] < 0:
                continue
            if fields[ATTRIBUTES] & CONTROL_BIT and base in markers:
                aborted = producers.end_transaction(fields, markers[base], base)
                if aborted is not None:
                    log.active.transactions.append(aborted)
            producers.appended(fields, base, fields[MAX_TIMESTAMP], wall_ms)

    def _leave_far_segment(self, place: BatchPlace) -> None:
        """Begin a segment at a batch whose offset an empty segment cannot express, because compaction left a large
        gap.
        """
        log = self._log
        if not log.active.size and place[1] - log.active.base_offset > RELATIVE_OFFSET_MAX:
            log.roll(place[0])

    def _mark_gaps(self) -> None:
        """Mark the folder before the first batch after a gap: otherwise a start without compaction would take it for
        damage.
        """
        log = self._log
        path = f"{log.path}/{names.COMPACTED}"
        if not log.disk.exists(path):
            create_empty(log.disk, path)
            self._flusher.directory_changed = True
        self._gaps_marked = log.gaps = True


def _has_gap(places: Sequence[BatchPlace], end_offset: int) -> bool:
    return places[-1][1] + 1 - end_offset != sum([last + 1 - base for base, last, _timestamp, _size in places])


def _read_markers(
    buffer: memoryview, noted: Sequence[tuple[int, HeaderFields]], markers: dict[int, Marker]
) -> tuple[int, int, str] | None:
    """Read the transaction markers among the batches; return position, offset and fault of one that is unreadable.

    A marker that compaction emptied ends nothing: its transaction is gone completely.
    """
    for position, fields in noted:
        if fields[ATTRIBUTES] & CONTROL_BIT and fields[PRODUCER_ID] >= 0:
            try:
                marker = read_marker(buffer[position : position + fields[LENGTH] + LOG_OVERHEAD])
            except ProtocolError as error:
                return position, fields[BASE_OFFSET], str(error)
            if marker is not None:
                markers[fields[BASE_OFFSET]] = marker
    return None


def _cut(buffers: Sequence[memoryview], begin: int, end: int) -> list[memoryview]:
    """Return the bytes from `begin` to `end` of the buffers, which count as one."""
    found, at = [], 0
    for buffer in buffers:
        if at < end and at + len(buffer) > begin:
            found.append(buffer[max(begin - at, 0) : end - at])
        at += len(buffer)
    return found
