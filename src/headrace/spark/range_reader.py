"""Read a range of offsets on an executor: fetch it and return its rows as Arrow batches, without an object per row."""

import atexit
import os
from collections.abc import Iterator, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any
from uuid import UUID

from pyspark.sql.datasource import InputPartition

from headrace.model.ids import TopicPartition
from headrace.spark.data_loss import handle_loss, lost_text
from headrace.spark.range_planner import OffsetRange
from headrace.spark.source_options import SourceOptions
from headrace.spark.workers import freeze_imports

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql.types import StructType

    from headrace.client.blocking.raw import RawFetcher
    from headrace.wire.columns.native import Helper

DECODER_VARIABLE = "HEADRACE_DECODER"
"""If set to numpy, an executor does not use the compiled helper."""

FETCHERS_MAX = 4
"""Connections kept by a Python worker, one per set of options."""

PARTITION_FETCH_BYTES = 8 * 1024 * 1024
"""Bytes fetched at a time unless `kafka.max.partition.fetch.bytes` is set."""

_fetchers: dict[tuple[Any, ...], "RawFetcher"] = {}
"""Later tasks reuse Python workers, and so their connections."""


class RangePartition(InputPartition):
    def __init__(self, wanted: OffsetRange, topic_id: str = "") -> None:
        """The id, if known, is that of the topic for which the range was planned."""
        super().__init__(tuple(wanted))
        self.wanted = wanted
        self.topic_id = topic_id


def read_range(
    partition: RangePartition, options: SourceOptions, schema: "StructType"
) -> "Iterator[pyarrow.RecordBatch]":
    """Yield the rows of the range; missing records are a loss, and the policy decides."""
    from headrace.client.core.partition_reader import AbortedTransactions
    from headrace.client.errors import DeadlineExceeded, OffsetOutOfRange, TopicRecreated
    from headrace.spark.rows import RowMaker
    from headrace.wire.columns.decoder import decode
    from headrace.wire.columns.opened import hides_control

    wanted = partition.wanted
    freeze_imports()
    maker = RowMaker(options, schema)
    fetcher = _fetcher(options.settings)
    meant = {wanted.partition.topic: UUID(partition.topic_id).bytes} if partition.topic_id else {}
    begin = wanted.begin
    while begin < wanted.end:
        try:
            left: dict[TopicPartition | tuple[str, int], tuple[int, int]] = {wanted.partition: (begin, wanted.end)}
            for piece in fetcher.fetch(left, timeout_ms=options.poll_timeout_ms, topic_ids=meant):
                hides = hides_control if piece.aborted is None else AbortedTransactions(piece.aborted).hides
                for decoded in decode(
                    piece.data,
                    begin=piece.begin,
                    end=piece.end,
                    hides=hides,
                    with_headers="headers" in options.columns,
                    helper=decoder_helper(),
                ):
                    yield from maker.rows(wanted.partition, decoded)
                begin = piece.end
            return
        except DeadlineExceeded as error:
            raise DeadlineExceeded(f'{error} (the time limit is option "kafkaConsumer.pollTimeoutMs")') from error
        except OffsetOutOfRange:
            first = _first_left(wanted, begin, options)
            handle_loss(lost_text([(wanted.partition, begin, first)]), options)
            begin = first
        except TopicRecreated:
            why = "the topic was deleted and created again while they were read"
            handle_loss(lost_text([(wanted.partition, begin, wanted.end)], why), options)
            return


def _first_left(wanted: OffsetRange, begin: int, options: SourceOptions) -> int:
    """Return the first offset of the range that can be read, or its end."""
    from headrace.spark.topic_view import TopicView

    view = TopicView(options)
    try:
        first = view.earliest([wanted.partition])[wanted.partition]
    finally:
        view.close()
    return first if begin < first < wanted.end else wanted.end


def _fetcher(settings: Mapping[str, Any]) -> "RawFetcher":
    from headrace.client.blocking.raw import RawFetcher

    key = (os.getpid(), *sorted(settings.items()))
    if key not in _fetchers:
        while len(_fetchers) >= FETCHERS_MAX:
            _fetchers.pop(next(iter(_fetchers))).close()
        asked = {"max.partition.fetch.bytes": PARTITION_FETCH_BYTES, **settings}
        _fetchers[key] = RawFetcher(config=asked)
    return _fetchers[key]


@atexit.register
def close_fetchers() -> None:
    """Close the connections when the process ends."""
    for key in [key for key in _fetchers if key[0] == os.getpid()]:
        _fetchers.pop(key).close()


@cache
def decoder_helper() -> "Helper | None":
    """Return the compiled helper, if it was built and is not disabled."""
    from headrace.wire.columns.native import load

    return None if os.environ.get(DECODER_VARIABLE) == "numpy" else load()
