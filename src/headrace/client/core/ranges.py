"""Read ranges of offsets as the bytes of their batches: route fetches, limit the bytes held, and detect the end.

Like the other cores it has no clock and no socket: `poll` returns calls, their replies come back, `take` returns
pieces. Only the headers of batches are decoded. The bytes held and in flight stay within a limit.

An empty response ends a range only if its leader had all of it on its own disk. A leader may fail to read remote
storage (KIP-405) in time, and then returns nothing, with the same high watermark as before.
"""

import math
from collections import deque
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

from headrace.client.core.admin.routing import LEADER_ERRORS
from headrace.client.core.calls import PendingCall
from headrace.client.core.cluster import Cluster
from headrace.client.core.fetch_requests import FetchSettings, aborted_in, fetch_call, results_in, wanted_from
from headrace.client.core.offset_lookups import list_offsets_call, offsets_in
from headrace.client.errors import (
    AuthenticationFailed,
    BadResponse,
    BrokerError,
    ClientError,
    OffsetOutOfRange,
    TopicRecreated,
    UnsupportedByBroker,
)
from headrace.client.types import EARLIEST_LOCAL, IsolationLevel
from headrace.model.errors import RETRIABLE, ErrorCode
from headrace.model.ids import NO_TOPIC_ID, TopicPartition
from headrace.wire.errors import ProtocolError
from headrace.wire.messages import fetch
from headrace.wire.records.header import BASE_OFFSET, HEADER, LAST_OFFSET_DELTA
from headrace.wire.records.reader import batches

RETRY_PAUSE_MS = 100
LOOK_UP_MS_MAX = 1_000
"""Time for which a broker may look up the start of its local log."""
NAMED_MAX = 3
"""Ranges that a message names."""

HOPELESS = (UnsupportedByBroker, AuthenticationFailed)


class FetchedBytes(NamedTuple):
    partition: TopicPartition
    data: memoryview
    """Consecutive whole batches, as stored by the broker; their checksums are not verified."""
    begin: int
    """Records below this offset are not wanted: the first batch may begin before it."""
    end: int
    """Records from this offset on are not wanted; the next piece of the range begins here."""
    aborted: tuple[tuple[int, int], ...] | None
    """Producer ids and first offsets of aborted transactions in the piece; None if all records are wanted."""


class _Range:
    __slots__ = (
        "empty_at",
        "end",
        "is_asking",
        "known_end",
        "needs_leader",
        "position",
        "preferred_node",
        "redirected_ms",
        "resume_ms",
    )

    def __init__(self, start: int, end: int) -> None:
        self.position = start
        self.end = end
        self.known_end = -1
        """The end of the readable records, by the last response."""
        self.empty_at: int | None = None
        """The leader that returned nothing of the rest; it is asked whether all of that is on its disk."""
        self.needs_leader = False
        """A follower returned nothing: only the leader knows why."""
        self.is_asking = False
        self.resume_ms = 0.0
        self.preferred_node: int | None = None
        self.redirected_ms = -math.inf
        """When a node last redirected us to another one."""


