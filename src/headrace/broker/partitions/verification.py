"""Verification of transactions that are not open on a partition yet: may this producer begin one here?

The transaction coordinator decides. The leader asks it before the first batch of a transaction is appended, because a
transaction that the coordinator does not know would never get a marker (KIP-890). A marker that arrives while the
coordinator is asked makes its response void: that may be about the transaction that the marker ended.

The lowest sequence of the producer is kept as well. If its first batch gets a retriable error, the second must not be
mistaken for the first.
"""

from headrace.log.partition_log import PartitionLog
from headrace.log.producers import STRICT_MARKERS_FROM
from headrace.model.errors import ErrorCode
from headrace.wire.records.header import (
    ATTRIBUTES,
    BASE_SEQUENCE,
    PRODUCER_EPOCH,
    PRODUCER_ID,
    TRANSACTIONAL_BIT,
    HeaderFields,
)

CHECK_WAIT_MS_MAX = 5_000
"""The time that a coordinator has to answer. After it the client gets a retriable error."""
VERIFICATIONS_MAX = 10_000
"""Producers of one partition that are not verified yet. Above the limit the oldest is dropped."""

_NONE = ErrorCode.NONE


class Verification:
    """The state of one producer on one partition while its transaction is not open there."""

    __slots__ = ("epoch", "is_added", "is_asked", "lowest_sequence", "passed")

    def __init__(self, epoch: int, sequence: int) -> None:
        self.epoch = epoch
        self.lowest_sequence = sequence
        self.is_added = False
        """True if the leader adds the partition: each transaction then has an epoch of its own, from sequence 0."""
        self.is_asked = False
        """True until the coordinator has responded."""
        self.passed = False
        """True if the coordinator has agreed, which counts for the next append only."""


class Verifications:
    __slots__ = ("_by_producer", "_log")

    def __init__(self, log: PartitionLog) -> None:
        self._log = log
        self._by_producer: dict[int, Verification] = {}

    def __len__(self) -> int:
        return len(self._by_producer)

    def begin(self, producer_id: int, epoch: int, sequence: int, *, add: bool) -> Verification | None:
        """Begin the verification that the batch needs before its append; None if its transaction is open here.

        Only the coordinator knows the right epoch. An earlier request with a higher epoch may have been forged, and
        must not block the real producer.
        """
        if self._log.producers.is_open(producer_id, epoch):
            return None
        known = self._by_producer.pop(producer_id, None)
        if known is None or known.epoch < epoch or (known.epoch > epoch and not known.is_asked):
            known = Verification(epoch, sequence)
        if known.epoch == epoch:
            known.lowest_sequence = min(known.lowest_sequence, sequence)
        known.is_added = add
        known.is_asked = True
        known.passed = False
        self._by_producer[producer_id] = known
        if len(self._by_producer) > VERIFICATIONS_MAX:
            del self._by_producer[next(iter(self._by_producer))]
        return known

    def still_counts(self, producer_id: int, verification: Verification) -> bool:
        """Return whether no marker has arrived since the verification began."""
        return self._by_producer.get(producer_id) is verification

    def forget(self, producer_id: int) -> None:
        self._by_producer.pop(producer_id, None)

    def marker_came(self, producer_id: int, epoch: int, *, transaction_version: int) -> None:
        """Drop a verification of the transaction that the marker ended.

        From transaction.version 2 on, a marker carries the epoch of the next transaction, whose verification stays.
        """
        known = self._by_producer.get(producer_id)
        bumped = transaction_version >= STRICT_MARKERS_FROM
        if known is not None and (known.epoch < epoch or (known.epoch == epoch and not bumped)):
            del self._by_producer[producer_id]

    def refusal(self, fields: HeaderFields, *, has_transactional_id: bool) -> ErrorCode:
        """Return the error for a batch that the state of its transaction forbids; NONE if it may be appended."""
        producers, producer_id, epoch = self._log.producers, fields[PRODUCER_ID], fields[PRODUCER_EPOCH]
        state = producers.get(producer_id)
        is_stale = state is not None and epoch < state.epoch
        if not fields[ATTRIBUTES] & TRANSACTIONAL_BIT:
            return ErrorCode.INVALID_TXN_STATE if producer_id in producers.open and not is_stale else _NONE
        if not has_transactional_id:
            return ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        if producers.is_open(producer_id, epoch):
            return _NONE
        if is_stale:
            return ErrorCode.INVALID_PRODUCER_EPOCH
        verification = self._by_producer.get(producer_id)
        if verification is None or not verification.passed or verification.epoch != epoch:
            return ErrorCode.INVALID_TXN_STATE
        unknown = state is None or not state.batches
        skips = verification.is_added and unknown and fields[BASE_SEQUENCE] != 0
        if skips or fields[BASE_SEQUENCE] > verification.lowest_sequence:
            return ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        return _NONE
