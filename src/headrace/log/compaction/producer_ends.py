"""Track the last batch of every idempotent producer: its header must stay, because recovery may need it.

The headers of the whole log are read instead of the log's state in memory, which may hold very many producers: a plan
must stay small.
"""

from headrace.wire.records.header import (
    BASE_OFFSET,
    LAST_OFFSET_DELTA,
    MAX_TIMESTAMP,
    PRODUCER_ID,
    HeaderFields,
)
from headrace.wire.records.markers import is_marker


class ProducerEnds:
    def __init__(self, *, now_ms: int, expiration_ms: int) -> None:
        self._now_ms = now_ms
        self._expiration_ms = expiration_ms
        self._data: dict[int, int] = {}
        self._markers: dict[int, int] = {}

    def note(self, fields: HeaderFields) -> None:
        """Note a batch of a producer, in log order."""
        last_offset = fields[BASE_OFFSET] + fields[LAST_OFFSET_DELTA]
        (self._markers if is_marker(fields) else self._data)[fields[PRODUCER_ID]] = last_offset

    def is_last(self, fields: HeaderFields) -> bool:
        """Return whether this is the last data batch of a producer that is still remembered, or its last marker if it
        has no data.
        """
        producer_id = fields[PRODUCER_ID]
        if producer_id < 0 or self._now_ms - fields[MAX_TIMESTAMP] >= self._expiration_ms:
            return False
        last_offset = self._data.get(producer_id, self._markers.get(producer_id))
        return last_offset == fields[BASE_OFFSET] + fields[LAST_OFFSET_DELTA]
