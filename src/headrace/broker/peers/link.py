"""One connection to another node: the handshake, then requests whose responses may come in any order."""

from collections import deque
from collections.abc import Callable
from itertools import islice
from struct import Struct
from typing import Any, NamedTuple

from headrace.broker.peers.requests import PeerFailure
from headrace.client.core.frame_receiver import Incoming
from headrace.client.errors import BadResponse
from headrace.core.peers.handshake import HandshakeRefused, Initiator, PeerIdentity
from headrace.model.errors import ErrorCode
from headrace.model.limits import PEER_HANDSHAKE_BYTES_MAX, PEER_RESPONSE_BYTES_MAX
from headrace.ports.network import READABLE, WRITABLE, Transport
from headrace.wire.apis import ApiKey, codec
from headrace.wire.codec import PeerCodec
from headrace.wire.errors import ProtocolError
from headrace.wire.frames import read_response_header, request_frame
from headrace.wire.primitives.layouts import Buffer

RECEIVES_MAX = 16
"""Reads of one connection in one turn."""

BUFFERS_SENT_AT_ONCE = 64
"""Requests that one system call sends."""

CLIENT_ID = "headrace-peer"
_CORRELATION_ID = Struct(">i")
_CORRELATION_ID_MASK = 0x7FFFFFFF
_HANDSHAKE_ID = 0


class _Awaited(NamedTuple):
    api_key: int
    version: int
    respond: Callable[[object], None]


class PeerLink:
    """Bytes in and out of one connection. Raises OSError or BadResponse when the connection cannot be used further."""

    def __init__(
        self,
        transport: Transport,
        handshake: Initiator,
        *,
        address: str,
        now_ms: float,
        codecs: Callable[[int], PeerCodec] = codec,
    ) -> None:
        self._codecs = codecs
        self.transport = transport
        self.address = address
        self.peer: PeerIdentity | None = None
        """The node at the other end, once it has authenticated."""
        self.refusal: HandshakeRefused | None = None
        self.heard_ms = now_ms
        """Time at which bytes were last received."""
        self.used_ms = now_ms
        """Time at which bytes were last sent."""
        self.tested_ms: float | None = None
        """Time at which a test began that has had no response yet."""
        self.watched = READABLE | WRITABLE
        """The events that the loop watches for."""
        self.unsent_bytes = 0
        self._handshake = handshake
        self._incoming = Incoming(address, PEER_HANDSHAKE_BYTES_MAX)
        self._outgoing: deque[memoryview] = deque()
        self._awaited: dict[int, _Awaited] = {}
        self._next_id = _HANDSHAKE_ID + 1
        self._say(handshake.hello())

    @property
    def interest(self) -> int:
        return READABLE | WRITABLE if self._outgoing else READABLE

    @property
    def requests_unanswered(self) -> int:
        return len(self._awaited)

    # Sending

    def send(self, api_key: ApiKey, version: int, request: object, respond: Callable[[object], None]) -> int:
        """Queue a request and return its number. `respond` gets the response, or a PeerFailure."""
        assert self.peer is not None, "the peer has not authenticated"
        number = self._next_id
        self._next_id = number % _CORRELATION_ID_MASK + 1
        self._put(
            request_frame(api_key, version, number, CLIENT_ID, self._codecs(api_key).encode_request(request, version))
        )
        self._awaited[number] = _Awaited(int(api_key), version, respond)
        return number

    def post(self, api_key: ApiKey, version: int, request: object) -> None:
        """Queue a request that has no response."""
        self._put(request_frame(api_key, version, 0, CLIENT_ID, codec(api_key).encode_request(request, version)))

    def _say(self, request: object) -> None:
        body = codec(ApiKey.AUTHENTICATE_PEER).encode_request(request, 0)
        self._put(request_frame(ApiKey.AUTHENTICATE_PEER, 0, _HANDSHAKE_ID, CLIENT_ID, body))

    def _put(self, frame: bytes) -> None:
        self._outgoing.append(memoryview(frame))
        self.unsent_bytes += len(frame)

    def flush(self) -> None:
        """Send what the connection accepts."""
        outgoing = self._outgoing
        while outgoing:
            buffers = list(islice(outgoing, BUFFERS_SENT_AT_ONCE))
            try:
                sent = self.transport.send_vector(buffers)
            except BlockingIOError:
                return
            self.unsent_bytes -= sent
            for buffer in buffers:
                if sent < len(buffer):
                    outgoing[0] = buffer[sent:]
                    break
                sent -= len(buffer)
                outgoing.popleft()

    # Receiving

    def receive(self, room: memoryview, now_ms: float) -> None:
        """Receive the available bytes and pass on the responses in them."""
        for _ in range(RECEIVES_MAX):
            place = self._incoming.room()
            target = room if place is None else place
            size = len(target)
            try:
                count = self.transport.recv_into(target)
            except BlockingIOError:
                return
            if count == 0:
                raise ConnectionResetError("the node closed the connection")
            self.heard_ms = now_ms
            self.tested_ms = None
            frames = self._incoming.take(room[:count]) if place is None else self._incoming.filled(count)
            for frame in frames:
                self._take(frame)
                if self.refusal is not None:
                    return
            if count < size:
                return

    def _take(self, frame: Buffer) -> None:
        (number,) = _CORRELATION_ID.unpack_from(frame)
        if self.peer is None:
            self._shake_hands(number, frame)
            return
        awaited = self._awaited.pop(number, None)
        if awaited is None:
            raise BadResponse(f"{self.address} answered request {number}, which was not sent")
        awaited.respond(self._decoded(frame, awaited.api_key, awaited.version))

    def _shake_hands(self, number: int, frame: Buffer) -> None:
        if number != _HANDSHAKE_ID:
            raise BadResponse(f"{self.address} answered request {number} during the handshake")
        result = self._handshake.receive(self._decoded(frame, ApiKey.AUTHENTICATE_PEER, 0))
        if isinstance(result, HandshakeRefused):
            self.refusal = result
        elif isinstance(result, PeerIdentity):
            self.peer = result
            self._incoming.allow(PEER_RESPONSE_BYTES_MAX)
        else:
            self._say(result)

    def _decoded(self, frame: Buffer, api_key: int, version: int) -> Any:
        try:
            _number, position = read_response_header(frame, 0, len(frame), api_key=api_key, api_version=version)
            return self._codecs(api_key).decode_response(frame, position, len(frame), version)
        except ProtocolError as error:
            raise BadResponse(f"the response of {self.address} cannot be decoded: {error}") from error

    # The end

    def forget(self, number: int) -> None:
        """Discard the response of a request that has timed out, whenever it comes."""
        awaited = self._awaited.get(number)
        if awaited is not None:
            self._awaited[number] = awaited._replace(respond=_discard)

    def fail_all(self, failure: PeerFailure) -> None:
        """Answer every request with the failure, because the connection is closed."""
        awaited, self._awaited = self._awaited, {}
        for each in awaited.values():
            each.respond(failure)


def _discard(_response: object) -> None:
    """Do nothing with a late response."""


def failure_of(error: Exception, *, connected: bool, address: str) -> PeerFailure:
    """Return the failure of the requests on a connection that ended with this error."""
    refused = isinstance(error, ConnectionRefusedError)
    reset = connected and isinstance(error, ConnectionResetError | BrokenPipeError)
    doing = "the connection to" if connected else "no connection to"
    return PeerFailure(
        code=ErrorCode.NETWORK_EXCEPTION,
        message=f"{doing} {address}: {error}",
        connection_refused=refused,
        reset=reset,
    )
