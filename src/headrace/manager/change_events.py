"""Changes of the cluster for `/v1/events`: one follower per manager, whose events all streams share.

Changes of the metadata come from a request that a broker answers when something changes, so that neither the number of
topics nor of streams matters. Groups are not metadata: their states are listed at short intervals while a stream wants
them.
"""

import asyncio
import time
from collections import deque
from collections.abc import AsyncGenerator, Iterable, Iterator
from contextlib import suppress
from typing import NamedTuple

from headrace.client.aio.admin import Admin
from headrace.client.errors import ClientError, UnsupportedByBroker
from headrace.client.types import MetadataChanges, ResourceType, TopicChangeKind
from headrace.manager.cluster_address import ClusterAddress
from headrace.manager.event_streams import encoded_event
from headrace.manager.limits import (
    ADMIN_TIMEOUT_MS,
    CHANGE_EVENTS_KEPT_MAX,
    CHANGE_WAIT_MS,
    FEED_IDLE_SECONDS_MAX,
    GROUP_LIST_SECONDS,
    STREAM_HEARTBEAT_SECONDS,
    STREAMS_MAX,
)
from headrace.manager.problems import ApiProblem

RETRY_SECONDS = 0.5
"""Pause after a request that failed, for example because the broker stops."""
KINDS = ("topic", "partition", "configs", "broker", "group")


class ChangeEvent(NamedTuple):
    version: int | None
    """Of the metadata, which is the id of the event; None for groups."""
    kind: str
    topic: str | None
    """None if it is not about a topic."""
    content: bytes


class ChangeStream:
    """The events of one client, from those that its filter lets pass."""

    def __init__(self, kinds: frozenset[str], topics: frozenset[str]) -> None:
        self.kinds = kinds
        self._topics = topics
        self._events: deque[bytes] = deque()
        self._changed = asyncio.Event()
        self.error: Exception | None = None
        self.is_closed = False

    def offer(self, event: ChangeEvent) -> None:
        if event.kind in self.kinds and (not self._topics or event.topic is None or event.topic in self._topics):
            if len(self._events) >= CHANGE_EVENTS_KEPT_MAX:
                self.missed(event.version, "the client reads too slowly")
            else:
                self._events.append(event.content)
                self._changed.set()

    def missed(self, version: int | None, why: str) -> None:
        """Replace the events that wait by one that has the client read everything again."""
        self._events.clear()
        detail = f"{why}: events were left out; list topics, brokers and groups again"
        self._events.append(encoded_event("reset", {"detail": detail}, id=version))
        self._changed.set()

    def begin(self, version: int) -> None:
        self._events.append(encoded_event("begin", {"version": version}, id=version))
        self._changed.set()

    def end(self, error: Exception | None = None) -> None:
        self.error, self.is_closed = error, True
        self._changed.set()

    async def events(self) -> AsyncGenerator[bytes, None]:
        """Yield encoded events; nothing stands for some time without any."""
        while not self.is_closed or self._events:
            if not self._events:
                self._changed.clear()
                with suppress(TimeoutError):
                    async with asyncio.timeout(STREAM_HEARTBEAT_SECONDS):
                        await self._changed.wait()
            taken = b"".join(self._events)
            self._events.clear()
            if taken or not self.is_closed:
                yield taken
        if self.error is not None:
            raise self.error


