"""Live records of topics: one consumer per topic reads its end for all streams of this manager.

A stream that starts earlier, or falls behind because its client is slow, reads with a consumer of its own until it has
reached the feed, and then takes what the feed offers.
"""

import asyncio
import time
from collections import deque
from typing import Any

from headrace.client.aio.consumer import Consumer
from headrace.client.errors import ClientError
from headrace.client.types import ConsumerRecord
from headrace.manager.limits import (
    FEED_IDLE_SECONDS_MAX,
    FEEDS_MAX,
    READ_SLICE_RECORDS,
    STREAM_BUFFER_BYTES_MAX,
    STREAM_BUFFER_RECORDS_MAX,
    STREAMS_MAX,
)
from headrace.manager.problems import ApiProblem
from headrace.manager.readers import Readers, close_consumer
from headrace.model.ids import TopicPartition

POLL_MS = 1_000


class FeedBuffer:
    """Records that a feed has offered to one stream; it overflows rather than grow."""

    def __init__(self) -> None:
        self._records: deque[ConsumerRecord] = deque()
        self._bytes = 0
        self._changed = asyncio.Event()
        self.has_overflowed = False
        """True if records after those that it holds were not kept."""
        self.error: Exception | None = None
        self.is_closed = False

    def offer(self, record: ConsumerRecord) -> None:
        size = len(record.value or b"") + len(record.key or b"")
        if self.has_overflowed:
            return
        if len(self._records) >= STREAM_BUFFER_RECORDS_MAX or (
            self._records and self._bytes + size > STREAM_BUFFER_BYTES_MAX
        ):
            self.has_overflowed = True
        else:
            self._records.append(record)
            self._bytes += size
        self._changed.set()

    def end(self, error: Exception | None = None) -> None:
        self.error, self.is_closed = error, True
        self._changed.set()

    async def take(self, seconds_max: float) -> list[ConsumerRecord]:
        """Return the offered records; none if none came in time, or if it is closed or has overflowed."""
        if not self._records and not self.is_closed and not self.has_overflowed:
            self._changed.clear()
            try:
                async with asyncio.timeout(seconds_max):
                    await self._changed.wait()
            except TimeoutError:
                pass
        taken = [*self._records]
        self._records.clear()
        self._bytes = 0
        return taken


class TopicFeed:
    """Reads the end of one topic."""

    def __init__(self, topic: str, count: int, consumer: Consumer[Any]) -> None:
        self.count = count
        self.next: dict[int, int] = {}
        """The offset after the last record that was offered, by partition."""
        self._places = [TopicPartition(topic, number) for number in range(count)]
        self._consumer = consumer
        self._buffers: set[FeedBuffer] = set()
        self._idle_since_s = time.monotonic()
        self.task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        ends = await self._consumer.end_offsets(self._places)
        self._consumer.assign(self._places)
        for place in self._places:
            await self._consumer.seek(place, ends[place])
            self.next[place.partition] = ends[place]
        self.task = asyncio.create_task(self._run())

    @property
    def is_running(self) -> bool:
        return self.task is not None and not self.task.done()

    def attach(self, buffer: FeedBuffer) -> None:
        self._buffers.add(buffer)

    def detach(self, buffer: FeedBuffer) -> None:
        self._buffers.discard(buffer)
        self._idle_since_s = time.monotonic()

    async def _run(self) -> None:
        error: Exception | None = None
        try:
            while self._buffers or time.monotonic() - self._idle_since_s < FEED_IDLE_SECONDS_MAX:
                taken = await self._consumer.poll(timeout_ms=POLL_MS, max_records=READ_SLICE_RECORDS)
                for record in taken:
                    self.next[record.partition] = record.offset + 1
                    for buffer in self._buffers:
                        buffer.offer(record)
                if taken:
                    await asyncio.sleep(0)  # Streams send before more is read.
        except ClientError as failure:
            error = failure
        finally:
            for buffer in self._buffers:
                buffer.end(error)
            await close_consumer(self._consumer)


class Feeds:
    """The feeds of a manager, by topic; each is started by its first stream and ends some time after its last."""

    def __init__(self, readers: Readers) -> None:
        self._readers = readers
        self._feeds: dict[str, TopicFeed] = {}
        self._starting = asyncio.Lock()
        self._streams: set[FeedBuffer] = set()

    def open_buffer(self) -> FeedBuffer:
        """Return the buffer of a new stream."""
        if len(self._streams) >= STREAMS_MAX:
            raise ApiProblem(503, f"the manager has {STREAMS_MAX} open streams already: use another manager")
        buffer = FeedBuffer()
        self._streams.add(buffer)
        return buffer

    def close_buffer(self, buffer: FeedBuffer) -> None:
        self._streams.discard(buffer)

    async def feed(self, topic: str, count: int) -> TopicFeed:
        """Return the running feed of a topic with `count` partitions, starting it if needed."""
        async with self._starting:
            found = self._feeds.get(topic)
            if found is not None and found.is_running and found.count == count:
                return found
            self._feeds = {name: feed for name, feed in self._feeds.items() if feed.is_running}
            if len(self._feeds) >= FEEDS_MAX:
                raise ApiProblem(503, f"the manager streams {FEEDS_MAX} topics already: close other streams first")
            consumer = self._readers.create()
            feed = TopicFeed(topic, count, consumer)
            try:
                await feed.start()
            except BaseException:
                await close_consumer(consumer)
                raise
            self._feeds[topic] = feed
            return feed

    def end_streams(self) -> None:
        """End all streams, because the manager stops."""
        for buffer in self._streams:
            buffer.end()

    async def close(self) -> None:
        tasks = [feed.task for feed in self._feeds.values() if feed.task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
