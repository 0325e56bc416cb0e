"""Requests as values: which API, what it carries, whom it is for; and operations, which are made of requests.

An operation is a generator: it yields the calls it wants answered, together, and gets their replies in the same order;
or it yields a pause. Whoever drives it owns the sockets and the clock. So the routing and retrying of an operation is
written once and serves every front.
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
"""The target of a call that every broker can answer."""

VERSION_UNBOUNDED = 32_767


class Api(Protocol[RequestIn, ResponseOut]):
    """What a generated codec module offers."""

    @property
    def API_KEY(self) -> int: ...
    @property
    def MAX_VERSION(self) -> int: ...

    def encode_request(self, message: RequestIn, version: int) -> bytes: ...
    def decode_response(self, buffer: Buffer, position: int, end: int, version: int) -> ResponseOut: ...


class Call(NamedTuple):
    api: Api[Any, Any]
    message: Any
    target: int = ANY_BROKER
    """A node id."""

    min_version: int = 0
    max_version: int = VERSION_UNBOUNDED
    """The versions that can carry the message's meaning; the highest that both sides know is used."""

    is_answered: bool = True
    """A Produce request with acks=0 has no response."""

    wait_ms_max: int = 0
    """How long the broker may hold the answer back on purpose, on top of the usual time-out."""

    lane: int = 0
    """Calls of different lanes go over different connections, so that none waits behind another's long answer."""


Reply = Any | ClientError
"""The response message, or why there is none."""


class PendingCall(NamedTuple):
    """A call to make; its reply and the time go to `completed`."""

    call: Call
    completed: Callable[[Any, float], None]


class Pause(NamedTuple):
    milliseconds: float


Step = tuple[Call, ...] | Pause
Operation = Generator[Step, list[Any], T]


def ask(
    api: Api[Request, Response],
    message: Request,
    *,
    target: int = ANY_BROKER,
    min_version: int = 0,
    max_version: int = VERSION_UNBOUNDED,
) -> Operation[Response]:
    """The operation of one call: its response, or the error raised."""
    (reply,) = yield (Call(api, message, target, min_version, max_version),)
    if isinstance(reply, ClientError):
        raise reply
    response: Response = reply
    return response
