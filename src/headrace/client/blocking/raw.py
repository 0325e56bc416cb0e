"""Fetch ranges of partitions as the bytes of their batches, for callers with their own decoder.

    with RawFetcher("127.0.0.1:9092", isolation_level="read_committed") as fetcher:
        for piece in fetcher.fetch({("orders", 0): (0, 5_000)}):
            piece.partition, piece.data, piece.begin, piece.end, piece.aborted

Nothing runs in the background: the next fetches are in flight while the caller works on a piece.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Self, Unpack

from headrace.client.blocking.session import Session
from headrace.client.config import ConsumerConfig, resolve_config
from headrace.client.config_options import ConsumerOptions
from headrace.client.consumer_base import Place, fetch_settings
from headrace.client.core.ranges import FetchedBytes, RangeReader
from headrace.client.errors import DeadlineExceeded, InvalidArgument
from headrace.model.ids import TopicPartition

__all__ = ["FetchedBytes", "RawFetcher"]

STALL_MS_MAX = 30_000
HELD_BYTES_MAX = 64 * 1024 * 1024


class RawFetcher:
    """For one thread; not across a fork. Its connections stay open between calls of `fetch`."""

    def __init__(
        self,
        bootstrap_servers: str | Sequence[str] | None = None,
        *,
        config: ConsumerConfig | Mapping[str, Any] | None = None,
        **options: Unpack[ConsumerOptions],
    ) -> None:
        """Options are those of `ConsumerConfig` that concern connections and fetches."""
        self.config: ConsumerConfig = resolve_config(ConsumerConfig, config, bootstrap_servers, options)
        self._session = Session(self.config)

    def fetch(
        self,
        ranges: Mapping[Place, tuple[int, int]],
        *,
        timeout_ms: float = STALL_MS_MAX,
        held_bytes_max: int = HELD_BYTES_MAX,
        topic_ids: Mapping[str, bytes] | None = None,
    ) -> Iterator[FetchedBytes]:
        """Yield everything in these ranges (first offset, end offset), in order within each partition.

        Offsets may be missing, as after compaction, and a range may have no piece at all. `timeout_ms` is the longest
        time without progress; `held_bytes_max` limits the bytes fetched ahead, unless a single batch is larger. If
        topic ids are given, a topic that was deleted and created again meanwhile raises `TopicRecreated`.
        """
        wanted = {TopicPartition(*place): (start, end) for place, (start, end) in ranges.items()}
        for place, (start, end) in wanted.items():
            if not 0 <= start <= end:
                raise InvalidArgument(f"a range ends at or after its start; {start} to {end} does not")
            if not isinstance(place.topic, str) or not isinstance(place.partition, int):
                raise InvalidArgument(f"a partition is a topic and a number, not {place!r}")
        self._session.check_usable()
        reader = RangeReader(
            fetch_settings(self.config),
            self._session.cluster,
            wanted,
            held_bytes_max=held_bytes_max,
            topic_ids=topic_ids,
        )
        return self._pieces(reader, timeout_ms)

    def _pieces(self, reader: RangeReader, timeout_ms: float) -> Iterator[FetchedBytes]:
        session = self._session
        session.engine.attach(reader)
        try:
            steps, deadline_ms = -1, 0.0
            while not reader.is_done():
                session.check_usable()
                now_ms = session.clock.monotonic_ms()
                if reader.steps_count != steps:
                    steps, deadline_ms = reader.steps_count, now_ms + timeout_ms
                piece = reader.take()
                if piece is not None:
                    session.turn(now_ms)  # The next fetch is sent before the caller works on this piece.
                    yield piece
                    deadline_ms = session.clock.monotonic_ms() + timeout_ms
                elif now_ms >= deadline_ms:
                    raise DeadlineExceeded(f"no progress in {timeout_ms:g} ms on {reader.unread()}: {self._trouble()}")
                else:
                    session.turn(deadline_ms)
        finally:
            session.engine.detach(reader)

    def _trouble(self) -> str:
        trouble = self._session.engine.trouble
        if trouble is not None:
            return str(trouble)
        return "the log ends before, a transaction in it is open, or its broker cannot read it from remote storage"

    def close(self) -> None:
        self._session.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()