class ChangeEvents:
    def __init__(self, cluster: ClusterAddress) -> None:
        self._cluster = cluster
        self._streams: set[ChangeStream] = set()
        self._starting = asyncio.Lock()
        self._listing = asyncio.Lock()
        """One list of groups at a time, so that they are compared in their order."""
        self._tasks: set[asyncio.Task[None]] = set()
        self._is_following = False
        self._group_admin: Admin | None = None
        self._version = -1
        self._kept: deque[tuple[int, ChangeEvent]] = deque()
        self._kept_after = -1
        """The version after which all events of the metadata are kept."""
        self._groups: dict[str, str] | None = None
        self._idle_since_s = 0.0

    async def stream(
        self, *, kinds: Iterable[str], topics: Iterable[str], after_version: int | None
    ) -> AsyncGenerator[bytes, None]:
        """Yield the events after a version, or those from now on."""
        if len(self._streams) >= STREAMS_MAX:
            raise ApiProblem(503, f"the manager has {STREAMS_MAX} open streams of events: use another manager")
        stream = ChangeStream(frozenset(kinds) or frozenset(KINDS), frozenset(topics))
        async with self._starting:
            await self._start()
            if "group" in stream.kinds and not self._follows_groups:
                await self._look_at_groups()  # What comes after this list is a change.
        self._catch_up(stream, after_version)
        self._streams.add(stream)
        try:
            async for content in stream.events():
                yield content
        finally:
            self._streams.discard(stream)
            self._idle_since_s = time.monotonic()

    def _catch_up(self, stream: ChangeStream, after_version: int | None) -> None:
        if after_version is None:
            stream.begin(self._version)
        elif self._kept_after <= after_version <= self._version:
            for version, event in self._kept:
                if version > after_version:
                    stream.offer(event)
        else:
            stream.missed(self._version, f"this manager does not know the changes after {after_version}")

    async def _start(self) -> None:
        """Follow the cluster, unless that is done already."""
        self._idle_since_s = time.monotonic()
        if self._is_following:
            return
        admin, group_admin = self._created(), self._created()
        try:
            now = await admin.metadata_changes()
        except BaseException:
            await admin.close()
            await group_admin.close()
            raise
        self._version = self._kept_after = now.version
        self._kept.clear()
        self._groups, self._group_admin = None, group_admin
        self._is_following = True
        task = asyncio.create_task(self._follow(admin, group_admin))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _created(self) -> Admin:
        return Admin(**self._cluster.options(), timeout_ms=ADMIN_TIMEOUT_MS)

    @property
    def _is_wanted(self) -> bool:
        return bool(self._streams) or time.monotonic() - self._idle_since_s < FEED_IDLE_SECONDS_MAX

    async def _follow(self, admin: Admin, group_admin: Admin) -> None:
        groups = asyncio.create_task(self._follow_groups())
        error: Exception | None = None
        try:
            while self._is_wanted:
                wait_ms = CHANGE_WAIT_MS if self._streams else FEED_IDLE_SECONDS_MAX * 1_000 // 2
                try:
                    self._take(await admin.metadata_changes(self._version, wait_ms=wait_ms))
                except UnsupportedByBroker:
                    raise
                except ClientError:
                    await asyncio.sleep(RETRY_SECONDS)
        except ClientError as failure:
            error = failure
        finally:
            self._is_following = False  # A stream that begins now starts a follower of its own.
            groups.cancel()
            for stream in self._streams:
                stream.end(error)
            await asyncio.gather(groups, return_exceptions=True)
            await admin.close()
            await group_admin.close()

    def _take(self, changes: MetadataChanges) -> None:
        self._version = changes.version
        if not changes.is_complete:
            self._kept.clear()
            self._kept_after = changes.version
            for stream in self._streams:
                stream.missed(changes.version, "more changed at once than the broker remembers")
            return
        for event in _events(changes):
            self._offer(event)

    def _offer(self, event: ChangeEvent) -> None:
        if event.version is not None:
            self._kept.append((event.version, event))
            if len(self._kept) > CHANGE_EVENTS_KEPT_MAX:
                self._kept_after, _ = self._kept.popleft()
        for stream in self._streams:
            stream.offer(event)

    @property
    def _follows_groups(self) -> bool:
        return any("group" in stream.kinds for stream in self._streams)

    async def _follow_groups(self) -> None:
        while True:
            await asyncio.sleep(GROUP_LIST_SECONDS)
            if self._follows_groups:
                with suppress(ClientError):
                    await self._look_at_groups()

    async def _look_at_groups(self) -> None:
        assert self._group_admin is not None
        async with self._listing:
            self._compare({each.group: each.state for each in await self._group_admin.groups()})

    def _compare(self, states: dict[str, str]) -> None:
        """Offer an event for every group whose state is another one than in the previous list."""
        before, self._groups = self._groups, states
        if before is None:
            return
        for group in (*states, *(name for name in before if name not in states)):
            state = states.get(group, "Dead")
            if state != before.get(group):
                content = encoded_event("group", {"group": group, "state": state, "before": before.get(group)})
                self._offer(ChangeEvent(None, "group", None, content))

    def end_streams(self) -> None:
        """End all streams, because the manager stops."""
        for stream in self._streams:
            stream.end()

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


def _events(changes: MetadataChanges) -> Iterator[ChangeEvent]:
    def event(kind: str, topic: str | None, value: object) -> ChangeEvent:
        return ChangeEvent(changes.version, kind, topic, encoded_event(kind, value, id=changes.version))

    for each in changes.topics:
        words = {"topic": each.topic, "change": TopicChangeKind(each.kind).name.lower(), "partitions": each.partitions}
        yield event("topic", each.topic, words)
    for part in changes.partitions:
        yield event("partition", part.topic, part._asdict())
    for kind, name in changes.configs:
        if kind == ResourceType.TOPIC:
            yield event("configs", name, {"topic": name})
        else:
            yield event("configs", None, {"broker": int(name) if name else None})
    if changes.brokers is not None:
        states = [
            {"broker": each.node_id, "fenced": each.is_fenced, "stopping": each.is_stopping} for each in changes.brokers
        ]
        yield event("broker", None, {"brokers": states})
