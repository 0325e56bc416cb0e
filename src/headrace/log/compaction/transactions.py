"""Transactions as compaction sees them: which batches were aborted, and which markers have nothing left to mark.

Only what is below the last stable offset is cleaned, so the fate of every batch there is known; its marker may stand
further up in the log, and is looked for there.
"""

from headrace.wire.errors import CorruptBatch
from headrace.wire.records.header import ATTRIBUTES, BASE_OFFSET, PRODUCER_ID, TRANSACTIONAL_BIT, HeaderFields
from headrace.wire.records.markers import read_marker


class AbortedTransactions:
    """Learns from the headers of a log, in order, and then tells of any batch whether its transaction was aborted."""

    def __init__(self) -> None:
        self._open: dict[int, int] = {}
        """The first offset of each producer's transaction that no marker has ended yet."""
        self._aborted: dict[int, list[tuple[int, int]]] = {}

    def data(self, fields: HeaderFields) -> None:
        """A batch within a transaction."""
        self._open.setdefault(fields[PRODUCER_ID], fields[BASE_OFFSET])

    def marker(self, fields: HeaderFields, batch: bytes) -> None:
        producer_id = fields[PRODUCER_ID]
        begin = self._open.pop(producer_id, None)
        if begin is not None and marks_abort(batch):
            self._aborted.setdefault(producer_id, []).append((begin, fields[BASE_OFFSET]))

    def covers(self, fields: HeaderFields) -> bool:
        """Whether the batch was written by a transaction that was aborted."""
        if not fields[ATTRIBUTES] & TRANSACTIONAL_BIT:
            return False
        offset = fields[BASE_OFFSET]
        return any(begin <= offset < end for begin, end in self._aborted.get(fields[PRODUCER_ID], ()))


class EmptyTransactions:
    """Follows the batches of a cleaning, in order: a marker none of whose batches is left has had its time.

    A batch of which only the header is left counts: without the marker it would look like a transaction that is open.
    """

    def __init__(self) -> None:
        self._with_batches: set[int] = set()

    def data(self, fields: HeaderFields) -> None:
        if fields[ATTRIBUTES] & TRANSACTIONAL_BIT:
            self._with_batches.add(fields[PRODUCER_ID])

    def marker_is_last(self, fields: HeaderFields) -> bool:
        """Whether nothing of the transaction this marker ends was there when the cleaning read it."""
        producer_id = fields[PRODUCER_ID]
        if producer_id in self._with_batches:
            self._with_batches.discard(producer_id)
            return False
        return True


def is_transactional(fields: HeaderFields) -> bool:
    return bool(fields[ATTRIBUTES] & TRANSACTIONAL_BIT)


def marks_abort(batch: bytes) -> bool:
    """Whether the control batch ends a transaction by throwing it away; an unknown kind does not."""
    try:
        marker = read_marker(batch)
    except CorruptBatch:
        return False
    return marker is not None and not marker.commit
