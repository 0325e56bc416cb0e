"""Fetch (1): decodes the request, finds its session, starts the reading, and gives the response its bytes.

The hot path builds no message objects. Reading and waiting are in `partitions/reader.py`.
"""

from collections.abc import Callable, Iterator

from headrace.broker.api.context import close_for_bad_input
from headrace.broker.api.fetch_response import (
    SlicedFetchResponse,
    TopicResults,
    add_by_topic,
    count_results,
    encoded,
    joined_if_small,
    record_bytes,
    with_leaders,
)
from headrace.broker.api.support.nearest_replica import nearest_replica
from headrace.broker.missed_leaders import MissedLeaders
from headrace.broker.net.connection import NO_RESPONSE_YET, Connection, ResponseSlot
from headrace.broker.partitions.fetch_sessions import (
    FINAL_EPOCH,
    INITIAL_EPOCH,
    NO_SESSION,
    FetchSession,
    changes_in_slices,
)
from headrace.broker.partitions.local_topic import LocalTopic
from headrace.broker.partitions.reader import RunningFetch, WantedRead
from headrace.broker.services import FetchServices
from headrace.model.access import AclResourceType, Operation
from headrace.model.errors import ErrorCode
from headrace.model.limits import (
    CONNECTION_TOPICS_MAX,
    FETCH_BYTES_AT_ONCE_MAX,
    FETCH_PARTITIONS_MAX,
    FETCH_PARTITIONS_PER_SLICE,
)
from headrace.wire.apis import ApiKey
from headrace.wire.current_leaders import LeaderEndpoint
from headrace.wire.errors import ProtocolError
from headrace.wire.fetch import (
    CURRENT_LEADER_FROM,
    SESSIONS_FROM,
    TOPIC_IDS_FROM,
    FetchRequest,
    PartitionData,
    scan_in_slices,
    scan_request,
)

_NONE = ErrorCode.NONE
_FETCH = int(ApiKey.FETCH)
FIRST_FOLLOWER_ID = 0


def handle(
    services: FetchServices,
    connection: Connection,
    frame: memoryview,
    position: int,
    end: int,
    version: int,
    correlation_id: int,
) -> None:
    slot = ResponseSlot(connection, None, NO_RESPONSE_YET)
    connection.responses.append(slot)
    if end - position > FETCH_BYTES_AT_ONCE_MAX:
        frame = memoryview(bytes(frame[position:end]))  # the receive buffer is reused after this turn
        _LongRequest(services, connection, _decode_in_slices(services, frame, version, correlation_id, slot)).step()
        return
    request = scan_request(frame, position, end, version)
    session, error = _session(services, request, version)
    if session is not None:
        session.update(request.topics, request.forgotten)
    _serve(services, request, session, error, version, correlation_id, slot)


def _decode_in_slices(
    services: FetchServices, frame: memoryview, version: int, correlation_id: int, slot: ResponseSlot
) -> Iterator[None]:
    """Decode a long request and serve it; yield after each slice."""
    scanning = scan_in_slices(frame, 0, len(frame), version, partitions_per_slice=FETCH_PARTITIONS_PER_SLICE)
    while (request := next(scanning)) is None:
        yield
    session, error = _session(services, request, version)
    if session is not None:
        for topics, forgotten in changes_in_slices(request.topics, request.forgotten, FETCH_PARTITIONS_PER_SLICE):
            session.update(topics, forgotten)
            yield
    _serve(services, request, session, error, version, correlation_id, slot)


class _LongRequest:
    """Request of many partitions, which is decoded a slice per turn."""

    def __init__(self, services: FetchServices, connection: Connection, steps: Iterator[None]) -> None:
        self._services = services
        self._connection = connection
        self._steps = steps

    def step(self) -> None:
        if self._connection.closed:
            return
        try:
            for _ in self._steps:
                quotas = self._services.client_quotas
                self._services.timers.next_turn(quotas.charged(self._connection, self.step))
                return
        except ProtocolError as error:
            close_for_bad_input(self._services, self._connection, error)


