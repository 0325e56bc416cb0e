"""Server-Sent Events: a response that does not end, and the records of a topic as its events."""

import asyncio
from collections.abc import AsyncGenerator, Sequence

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from headrace.client.types import ConsumerRecord
from headrace.manager.feeds import FeedBuffer, Feeds
from headrace.manager.limits import STREAM_HEARTBEAT_SECONDS
from headrace.manager.metrics import ManagerMetrics
from headrace.manager.problems import problem_of
from headrace.manager.readers import Readers
from headrace.manager.reads import ReadPlan, TopicRead
from headrace.manager.record_views import View
from headrace.manager.responses import as_json

MEDIA_TYPE = "text/event-stream"
POSITIONS = r"^\d{1,10}:\d{1,19}(,\d{1,10}:\d{1,19})*$"
HEARTBEAT = b": alive\n\n"
CATCH_UP_SECONDS = 0.05


class RecordStream:
    """The records of one stream: those before the feed first, then what the feed offers."""

    def __init__(self, plan: ReadPlan, count: int, *, feeds: Feeds, readers: Readers) -> None:
        self._plan = plan
        self._count = count
        self._feeds = feeds
        self._readers = readers
        self.next: dict[int, int] = {}
        """The next offset of every partition of the stream; the one that sends the records keeps it up to date."""

    async def batches(self) -> AsyncGenerator[list[ConsumerRecord], None]:
        """Yield records as they come; an empty list stands for some time without any."""
        buffer = self._feeds.open_buffer()
        try:
            while not buffer.is_closed:
                feed = await self._feeds.feed(self._plan.topic, self._count)
                if not self.next and self._plan.starts_at_end:
                    self.next = {number: feed.next[number] for number in self._partitions()}
                while not self._has_reached(feed.next):
                    async for found in self._earlier(feed.next, buffer):
                        yield found
                    if buffer.is_closed:
                        return
                buffer.has_overflowed = False
                feed.attach(buffer)
                try:
                    async for found in self._live(buffer):
                        yield found
                finally:
                    feed.detach(buffer)
            if buffer.error is not None:
                raise buffer.error
        finally:
            self._feeds.close_buffer(buffer)

    def _partitions(self) -> Sequence[int]:
        return range(self._count) if self._plan.partition is None else (self._plan.partition,)

    def _has_reached(self, ends: dict[int, int]) -> bool:
        return bool(self.next) and all(offset >= ends[number] for number, offset in self.next.items())

    async def _earlier(self, ends: dict[int, int], buffer: FeedBuffer) -> AsyncGenerator[list[ConsumerRecord], None]:
        """Read up to the feed with a consumer of its own."""
        plan = self._plan if not self.next else self._plan.resumed(self.next)
        async with self._readers.lend() as consumer:
            reading = TopicRead(plan, consumer)
            await reading.begin(self._count)
            self.next = reading.next
            while not self._has_reached(ends) and not buffer.is_closed:
                found = await reading.more(CATCH_UP_SECONDS)
                if found:
                    yield found

    async def _live(self, buffer: FeedBuffer) -> AsyncGenerator[list[ConsumerRecord], None]:
        """Take what the feed offers until it ends or more came than the buffer holds."""
        yield []  # The client learns that the stream has begun.
        while True:
            taken = await buffer.take(STREAM_HEARTBEAT_SECONDS)
            wanted = [
                record
                for record in taken
                if record.partition in self.next and record.offset >= self.next[record.partition]
            ]
            yield self._plan.masking(wanted)
            if not taken and (buffer.is_closed or buffer.has_overflowed):
                return


class EventStreamResponse(Response):
    """Sends events until its client or the manager ends it."""

    media_type = MEDIA_TYPE

    def __init__(self, events: AsyncGenerator[bytes, None]) -> None:
        """`events` yields encoded events; nothing stands for a heartbeat."""
        super().__init__(None, 200, {"cache-control": "no-store", "x-accel-buffering": "no"})
        del self.headers["content-length"]
        self._events = events

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        sending = asyncio.create_task(self._send(send))
        gone = asyncio.create_task(_disconnected(receive))
        try:
            await asyncio.wait((sending, gone), return_when=asyncio.FIRST_COMPLETED)
            if sending.done():  # Otherwise the client is gone.
                sending.result()
        finally:
            for task in (sending, gone):
                task.cancel()
            await asyncio.gather(sending, gone, return_exceptions=True)

    async def _send(self, send: Send) -> None:
        """The first part is sent when the start is found, so that an error before it has its own status."""
        has_begun = False
        try:
            async for content in self._events:
                if not has_begun:
                    has_begun = True
                    await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
                await send({"type": "http.response.body", "body": content or HEARTBEAT, "more_body": True})
        except Exception as error:
            problem = problem_of(error)
            if not has_begun or problem is None:
                raise
            content = encoded_event("problem", {"status": problem.status, "detail": problem.detail})
            await send({"type": "http.response.body", "body": content, "more_body": True})
        finally:
            await self._events.aclose()
        if not has_begun:
            await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        await send({"type": "http.response.body", "body": b"", "more_body": False})


async def record_events(
    stream: RecordStream, plan: ReadPlan, view: View, metrics: ManagerMetrics
) -> AsyncGenerator[bytes, None]:
    """Yield records as events; the id of each is the position after it in every partition of the stream."""
    batches = stream.batches()
    try:
        async for records in batches:
            content = []
            for record in records:
                stream.next[record.partition] = record.offset + 1
                if plan.matches is None or plan.matches(record):
                    metrics.records_consumed += 1
                    position = positions_text(stream.next).encode()
                    content.append(b"id: %s\ndata: %s\n\n" % (position, as_json(view(record))))
            yield b"".join(content)
    finally:
        await batches.aclose()


def encoded_event(name: str, value: object, *, id: int | None = None) -> bytes:
    first = b"" if id is None else b"id: %d\n" % id
    return first + b"event: %s\ndata: %s\n\n" % (name.encode(), as_json(value))


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def positions_text(positions: dict[int, int]) -> str:
    """Return positions as the parameter `positions` and Last-Event-ID have them."""
    return ",".join([f"{number}:{offset}" for number, offset in sorted(positions.items())])
