"""Fetch (1): offsets in, runs of segment files out. Builds no messages; sessions, waiting and reading are called."""

from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import Protocol, cast

from headrace.broker.api.context import close_for_bad_input
from headrace.broker.net.connection import Answer, Connection, Part
from headrace.broker.partitions.fetch_sessions import (
    FINAL_EPOCH,
    INITIAL_EPOCH,
    NO_SESSION,
    FetchSession,
    FetchSessions,
    changes_in_slices,
)
from headrace.broker.partitions.leader import LedTopic
from headrace.broker.partitions.reader import ReaderServices, RunningFetch, WantedRead
from headrace.broker.services import PartitionLookup, RequestServices
from headrace.model.access import Operation, ResourceType
from headrace.model.configs.values import BrokerConfig
from headrace.model.errors import ErrorCode
from headrace.model.limits import (
    COPIED_SLICE_BYTES_MAX,
    FETCH_BYTES_AT_ONCE_MAX,
    FETCH_PARTITIONS_MAX,
    FETCH_PARTITIONS_PER_SLICE,
)
from headrace.ports.disk import Disk, Slice
from headrace.wire.apis import ApiKey
from headrace.wire.errors import ProtocolError
from headrace.wire.fetch import (
    SESSIONS_FROM,
    TOPIC_IDS_FROM,
    FetchRequest,
    PartitionData,
    encode_in_slices,
    encode_response,
    scan_in_slices,
    scan_request,
)

_PARKED = 1
_NONE = ErrorCode.NONE
_FETCH = int(ApiKey.FETCH)
FIRST_FOLLOWER_ID = 0


class FetchServices(ReaderServices, RequestServices, Protocol):
    @property
    def config(self) -> BrokerConfig: ...

    @property
    def disk(self) -> Disk: ...

    @property
    def fetch_sessions(self) -> FetchSessions: ...

    @property
    def partitions(self) -> PartitionLookup: ...

    def pin(self, slices: Sequence[Slice]) -> None:
        """Keep files open until the response that is sent from them is complete."""

    def unpin(self, slices: Sequence[Slice]) -> None: ...


def handle(
    services: FetchServices,
    connection: Connection,
    frame: memoryview,
    position: int,
    end: int,
    version: int,
    correlation_id: int,
) -> None:
    answer = Answer(connection, None, _PARKED)
    connection.answers.append(answer)
    if end - position > FETCH_BYTES_AT_ONCE_MAX:
        frame = memoryview(bytes(frame[position:end]))  # the memory it was received in is used again
        _Reading(services, connection, _read(services, frame, version, correlation_id, answer)).step()
        return
    request = scan_request(frame, position, end, version)
    session, error = _session(services, request, version)
    if session is not None:
        session.update(request.topics, request.forgotten)
    _carry_out(services, request, session, error, version, correlation_id, answer)


def _read(
    services: FetchServices, frame: memoryview, version: int, correlation_id: int, answer: Answer
) -> Iterator[None]:
    """The same for a long request, a slice at a time."""
    scanning = scan_in_slices(frame, 0, len(frame), version, partitions_per_slice=FETCH_PARTITIONS_PER_SLICE)
    while (request := next(scanning)) is None:
        yield
    session, error = _session(services, request, version)
    if session is not None:
        for topics, forgotten in changes_in_slices(request.topics, request.forgotten, FETCH_PARTITIONS_PER_SLICE):
            session.update(topics, forgotten)
            yield
    _carry_out(services, request, session, error, version, correlation_id, answer)


class _Reading:
    """A request of very many partitions as it is read, a slice a turn."""

    def __init__(self, services: FetchServices, connection: Connection, steps: Iterator[None]) -> None:
        self._services = services
        self._connection = connection
        self._steps = steps

    def step(self) -> None:
        if self._connection.closed:
            return
        try:
            for _ in self._steps:
                self._services.timers.next_turn(self.step)
                return
        except ProtocolError as error:
            close_for_bad_input(self._services, self._connection, error)


