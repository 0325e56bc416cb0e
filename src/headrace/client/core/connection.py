"""One connection to a broker as bytes in and bytes out: frames, correlation ids, versions and ordered responses.

The first exchange is ApiVersions; until it is done, nothing else can be sent. A broker that responds out of order, with
too many bytes, or with bytes that are not the expected response, raises `BadResponse`; the connection is then unusable.
"""

from collections import deque
from struct import Struct
from typing import Any, NamedTuple

from headrace import __version__
from headrace.client.core.authentication import SaslExchange
from headrace.client.core.calls import Call
from headrace.client.core.frame_receiver import Incoming
from headrace.client.errors import AuthenticationFailed, BadResponse, InvalidArgument, UnsupportedByBroker
from headrace.client.types import ApiRange
from headrace.model.errors import ErrorCode, error_name
from headrace.wire.apis import ApiKey
from headrace.wire.errors import ProtocolError
from headrace.wire.frames import SIZE_BYTES, read_response_header, request_frame
from headrace.wire.messages import api_versions, sasl_authenticate, sasl_handshake
from headrace.wire.primitives.layouts import Buffer

RESPONSE_BYTES_MAX = 256 * 1024 * 1024
"""Larger responses are refused before they are read."""

REQUESTS_IN_FLIGHT_MAX = 1000

VERSIONS_REQUEST = api_versions.ApiVersionsRequest(client_software_name="headrace", client_software_version=__version__)
"""Asks a broker for its API versions and features; the first request of every connection."""

_SIZE = Struct(">i")
_ERROR_CODE = Struct(">h")
_FRAMED_FROM_VERSION = 1
"""From this SaslHandshake version on, the exchange uses SaslAuthenticate requests (KIP-152)."""

_SASL_KEYS = frozenset({ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE})
_CORRELATION_ID_MASK = 0x7FFFFFFF


class AnsweredCall(NamedTuple):
    call: Call
    message: Any


class _Awaited(NamedTuple):
    correlation_id: int
    version: int
    call: Call


