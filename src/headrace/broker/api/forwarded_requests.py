"""Both ends of a forwarded request: a broker that is not the active controller, and the controller itself.

The controller handles the client's request on a stand-in for the client's connection, which has the client's address,
listener and principal and collects the response. The broker gives that response to its client. If no controller
answers in time, the broker handles the request itself: its handler gets NOT_CONTROLLER for every change, and says so
in the format of its API.
"""

from collections.abc import Callable, Iterator
from struct import Struct

from headrace.broker.api.context import HandlerServices, close_for_bad_input
from headrace.broker.net.connection import NO_TOKEN, Connection, ResponseSlot
from headrace.broker.peers.controller_requests import Forward
from headrace.core.quotas.entities import MUTATION_RATE
from headrace.model.access import Principal
from headrace.model.errors import ErrorCode
from headrace.ports.disk import Buffer, FileHandle, FileRange
from headrace.wire.apis import ApiKey
from headrace.wire.errors import ProtocolError
from headrace.wire.frames import SIZE_BYTES, read_response_header
from headrace.wire.messages.forward_request import ForwardRequestRequest, ForwardRequestResponse

_KEY_AND_VERSION = Struct(">hh")
_INT32 = Struct(">i")
_THROTTLE_TIME_FROM = {ApiKey.CREATE_TOPICS: 2, ApiKey.DELETE_TOPICS: 1, ApiKey.CREATE_PARTITIONS: 0}
"""The versions from which responses begin with a throttle time, of the APIs that a quota of the controller limits."""

HandleFrame = Callable[[Connection, memoryview, int, int], None]
Collected = Callable[[bytes | None], None]
"""Called with the response of a request, or with None if it failed."""


class _NoTransport:
    """The transport of a stand-in, which has no socket."""

    def __init__(self, peer_address: str) -> None:
        self.token = NO_TOKEN
        self.peer_address = peer_address

    def recv_into(self, buffer: memoryview, /) -> int:
        raise AssertionError("a stand-in receives nothing")

    def send(self, buffer: Buffer, flags: int = 0, /) -> int:
        raise AssertionError("a stand-in sends nothing")

    def send_vector(self, buffers: object, /) -> int:
        raise AssertionError("a stand-in sends nothing")

    def send_range(self, part: FileRange, /) -> int:
        raise AssertionError("a stand-in sends nothing")

    def close(self) -> None:
        """Do nothing."""


class StandIn(Connection):
    """Stands in for the connection of a client while one request of it is handled."""

    __slots__ = ("_collected",)

    def __init__(
        self,
        *,
        client_address: str,
        listener_name: str,
        principal: Principal,
        by_token: bool,
        now_ms: float,
        collected: Collected,
    ) -> None:
        super().__init__(_NoTransport(client_address), listener_name, [], now_ms)
        self.principal = principal
        self.by_token = by_token
        self._collected: Collected | None = collected

    def mark_dirty(self) -> None:
        """Pass the response on as soon as it is complete."""
        if self._collected is None:
            return
        if self.closing:
            self._give(None)
        elif self.responses and not self.responses[0].waits:
            parts = self.responses[0].parts
            assert isinstance(parts, bytes | bytearray), "responses from files are not forwarded"
            self._give(bytes(parts))

    def _give(self, response: bytes | None) -> None:
        collected, self._collected = self._collected, None
        assert collected is not None
        collected(response)

    def abandon(self) -> None:
        """Stop the request, because the connection on which it came is closed."""
        self._collected = None
        self.closed = True
        for parked in tuple(self.parked):
            parked.abandon()
        self.parked.clear()


