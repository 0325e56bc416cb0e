"""Many records of one partition, in their original batches, decoded only as far as needed."""

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from headrace.client.core.partition_reader import FetchedBatch, open_batch, readable
from headrace.client.core.record_layouts import Plain, keys_of, values_of
from headrace.client.errors import ClientError
from headrace.client.types import ConsumerRecord
from headrace.wire.records.header import RECORD_COUNT

if TYPE_CHECKING:
    import pyarrow

Column = list[bytes | None]


class RecordBatch:
    """Records of one partition, in order. Iterate over it, or take columns."""

    __slots__ = ("_fetched", "_records")

    def __init__(self, fetched: Sequence[FetchedBatch]) -> None:
        """One or more consecutive batches as they were produced."""
        self._fetched = fetched
        self._records: list[ConsumerRecord] | None = None

    def __repr__(self) -> str:
        return f"<RecordBatch of {self._fetched[0].partition}: {len(self)} records from offset {self.offset}>"

    @property
    def topic(self) -> str:
        return self._fetched[0].partition.topic

    @property
    def partition(self) -> int:
        return self._fetched[0].partition.partition

    @property
    def offset(self) -> int:
        """Return the offset from which on its records are returned."""
        return self._fetched[0].begin

    @property
    def next_offset(self) -> int:
        """Return the offset to commit after processing all of it."""
        return self._fetched[-1].end

    def records(self) -> list[ConsumerRecord]:
        if self._records is None:
            self._records = [record for each in self._fetched for record in readable(each, open_batch)]
        return self._records

    def __iter__(self) -> Iterator[ConsumerRecord]:
        return iter(self.records())

    def __len__(self) -> int:
        if self._records is None and all(each.is_whole for each in self._fetched):
            return sum(each.fields[RECORD_COUNT] for each in self._fetched)
        return len(self.records())

    def values(self) -> Column:
        """Return the values; fastest for adjacent records of equal size, because no records are built then."""
        found = self._column(values_of)
        return [record.value for record in self.records()] if found is None else found

    def keys(self) -> Column:
        found = self._column(keys_of)
        return [record.key for record in self.records()] if found is None else found

    def _column(self, column_of: Callable[[Plain, int], Column | None]) -> Column | None:
        """Return the keys or the values, if all of them are found without decoding records."""
        if self._records is not None:
            return None
        column: Column = []
        for each in self._fetched:
            if not each.is_whole:
                return None
            part = readable(each, lambda batch: column_of(batch.plain(), batch.fields[RECORD_COUNT]))
            if part is None:
                return None
            column += part
        return column

    def to_arrow(self) -> "pyarrow.Table":
        """Return an Arrow table with the columns topic, partition, offset, timestamp, key, value and headers; needs
        pyarrow.
        """
        try:
            from headrace.client.arrow_tables import table_of
        except ImportError:
            raise ClientError("Arrow tables need pyarrow: install headrace[spark] or pyarrow") from None
        return table_of(self._fetched)
