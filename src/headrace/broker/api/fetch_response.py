"""Fetch responses: results grouped by topic, counted and encoded; those of many partitions a slice per turn."""

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import cast

from headrace.broker.metrics import Metrics
from headrace.broker.missed_leaders import MISSED, MissedLeaders
from headrace.broker.net.connection import Part, ResponseSlot
from headrace.broker.partitions.fetch_sessions import FetchSession
from headrace.broker.partitions.reader import WantedRead
from headrace.broker.services import FetchServices
from headrace.model.errors import ErrorCode
from headrace.model.ids import NO_NODE
from headrace.model.limits import COPIED_RANGE_BYTES_MAX, FETCH_PARTITIONS_PER_SLICE
from headrace.ports.disk import Disk, FileRange
from headrace.wire.apis import ApiKey
from headrace.wire.current_leaders import LeaderEndpoint
from headrace.wire.fetch import CURRENT_LEADER_FROM, PartitionData, encode_in_slices, encode_response

TopicResults = list[tuple[bytes, list[PartitionData]]]
"""Results in the order of the response: (topic name or id, its partitions)."""

_FETCH = int(ApiKey.FETCH)


def count_results(metrics: Metrics, results: list[PartitionData]) -> bool:
    """Add the bytes and the errors of the results to the metrics, and return whether there was an error."""
    failed = False
    for data in results:
        if data.error:
            failed = True
            metrics.fetch_errors[data.error] += 1
        elif isinstance(data.records, FileRange):
            metrics.bytes_fetched += data.records.length
    return failed


def record_bytes(results: Sequence[PartitionData]) -> int:
    """Count the bytes of records, which are charged to a quota."""
    total = 0
    for data in results:
        if isinstance(data.records, FileRange):
            total += data.records.length
        elif isinstance(data.records, bytes):
            total += len(data.records)
    return total


def add_by_topic(
    topics: TopicResults,
    wants: list[WantedRead],
    results: list[PartitionData],
    session: FetchSession | None,
    *,
    full: bool,
) -> None:
    """Add the results to the response.

    Within a session only partitions that changed are added, unless the response is a full one. A partition that had
    records moves to the end of the session, so that the next fetch reads the others first.
    """
    for wanted, data in zip(wants, results, strict=True):
        if session is not None:
            key = (wanted.topic_key, wanted.partition)
            known = session.partitions.get(key)
            if known is not None:
                changed = (
                    data.records is not None
                    or data.error
                    or data.preferred_read_replica != NO_NODE
                    or data.high_watermark != known.sent_high_watermark
                    or data.log_start_offset != known.sent_log_start
                )
                if not changed and not full:
                    continue
                known.sent_high_watermark = data.high_watermark if not data.error else -1
                known.sent_log_start = data.log_start_offset
                if data.records is not None:
                    session.partitions.move_to_end(key)
        if topics and topics[-1][0] == wanted.topic_key:
            topics[-1][1].append(data)
        else:
            topics.append((wanted.topic_key, [data]))


def with_leaders(missed: MissedLeaders, wants: list[WantedRead], results: list[PartitionData]) -> list[PartitionData]:
    """Add the leaders of the partitions that this broker does not lead."""
    return [
        data._replace(current_leader=missed.find(wanted.topic.name, wanted.partition))
        if data.error in MISSED and wanted.topic is not None
        else data
        for wanted, data in zip(wants, results, strict=True)
    ]


def encoded(
    version: int,
    correlation_id: int,
    error: ErrorCode,
    session_id: int,
    topics: TopicResults,
    endpoints: Sequence[LeaderEndpoint] = (),
    throttle_time_ms: int = 0,
) -> list[Part]:
    parts = encode_response(
        version,
        correlation_id,
        throttle_time_ms=throttle_time_ms,
        error=error,
        session_id=session_id,
        topics=topics,
        endpoints=endpoints,
    )
    return cast(list[Part], parts)


def joined_if_small(disk: Disk, parts: list[Part]) -> bytes | list[Part]:
    """HOT. Copy the records of a small response into one piece of bytes, which is sent like any other response."""
    length = 0
    for part in parts:
        if isinstance(part, FileRange):
            length += part.length
    if length > COPIED_RANGE_BYTES_MAX:
        return parts
    whole: list[bytes | bytearray | memoryview] = []
    for part in parts:
        if isinstance(part, FileRange):
            try:
                copied = disk.read(part.file, part.length, part.position)
            except OSError:
                return parts  # sending the file fails again, and closes the connection
            if len(copied) < part.length:
                return parts
            whole.append(copied)
        else:
            whole.append(part)
    return b"".join(whole)


class SlicedFetchResponse:
    """Response of many partitions, which is built a slice per turn. Its files stay open until it is complete."""

    def __init__(
        self,
        services: FetchServices,
        slot: ResponseSlot,
        wants: list[WantedRead],
        results: list[PartitionData],
        session: FetchSession | None,
        *,
        version: int,
        correlation_id: int,
        session_id: int,
        full: bool,
        throttle_time_ms: int,
    ) -> None:
        self._services = services
        self._slot = slot
        self._wants = wants
        self._results = results
        self._session = session
        self._full = full
        self._topics: TopicResults = []
        self._missed = MissedLeaders(services.image, slot.connection.listener_name)
        self._names_leaders = version >= CURRENT_LEADER_FROM
        self._endpoints: list[LeaderEndpoint] = []
        encoding = encode_in_slices(
            version,
            correlation_id,
            throttle_time_ms=throttle_time_ms,
            error=ErrorCode.NONE,
            session_id=session_id,
            topics=self._topics,
            endpoints=self._endpoints,
            partitions_per_slice=FETCH_PARTITIONS_PER_SLICE,
        )
        self._steps = chain(self._group(), cast(Iterator[list[Part] | None], encoding))
        self._ranges = [data.records for data in results if isinstance(data.records, FileRange)]
        services.pin(self._ranges)

    def step(self) -> None:
        """Do one slice of the work, and continue in the next turn until the response is complete."""
        parts = None if self._slot.connection.closed else next(self._steps)
        if parts is None and not self._slot.connection.closed:
            self._services.timers.next_turn(self._services.client_quotas.charged(self._slot.connection, self.step))
            return
        if parts is not None:
            self._slot.complete(parts)
        self._services.unpin(self._ranges)

    def _group(self) -> Iterator[None]:
        wants, results, metrics = self._wants, self._results, self._services.metrics
        failed = False
        for start in range(0, len(results), FETCH_PARTITIONS_PER_SLICE):
            end = start + FETCH_PARTITIONS_PER_SLICE
            part = results[start:end]
            if count_results(metrics, part):
                failed = True
                part = with_leaders(self._missed, wants[start:end], part) if self._names_leaders else part
            add_by_topic(self._topics, wants[start:end], part, self._session, full=self._full)
            yield
        self._endpoints.extend(self._missed.endpoints())
        metrics.request_errors[_FETCH] += failed
        self._slot.connection.errors += failed