class BrokerConnection:
    """`address` is used only in messages."""

    def __init__(
        self,
        *,
        address: str,
        client_id: str,
        response_bytes_max: int = RESPONSE_BYTES_MAX,
        exchange: SaslExchange | None = None,
    ) -> None:
        """With an `exchange`, the connection authenticates before any other request."""
        self.address = address
        self._exchange = exchange
        self.versions: dict[int, ApiRange] = {}
        """The API versions that the broker serves, by API key; empty until its first response."""
        self.session_lifetime_ms = 0
        """Lifetime of the session since the last authentication; 0 if it is unlimited (KIP-368)."""
        self.features_epoch = -1
        self.features: dict[str, int] = {}
        """The finalized level of each feature of the cluster (KIP-584), as of that epoch."""
        self._client_id = client_id
        self._incoming = Incoming(address, response_bytes_max)
        self._awaited: deque[_Awaited] = deque()
        self._next_correlation_id = 0

    @property
    def is_ready(self) -> bool:
        return bool(self.versions) and self._exchange is None

    @property
    def in_flight(self) -> int:
        return len(self._awaited)

    def first_request(self, version: int = api_versions.MAX_VERSION) -> bytes:
        """Return the bytes of the first request, ApiVersions."""
        return self._frame(Call(api_versions, VERSIONS_REQUEST), version)

    def send(self, call: Call) -> bytes:
        """Return the bytes of the request, in the highest version that both sides support."""
        assert self.is_ready, "the API versions are not known yet"
        if len(self._awaited) >= REQUESTS_IN_FLIGHT_MAX:
            raise UnsupportedByBroker(f"{self.address} has not responded to {REQUESTS_IN_FLIGHT_MAX} requests yet")
        return self._frame(call, self.version_for(call))

    def version_for(self, call: Call) -> int:
        name = ApiKey(call.api.API_KEY).name.lower()
        served = self.versions.get(call.api.API_KEY)
        if served is None:
            raise UnsupportedByBroker(f"the broker at {self.address} does not serve {name}; use a newer broker")
        version = min(served.max_version, call.api.MAX_VERSION, call.max_version)
        if version < max(served.min_version, call.min_version):
            raise UnsupportedByBroker(
                f"the broker at {self.address} serves {name} {served.min_version} to {served.max_version}, "
                f"but {call.min_version} to {min(call.api.MAX_VERSION, call.max_version)} is needed; use a "
                "newer broker"
            )
        return version

    def room(self) -> memoryview | None:
        """Return the buffer to receive into while a large response is arriving; pass the number of bytes to
        `filled`.
        """
        return self._incoming.room()

    def filled(self, count: int) -> tuple[list[AnsweredCall], bytes]:
        return self._read(self._incoming.filled(count))

    def receive(self, chunk: bytes | memoryview) -> tuple[list[AnsweredCall], bytes]:
        """Return the responses that these bytes complete, and bytes to send because of them (a first request, a SASL
        token).
        """
        return self._read(self._incoming.take(chunk))

    def _read(self, frames: list[Buffer]) -> tuple[list[AnsweredCall], bytes]:
        responses: list[AnsweredCall] = []
        reaction = b""
        for frame in frames:
            awaited = self._match(frame)
            if awaited.call.api.API_KEY == ApiKey.API_VERSIONS and not self.is_ready:
                reaction = self._learn_versions(frame, awaited.version)
            elif self._exchange is not None and awaited.call.api.API_KEY in _SASL_KEYS:
                reaction = self._authenticate(self._exchange, self._decode(frame, awaited))
            else:
                responses.append(AnsweredCall(awaited.call, self._decode(frame, awaited)))
        return responses, reaction

    def unanswered(self) -> list[Call]:
        """Return the calls that wait for a response, oldest first."""
        return [awaited.call for awaited in self._awaited]

    def _frame(self, call: Call, version: int) -> bytes:
        correlation_id = self._next_correlation_id
        self._next_correlation_id = (correlation_id + 1) & _CORRELATION_ID_MASK
        try:
            body = call.api.encode_request(call.message, version)
        except ProtocolError as error:
            raise InvalidArgument(f"the request cannot be encoded: {error}") from error
        frame = request_frame(call.api.API_KEY, version, correlation_id, self._client_id, body)
        if call.is_answered:
            self._awaited.append(_Awaited(correlation_id, version, call))
        return frame

    def _match(self, frame: Buffer) -> _Awaited:
        if not self._awaited:
            raise BadResponse(f"{self.address} sent a response without a request")
        awaited = self._awaited.popleft()
        (correlation_id,) = _SIZE.unpack_from(frame)
        if correlation_id != awaited.correlation_id:
            raise BadResponse(
                f"{self.address} responded to request {correlation_id} where {awaited.correlation_id} was the "
                "next: responses must come in order"
            )
        return awaited

    def _decode(self, frame: Buffer, awaited: _Awaited) -> Any:
        api = awaited.call.api
        try:
            _correlation_id, position = read_response_header(
                frame, 0, len(frame), api_key=api.API_KEY, api_version=awaited.version
            )
            return api.decode_response(frame, position, len(frame), awaited.version)
        except ProtocolError as error:
            raise BadResponse(f"the response of {self.address} cannot be decoded: {error}") from error

    def _learn_versions(self, frame: Buffer, version: int) -> bytes:
        """Apply the ApiVersions response. A broker that does not know our version responds in the oldest one and lists
        what it serves (KIP-511).
        """
        if len(frame) < SIZE_BYTES + _ERROR_CODE.size:
            raise BadResponse(f"the ApiVersions response of {self.address} is too short")
        (error_code,) = _ERROR_CODE.unpack_from(frame, SIZE_BYTES)
        is_refused = error_code == ErrorCode.UNSUPPORTED_VERSION and version > 0
        try:
            response = api_versions.decode_response(frame, SIZE_BYTES, len(frame), 0 if is_refused else version)
        except ProtocolError as error:
            raise BadResponse(f"the ApiVersions response of {self.address} cannot be decoded: {error}") from error
        served = {entry.api_key: ApiRange(*_range_of(entry)) for entry in response.api_keys}
        if is_refused:
            own = served.get(ApiKey.API_VERSIONS)
            return self.first_request(min(own.max_version, version - 1) if own else 0)
        if error_code != ErrorCode.NONE or not served:
            raise BadResponse(f"{self.address} refused ApiVersions: {error_name(error_code)}")
        self.versions = served
        self.features_epoch = response.finalized_features_epoch
        self.features = {each.name: each.max_version_level for each in response.finalized_features}
        return self.identify(self._exchange) if self._exchange is not None else b""

    def identify(self, exchange: SaslExchange) -> bytes:
        """Return the bytes that begin authentication; nothing else can be sent until it is done."""
        if ApiKey.SASL_HANDSHAKE not in self.versions:
            raise self._without_sasl()
        self._exchange = exchange
        handshake = sasl_handshake.SaslHandshakeRequest(mechanism=exchange.mechanism)
        return self._ask(Call(sasl_handshake, handshake, min_version=_FRAMED_FROM_VERSION))

    def _without_sasl(self) -> AuthenticationFailed:
        return AuthenticationFailed(
            f"{self.address} does not support SASL: use a listener that does, or remove SASL from security_protocol"
        )

    def _ask(self, call: Call) -> bytes:
        return self._frame(call, self.version_for(call))

    def _authenticate(self, exchange: SaslExchange, response: Any) -> bytes:
        """Return the next message of the exchange; empty when it is over and the connection can be used."""
        if isinstance(response, sasl_handshake.SaslHandshakeResponse):
            if response.error_code == ErrorCode.ILLEGAL_SASL_STATE and not response.mechanisms:
                raise self._without_sasl()  # a broker names SaslHandshake on listeners without SASL too
            if response.error_code:
                known = ", ".join(response.mechanisms) or "none"
                raise AuthenticationFailed(
                    f"{self.address} does not accept {exchange.mechanism}; it accepts {known}: set sasl_mechanism"
                )
            message: bytes | None = exchange.first()
        elif response.error_code:
            why = response.error_message or error_name(response.error_code)
            raise AuthenticationFailed(f"{self.address} refused the credentials: {why}")
        else:
            self.session_lifetime_ms = response.session_lifetime_ms
            message = exchange.respond(bytes(response.auth_bytes))
        if message is None:
            self._exchange = None
            return b""
        return self._ask(Call(sasl_authenticate, sasl_authenticate.SaslAuthenticateRequest(auth_bytes=message)))


def _range_of(entry: api_versions.ApiVersionsResponseApiKey) -> tuple[int, int, int]:
    return entry.api_key, entry.min_version, entry.max_version
