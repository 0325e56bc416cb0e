"""Requests as values (API, message and target), and operations, which consist of requests.

An operation is a generator: it yields calls, which are sent together, and receives their replies in the same order; or
it yields a pause. The driver of an operation owns the sockets and the clock. So routing and retries of an operation are
written once and serve every front.
"""

from collections.abc import Callable, Generator
from typing import Any, NamedTuple, Protocol, TypeVar

from headrace.client.errors import ClientError
from headrace.wire.primitives.layouts import Buffer

Request = TypeVar("Request")
Response = TypeVar("Response")
RequestIn = TypeVar("RequestIn", contravariant=True)
ResponseOut = TypeVar("ResponseOut", covariant=True)
T = TypeVar("T")

ANY_BROKER = -1
"""The target of a call that any broker can serve."""

VERSION_UNBOUNDED = 32_767


class ApiCodec(Protocol[RequestIn, ResponseOut]):
    """Interface of a generated codec module."""

    @property
    def API_KEY(self) -> int: ...
    @property
    def MAX_VERSION(self) -> int: ...

    def encode_request(self, message: RequestIn, version: int) -> bytes: ...
    def decode_response(self, buffer: Buffer, position: int, end: int, version: int) -> ResponseOut: ...


class Call(NamedTuple):
    api: ApiCodec[Any, Any]
    message: Any
    target: int = ANY_BROKER
    """A node id."""

    min_version: int = 0
    max_version: int = VERSION_UNBOUNDED
    """The range of versions that can carry the message; the highest that both sides support is used."""

    is_answered: bool = True
    """False for a Produce request with acks=0, which has no response."""

    wait_ms_max: int = 0
    """Time for which the broker may delay the response on purpose, on top of the usual timeout."""

    channel: int = 0
    """Calls of different channels use different connections: none waits behind a slow response of another one."""


Reply = Any | ClientError
"""The response message, or the error."""


class PendingCall(NamedTuple):
    """A call to send; its reply and the time are passed to `completed`."""

    call: Call
    completed: Callable[[Any, float], None]


class Pause(NamedTuple):
    milliseconds: float


Step = tuple[Call, ...] | Pause
Operation = Generator[Step, list[Any], T]


def ask(
    api: ApiCodec[Request, Response],
    message: Request,
    *,
    target: int = ANY_BROKER,
    min_version: int = 0,
    max_version: int = VERSION_UNBOUNDED,
) -> Operation[Response]:
    """Run one call as an operation: return its response or raise the error."""
    (reply,) = yield (Call(api, message, target, min_version, max_version),)
    if isinstance(reply, ClientError):
        raise reply
    response: Response = reply
    return response
