"""The process of a manager: Uvicorn with the application, and the line that says where it listens."""

import asyncio
import logging
import signal
import socket
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, cast

import uvicorn

from headrace.manager.access.users import have_users
from headrace.manager.app import create_app
from headrace.manager.catalog.database import Catalog
from headrace.manager.limits import SOCKET_FRAME_BYTES_MAX, SOCKET_PING_SECONDS, STALLED_CLIENT_MS_MAX
from headrace.manager.settings import ManagerSettings, check_exposure
from headrace.model.configs.listeners import address_text
from headrace.operations.errors import OperationError
from headrace.ports.real.disk import raise_open_file_limit

BACKLOG = 2_048
SHUTDOWN_SECONDS_MAX = 5
IDLE_SECONDS_MAX = 60
"""Time that a connection without requests stays open."""


class _Server(uvicorn.Server):
    """Announces its address when it accepts connections."""

    def __init__(
        self, config: uvicorn.Config, announce: Callable[[], Awaitable[None]], end: Callable[[], None]
    ) -> None:
        super().__init__(config)
        self._announce = announce
        self._end = end

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Stop in order by SIGINT and SIGTERM, as a success; the second signal ends open requests."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self.handle_exit, number, None)
        yield

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self._end()
        super().handle_exit(sig, frame)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            await self._announce()


def run(settings: ManagerSettings) -> None:
    """Serve until a signal stops it."""
    raise_open_file_limit()
    catalog = Catalog(settings.catalog)
    check_exposure(settings, has_users=catalog.run_here(have_users, writes=False))
    listener = listen(settings.host, settings.port)
    address = address_text(*listener.getsockname()[:2])
    scheme = "https" if settings.tls_cert else "http"
    application, parts = create_app(settings, catalog)

    async def announce() -> None:
        await catalog.join(settings.url or f"{scheme}://{address}")
        print(f"headrace manager on {scheme}://{address}", flush=True)

    config = uvicorn.Config(
        application,
        http="httptools",
        ws=cast(type[asyncio.Protocol], _websocket_protocol),
        ws_max_size=SOCKET_FRAME_BYTES_MAX,
        ws_ping_interval=SOCKET_PING_SECONDS,
        ws_ping_timeout=SOCKET_PING_SECONDS,
        ws_per_message_deflate=False,
        loop="asyncio",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        date_header=True,
        proxy_headers=False,
        backlog=BACKLOG,
        timeout_keep_alive=IDLE_SECONDS_MAX,
        timeout_graceful_shutdown=SHUTDOWN_SECONDS_MAX,
        root_path=settings.root_path,
        ssl_certfile=settings.tls_cert,
        ssl_keyfile=settings.tls_key,
    )
    logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="%(message)s")
    for noisy in ("uvicorn", "uvicorn.error", "headrace.client"):
        logging.getLogger(noisy).setLevel(logging.WARNING)
    with listener:
        asyncio.run(_Server(config, announce, parts.end_streams).serve([listener]))


def _websocket_protocol(*arguments: Any, **named: Any) -> asyncio.Protocol:
    """Make the protocol of a WebSocket; its module is loaded by the first one."""
    from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

    return WebSocketsSansIOProtocol(*arguments, **named)


def listen(host: str, port: int, *, stalled_ms_max: int = STALLED_CLIENT_MS_MAX) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # Accepted connections inherit it.
        # Ends a connection whose client takes nothing for this time: its response would keep a reader for ever.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, stalled_ms_max)
        listener.bind((host, port))
        listener.listen(BACKLOG)
    except OSError as error:
        listener.close()
        raise OperationError(
            f"the manager cannot listen on {address_text(host, port)}: {error.strerror}; choose another address "
            "with --listen"
        ) from None
    return listener
