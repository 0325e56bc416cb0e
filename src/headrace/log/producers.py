"""Producer state of one log: the next sequence of each producer, its recent batches and its open transaction.

The rules are those of Kafka 4's brokers for appends from clients: an old epoch is fenced, a new epoch begins at
sequence 0, an unknown producer may begin at any sequence, and retries of the last five batches are recognised.
Sequences wrap after 2^31-1.

A producer is forgotten after long inactivity, measured both by the wall clock and by the uptime of the log directory: a
jump of the wall clock alone forgets none. The arrival time of its last batch counts, not the timestamps in it: a
producer that replays old events is not inactive. A producer with an open transaction is never forgotten.

A transaction is open on this partition from its first batch to the marker that ends it. The marker may carry a new
epoch, which fences late batches of the transaction (KIP-890).
"""

from collections import deque
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import NamedTuple

from headrace.model.errors import ErrorCode
from headrace.wire.records.header import (
    ATTRIBUTES,
    BASE_SEQUENCE,
    CONTROL_BIT,
    LAST_OFFSET_DELTA,
    MAX_TIMESTAMP,
    PRODUCER_EPOCH,
    PRODUCER_ID,
    TRANSACTIONAL_BIT,
    HeaderFields,
)
from headrace.wire.records.markers import Marker

from .errors import SequenceRejected
from .transaction_index import AbortedTransaction
from .uptime import DirectoryUptime

CACHED_BATCHES_MAX = 5
"""As many batches as a producer may have in flight."""
SEQUENCE_MAX = (1 << 31) - 1
NO_SEQUENCE = -1
APPEND = -1
"""Result of `admit` for a new batch."""
NEVER_SEEN = -1
STRICT_MARKERS_FROM = 2
"""The transaction version from which every marker carries a new epoch (KIP-890)."""
AWAITED_PRODUCERS_MAX = 10_000
"""Producers without a batch in the log whose next sequence is known; beyond this number the oldest may continue
anywhere.
"""
EXPIRY_PRODUCERS_MAX = 20_000
"""Producers that one call of `expire` checks, so that a turn stays short; the next call continues from there."""

CachedBatch = tuple[int, int, int, int, int]
"""First sequence, last sequence, base offset, last offset and timestamp of an appended batch."""


class ProducerDescription(NamedTuple):
    producer_id: int
    producer_epoch: int
    last_sequence: int
    last_timestamp: int
    coordinator_epoch: int
    current_transaction_start_offset: int


class ProducerState:
    """State of one producer. Frozen copies share it: only `ProducerStates` changes it, after `_own`."""

    __slots__ = (
        "batches",
        "coordinator_epoch",
        "epoch",
        "first_offset",
        "generation",
        "last_timestamp",
        "seen_ms",
        "seen_uptime_ms",
        "transaction_start_offset",
    )

    def __init__(self, epoch: int, *, first_offset: int = -1, generation: int = 0) -> None:
        self.epoch = epoch
        self.batches: deque[CachedBatch] = deque(maxlen=CACHED_BATCHES_MAX)
        self.last_timestamp = -1
        self.coordinator_epoch = -1
        self.transaction_start_offset = -1
        self.first_offset = first_offset
        """Offset of the producer's first batch in this log; -1 for a producer restored from a snapshot."""
        self.seen_ms = NEVER_SEEN
        """The wall clock at its last append; for a replayed batch, at the opening of the log."""
        self.seen_uptime_ms = 0
        """The uptime of the log directory at that time."""
        self.generation = generation


class EndedTransaction(NamedTuple):
    """A transaction whose marker is staged or written but not known to be committed yet."""

    producer_id: int
    first_offset: int
    """-1 if its producer wrote nothing in this partition."""
    marker_offset: int
    before: ProducerState | None
    """The producer's state before the marker, in case the marker has to be undone."""


FrozenProducers = dict[int, ProducerState]
"""The producers as they were at one instant, for a helper thread to read; this table never changes."""


