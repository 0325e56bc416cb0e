"""Dispatches a frame to its handler: reads the header, finds the route, and reserves the slot of the response.

Produce and Fetch have their own routes, which get offsets into the frame. Every other API takes the common route: its
codec decodes a message, and its handler returns a response message or parks the request.
"""

from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from struct import Struct
from typing import Any, NamedTuple, Protocol

from headrace.broker.api import fetch, produce
from headrace.broker.api.context import HandlerServices, Parked, RequestContext
from headrace.broker.api.large_requests import (
    FrameKeeper,
    LargeFrame,
    LargeRequest,
    LargeRequests,
    OwnFrames,
    commit_in_slices,
    read_in_steps,
)
from headrace.broker.api.refusals import too_large
from headrace.broker.api.registry import BEFORE_AUTHENTICATION, FOLLOWERS_FETCH, INTERNAL, SERVED, ServedApi
from headrace.broker.api.response_writer import ResponseWriter
from headrace.broker.api.support.proposals import COMMIT_WAIT_MS_MIN
from headrace.broker.net.connection import NO_RESPONSE_YET, NO_TOKEN, Connection, PeerResponseSlot, ResponseSlot
from headrace.broker.net.receiver import HandleRepeat
from headrace.broker.services import FetchServices, RaftServices, ReplicaFetchServices, TurnClock
from headrace.core.access.sasl import SaslSession, SaslState, SessionExpired
from headrace.model.limits import (
    CLIENT_ID_KEPT_BYTES_MAX,
    FORWARD_WAIT_MS,
    FORWARD_WAIT_MS_MAX,
    PEER_HANDSHAKE_BYTES_MAX,
    PEER_REQUESTS_MAX,
    REQUEST_BYTES_AT_ONCE_MAX,
    REQUEST_BYTES_MAX,
)
from headrace.wire.apis import ApiKey, Codec, codec, is_flexible
from headrace.wire.errors import ProtocolError
from headrace.wire.frames import response_frame
from headrace.wire.offset_slices import SLICED
from headrace.wire.scan import skip_tagged_fields, truncated

_HEADER = Struct(">hhih")
_HEADER_BYTES = 10
_INT16 = Struct(">h")
_PRODUCE = int(ApiKey.PRODUCE)
_OFFSET_COMMIT = int(ApiKey.OFFSET_COMMIT)

_FOR_CLIENTS = frozenset((ApiKey.PRODUCE, ApiKey.FETCH))
"""APIs whose handlers for clients other nodes do not use: their responses are in order, so that they would delay all
others. Followers have a Fetch of their own.
"""

_MOSTLY_OPAQUE = frozenset((ApiKey.PRODUCE, ApiKey.JOIN_GROUP, ApiKey.SYNC_GROUP, ApiKey.FORWARD_REQUEST))
"""Records, subscriptions, assignments and forwarded requests are passed on without being read, so their size costs
nothing.
"""


class DispatchServices(
    HandlerServices, FetchServices, TurnClock, produce.ProduceServices, RaftServices, ReplicaFetchServices, Protocol
):
    """Everything that handlers use; `RunningBroker` is the implementation."""


TunedHandler = Callable[[DispatchServices, Connection, memoryview, int, int, int, int], None]


class Route(NamedTuple):
    min_version: int
    max_version: int
    flexible_from: int
    tuned: TunedHandler | None
    api: ServedApi


class Handler(NamedTuple):
    handle: Callable[[Any, RequestContext], object]
    decode_request: Callable[[memoryview, int, int, int], Any]
    codec: Codec


def _routes(served: Iterable[ServedApi], tuned: Mapping[ApiKey, TunedHandler]) -> dict[int, Route]:
    routes = {}
    for api in served:
        flexible_from = next(
            (version for version in range(api.max_version + 1) if is_flexible(api.key, version)), api.max_version + 1
        )
        routes[int(api.key)] = Route(api.min_version, api.max_version, flexible_from, tuned.get(api.key), api)
    return routes