def _serve(
    services: FetchServices,
    request: FetchRequest,
    session: FetchSession | None,
    error: ErrorCode,
    version: int,
    correlation_id: int,
    slot: ResponseSlot,
) -> None:
    """Read the partitions, now or when they have enough, and respond."""
    connection = slot.connection
    # A follower's fetch moves the high watermark, so no client may claim to be one (CVE-2018-1288).
    if request.replica_id >= FIRST_FOLLOWER_ID:
        error = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    if error is not _NONE:
        if version < SESSIONS_FROM:
            raise ProtocolError(f"Fetch version {version} has no field for the error {error.name}")
        slot.complete(encoded(version, correlation_id, error, NO_SESSION, []))
        return
    count = _count_wanted(services, request, session)
    if session is not None:
        connection.fetch_session_id = session.session_id
    else:
        connection.fetched_topics = tuple([topic for topic, _ in request.topics[:CONNECTION_TOPICS_MAX]])
    began_ms = services.clock.monotonic_ms()

    def respond(wants: list[WantedRead], results: list[PartitionData]) -> None:
        if connection.closed:
            return
        services.metrics.request_answered(_FETCH, services.clock.monotonic_ms() - began_ms)
        throttle_time_ms = 0
        if connection.metered is not None:
            services.client_quotas.fetched(connection, record_bytes(results))
            throttle_time_ms = services.client_quotas.throttle_time_ms(connection)
        session_id = session.session_id if session is not None else NO_SESSION
        full = request.session_epoch in (INITIAL_EPOCH, FINAL_EPOCH)
        if len(results) <= FETCH_PARTITIONS_PER_SLICE:
            topics: TopicResults = []
            endpoints: list[LeaderEndpoint] = []
            failed = count_results(services.metrics, results)
            if failed and version >= CURRENT_LEADER_FROM:
                missed = MissedLeaders(services.image, connection.listener_name)
                results = with_leaders(missed, wants, results)
                endpoints = missed.endpoints()
            services.metrics.request_errors[_FETCH] += failed
            connection.errors += failed
            add_by_topic(topics, wants, results, session, full=full)
            parts = encoded(version, correlation_id, _NONE, session_id, topics, endpoints, throttle_time_ms)
            slot.complete(joined_if_small(services.disk, parts))
            return
        SlicedFetchResponse(
            services,
            slot,
            wants,
            results,
            session,
            version=version,
            correlation_id=correlation_id,
            session_id=session_id,
            full=full,
            throttle_time_ms=throttle_time_ms,
        ).step()

    bytes_min, bytes_max = request.bytes_min, min(request.bytes_max, services.config.fetch_bytes_max)
    if connection.metered is not None:
        bytes_max = services.client_quotas.fetch_bytes_max(connection, bytes_max)
        bytes_min = min(bytes_min, max(bytes_max, 1))  # the quota does not make it wait for what it may not read
    reads_anywhere = bool(request.rack) and services.config.reads_nearest_replica
    RunningFetch(
        services,
        connection,
        _wants(services, connection, request, session, version, any_replica=reads_anywhere),
        count,
        wait_ms_max=request.wait_ms_max,
        bytes_min=bytes_min,
        bytes_max=bytes_max,
        isolation_level=request.isolation_level,
        may_read=None if services.access.open_to_all else _still_allowed(services, connection),
        nearest=nearest_replica(services, request.rack, connection.listener_name) if reads_anywhere else None,
        respond=respond,
    ).start()


def _session(services: FetchServices, request: FetchRequest, version: int) -> tuple[FetchSession | None, ErrorCode]:
    """Return the fetch session of the request, None for a fetch without one, and the error if it is not valid."""
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
    """Count the partitions to read; raise ProtocolError if they are more than the limit."""
    count = 0 if session is None else len(session.partitions)
    if session is None:
        for _, partitions in request.topics:
            count += len(partitions)
    if count > FETCH_PARTITIONS_MAX:
        if session is not None:
            services.fetch_sessions.close(session.session_id)
        raise ProtocolError(f"Fetch of {count} partitions exceeds the limit of {FETCH_PARTITIONS_MAX}")
    return count


def _wants(
    services: FetchServices,
    connection: Connection,
    request: FetchRequest,
    session: FetchSession | None,
    version: int,
    *,
    any_replica: bool,
) -> Iterator[WantedRead]:
    """Yield the partitions to read one by one, because they are read a slice per turn."""
    by_id = version >= TOPIC_IDS_FROM
    find = services.partitions.by_id.get if by_id else services.partitions.by_name.get
    may_read = _everything if services.access.open_to_all else _access_check(services, connection)
    if session is not None:
        for (key, index), asked in tuple(session.partitions.items()):
            topic = find(key)
            allowed = may_read(key, topic, by_id)
            yield WantedRead(
                key, topic, index, asked.offset, asked.leader_epoch, asked.bytes_max, by_id, any_replica, allowed
            )
        return
    for key, partitions in request.topics:
        topic = find(key)
        allowed = may_read(key, topic, by_id)
        for index, offset, leader_epoch, bytes_max in partitions:
            yield WantedRead(key, topic, index, offset, leader_epoch, bytes_max, by_id, any_replica, allowed)


def _everything(_key: bytes, _topic: LocalTopic | None, _by_id: bool) -> bool:
    return True


def _access_check(services: FetchServices, connection: Connection) -> Callable[[bytes, LocalTopic | None, bool], bool]:
    """Return a function that tells whether the client may read a topic, or whether its id is unknown."""

    def may_read(key: bytes, topic: LocalTopic | None, by_id: bool) -> bool:
        if topic is None and by_id:
            return True
        name = key.decode(errors="replace") if topic is None else topic.name
        asked = (connection.principal, connection.peer_host, Operation.READ, AclResourceType.TOPIC, name)
        is_allowed = services.access.authorize(*asked)
        if not is_allowed:
            services.access.note_refusal(*asked)
        return is_allowed

    return may_read


def _still_allowed(services: FetchServices, connection: Connection) -> Callable[[WantedRead], bool]:
    may_read = _access_check(services, connection)
    return lambda wanted: may_read(wanted.topic_key, wanted.topic, wanted.by_id)