def _carry_out(
    services: FetchServices,
    request: FetchRequest,
    session: FetchSession | None,
    error: ErrorCode,
    version: int,
    correlation_id: int,
    answer: Answer,
) -> None:
    connection = answer.connection
    # A follower's fetch moves the high watermark: no client may claim to be one (CVE-2018-1288).
    if request.replica_id >= FIRST_FOLLOWER_ID:
        error = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    if error is not _NONE:
        if version < SESSIONS_FROM:
            raise ProtocolError(f"a fetch of version {version} that cannot be told of {error.name}")
        answer.complete(_encoded(version, correlation_id, error, NO_SESSION, []))
        return
    count = _count_wanted(services, request, session)
    began_ms = services.clock.monotonic_ms()

    def respond(wants: list[WantedRead], results: list[PartitionData]) -> None:
        if connection.closed:
            return
        services.metrics.request_answered(_FETCH, services.clock.monotonic_ms() - began_ms)
        session_id = session.session_id if session is not None else NO_SESSION
        full = request.session_epoch in (INITIAL_EPOCH, FINAL_EPOCH)
        topics: list[tuple[bytes, list[PartitionData]]] = []
        if len(results) <= FETCH_PARTITIONS_PER_SLICE:
            services.metrics.request_errors[_FETCH] += _count(services, results)
            _group(topics, wants, results, session, full=full)
            parts = _encoded(version, correlation_id, _NONE, session_id, topics)
            answer.complete(_in_one_piece(services.disk, parts))
            return
        grouping = _group_in_slices(services, topics, wants, results, session, full=full)
        encoding = encode_in_slices(
            version,
            correlation_id,
            throttle_time_ms=0,
            error=_NONE,
            session_id=session_id,
            topics=topics,
            partitions_per_slice=FETCH_PARTITIONS_PER_SLICE,
        )
        steps = chain(grouping, cast(Iterator[list[Part] | None], encoding))
        _Encoding(services, answer, steps, results).step()

    RunningFetch(
        services,
        connection,
        _wants(services, connection, request, session, version),
        count,
        wait_ms_max=request.wait_ms_max,
        bytes_min=request.bytes_min,
        bytes_max=min(request.bytes_max, services.config.fetch_bytes_max),
        isolation_level=request.isolation_level,
        respond=respond,
    ).start()


def _session(services: FetchServices, request: FetchRequest, version: int) -> tuple[FetchSession | None, ErrorCode]:
    """The session this request belongs to and brings up to date, or None for a fetch that stands alone."""
    sessions = services.fetch_sessions
    if version < SESSIONS_FROM:
        return None, _NONE
    by_id = version >= TOPIC_IDS_FROM
    if request.session_epoch in (INITIAL_EPOCH, FINAL_EPOCH):
        if request.session_id != NO_SESSION:
            sessions.close(request.session_id)
        session = None
        if request.session_epoch == INITIAL_EPOCH and request.topics:
            session = sessions.create(by_id=by_id)
        return session, _NONE
    session = sessions.find(request.session_id)
    if session is None:
        return None, ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    if session.by_id != by_id:
        return None, ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR
    if session.epoch != request.session_epoch:
        return None, ErrorCode.INVALID_FETCH_SESSION_EPOCH
    session.advance(services.clock.monotonic_ms())
    return session, _NONE


def _count_wanted(services: FetchServices, request: FetchRequest, session: FetchSession | None) -> int:
    count = 0 if session is None else len(session.partitions)
    if session is None:
        for _, partitions in request.topics:
            count += len(partitions)
    if count > FETCH_PARTITIONS_MAX:
        if session is not None:
            services.fetch_sessions.close(session.session_id)
        raise ProtocolError(f"a fetch of {count} partitions; at most {FETCH_PARTITIONS_MAX} are served at once")
    return count


def _wants(
    services: FetchServices, connection: Connection, request: FetchRequest, session: FetchSession | None, version: int
) -> Iterator[WantedRead]:
    """One by one, because they are read a slice a turn."""
    by_id = version >= TOPIC_IDS_FROM
    find = services.partitions.by_id.get if by_id else services.partitions.by_name.get
    allowed = _unchecked if services.access.open_to_all else _readable(services, connection)
    if session is not None:
        for (key, index), asked in tuple(session.partitions.items()):
            topic = allowed(find(key))
            yield WantedRead(key, topic, index, asked.offset, asked.leader_epoch, asked.bytes_max, by_id)
        return
    for key, partitions in request.topics:
        topic = allowed(find(key))
        for index, offset, leader_epoch, bytes_max in partitions:
            yield WantedRead(key, topic, index, offset, leader_epoch, bytes_max, by_id)


