"""One metrics page for all shards: their own pages, with the label `shard` in every line."""

import threading
from collections.abc import Iterable, Iterator, Sequence
from http.client import HTTPConnection, HTTPException
from http.server import BaseHTTPRequestHandler, HTTPServer

from headrace.broker.metrics import CONTENT_TYPE
from headrace.shards.shard_process import ShardProcess

SHARD_PAGE_SECONDS_MAX = 5
SHARD_PAGE_BYTES_MAX = 64 << 20
SCRAPE_SECONDS_MAX = 10
"""Time in which a scraper sends its request."""

_HELP, _TYPE = "# HELP ", "# TYPE "


class MetricsServer:
    """Serves one scrape at a time, in a thread of the parent."""

    def __init__(self, address: tuple[str, int], shards: Sequence[ShardProcess]) -> None:
        self._server = _Server(address, shards)
        threading.Thread(target=self._server.serve_forever, name="metrics of shards", daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


class _Server(HTTPServer):
    def __init__(self, address: tuple[str, int], shards: Sequence[ShardProcess]) -> None:
        super().__init__(address, _Handler)
        self.shards = shards

    def handle_error(self, request: object, client_address: object) -> None:
        """Ignore a scraper that disconnects."""


class _Handler(BaseHTTPRequestHandler):
    timeout = SCRAPE_SECONDS_MAX
    server: _Server

    def do_GET(self) -> None:
        if self.path.partition("?")[0] != "/metrics":
            self.send_error(404, "metrics are at /metrics")
            return
        content = page_of(self.server.shards).encode()
        self.send_response(200)
        self.send_header("Content-Type", CONTENT_TYPE)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_arguments: object) -> None:
        """Log nothing: a scrape is no event."""


def page_of(shards: Iterable[ShardProcess]) -> str:
    """Read the pages of all shards and return one; a shard that does not answer is left out and counts as down."""
    pages: dict[int, str] = {}
    up: list[str] = []
    restarts: list[str] = []
    for shard in shards:
        number = shard.settings.shard
        page = _read(shard.settings.metrics_address) if shard.is_ready else None
        if page is not None:
            pages[number] = page
        up.append(f'headrace_shard_up{{shard="{number}"}} {int(page is not None)}')
        restarts.append(f'headrace_shard_restarts_total{{shard="{number}"}} {shard.restarts}')
    own = (
        f"{_HELP}headrace_shard_up Whether a shard answers.",
        f"{_TYPE}headrace_shard_up gauge",
        *up,
        f"{_HELP}headrace_shard_restarts_total Starts of a shard after it had ended.",
        f"{_TYPE}headrace_shard_restarts_total counter",
        *restarts,
    )
    return "".join(f"{line}\n" for line in (*own, *merged(pages)))


def merged(pages: dict[int, str]) -> Iterator[str]:
    """Yield the lines of one page: each metric once, with the samples of all shards, as Prometheus requires."""
    headings: dict[str, list[str]] = {}
    samples: dict[str, list[str]] = {}
    for shard, page in pages.items():
        name = ""
        for line in page.splitlines():
            if line.startswith(_HELP):
                name = line[len(_HELP) :].partition(" ")[0]
                headings.setdefault(name, [line])
            elif line.startswith(_TYPE):
                if len(headings[name]) == 1:
                    headings[name].append(line)
            else:
                samples.setdefault(name, []).append(_labelled(line, shard))
    for name, lines in headings.items():
        yield from lines
        yield from samples.get(name, ())


def _labelled(line: str, shard: int) -> str:
    name, brace, rest = line.partition("{")
    if brace:
        return f'{name}{{shard="{shard}",{rest}'
    name, _, value = line.partition(" ")
    return f'{name}{{shard="{shard}"}} {value}'


def _read(address: tuple[str, int] | None) -> str | None:
    assert address is not None
    connection = HTTPConnection(*address, timeout=SHARD_PAGE_SECONDS_MAX)
    try:
        connection.request("GET", "/metrics")
        return connection.getresponse().read(SHARD_PAGE_BYTES_MAX).decode()
    except (OSError, HTTPException, UnicodeDecodeError):
        return None
    finally:
        connection.close()
