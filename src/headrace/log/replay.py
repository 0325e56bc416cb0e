"""Rebuild a log's state in memory from batch headers: producers, leader epochs and transactions that ended.

Aborted transactions are added to the index of the segment that holds the marker, as an append does. Only batches after
the producer snapshot are read, so an index is trusted below it; a damaged index is rebuilt from the last snapshot
before its segment.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from headrace.wire.errors import ProtocolError
from headrace.wire.records.header import BASE_OFFSET, LEADER_EPOCH, MAX_TIMESTAMP, PRODUCER_ID, HeaderFields
from headrace.wire.records.markers import is_marker, read_marker

from .errors import DamagedLog, is_transient
from .leader_epochs import LeaderEpochs
from .open_files import OpenFiles
from .producers import ProducerStates
from .segment import Segment
from .transaction_index import AbortedTransaction
from .walk import BatchWalk


@dataclass(slots=True, kw_only=True)
class LogReplay:
    files: OpenFiles
    segments: Sequence[Segment]
    """The readable segments, in order."""
    wall_ms: int
    recovery_point: int
    committed_offset: int
    """Markers below it are committed; those above it may still be replaced by those of another leader."""
    batches: int = 0

    def run(self, producers: ProducerStates, epochs: LeaderEpochs, *, snapshot: int, begin: int) -> None:
        """Apply the headers from `begin` on: to producers from the snapshot on, to leader epochs all the way."""
        for segment in self.segments:
            if segment.next_offset <= begin or not segment.size:
                continue
            with self.files.held(segment.all_files()):
                if segment.next_offset > snapshot:
                    segment.transactions.keep_below(max(snapshot, 0))
                self._apply(segment, producers, segment.transactions.append, epochs, snapshot=snapshot, begin=begin)
                if segment is not self.segments[-1] and segment.transactions.is_unsynced:
                    self._write(segment)
            producers.first_unstable_offset(self.committed_offset)

    def rebuild(self, damaged: Segment, producers: ProducerStates, *, snapshot: int) -> None:
        """Rebuild the index of one segment; `producers` is the state at a snapshot not above its base offset."""
        entries: list[AbortedTransaction] = []
        epochs = LeaderEpochs()
        for segment in self.segments:
            if segment.next_offset <= snapshot or segment.base_offset > damaged.base_offset or not segment.size:
                continue
            note = entries.append if segment is damaged else _ignore
            with self.files.held(segment.all_files()):
                self._apply(segment, producers, note, epochs, snapshot=snapshot, begin=max(snapshot, 0))
            producers.first_unstable_offset(segment.next_offset)
        damaged.transactions.replace(entries)

    def _apply(
        self,
        segment: Segment,
        producers: ProducerStates,
        note_aborted: Callable[[AbortedTransaction], None],
        epochs: LeaderEpochs,
        *,
        snapshot: int,
        begin: int,
    ) -> None:
        found = segment.find(begin) if begin > segment.base_offset else (0, 0, segment.base_offset)
        if found is None:
            return
        file = self.files.handle(segment.log)
        walk = BatchWalk(self.files.disk, file, position=found[0], end=segment.size, next_offset=found[2])
        for position, fields in walk:
            base = fields[BASE_OFFSET]
            epochs.replay(fields[LEADER_EPOCH], base)
            if fields[PRODUCER_ID] >= 0 and base >= snapshot:
                if is_marker(fields):
                    aborted = _end(segment, producers, fields, position, walk)
                    if aborted is not None:
                        note_aborted(aborted)
                producers.appended(fields, base, fields[MAX_TIMESTAMP], self.wall_ms)
            self.batches += 1
        if walk.position < segment.size:
            raise DamagedLog(segment.log.path, walk.position, walk.damage or "zeros where a batch should be")

    def _write(self, segment: Segment) -> None:
        """Write the index of a full segment: no flush returns to it once the recovery point has passed."""
        try:
            segment.transactions.spill()
            if segment.transactions.exists:
                self.files.disk.data_sync(self.files.handle(segment.transactions.file))
                self.files.disk.sync_directory(segment.stem.rpartition("/")[0])
            segment.transactions.synced()
        except OSError as error:
            if not is_transient(error) or segment.next_offset <= self.recovery_point:
                raise


def _end(
    segment: Segment, producers: ProducerStates, fields: HeaderFields, position: int, walk: BatchWalk
) -> AbortedTransaction | None:
    """End a transaction. A marker that compaction emptied ends nothing: its transaction is gone completely."""
    try:
        marker = read_marker(walk.batch(position, fields))
    except ProtocolError as error:
        raise DamagedLog(segment.log.path, position, str(error)) from None
    return producers.end_transaction(fields, marker, fields[BASE_OFFSET]) if marker is not None else None


def _ignore(_aborted: AbortedTransaction) -> None:
    """Ignore a marker of a segment whose index is whole."""