class ProducerStates:
    def __init__(self, uptime: DirectoryUptime | None = None) -> None:
        self._uptime = uptime if uptime is not None else DirectoryUptime()
        self._states: dict[int, ProducerState] = {}
        self._generation = 0
        self._to_look_at: Iterator[int] = iter(())
        self.open: dict[int, int] = {}
        """Producers with an open transaction and the first offset of each, ascending."""
        self._ended: deque[EndedTransaction] = deque()
        self._awaited: dict[int, tuple[int, int]] = {}
        """Epoch and sequence of an undone or refused batch, for producers without other state: batches in flight after
        it must not be appended before it.
        """
        self.duplicate_timestamp = -1
        """The append time of the batch that `admit` last recognised as a duplicate."""

    def __len__(self) -> int:
        return len(self._states)

    def admit(self, fields: HeaderFields) -> int:
        """HOT. Return APPEND for a batch that may be appended, or the original base offset for a duplicate."""
        state = self._states.get(fields[PRODUCER_ID])
        if state is None:
            return APPEND if not self._awaited else self._admit_unknown(fields)
        epoch = fields[PRODUCER_EPOCH]
        sequence = fields[BASE_SEQUENCE]
        batches = state.batches
        if epoch == state.epoch:
            last_sequence = batches[-1][1] if batches else NO_SEQUENCE
            if sequence == last_sequence + 1 or (sequence == 0 and last_sequence == SEQUENCE_MAX):
                return APPEND
            return self._duplicate_of(state, fields)
        if epoch < state.epoch:
            raise SequenceRejected(
                ErrorCode.INVALID_PRODUCER_EPOCH,
                f"producer {fields[PRODUCER_ID]} has epoch {state.epoch}, the batch is from epoch {epoch}",
            )
        if sequence != 0:
            raise SequenceRejected(
                ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                f"producer {fields[PRODUCER_ID]} begins epoch {epoch} at sequence {sequence} instead of 0",
            )
        return APPEND

    def _admit_unknown(self, fields: HeaderFields) -> int:
        epoch, sequence = self._awaited.get(fields[PRODUCER_ID], (fields[PRODUCER_EPOCH], fields[BASE_SEQUENCE]))
        if epoch == fields[PRODUCER_EPOCH] and sequence != fields[BASE_SEQUENCE]:
            raise SequenceRejected(
                ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                f"producer {fields[PRODUCER_ID]} sent sequence {fields[BASE_SEQUENCE]}, but {sequence} must come first",
            )
        return APPEND

    def note_refused_batch(self, fields: HeaderFields) -> None:
        """Note a batch that found no space: the producer will send it again."""
        producer_id = fields[PRODUCER_ID]
        if producer_id >= 0 and producer_id not in self._states:
            awaited = self._awaited.get(producer_id)
            if awaited is None or awaited[0] < fields[PRODUCER_EPOCH]:
                self._await(producer_id, fields[PRODUCER_EPOCH], fields[BASE_SEQUENCE])

    def appended(self, fields: HeaderFields, base_offset: int, timestamp: int, seen_ms: int) -> None:
        """HOT. Note that the batch is in the log; recovery replays headers through this function too."""
        producer_id = fields[PRODUCER_ID]
        epoch = fields[PRODUCER_EPOCH]
        state = self._states.get(producer_id)
        if state is None:
            state = ProducerState(epoch, first_offset=base_offset, generation=self._generation)
            self._states[producer_id] = state
            if self._awaited:
                self._awaited.pop(producer_id, None)
        elif state.generation != self._generation:
            state = self._own(producer_id, state)
        if state.epoch != epoch:
            state.epoch = epoch
            state.batches.clear()
        state.last_timestamp = timestamp
        state.seen_ms = seen_ms
        state.seen_uptime_ms = self._uptime.ms
        if fields[ATTRIBUTES] & TRANSACTIONAL_BIT and state.transaction_start_offset < 0:
            self._begin(producer_id, state, fields, base_offset)
        sequence = fields[BASE_SEQUENCE]
        if sequence < 0:
            return  # a transaction marker, or a coordinator's batch for a producer
        delta = fields[LAST_OFFSET_DELTA]
        last_sequence = sequence + delta & SEQUENCE_MAX  # same as `sequence_after`, without the call
        state.batches.append((sequence, last_sequence, base_offset, base_offset + delta, timestamp))

    def advance(self, fields: HeaderFields, base_offset: int, seen_ms: int) -> bool:
        """HOT. Do the work of `admit` and `appended` in one lookup, for a non-transactional batch that follows the last
        one.

        Returns False, and notes nothing, for any other batch.
        """
        state = self._states.get(fields[PRODUCER_ID])
        if state is None or state.epoch != fields[PRODUCER_EPOCH] or state.generation != self._generation:
            return False
        batches, sequence = state.batches, fields[BASE_SEQUENCE]
        if not batches or sequence != batches[-1][1] + 1 or fields[ATTRIBUTES] & TRANSACTIONAL_BIT:
            return False
        delta, timestamp = fields[LAST_OFFSET_DELTA], fields[MAX_TIMESTAMP]
        state.last_timestamp = timestamp
        state.seen_ms = seen_ms
        state.seen_uptime_ms = self._uptime.ms
        batches.append((sequence, sequence + delta & SEQUENCE_MAX, base_offset, base_offset + delta, timestamp))
        return True

    def _begin(self, producer_id: int, state: ProducerState, fields: HeaderFields, base_offset: int) -> None:
        if not fields[ATTRIBUTES] & CONTROL_BIT:
            state.transaction_start_offset = base_offset
            self.open[producer_id] = base_offset

    def is_open(self, producer_id: int, epoch: int) -> bool:
        """Return whether the producer has a transaction open in this partition with that epoch."""
        state = self._states.get(producer_id)
        return state is not None and state.transaction_start_offset >= 0 and state.epoch == epoch

    def refusal_of_marker(
        self, producer_id: int, epoch: int, *, coordinator_epoch: int, transaction_version: int
    ) -> ErrorCode:
        """Return the error for a marker that may not be written; NONE for one that was written before, because its
        sender may not know.
        """
        state = self._states.get(producer_id)
        if state is None:
            return ErrorCode.NONE
        strict = transaction_version >= STRICT_MARKERS_FROM and state.transaction_start_offset >= 0
        if epoch < state.epoch or (strict and epoch == state.epoch):
            return ErrorCode.INVALID_PRODUCER_EPOCH
        if coordinator_epoch < state.coordinator_epoch:
            return ErrorCode.TRANSACTION_COORDINATOR_FENCED
        return ErrorCode.NONE

    def end_transaction(self, fields: HeaderFields, marker: Marker, offset: int) -> AbortedTransaction | None:
        """End a transaction by the marker at `offset`; return the aborted transaction if it wrote anything here.

        The caller then calls `appended`, which notes the time. Committed or aborted, the transaction counts as unstable
        until `first_unstable_offset` is called with a high watermark above its marker.
        """
        producer_id = fields[PRODUCER_ID]
        before = self._states.get(producer_id)
        first_offset = self.open.pop(producer_id, -1)
        self._ended.append(EndedTransaction(producer_id, first_offset, offset, before))
        if before is None:
            state = ProducerState(fields[PRODUCER_EPOCH], first_offset=offset, generation=self._generation)
        else:
            state = self._copy(before)
        if state.epoch != fields[PRODUCER_EPOCH]:
            state.epoch = fields[PRODUCER_EPOCH]
            state.batches.clear()
        state.coordinator_epoch = marker.coordinator_epoch
        state.transaction_start_offset = -1
        self._states[producer_id] = state
        if marker.commit or first_offset < 0:
            return None
        return AbortedTransaction(producer_id, first_offset, offset, next(iter(self.open.values()), offset + 1))

    def first_unstable_offset(self, high_watermark: int) -> int | None:
        """Return the start of the oldest transaction whose end is not committed yet."""
        ended = self._ended
        while ended and ended[0].marker_offset < high_watermark:
            ended.popleft()
        first = next(iter(self.open.values()), None)
        for transaction in ended:
            if transaction.first_offset >= 0 and (first is None or transaction.first_offset < first):
                first = transaction.first_offset
        return first

    @property
    def has_transactions(self) -> bool:
        """Return whether any transaction is open or ended so recently that its marker may not be committed; cheap."""
        return bool(self.open or self._ended)

    def take_back(self, producer_ids: Iterable[int], end_offset: int) -> None:
        """Undo batches of these producers from `end_offset` on, which were not written to the log.

        Older batches that they had evicted from the cache do not return: a producer with at most five batches in flight
        had the responses to those before it sent the new ones. A new epoch stays in force, because its producer has it,
        unless a marker brought it. A producer with nothing left is forgotten, except for its next sequence.
        """
        self._take_back_markers(end_offset)
        for producer_id in producer_ids:
            state = self._states.get(producer_id)
            if state is None:
                continue
            if state.first_offset >= end_offset:
                self._forget(producer_id)
                if state.batches:
                    self._await(producer_id, state.epoch, state.batches[0][0])
                continue
            state = self._own(producer_id, state)
            first_sequence = 0
            while state.batches and state.batches[-1][2] >= end_offset:
                first_sequence = state.batches.pop()[0]
            if state.transaction_start_offset >= end_offset:
                state.transaction_start_offset = -1
                self.open.pop(producer_id, None)
            if not state.batches and first_sequence and state.transaction_start_offset < 0:
                del self._states[producer_id]
                self._await(producer_id, state.epoch, first_sequence)

    def _await(self, producer_id: int, epoch: int, sequence: int) -> None:
        while len(self._awaited) >= AWAITED_PRODUCERS_MAX:
            del self._awaited[next(iter(self._awaited))]
        self._awaited[producer_id] = (epoch, sequence)

    def _take_back_markers(self, end_offset: int) -> None:
        taken = False
        while self._ended and self._ended[-1].marker_offset >= end_offset:
            taken = True
            producer_id, _first, _marker, before = self._ended.pop()
            if before is None:
                self._forget(producer_id)
            else:
                self._states[producer_id] = before
        if taken:
            self._find_open()

    def _forget(self, producer_id: int) -> None:
        self._states.pop(producer_id, None)
        self.open.pop(producer_id, None)

    def _find_open(self) -> None:
        starts = ((state.transaction_start_offset, producer_id) for producer_id, state in self._states.items())
        self.open = {producer_id: start for start, producer_id in sorted(starts) if start >= 0}

    def freeze(self, below: int) -> FrozenProducers:
        """Copy the table of producers for a helper thread that stores it; the cost does not depend on each producer's
        state.

        States are shared until they change; a change then goes to a copy of that state. Markers from `below` on are
        left out; the caller leaves out later batches.
        """
        self._generation += 1
        frozen = self._states.copy()
        for ended in reversed(self._ended):
            if ended.marker_offset < below:
                break
            if ended.before is None:
                frozen.pop(ended.producer_id, None)
            else:
                frozen[ended.producer_id] = ended.before
        return frozen

    def _own(self, producer_id: int, state: ProducerState) -> ProducerState:
        if state.generation == self._generation:
            return state
        own = self._states[producer_id] = self._copy(state)
        return own

    def _copy(self, state: ProducerState) -> ProducerState:
        own = ProducerState(state.epoch, first_offset=state.first_offset, generation=self._generation)
        own.batches.extend(state.batches)
        own.last_timestamp = state.last_timestamp
        own.coordinator_epoch = state.coordinator_epoch
        own.transaction_start_offset = state.transaction_start_offset
        own.seen_ms = state.seen_ms
        own.seen_uptime_ms = state.seen_uptime_ms
        return own

    def expire(self, wall_ms: int, expiration_ms: int) -> int:
        """Forget producers that were inactive for the given time by both the wall clock and the uptime; return their
        number.
        """
        seen_before_ms = wall_ms - expiration_ms
        seen_before_uptime_ms = self._uptime.ms - expiration_ms
        looked_at = list(islice(self._to_look_at, EXPIRY_PRODUCERS_MAX))
        if len(looked_at) < EXPIRY_PRODUCERS_MAX:
            self._to_look_at = iter(tuple(self._states))
            looked_at += islice(self._to_look_at, EXPIRY_PRODUCERS_MAX - len(looked_at))
        expired = 0
        for producer_id in looked_at:
            state = self._states.get(producer_id)
            if state is None or state.transaction_start_offset >= 0:
                continue
            if state.seen_ms > seen_before_ms or state.seen_uptime_ms > seen_before_uptime_ms:
                continue
            del self._states[producer_id]
            expired += 1
        return expired

    def describe(self) -> list[ProducerDescription]:
        return [
            ProducerDescription(
                producer_id=producer_id,
                producer_epoch=state.epoch,
                last_sequence=state.batches[-1][1] if state.batches else NO_SEQUENCE,
                last_timestamp=state.last_timestamp,
                coordinator_epoch=state.coordinator_epoch,
                current_transaction_start_offset=state.transaction_start_offset,
            )
            for producer_id, state in self._states.items()
        ]

    def states(self) -> Iterator[tuple[int, ProducerState]]:
        return iter(self._states.items())

    def restored(self, producer_id: int, epoch: int, seen_ms: int) -> ProducerState:
        """Create the state of a producer from a snapshot, to be filled in before its first use."""
        state = self._states.get(producer_id)
        if state is None or state.epoch != epoch:
            state = self._states[producer_id] = ProducerState(epoch, generation=self._generation)
            state.seen_ms = seen_ms
            state.seen_uptime_ms = self._uptime.ms
        return state

    def restored_times(self, producer_id: int, *, seen_ms: int, seen_uptime_ms: int) -> None:
        """Set the time of a producer's last append from a snapshot; an uptime above the current one counts as
        unknown.
        """
        state = self._states.get(producer_id)
        if state is not None:
            state.seen_ms = seen_ms
            state.seen_uptime_ms = min(seen_uptime_ms, self._uptime.ms)

    def all_restored(self) -> None:
        """Finish restoring: everything in the snapshot has been added."""
        self._find_open()

    def get(self, producer_id: int) -> ProducerState | None:
        return self._states.get(producer_id)

    def clear(self) -> None:
        self._states.clear()
        self._ended.clear()
        self.open.clear()

    def _duplicate_of(self, state: ProducerState, fields: HeaderFields) -> int:
        sequence = fields[BASE_SEQUENCE]
        last_sequence = sequence_after(sequence, fields[LAST_OFFSET_DELTA])
        for first, last, base_offset, _last_offset, timestamp in state.batches:
            if first == sequence and last == last_sequence:
                self.duplicate_timestamp = timestamp
                return base_offset
        raise SequenceRejected(
            ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
            f"producer {fields[PRODUCER_ID]} sent sequence {sequence}, which does not follow its previous one",
        )


def sequence_after(sequence: int, increment: int) -> int:
    """Return the sequence that is `count` records later: 2^31-1 is followed by 0."""
    return (sequence + increment) & SEQUENCE_MAX
