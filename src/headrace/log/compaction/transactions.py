"""Track, during compaction, which batches belong to aborted transactions and which markers are no longer needed.

Only batches below the last stable offset are cleaned, so the outcome of each is known; its marker may be further up in
the log, and is searched there.
"""

from headrace.wire.errors import CorruptBatch
from headrace.wire.records.header import ATTRIBUTES, BASE_OFFSET, PRODUCER_ID, TRANSACTIONAL_BIT, HeaderFields
from headrace.wire.records.markers import read_marker


class AbortedTransactionMap:
    """Reads the headers of a log in order, then answers for any batch whether its transaction was aborted."""

    def __init__(self) -> None:
        self._open: dict[int, int] = {}
        """The first offset of each producer's transaction that has no marker yet."""
        self._aborted: dict[int, list[tuple[int, int]]] = {}

    def data(self, fields: HeaderFields) -> None:
        """Note a batch within a transaction."""
        self._open.setdefault(fields[PRODUCER_ID], fields[BASE_OFFSET])

    def marker(self, fields: HeaderFields, batch: bytes) -> None:
        producer_id = fields[PRODUCER_ID]
        begin = self._open.pop(producer_id, None)
        if begin is not None and marks_abort(batch):
            self._aborted.setdefault(producer_id, []).append((begin, fields[BASE_OFFSET]))

    def covers(self, fields: HeaderFields) -> bool:
        """Return whether the batch belongs to an aborted transaction."""
        if not fields[ATTRIBUTES] & TRANSACTIONAL_BIT:
            return False
        offset = fields[BASE_OFFSET]
        return any(begin <= offset < end for begin, end in self._aborted.get(fields[PRODUCER_ID], ()))


class EmptyTransactions:
    """Follows the batches of a cleaning in order and finds markers whose transactions have no batches left.

    A batch reduced to its header counts as present: without the marker it would look like an open transaction.
    """

    def __init__(self) -> None:
        self._with_batches: set[int] = set()

    def data(self, fields: HeaderFields) -> None:
        if fields[ATTRIBUTES] & TRANSACTIONAL_BIT:
            self._with_batches.add(fields[PRODUCER_ID])

    def marker_is_last(self, fields: HeaderFields) -> bool:
        """Return whether the cleaning found no batch of the transaction that this marker ends."""
        producer_id = fields[PRODUCER_ID]
        if producer_id in self._with_batches:
            self._with_batches.discard(producer_id)
            return False
        return True


def is_transactional(fields: HeaderFields) -> bool:
    return bool(fields[ATTRIBUTES] & TRANSACTIONAL_BIT)


def marks_abort(batch: bytes) -> bool:
    """Return whether the control batch aborts a transaction; a batch of an unknown type does not."""
    try:
        marker = read_marker(batch)
    except CorruptBatch:
        return False
    return marker is not None and not marker.commit
