"""The metrics page: as much HTTP as a Prometheus scrape needs, on the node's own loop, a slice of lines per turn."""

from collections.abc import Callable, Iterator

from headrace.broker.metrics import CONTENT_TYPE
from headrace.broker.net.acceptor import ACCEPT_PAUSE_MS
from headrace.broker.net.loop import Loop
from headrace.broker.timers import Timers
from headrace.ports.network import READABLE, WRITABLE, ListeningSocket, Network, Transport

SCRAPES_AT_ONCE_MAX = 16
REQUEST_BYTES_MAX = 8192
SCRAPE_MS_MAX = 10_000

_END_OF_HEADERS = b"\r\n\r\n"


def _head(status: str, content_type: str) -> bytes:
    return f"HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\nConnection: close\r\n\r\n".encode()


class ScrapeServer:
    def __init__(self, *, loop: Loop, network: Network, timers: Timers, render: Callable[[], Iterator[bytes]]) -> None:
        self._loop = loop
        self._network = network
        self._timers = timers
        self._render = render
        self._scrapes: dict[int, _Scrape] = {}
        self._listeners: list[ListeningSocket] = []

    def listen(self, host: str, port: int) -> int:
        """Listen on the address, and return the port."""
        for listener in self._network.listen(host, port):
            self._listeners.append(listener)
            self._loop.attach(listener.token, self._accepting(listener))
        return self._listeners[0].port

    def close(self) -> None:
        for listener in self._listeners:
            self._loop.detach(listener.token)
            listener.close()
        self._listeners.clear()
        for scrape in tuple(self._scrapes.values()):
            self.end(scrape)

    def _accepting(self, listener: ListeningSocket) -> Callable[[int], None]:
        def accept(_event: int) -> None:
            try:
                transport = listener.accept()
            except OSError:  # out of file descriptors: try again later, because clients come first
                self._network.watch(listener.token, 0)
                self._timers.after(ACCEPT_PAUSE_MS, lambda: self._listen_again(listener))
                return
            if transport is None:
                return
            if len(self._scrapes) >= SCRAPES_AT_ONCE_MAX:
                transport.close()
                return
            scrape = _Scrape(self, transport)
            self._scrapes[transport.token] = scrape
            self._loop.attach(transport.token, scrape.event)
            self._timers.after(SCRAPE_MS_MAX, lambda: self.end(scrape))

        return accept

    def _listen_again(self, listener: ListeningSocket) -> None:
        if listener in self._listeners:
            self._network.watch(listener.token, READABLE)

    def answer(self, request: bytes) -> Iterator[bytes]:
        method, _, rest = request.partition(b" ")
        path = rest.partition(b" ")[0].partition(b"?")[0]
        if method != b"GET":
            yield _head("405 Method Not Allowed", "text/plain") + b"only GET is served\n"
        elif path != b"/metrics":
            yield _head("404 Not Found", "text/plain") + b"metrics are at /metrics\n"
        else:
            yield _head("200 OK", CONTENT_TYPE)
            yield from self._render()

    def want_writable(self, scrape: "_Scrape") -> None:
        self._network.watch(scrape.transport.token, WRITABLE)

    def end(self, scrape: "_Scrape") -> None:
        if self._scrapes.get(scrape.transport.token) is scrape:
            del self._scrapes[scrape.transport.token]
            self._loop.detach(scrape.transport.token)
            scrape.transport.close()


class _Scrape:
    """One connection, with one request and its response."""

    def __init__(self, server: ScrapeServer, transport: Transport) -> None:
        self._server = server
        self.transport = transport
        self._request = bytearray()
        self._response: Iterator[bytes] | None = None
        self._unsent = memoryview(b"")

    def event(self, event: int) -> None:
        try:
            if self._response is None and event & READABLE:
                self._read()
            elif self._response is not None:
                self._write(self._response)
        except BlockingIOError:
            return
        except OSError:
            self._server.end(self)

    def _read(self) -> None:
        buffer = memoryview(bytearray(REQUEST_BYTES_MAX))
        received = self.transport.recv_into(buffer)
        self._request += buffer[:received]
        if received == 0 or len(self._request) > REQUEST_BYTES_MAX:
            self._server.end(self)
        elif _END_OF_HEADERS in self._request:
            self._response = self._server.answer(bytes(self._request))
            self._server.want_writable(self)

    def _write(self, response: Iterator[bytes]) -> None:
        """Send one slice per turn; the loop calls again while the peer can take more."""
        if not self._unsent:
            self._unsent = memoryview(next(response, b""))
            if not self._unsent:
                self._server.end(self)
                return
        self._unsent = self._unsent[self.transport.send(self._unsent) :]