def _unchecked(topic: LedTopic | None) -> LedTopic | None:
    return topic


def _readable(services: FetchServices, connection: Connection) -> Callable[[LedTopic | None], LedTopic | None]:
    """The topic, or None if this client may not read it: it is then told that there is none."""
    answers: dict[str, bool] = {}

    def allowed(topic: LedTopic | None) -> LedTopic | None:
        if topic is None:
            return None
        if topic.name not in answers:
            answers[topic.name] = services.access.authorize(
                connection.principal, Operation.READ, ResourceType.TOPIC, topic.name
            )
        return topic if answers[topic.name] else None

    return allowed


def _group_in_slices(
    services: FetchServices,
    topics: list[tuple[bytes, list[PartitionData]]],
    wants: list[WantedRead],
    results: list[PartitionData],
    session: FetchSession | None,
    *,
    full: bool,
) -> Iterator[None]:
    failed = False
    for start in range(0, len(results), FETCH_PARTITIONS_PER_SLICE):
        end = start + FETCH_PARTITIONS_PER_SLICE
        failed |= _count(services, results[start:end])
        _group(topics, wants[start:end], results[start:end], session, full=full)
        yield
    services.metrics.request_errors[_FETCH] += failed


def _count(services: FetchServices, results: list[PartitionData]) -> bool:
    """What was read and what was not; whether something was not."""
    metrics = services.metrics
    failed = False
    for data in results:
        if data.error:
            failed = True
            metrics.fetch_errors[data.error] += 1
        elif isinstance(data.records, Slice):
            metrics.bytes_fetched += data.records.length
    return failed


def _group(
    topics: list[tuple[bytes, list[PartitionData]]],
    wants: list[WantedRead],
    results: list[PartitionData],
    session: FetchSession | None,
    *,
    full: bool,
) -> None:
    """Add results by topic. Within a session only what changed is told, and who gave records goes to the back."""
    for wanted, data in zip(wants, results, strict=True):
        if session is not None:
            key = (wanted.topic_key, wanted.partition)
            known = session.partitions.get(key)
            if known is not None:
                news = (
                    data.records is not None
                    or data.error
                    or data.high_watermark != known.told_high_watermark
                    or data.log_start_offset != known.told_log_start
                )
                if not news and not full:
                    continue
                known.told_high_watermark = data.high_watermark if not data.error else -1
                known.told_log_start = data.log_start_offset
                if data.records is not None:
                    session.partitions.move_to_end(key)
        if topics and topics[-1][0] == wanted.topic_key:
            topics[-1][1].append(data)
        else:
            topics.append((wanted.topic_key, [data]))


class _Encoding:
    """An answer of very many partitions in the making, a slice a turn."""

    def __init__(
        self, services: FetchServices, answer: Answer, steps: Iterator[list[Part] | None], results: list[PartitionData]
    ) -> None:
        self._services = services
        self._answer = answer
        self._steps = steps
        self._slices = [data.records for data in results if isinstance(data.records, Slice)]
        services.pin(self._slices)

    def step(self) -> None:
        parts = None if self._answer.connection.closed else next(self._steps)
        if parts is None and not self._answer.connection.closed:
            self._services.timers.next_turn(self.step)
            return
        if parts is not None:
            self._answer.complete(parts)
        self._services.unpin(self._slices)


def _encoded(
    version: int,
    correlation_id: int,
    error: ErrorCode,
    session_id: int,
    topics: list[tuple[bytes, list[PartitionData]]],
) -> list[Part]:
    parts = encode_response(
        version, correlation_id, throttle_time_ms=0, error=error, session_id=session_id, topics=topics
    )
    return cast(list[Part], parts)


def _in_one_piece(disk: Disk, parts: list[Part]) -> bytes | list[Part]:
    """HOT: what is small is copied here, and leaves like the answer of any other request."""
    length = 0
    for part in parts:
        if isinstance(part, Slice):
            length += part.length
    if length > COPIED_SLICE_BYTES_MAX:
        return parts
    whole: list[bytes | bytearray | memoryview] = []
    for part in parts:
        if isinstance(part, Slice):
            try:
                copied = disk.read(part.file, part.length, part.position)
            except OSError:
                return parts  # it shows again, and ends the connection, when it is sent
            if len(copied) < part.length:
                return parts
            whole.append(copied)
        else:
            whole.append(part)
    return b"".join(whole)