class ForwardedRequest:
    """A request of this broker's client while it is at the controller, with the slot of its response."""

    def __init__(
        self,
        services: HandlerServices,
        slot: ResponseSlot,
        frame: bytes,
        handle_here: Callable[[StandIn, bytes], None],
    ) -> None:
        self._services = services
        self._slot = slot
        self._frame = frame
        self._handle_here = handle_here
        self._forward: Forward | None = None
        self._stand_in: StandIn | None = None

    def begin(self, timeout_ms: float) -> None:
        client = self._slot.connection
        request = ForwardRequestRequest(
            principal_type=client.principal.type,
            principal_name=client.principal.name,
            client_address=client.transport.peer_address,
            listener_name=client.listener_name,
            frame=self._frame,
            by_token=client.by_token,
        )
        client.parked[self] = None
        self._forward = self._services.controller_requests.forward(
            request, timeout_ms=timeout_ms, answered=self._answered
        )
        if self._forward is None:
            self.answer_now()

    def _answered(self, response: ForwardRequestResponse | None) -> None:
        if response is None:
            self.answer_now()
        elif response.error_code == ErrorCode.INVALID_REQUEST:
            self._end()
            error = ProtocolError(response.error_message or "the request is malformed")
            close_for_bad_input(self._services, self._slot.connection, error)
        else:
            self._collected(response.frame or None)

    def answer_now(self) -> None:
        """Handle the request on this node: as the active controller, or to say that there is none."""
        if self._forward is not None:
            self._forward.cancel()
        if self._stand_in is not None:
            return
        client = self._slot.connection
        self._stand_in = StandIn(
            client_address=client.transport.peer_address,
            listener_name=client.listener_name,
            principal=client.principal,
            by_token=client.by_token,
            now_ms=client.last_active_ms,
            collected=self._collected,
        )
        try:
            self._handle_here(self._stand_in, self._frame)
        except ProtocolError as error:
            self._end()
            close_for_bad_input(self._services, client, error)

    def _collected(self, frame: bytes | None) -> None:
        self._end()
        connection = self._slot.connection
        if frame is not None:
            self._wait_as_told(frame)
            self._slot.complete(frame)
        else:
            connection.closing = True
            connection.mark_dirty()

    def _wait_as_told(self, response: bytes) -> None:
        """Mute the connection if the controller has charged a quota for the request."""
        key, version = _KEY_AND_VERSION.unpack_from(self._frame)
        if version < _THROTTLE_TIME_FROM.get(key, version + 1):
            return
        content = memoryview(response)[SIZE_BYTES:]
        _number, position = read_response_header(content, 0, len(content), api_key=key, api_version=version)
        (throttle_time_ms,) = _INT32.unpack_from(content, position)
        if throttle_time_ms > 0:
            self._services.client_quotas.throttle(self._slot.connection, throttle_time_ms, MUTATION_RATE)

    def _end(self) -> None:
        self._slot.connection.parked.pop(self, None)

    def abandon(self) -> None:
        """Stop waiting, because the client has disconnected."""
        if self._forward is not None:
            self._forward.cancel()
        if self._stand_in is not None:
            self._stand_in.abandon()

    def files(self) -> Iterator[FileHandle]:
        """Yield nothing: the response comes from no file."""
        return iter(())


class CarriedRequest:
    """A request of another broker's client, at the active controller."""

    def __init__(
        self, carrier: Connection, request: ForwardRequestRequest, *, now_ms: float, collected: Collected
    ) -> None:
        self._carrier = carrier
        self._collected = collected
        self.stand_in = StandIn(
            client_address=request.client_address,
            listener_name=request.listener_name,
            principal=Principal(request.principal_type, request.principal_name),
            by_token=request.by_token,
            now_ms=now_ms,
            collected=self._answered,
        )
        carrier.parked[self] = None

    def _answered(self, frame: bytes | None) -> None:
        self.end()
        self._collected(frame)

    def end(self) -> None:
        self._carrier.parked.pop(self, None)

    def abandon(self) -> None:
        """Stop, because the broker that sent the request has disconnected."""
        self.stand_in.abandon()

    def answer_now(self) -> None:
        """Respond where there are results, because the broker stops."""
        for parked in tuple(self.stand_in.parked):
            parked.answer_now()

    def files(self) -> Iterator[FileHandle]:
        """Yield nothing: the response comes from no file."""
        return iter(())
