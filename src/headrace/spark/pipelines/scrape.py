"""Serve the metrics of a run to Prometheus: a small HTTP server in a thread, one scrape at a time."""

import http.server
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from http import HTTPStatus

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
PATHS = ("/", "/metrics")
SCRAPE_SECONDS_MAX = 10
"""A client that takes longer to send or read is disconnected."""


class _Handler(http.server.BaseHTTPRequestHandler):
    timeout = SCRAPE_SECONDS_MAX

    def __init__(self, render: Callable[[], str], *given: object) -> None:
        self._render = render
        super().__init__(*given)  # type: ignore[arg-type]  # what the server hands over

    def do_GET(self) -> None:
        if self.path.partition("?")[0] not in PATHS:
            self.send_error(HTTPStatus.NOT_FOUND, "the metrics are at /metrics")
            return
        page = self._render().encode()
        self.send_response(HTTPStatus.OK)
        self.send_header("Content-Type", CONTENT_TYPE)
        self.send_header("Content-Length", str(len(page)))
        self.end_headers()
        self.wfile.write(page)

    def log_message(self, format: str, *given: object) -> None:
        """Do not log scrapes."""


class _Server(http.server.HTTPServer):
    def handle_error(self, request: object, client_address: object) -> None:
        """Do not log disconnected clients."""


class _ServerOfSix(_Server):
    address_family = socket.AF_INET6


@contextmanager
def serving(host: str, port: int, render: Callable[[], str]) -> Iterator[int]:
    """Serve scrapes within the block and yield the port; 0 selects a free one. OSError if the address is not
    available.
    """
    kind = _ServerOfSix if ":" in host else _Server
    server = kind((host, port), partial(_Handler, render))
    thread = threading.Thread(target=server.serve_forever, name="metrics", daemon=True)
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
