"""From the headers of batches to what a log keeps in memory: producers, leader epochs, and transactions that ended.

Aborted transactions are put into the index of the segment that holds the marker, as an append does. Only what is behind
the snapshot of the producers is read again, so an index is trusted below it; one that is damaged is written anew from
the last snapshot before its segment.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from headrace.wire.errors import ProtocolError
from headrace.wire.records.header import BASE_OFFSET, LEADER_EPOCH, MAX_TIMESTAMP, PRODUCER_ID, HeaderFields
from headrace.wire.records.markers import is_marker, read_marker

from .errors import DamagedLog, passes
from .leader_epochs import LeaderEpochs
from .open_files import OpenFiles
from .producers import ProducerStates
from .segment import Segment
from .transaction_index import AbortedTransaction
from .walk import BatchWalk


@dataclass(slots=True, kw_only=True)
class Replay:
    files: OpenFiles
    segments: Sequence[Segment]
    """Those that can be read, in order."""
    wall_ms: int
    recovery_point: int
    batches: int = 0

    def run(self, producers: ProducerStates, epochs: LeaderEpochs, *, snapshot: int, begin: int) -> None:
        """Apply the headers from `begin` on: producers from the snapshot on, leader epochs all the way."""
        for segment in self.segments:
            if segment.next_offset <= begin or not segment.size:
                continue
            with self.files.held(segment.all_files()):
                if segment.next_offset > snapshot:
                    segment.transactions.keep_below(max(snapshot, 0))
                self._apply(segment, producers, segment.transactions.append, epochs, snapshot=snapshot, begin=begin)
                if segment is not self.segments[-1] and segment.transactions.is_unsynced:
                    self._write(segment)
            producers.first_unstable_offset(self.recovery_point)  # markers below it are not uncertain any more

    def rebuild(self, damaged: Segment, producers: ProducerStates, *, snapshot: int) -> None:
        """Write the index of one segment anew; `producers` is how they were at a snapshot not above its begin."""
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
            epochs.assign(fields[LEADER_EPOCH], base)
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
        """Of a full segment: no flush comes back to it once the recovery point is behind it."""
        try:
            segment.transactions.spill()
            if segment.transactions.exists:
                self.files.disk.data_sync(self.files.handle(segment.transactions.file))
                self.files.disk.sync_directory(segment.stem.rpartition("/")[0])
            segment.transactions.synced()
        except OSError as error:
            if not passes(error) or segment.next_offset <= self.recovery_point:
                raise


def _end(
    segment: Segment, producers: ProducerStates, fields: HeaderFields, position: int, walk: BatchWalk
) -> AbortedTransaction | None:
    """A marker that compaction emptied ends nothing: all of its transaction is gone."""
    try:
        marker = read_marker(walk.batch(position, fields))
    except ProtocolError as error:
        raise DamagedLog(segment.log.path, position, str(error)) from None
    return producers.end_transaction(fields, marker, fields[BASE_OFFSET]) if marker is not None else None


def _ignore(_aborted: AbortedTransaction) -> None:
    """Of a segment whose index is whole."""
