"""The routing of rows to topics and partitions, and their encoding as record batches in the order of the rows."""

import secrets
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from headrace.spark.sink.batch_encoder import RecordColumns, RowTooLarge, encode, encoded_headers, row_sizes_bound
from headrace.spark.sink.columns import as_binary
from headrace.spark.sink.partitioner import partitions_for_keys, partitions_in_runs
from headrace.wire.records.compression import Compression

CHUNK_BYTES = 8 * 1024 * 1024
"""Bytes of rows that are encoded together: enough to fill the batches of many partitions, and little memory."""

_SHOWN_KEY_BYTES = 40
_RADIX_SORTED_MAX = 2**15


class RowError(ValueError):
    """A row that cannot be written."""


class PartitionBatch(NamedTuple):
    topic: str
    partition: int
    records: int
    batch: bytearray


def chunks(batches: Iterable["pa.RecordBatch"]) -> Iterator["pa.RecordBatch"]:
    """Split and join batches to pieces of about `CHUNK_BYTES`."""
    held: list[pa.RecordBatch] = []
    held_bytes = 0
    for batch in batches:
        size = batch.nbytes
        if batch.num_rows and size > CHUNK_BYTES:
            yield from _combined(held)
            held, held_bytes = [], 0
            rows = max(1, batch.num_rows * CHUNK_BYTES // size)
            for first in range(0, batch.num_rows, rows):
                yield batch.slice(first, rows)
        elif batch.num_rows:
            held.append(batch)
            held_bytes += size
            if held_bytes >= CHUNK_BYTES:
                yield from _combined(held)
                held, held_bytes = [], 0
    yield from _combined(held)


def _combined(held: Sequence["pa.RecordBatch"]) -> Iterator["pa.RecordBatch"]:
    if len(held) == 1:
        yield held[0]
    elif held:
        yield from pa.Table.from_batches(list(held)).combine_chunks().to_batches()


class RowEncoder:
    """Encodes the rows of one task. It calls `partition_count` and `batch_bytes_max` once per topic."""

    def __init__(
        self,
        *,
        topic: str | None,
        partition_count: Callable[[str], int],
        batch_bytes_max: Callable[[str], int],
        request_bytes_max: int,
        compression: Compression,
    ) -> None:
        self._topic = topic
        self._ask_partition_count = partition_count
        self._ask_batch_bytes_max = batch_bytes_max
        self._request_bytes_max = request_bytes_max
        self._compression = compression
        self._partition_counts: dict[str, int] = {}
        self._batch_bytes_max: dict[str, int] = {}
        self._next_partition: dict[str, int] = {}

    def encode(self, rows: "pa.RecordBatch", timestamp_ms: int) -> Iterator[PartitionBatch]:
        """Encode these rows; the batches of a partition are in the order of its rows."""
        columns: dict[str, Any] = dict(zip(rows.schema.names, rows.columns, strict=True))
        keys = as_binary(columns["key"]) if "key" in columns and columns["key"].type != pa.null() else None
        headers = encoded_headers(columns["headers"]) if "headers" in columns else None
        records = RecordColumns(keys, as_binary(columns["value"]), headers)
        topics, codes = self._topics_of(columns, rows.num_rows)
        for topic in topics:
            self._learn(topic)
        counts = [self._partition_counts[topic] for topic in topics]
        partitions = self._partitions_of(records, columns.get("partition"), topics, codes)
        bases = np.concatenate((np.zeros(1, dtype=np.int64), np.cumsum(counts, dtype=np.int64)))
        groups = bases[codes] + partitions
        order = np.argsort(groups.astype(np.int16) if bases[-1] < _RADIX_SORTED_MAX else groups, kind="stable")
        is_sorted = bool((np.diff(order) == 1).all())
        bounds = np.searchsorted(groups[order], bases)
        for number, topic in enumerate(topics):
            of_topic = order[bounds[number] : bounds[number + 1]]
            taken = records if is_sorted and len(topics) == 1 else records.taken(of_topic)
            yield from self._encode_topic(topic, taken, partitions[of_topic], timestamp_ms)

    def _encode_topic(
        self, topic: str, records: RecordColumns, partitions: NDArray[np.int64], timestamp_ms: int
    ) -> Iterator[PartitionBatch]:
        try:
            for encoded in encode(
                records,
                partitions,
                timestamp_ms=timestamp_ms,
                batch_bytes_max=self._batch_bytes_max[topic],
                request_bytes_max=self._request_bytes_max,
                compression=self._compression,
            ):
                yield PartitionBatch(topic, encoded.group, encoded.records, encoded.batch)
        except RowTooLarge as error:
            key = None if records.keys is None else records.keys[error.row].as_py()
            shown = "without a key" if key is None else f"with the key {key[:_SHOWN_KEY_BYTES]!r}"
            raise RowError(
                f'a row of about {error.size} bytes ({shown}) for topic "{topic}" is larger than '
                f"kafka.max.request.size={self._request_bytes_max}: write smaller values, or raise that option and "
                "max.message.bytes of the topic"
            ) from None

    def _topics_of(self, columns: dict[str, Any], count: int) -> tuple[list[str], NDArray[np.int64]]:
        """Return the topics of these rows, and the index of each row's topic."""
        if self._topic is not None:
            return [self._topic], np.zeros(count, dtype=np.int64)
        column = columns["topic"]
        if column.null_count:
            raise RowError("a row has no topic: set the option topic, or filter rows whose column `topic` is null")
        encoded = column.dictionary_encode()
        return encoded.dictionary.to_pylist(), encoded.indices.to_numpy().astype(np.int64)

    def _learn(self, topic: str) -> None:
        if topic not in self._partition_counts:
            self._partition_counts[topic] = self._ask_partition_count(topic)
            self._batch_bytes_max[topic] = self._ask_batch_bytes_max(topic)
            self._next_partition[topic] = secrets.randbelow(self._partition_counts[topic])

    def _partitions_of(
        self, records: RecordColumns, wanted: Any, topics: list[str], codes: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        partitions = np.full(len(codes), -1, dtype=np.int64)
        if wanted is not None:
            partitions = _given_partitions(wanted)
        for number, topic in enumerate(topics):
            chosen = codes == number
            count = self._partition_counts[topic]
            outside = np.flatnonzero(chosen & (partitions >= count))
            if len(outside):
                raise RowError(
                    f'a row names partition {partitions[outside[0]]} of topic "{topic}", which has the partitions '
                    f"0 to {count - 1}: correct the column `partition`, or leave it null to have one chosen"
                )
            self._choose(records, partitions, chosen & (partitions < 0), topic)
        return partitions

    def _choose(
        self, records: RecordColumns, partitions: NDArray[np.int64], chosen: NDArray[np.bool_], topic: str
    ) -> None:
        """Choose the partitions of the chosen rows: by key, or one after the other."""
        count = self._partition_counts[topic]
        has_key = np.zeros(len(partitions), dtype=np.bool_)
        if records.keys is not None:
            has_key = records.keys.is_valid().to_numpy(zero_copy_only=False)
            by_key = np.flatnonzero(chosen & has_key)
            if len(by_key):
                keys = records.keys if len(by_key) == len(partitions) else records.keys.take(by_key)
                partitions[by_key] = partitions_for_keys(keys, count)
        without = np.flatnonzero(chosen & ~has_key)
        if len(without):
            sizes = row_sizes_bound(records)[without]
            first = self._next_partition[topic]
            partitions[without] = partitions_in_runs(
                sizes, count, first=first, run_bytes_max=self._batch_bytes_max[topic]
            )
            self._next_partition[topic] = int(partitions[without[-1]] + 1) % count


def _given_partitions(column: Any) -> NDArray[np.int64]:
    """Return the column `partition`, with -1 for null."""
    valid = column.is_valid().to_numpy(zero_copy_only=False)
    numbers: NDArray[np.int64] = column.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
    if np.any(numbers[valid] < 0):
        raise RowError(f"a row names partition {numbers[valid].min()}: partitions begin at 0, null has one chosen")
    return numbers
