"""What the log knows of its producers: who may append what next, what was a retry, and whose transaction is open.

The rules are those of Kafka 4's brokers for appends from clients: an old epoch is fenced, a new epoch begins at
sequence 0, a producer the log does not know may begin anywhere, and the last five batches are recognised when they
come again. Sequences wrap after 2^31-1.

A producer is forgotten when it was not seen for long, by the wall clock and by the uptime of the log directory: a jump
of the wall clock alone forgets none. What counts is when its batch came, not the time it wrote into it: one that
replays old events is not silent. One whose transaction is open is never forgotten.

A transaction is open on this partition from its first batch to the marker that ends it. The marker may carry an epoch
of its own, and fences what comes late of the transaction (KIP-890).
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
from .uptime import Uptime

CACHED_BATCHES_MAX = 5
"""As many as a producer may have in flight."""
SEQUENCE_MAX = (1 << 31) - 1
NO_SEQUENCE = -1
APPEND = -1
"""What `admit` gives for a batch that is new."""
NEVER_SEEN = -1
STRICT_MARKERS_FROM = 2
"""The transaction version from which every marker has a new epoch (KIP-890)."""
AWAITED_PRODUCERS_MAX = 10_000
"""Producers without a batch in the log whose next one is known; of more, the oldest may go on anywhere."""
EXPIRY_PRODUCERS_MAX = 20_000
"""How many producers one call of `expire` looks at, so that a turn stays short; the next call goes on from there."""

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
    """What is known of one producer. Shared with frozen copies: only `ProducerStates` changes it, after `_own`."""

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
        """Where this log met the producer first; -1 for one that a snapshot knew."""
        self.seen_ms = NEVER_SEEN
        """The wall clock at its last append, or at the opening of the log for a batch that was replayed."""
        self.seen_uptime_ms = 0
        """The uptime of the log directory at that time."""
        self.generation = generation


class EndedTransaction(NamedTuple):
    """A marker that is staged or written, and not known to be committed yet."""

    producer_id: int
    first_offset: int
    """-1 if its producer had written nothing here."""
    marker_offset: int
    before: ProducerState | None
    """What was known of the producer until then, as the marker may have to be taken back."""


FrozenProducers = dict[int, ProducerState]
"""The producers as they were at one instant, for a helper to read; nobody changes them any more."""


class ProducerStates:
    def __init__(self, uptime: Uptime | None = None) -> None:
        self._uptime = uptime if uptime is not None else Uptime()
        self._states: dict[int, ProducerState] = {}
        self._generation = 0
        self._to_look_at: Iterator[int] = iter(())
        self.open: dict[int, int] = {}
        """Producers within a transaction and the first offset of each, rising."""
        self._ended: deque[EndedTransaction] = deque()
        self._awaited: dict[int, tuple[int, int]] = {}
        """Epoch and sequence that was taken back or turned away, of producers of whom nothing else is known: what
        follows it in flight must not get ahead of it."""
        self.duplicate_timestamp = -1
        """When the batch that `admit` last found to be a duplicate was appended."""

    def __len__(self) -> int:
        return len(self._states)

    def admit(self, fields: HeaderFields) -> int:
        """HOT. APPEND for a batch that may be appended, the original base offset for a duplicate."""
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
                f"producer {fields[PRODUCER_ID]} begins epoch {epoch} at sequence {sequence}, not at 0",
            )
        return APPEND

    def _admit_unknown(self, fields: HeaderFields) -> int:
        epoch, sequence = self._awaited.get(fields[PRODUCER_ID], (fields[PRODUCER_EPOCH], fields[BASE_SEQUENCE]))
        if epoch == fields[PRODUCER_EPOCH] and sequence != fields[BASE_SEQUENCE]:
            raise SequenceRejected(
                ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                f"producer {fields[PRODUCER_ID]} sent sequence {fields[BASE_SEQUENCE]}, {sequence} must come first",
            )
        return APPEND

    def turned_away(self, fields: HeaderFields) -> None:
        """A batch that may have been in order found no room, and will come again."""
        producer_id = fields[PRODUCER_ID]
        if producer_id >= 0 and producer_id not in self._states:
            awaited = self._awaited.get(producer_id)
            if awaited is None or awaited[0] < fields[PRODUCER_EPOCH]:
                self._await(producer_id, fields[PRODUCER_EPOCH], fields[BASE_SEQUENCE])

    def appended(self, fields: HeaderFields, base_offset: int, timestamp: int, seen_ms: int) -> None:
        """HOT. The batch is in the log; recovery replays headers through here too."""
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
            return  # a transaction marker, or what a coordinator writes for a producer
        delta = fields[LAST_OFFSET_DELTA]
        last_sequence = sequence + delta & SEQUENCE_MAX  # as `sequence_after`, without the call
        state.batches.append((sequence, last_sequence, base_offset, base_offset + delta, timestamp))

    def advance(self, fields: HeaderFields, base_offset: int, seen_ms: int) -> bool:
        """HOT. As `admit` and `appended`, with one look, for a batch outside of transactions that follows its last one.

        False for any other, of which nothing is noted."""
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
        """Whether the producer is within a transaction here, by that epoch of its."""
        state = self._states.get(producer_id)
        return state is not None and state.transaction_start_offset >= 0 and state.epoch == epoch

    def refusal_of_marker(
        self, producer_id: int, epoch: int, *, coordinator_epoch: int, transaction_version: int
    ) -> ErrorCode:
        """Why a marker may not be written; NONE for one that was written before, as its sender may not know."""
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
        """A marker goes to `offset`; the transaction it throws away, if that had written anything here.

        `appended` follows, which notes the time. Committed or not, the transaction counts as unstable until
        `first_unstable_offset` is told that its marker is committed.
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
        """Where the oldest transaction begins whose end is not committed yet, as far as this log knows."""
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
        """Cheap: whether any transaction is open, or ended so lately that its marker may not be committed."""
        return bool(self.open or self._ended)

    def take_back(self, producer_ids: Iterable[int], end_offset: int) -> None:
        """Batches of these producers from `end_offset` on did not get into the log after all.

        Older ones that they had pushed out do not come back: a producer with at most five batches in flight had the
        answers to those before it sent the new ones. A new epoch stays in force, because its producer has it, unless a
        marker brought it. A producer of whom nothing is left that way is forgotten but for the sequence with which it
        goes on.
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
        """For a helper that writes them down: one copy of the table, whatever each producer has to remember.

        States are shared until they change, then the change goes to a copy of that state. Markers from `below` on are
        left out; batches from there on are left to whoever writes it down.
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
        """Forget producers that were not seen for so long by the wall clock and by the uptime; how many there were."""
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
        """The state of a producer that a snapshot tells of, to be filled in before anyone uses it."""
        state = self._states.get(producer_id)
        if state is None or state.epoch != epoch:
            state = self._states[producer_id] = ProducerState(epoch, generation=self._generation)
            state.seen_ms = seen_ms
            state.seen_uptime_ms = self._uptime.ms
        return state

    def restored_times(self, producer_id: int, *, seen_ms: int, seen_uptime_ms: int) -> None:
        """Take what a snapshot tells of the last append of a producer; an uptime that is ahead of ours is not known."""
        state = self._states.get(producer_id)
        if state is not None:
            state.seen_ms = seen_ms
            state.seen_uptime_ms = min(seen_uptime_ms, self._uptime.ms)

    def all_restored(self) -> None:
        """Everything a snapshot tells is in."""
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
            f"producer {fields[PRODUCER_ID]} sent sequence {sequence}, which does not follow what it sent before",
        )


def sequence_after(sequence: int, increment: int) -> int:
    """The sequence so many records later: 2^31-1 is followed by 0."""
    return (sequence + increment) & SEQUENCE_MAX
