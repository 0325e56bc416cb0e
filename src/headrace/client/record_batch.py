"""A whole batch as it was produced, opened only as far as it is asked for."""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from headrace.client.core.reading import FetchedBatch, open_batch
from headrace.client.core.record_shapes import Plain, keys_of, values_of
from headrace.client.errors import ClientError
from headrace.client.types import ConsumerRecord
from headrace.wire.records.header import RECORD_COUNT

if TYPE_CHECKING:
    import pyarrow


class RecordBatch:
    """Records of one partition, in order. Iterate over it, or take columns."""

    __slots__ = ("_batch", "_records")

    def __init__(self, batch: FetchedBatch) -> None:
        self._batch = batch
        self._records: list[ConsumerRecord] | None = None

    @property
    def topic(self) -> str:
        return self._batch.partition.topic

    @property
    def partition(self) -> int:
        return self._batch.partition.partition

    @property
    def offset(self) -> int:
        """From which offset on records of it are given."""
        return self._batch.begin

    @property
    def next_offset(self) -> int:
        """What to commit when all of it is done."""
        return self._batch.end

    def records(self) -> list[ConsumerRecord]:
        if self._records is None:
            self._records = open_batch(self._batch)
        return self._records

    def __iter__(self) -> Iterator[ConsumerRecord]:
        return iter(self.records())

    def __len__(self) -> int:
        if self._records is None and self._batch.is_whole:
            return self._batch.fields[RECORD_COUNT]
        return len(self.records())

    def values(self) -> list[bytes | None]:
        """Fastest where neighbours are of one size, as no records are built then."""
        found = self._column(values_of)
        return [record.value for record in self.records()] if found is None else found

    def keys(self) -> list[bytes | None]:
        found = self._column(keys_of)
        return [record.key for record in self.records()] if found is None else found

    def _column(self, column_of: Callable[[Plain, int], list[bytes | None] | None]) -> list[bytes | None] | None:
        batch = self._batch
        if self._records is not None or not batch.is_whole:
            return None
        return column_of(batch.plain(), batch.fields[RECORD_COUNT])

    def to_arrow(self) -> "pyarrow.Table":
        """The columns topic, partition, offset, timestamp, key, value and headers; needs pyarrow."""
        try:
            from headrace.client.arrow_tables import table_of
        except ImportError:
            raise ClientError("Arrow tables need pyarrow: install headrace[spark] or pyarrow") from None
        return table_of(self._batch)