class RangeReader:
    def __init__(
        self,
        settings: FetchSettings,
        cluster: Cluster,
        ranges: Mapping[TopicPartition, tuple[int, int]],
        *,
        held_bytes_max: int,
        topic_ids: Mapping[str, bytes] | None = None,
    ) -> None:
        """The ids, where given, select the topics: another topic of the same name is refused."""
        self.steps_count = 0
        """Grows with every response that made progress."""
        self._settings = settings
        self._is_committed = settings.isolation == IsolationLevel.READ_COMMITTED
        self._cluster = cluster
        self._topic_ids = topic_ids or {}
        self._ranges = {place: _Range(start, end) for place, (start, end) in ranges.items() if start < end}
        """Ranges that are not completely fetched; those that got records move to the end."""
        self._held_bytes_max = held_bytes_max
        self._held_bytes = 0
        self._asked_bytes: dict[int, int] = {}
        """By node, the bytes that its next response may contain."""
        self._pieces: deque[FetchedBytes] = deque()
        self._error: ClientError | None = None
        cluster.want(place.topic for place in self._ranges)

    def is_done(self) -> bool:
        return not self._ranges and not self._pieces

    def unread(self) -> str:
        """Describe the missing ranges, for messages."""
        named = [f"{place} from {each.position} to {each.end}" for place, each in self._ranges.items()]
        return ", ".join(named[:NAMED_MAX]) + (f" and {len(named) - NAMED_MAX} more" if named[NAMED_MAX:] else "")

    def take(self) -> FetchedBytes | None:
        """Return the next piece that has arrived; raises the error that follows the last one."""
        if self._pieces:
            piece = self._pieces.popleft()
            self._held_bytes -= len(piece.data)
            return piece
        if self._error is not None:
            raise self._error
        return None

    def poll(self, now_ms: float) -> tuple[list[PendingCall], float]:
        calls: list[PendingCall] = []
        if self._error is not None or not self._ranges:
            return calls, float("inf")
        refresh = self._cluster.refresh(now_ms)
        if refresh is not None:
            calls.append(PendingCall(refresh, self._refreshed))
        wakeup_ms = self._cluster.next_refresh_ms()
        by_node: dict[int, dict[TopicPartition, int]] = {}
        for place, wanted in self._ranges.items():
            if wanted.is_asking:
                continue
            if wanted.resume_ms > now_ms:
                wakeup_ms = min(wakeup_ms, wanted.resume_ms)
                continue
            if wanted.empty_at is not None:
                calls.append(self._look_up(place, wanted, wanted.empty_at))
                continue
            node = self._node_for(place, wanted)
            if node is None:
                self._cluster.mark_wrong()
                wakeup_ms = min(wakeup_ms, self._cluster.next_refresh_ms())
            elif node not in self._asked_bytes:
                by_node.setdefault(node, {})[place] = wanted.position
        for node, positions in by_node.items():
            room = self._held_bytes_max - self._held_bytes - sum(self._asked_bytes.values())
            is_only = not self._held_bytes and not self._asked_bytes
            if room >= self._settings.partition_bytes_max or is_only:
                calls.append(self._fetch(node, positions, max(room, self._settings.partition_bytes_max)))
        return calls, wakeup_ms

    def _is_meant(self, topic: str) -> bool:
        known = self._cluster.topic_id(topic)
        return NO_TOPIC_ID in (known, self._topic_ids.get(topic, NO_TOPIC_ID)) or known == self._topic_ids[topic]

    def _node_for(self, place: TopicPartition, wanted: _Range) -> int | None:
        """Return the node; None if unknown. The metadata of the topic may be older than the requested id."""
        if not self._is_meant(place.topic):
            return None
        if wanted.preferred_node in self._cluster.brokers:
            return wanted.preferred_node
        return self._cluster.leader(place)

    def _fetch(self, node: int, positions: dict[TopicPartition, int], room: int) -> PendingCall:
        asked = [self._ranges[place] for place in positions]
        settings = replace(
            self._settings,
            bytes_max=min(self._settings.bytes_max, room),
            wait_ms_max=0 if all(each.known_end >= each.end for each in asked) else self._settings.wait_ms_max,
            rack="" if any(each.needs_leader for each in asked) else self._settings.rack,
        )
        self._asked_bytes[node] = settings.bytes_max
        for each in asked:
            each.is_asking = True
        call = fetch_call(node, wanted_from(self._cluster, positions, settings.partition_bytes_max), None, settings)
        return PendingCall(call, partial(self._fetched, node, positions))

    def _refreshed(self, reply: Any, now_ms: float) -> None:
        if isinstance(reply, ClientError):
            self._cluster.refresh_failed()
            if isinstance(reply, HOPELESS):
                self._error = reply
        else:
            self._cluster.refreshed(reply, now_ms)
            other = next((place for place in self._ranges if not self._is_meant(place.topic)), None)
            if other is not None:
                self._error = TopicRecreated(other, self._ranges[other].position)

    def _fetched(self, node: int, positions: dict[TopicPartition, int], reply: Any, now_ms: float) -> None:
        del self._asked_bytes[node]
        results: dict[TopicPartition, fetch.FetchResponsePartition] = {}
        if isinstance(reply, ClientError):
            self._cluster.mark_wrong()
            if isinstance(reply, HOPELESS):
                self._error = reply
        else:
            self._cluster.learn_endpoints(reply.node_endpoints)
            results = results_in(self._cluster, reply)
        # Regardless of the limits, the first partition with records returns some: if it is empty, no records come at
        # all.
        is_empty = not any(result.records for result in results.values())
        for number, place in enumerate(positions):
            wanted = self._ranges[place]
            wanted.is_asking = False
            result = results.get(place)
            if result is None:
                wanted.preferred_node = None
                wanted.resume_ms = now_ms + RETRY_PAUSE_MS
            elif result.error_code:
                self._refused(place, wanted, result, now_ms)
            else:
                wanted.known_end = result.last_stable_offset if self._is_committed else result.high_watermark
                if result.records:
                    self._advance(place, wanted, result, memoryview(result.records), is_first=number == 0)
                else:
                    self._got_nothing(node, wanted, result, now_ms, had_room=number == 0 and is_empty)

    def _refused(
        self, place: TopicPartition, wanted: _Range, result: fetch.FetchResponsePartition, now_ms: float
    ) -> None:
        code, leader = result.error_code, result.current_leader
        may_hurry = now_ms - wanted.redirected_ms >= RETRY_PAUSE_MS
        wanted.redirected_ms = now_ms
        if wanted.preferred_node is not None:
            wanted.preferred_node = None  # A replica that cannot serve us: ask the leader.
        elif code == ErrorCode.OFFSET_OUT_OF_RANGE:
            self._error = OffsetOutOfRange(place, wanted.position)
        elif code not in LEADER_ERRORS and code not in RETRIABLE:
            self._error = BrokerError(code, f"{place} cannot be read at offset {wanted.position}")
        elif not self._cluster.learn_leader(place, leader.leader_id, leader.leader_epoch):
            self._cluster.mark_wrong()
            may_hurry = False
        if not may_hurry:
            wanted.resume_ms = now_ms + RETRY_PAUSE_MS

    def _got_nothing(
        self, node: int, wanted: _Range, result: fetch.FetchResponsePartition, now_ms: float, *, had_room: bool
    ) -> None:
        if result.preferred_read_replica >= 0:
            if wanted.needs_leader:
                wanted.resume_ms = now_ms + RETRY_PAUSE_MS
            else:
                wanted.preferred_node = result.preferred_read_replica
        elif had_room and wanted.known_end >= wanted.end:
            if wanted.preferred_node is None:
                wanted.empty_at = node
            else:
                wanted.preferred_node, wanted.needs_leader = None, True

    def _look_up(self, place: TopicPartition, wanted: _Range, node: int) -> PendingCall:
        wanted.is_asking = True
        call = list_offsets_call(self._cluster, node, {place: EARLIEST_LOCAL}, timeout_ms=LOOK_UP_MS_MAX)
        return PendingCall(call, partial(self._looked_up, place, wanted))

    def _looked_up(self, place: TopicPartition, wanted: _Range, reply: Any, now_ms: float) -> None:
        """Handle the local log start of a leader; when it returned nothing, the start was not above the position."""
        wanted.is_asking, wanted.empty_at = False, None
        if isinstance(reply, UnsupportedByBroker):
            self._finish(place)  # Brokers without this request have no remote storage either.
            return
        if isinstance(reply, AuthenticationFailed):
            self._error = reply
        told = None if isinstance(reply, ClientError) else offsets_in(reply).get(place)
        if told is None or told.error in LEADER_ERRORS or told.error in RETRIABLE:
            self._cluster.mark_wrong()
        elif told.error is not ErrorCode.NONE:
            self._error = BrokerError(told.error, f"the start offset of {place} could not be looked up")
        elif 0 <= told.offset <= wanted.position:
            self._finish(place)
            return
        wanted.resume_ms = now_ms + RETRY_PAUSE_MS

    def _advance(
        self,
        place: TopicPartition,
        wanted: _Range,
        result: fetch.FetchResponsePartition,
        records: memoryview,
        *,
        is_first: bool,
    ) -> None:
        try:
            size, behind = _bounds(records, wanted.end)
        except ProtocolError as error:
            self._error = BadResponse(f"the records of {place} at {wanted.position} cannot be decoded: {error}")
            return
        wanted.needs_leader = False
        begin, wanted.position = wanted.position, max(wanted.position, min(behind, wanted.end))
        if size and wanted.position > begin:
            aborted = aborted_in(result) if self._is_committed else None
            piece = FetchedBytes(place, records[:size], begin, wanted.position, aborted)
            self._pieces.append(piece)
            self._held_bytes += size
        elif is_first and wanted.position == begin:
            self._error = BadResponse(f"the response for {place} at {begin} has no batch that reaches this offset")
            return
        if wanted.position >= wanted.end:
            self._finish(place)
        else:
            self.steps_count += 1
            self._ranges[place] = self._ranges.pop(place)

    def _finish(self, place: TopicPartition) -> None:
        self.steps_count += 1
        del self._ranges[place]


def _bounds(records: bytes | bytearray | memoryview, end: int) -> tuple[int, int]:
    """Return the bytes of the batches that begin before `end`, and the offset after them.

    A batch that begins at `end` or later means that nothing before it is left.
    """
    size, behind = 0, -1
    for batch in batches(records, allow_truncated_end=True):
        fields = HEADER.unpack_from(batch)
        behind = fields[BASE_OFFSET] + fields[LAST_OFFSET_DELTA] + 1
        if fields[BASE_OFFSET] >= end:
            break
        size += len(batch)
    return size, behind
