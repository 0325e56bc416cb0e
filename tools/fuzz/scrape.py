"""The target of the metrics page: any bytes, in any pieces, end in a short answer or a closed connection."""

from collections.abc import Callable, Iterator
from typing import Any, cast

from headrace.broker.net.scrape import REQUEST_BYTES_MAX, ScrapeServer
from headrace.ports.disk import Buffer
from headrace.ports.network import READABLE, WRITABLE
from tools.fuzz.target import Target, require

EVENTS_MAX = 4 * REQUEST_BYTES_MAX
PIECE_STEP_BYTES = 40
PAGE = (b"headrace_requests_total 1\n" * 10, b"headrace_up 1\n")


def targets() -> list[Target]:
    return [Target(name="http-scrape", read=read_request, seeds=_seeds, sources=("broker/net/scrape.py",))]


class _Surroundings:
    """The loop, network and timers that the page needs, with one connection whose bytes come in pieces."""

    def __init__(self, request: bytes, piece_bytes: int) -> None:
        self.request = request
        self.piece_bytes = piece_bytes
        self.handle: Callable[[int], None] | None = None
        self.interest = READABLE
        self.sent = bytearray()
        self.closed = False
        self._accepted = False
        self.token = 1
        self.port = 0
        self.peer_address = "127.0.0.1:1"

    def listen(self, _host: str, _port: int) -> "list[_Surroundings]":
        return [self]

    def accept(self) -> "_Surroundings":
        self.token = 2
        return self

    def attach(self, _token: int, handle: Callable[[int], None]) -> None:
        self.handle = handle

    def detach(self, _token: int) -> None:
        self.handle = None

    def watch(self, _token: int, interest: int) -> None:
        self.interest = interest

    def after(self, _delay_ms: float, _action: Callable[[], None]) -> None:
        pass

    def recv_into(self, buffer: memoryview) -> int:
        piece, self.request = self.request[: self.piece_bytes], self.request[self.piece_bytes :]
        buffer[: len(piece)] = piece
        return len(piece)

    def send(self, buffer: Buffer, _flags: int = 0) -> int:
        self.sent += buffer[: self.piece_bytes]
        return min(len(buffer), self.piece_bytes)

    def close(self) -> None:
        self.closed = True


def read_request(data: bytes) -> bool:
    if not data:
        return False
    world = _Surroundings(data[1:], 1 + PIECE_STEP_BYTES * data[0])
    server = ScrapeServer(loop=cast(Any, world), network=cast(Any, world), timers=cast(Any, world), render=_page)
    server.listen("127.0.0.1", 0)
    assert world.handle is not None
    world.handle(READABLE)
    for _ in range(EVENTS_MAX):
        if world.handle is None:
            break
        world.handle(world.interest)
    require(world.closed, "the connection ends")
    require(len(world.sent) <= 1024, "the answer is short")
    return world.interest == WRITABLE


def _page() -> Iterator[bytes]:
    yield from PAGE


def _seeds() -> list[bytes]:
    requests = (
        b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET /metrics?name[]=up HTTP/1.0\r\n\r\n",
        b"POST / HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello",
        b"GET /\r\n\r\n",
        b"\r\n\r\n",
        b"GET " + b"/" * 8000 + b" HTTP/1.1\r\n\r\n",
        bytes(200),
    )
    return [bytes((piece,)) + request for request in requests for piece in (1, 9, 255)]