def _raft_messages(
    services: DispatchServices,
    connection: Connection,
    frame: memoryview,
    position: int,
    end: int,
    version: int,
    correlation_id: int,
) -> None:
    from headrace.broker.api import raft_messages  # only nodes with peers need it

    raft_messages.handle(services, connection, frame, position, end, version, correlation_id)


def _replica_fetch(
    services: DispatchServices,
    connection: Connection,
    frame: memoryview,
    position: int,
    end: int,
    version: int,
    correlation_id: int,
) -> None:
    from headrace.broker.api import replica_fetch  # only nodes with peers need it

    replica_fetch.handle(services, connection, frame, position, end, version, correlation_id)


def _respond(handler: Handler, request: Any, context: RequestContext) -> None:
    context.audit(request)
    response = handler.handle(request, context)
    if not isinstance(response, Parked):
        context.respond(response)


class Dispatcher:
    def __init__(self, services: DispatchServices) -> None:
        self._services = services
        self._routes = _routes(SERVED, {ApiKey.PRODUCE: produce.handle, ApiKey.FETCH: fetch.handle})
        self._peer_routes = _routes(
            (*INTERNAL, FOLLOWERS_FETCH, *(api for api in SERVED if api.key not in _FOR_CLIENTS)),
            {ApiKey.RAFT_MESSAGES: _raft_messages, ApiKey.FETCH: _replica_fetch},
        )
        self._requests = services.metrics.requests
        self._handlers: dict[int, Handler] = {}
        self._large_requests = LargeRequests(services)
        self.keeper: FrameKeeper | None = None
        """Keeps the buffers of long requests while they are read; set when there is a receiver."""
        self.handle_repeat: HandleRepeat = produce.repeat_handler(services)
        """For frames of connections that produce, before `handle_frame`; as an attribute it saves a call."""

    def handle_frame(self, connection: Connection, frame: memoryview, start: int, end: int) -> None:
        """Handle one complete request. Raises ProtocolError when the connection has to be closed."""
        if end - start < _HEADER_BYTES:
            raise truncated()
        api_key, version, correlation_id, client_id_length = _HEADER.unpack_from(frame, start)
        position = start + _HEADER_BYTES
        if client_id_length > 0:
            position += client_id_length
            if position > end:
                raise truncated()
        if connection.sasl is not None:
            self._check_session(connection.sasl, api_key, end - start)
        if connection.metered is not None:
            quotas = self._services.client_quotas
            quotas.identify(connection, bytes(frame[start + _HEADER_BYTES : position]))
            if api_key == _PRODUCE:
                quotas.produced(connection, end - start)
        route = (
            self._routes.get(api_key) if connection.peer is None else self._peer_route(connection, api_key, end - start)
        )
        if route is None:
            raise ProtocolError(f"API key {api_key} is not supported")
        min_version, max_version, flexible_from, tuned, api = route
        self._requests[api_key] += 1
        if not min_version <= version <= max_version:
            if api_key != ApiKey.API_VERSIONS:
                raise ProtocolError(f"{api.key.name} version {version} is not supported")
            self._answer_api_versions_error(connection, correlation_id)
            return
        if version >= flexible_from:
            position = skip_tagged_fields(frame, position, end)
        if (
            tuned is None
            and api.on_controller
            and not self._services.controller.is_active
            and connection.token != NO_TOKEN
        ):
            self._forward(route, connection, frame, start, position, end, version)
            return
        if end - start > REQUEST_BYTES_AT_ONCE_MAX and self._is_put_off(
            route, connection, frame, start, position, end, version, correlation_id
        ):
            return
        if tuned is not None:
            connection.request_at = start
            tuned(self._services, connection, frame, position, end, version, correlation_id)
        elif (
            api_key != _OFFSET_COMMIT
            or connection.commits is None
            or not connection.commits.handle_repeat(
                self._services, connection, frame, position, end, version, correlation_id
            )
        ):
            client_id = bytes(frame[start + _HEADER_BYTES : start + _HEADER_BYTES + max(client_id_length, 0)])
            self._handle_message(route, connection, frame, position, end, version, correlation_id, client_id)
            if api_key == _OFFSET_COMMIT and connection.commits is not None:
                connection.commits.learn(self._services, frame[position:end], version)

    def check_large_frame(self, connection: Connection, size: int, first: memoryview) -> bool:
        """Refuse a request that is too large before it gets a buffer; return False if it was answered with an error."""
        if connection.peer is not None:
            self._check_unauthenticated(connection, size)
        if connection.sasl is not None and len(first) >= _HEADER_BYTES:
            self._check_session(connection.sasl, _HEADER.unpack_from(first)[0], size)
        if len(first) < _HEADER_BYTES or size <= REQUEST_BYTES_MAX:
            return True
        api_key, version, correlation_id, client_id_length = _HEADER.unpack_from(first)
        if api_key in _MOSTLY_OPAQUE:
            return True
        reason = f"request of API key {api_key} has {size} bytes, the limit is {REQUEST_BYTES_MAX}: split it"
        route = self._routes.get(api_key)
        if route is None or not route.min_version <= version <= route.max_version:
            raise ProtocolError(reason)
        position = _HEADER_BYTES + max(client_id_length, 0)
        if version >= route.flexible_from:
            position = skip_tagged_fields(first, position, len(first))
        body = too_large(api_key, version, first[position:], reason)
        if body is None:
            raise ProtocolError(reason)
        self._services.metrics.request_errors[api_key] += 1
        self._services.logger.info("request refused", peer=connection.transport.peer_address, reason=reason)
        connection.responses.append(ResponseSlot(connection, response_frame(api_key, version, correlation_id, body), 0))
        connection.mark_dirty()
        return False

    def dispatch(self, stand_in: Connection, frame: bytes) -> None:
        """Handle a forwarded request on this node. Raises ProtocolError if it is malformed or not for a controller."""
        if len(frame) < _HEADER_BYTES:
            raise truncated()
        api_key = _HEADER.unpack_from(frame)[0]
        route = self._routes.get(api_key)
        if route is None or not route.api.on_controller:
            raise ProtocolError(f"API key {api_key} is not for the active controller")
        self.handle_frame(stand_in, memoryview(frame), 0, len(frame))

    def _forward(
        self, route: Route, connection: Connection, frame: memoryview, start: int, position: int, end: int, version: int
    ) -> None:
        """Let the active controller answer, or this node if there is none in time."""
        from headrace.broker.api.forwarded_requests import ForwardedRequest  # a standalone node never needs it

        wait_ms = FORWARD_WAIT_MS
        if end - start <= REQUEST_BYTES_AT_ONCE_MAX:
            request = self._handler(route.api).decode_request(frame, position, end, version)
            wait_ms = max(COMMIT_WAIT_MS_MIN, min(getattr(request, "timeout_ms", wait_ms), FORWARD_WAIT_MS_MAX))
        slot, request_bytes = self._reserve(connection), bytes(frame[start:end])
        ForwardedRequest(self._services, slot, request_bytes, self.dispatch).begin(wait_ms)

    def _reserve(self, connection: Connection) -> ResponseSlot:
        """Reserve the slot of a response."""
        if connection.peer is None:
            slot = ResponseSlot(connection, None, NO_RESPONSE_YET)
            connection.responses.append(slot)
            return slot
        connection.peer.requests_unanswered += 1
        return PeerResponseSlot(connection, None, NO_RESPONSE_YET)

    def _peer_route(self, connection: Connection, api_key: int, size: int) -> Route | None:
        """Return the route of a request of another node."""
        assert connection.peer is not None
        if connection.peer.identity is None:
            self._check_unauthenticated(connection, size)
            if api_key not in BEFORE_AUTHENTICATION:
                raise ProtocolError(f"API key {api_key} was requested before the peer had authenticated")
        if connection.peer.requests_unanswered >= PEER_REQUESTS_MAX:
            raise ProtocolError(f"the peer has more than {PEER_REQUESTS_MAX} unanswered requests")
        return self._peer_routes.get(api_key)

    def _check_unauthenticated(self, connection: Connection, size: int) -> None:
        assert connection.peer is not None
        if connection.peer.identity is None and size > PEER_HANDSHAKE_BYTES_MAX:
            raise ProtocolError(
                f"a request of {size} bytes came before the peer had authenticated; the limit is "
                f"{PEER_HANDSHAKE_BYTES_MAX}"
            )

    def _check_session(self, session: SaslSession, api_key: int, size: int) -> None:
        """Raise ProtocolError for a request that a client may not send before it has authenticated, or not any more."""
        services = self._services
        refusal = session.refusal_of(api_key, services.clock.monotonic_ms())
        if refusal is not None:
            raise (SessionExpired if session.state is SaslState.AUTHENTICATED else ProtocolError)(refusal)
        bytes_max = services.config.sasl.request_bytes_max
        if size > bytes_max and session.state is not SaslState.AUTHENTICATED:
            raise ProtocolError(
                f"a request of {size} bytes came before the client had authenticated; the limit is {bytes_max}"
            )

    def _is_put_off(
        self,
        route: Route,
        connection: Connection,
        frame: memoryview,
        start: int,
        position: int,
        end: int,
        version: int,
        correlation_id: int,
    ) -> bool:
        """Return whether a long request is processed over several turns from now on."""
        api = route.api
        keeper = self.keeper if connection.token != NO_TOKEN else OwnFrames()
        if route.tuned is not None or keeper is None:
            return False
        handler = self._handler(api)
        if handler.decode_request is not handler.codec.decode_request or not keeper.keep(frame):
            return False  # it has its own route, or came in small pieces, which are not kept
        large = LargeFrame(keeper, frame, frame[position:end])
        key, slices = int(api.key), self._large_requests.slices
        if key in SLICED:
            header = bytes(frame[start:position])
            steps = commit_in_slices(connection, large, header, key, version, correlation_id, self.handle_frame, slices)
        else:
            (client_id_length,) = _INT16.unpack_from(frame, start + _HEADER_BYTES - _INT16.size)
            client_id = bytes(frame[start + _HEADER_BYTES : start + _HEADER_BYTES + max(client_id_length, 0)])
            context = self._context(api, handler, connection, version, correlation_id, client_id)
            steps = read_in_steps(
                large,
                handler.codec.decode_request,
                version,
                lambda request: _respond(handler, request, context),
                slices,
            )
        self._large_requests.add(LargeRequest(connection, large, steps))
        return True

    def _handle_message(
        self,
        route: Route,
        connection: Connection,
        frame: memoryview,
        position: int,
        end: int,
        version: int,
        correlation_id: int,
        client_id: bytes,
    ) -> None:
        handler = self._handler(route.api)
        request = handler.decode_request(frame, position, end, version)
        _respond(handler, request, self._context(route.api, handler, connection, version, correlation_id, client_id))

    def _context(
        self,
        api: ServedApi,
        handler: Handler,
        connection: Connection,
        version: int,
        correlation_id: int,
        client_id: bytes,
    ) -> RequestContext:
        """Create the context of a request, and reserve the slot of its response."""
        connection.client_id = client_id[:CLIENT_ID_KEPT_BYTES_MAX]
        writer = ResponseWriter(
            self._services,
            self._reserve(connection),
            handler.codec,
            key=int(api.key),
            version=version,
            correlation_id=correlation_id,
        )
        return RequestContext(
            services=self._services,
            connection=connection,
            version=version,
            client_id=client_id.decode(errors="replace") or None,
            writer=writer,
            dispatch=self.dispatch,
        )

    def _handler(self, api: ServedApi) -> Handler:
        found = self._handlers.get(api.key)
        if found is None:
            module = import_module(f"headrace.broker.api.{api.module}")
            message_codec = codec(api.key)
            # A module may decode long requests in its own way, a slice per turn.
            decode_request = getattr(module, "decode_request", message_codec.decode_request)
            found = self._handlers[api.key] = Handler(module.handle, decode_request, message_codec)
        return found

    def _answer_api_versions_error(self, connection: Connection, correlation_id: int) -> None:
        from headrace.broker.api import api_versions

        body = codec(ApiKey.API_VERSIONS).encode_response(api_versions.unsupported(self._services.image), 0)
        slot = ResponseSlot(connection, response_frame(ApiKey.API_VERSIONS, 0, correlation_id, body), 0)
        connection.responses.append(slot)
        connection.mark_dirty()
