"""Reads keys and certificates again when their files or configs have changed; later connections use them."""

from collections.abc import Callable

from headrace.broker.logs import NodeLogger
from headrace.broker.net.handshakes import Handshakes
from headrace.broker.timers import Timers
from headrace.model.configs.tls import TlsConfig
from headrace.model.limits import TLS_RELOAD_INTERVAL_MS
from headrace.ports.network import Network, ServerTls
from headrace.ports.spawner import Lane, Spawner


class TlsReload:
    def __init__(
        self,
        handshakes: Handshakes,
        *,
        config: Callable[[], TlsConfig],
        network: Network,
        spawner: Spawner,
        timers: Timers,
        logger: NodeLogger,
    ) -> None:
        """`config` returns the configs in force."""
        self._handshakes = handshakes
        self._config = config
        self._network = network
        self._spawner = spawner
        self._timers = timers
        self._logger = logger
        self._failure = ""
        """Why the last attempt failed, which is logged once."""

    def start(self) -> None:
        self._timers.after(TLS_RELOAD_INTERVAL_MS, self._read)

    def _read(self) -> None:
        config, former = self._config(), self._handshakes.tls
        self._spawner.submit(lambda: self._network.server_tls(config, former), self._have_read, Lane.REQUEST)

    def _have_read(self, tls: ServerTls | None, error: BaseException | None) -> None:
        self.start()
        if tls is None:
            failure = str(error)
            if failure != self._failure:
                self._logger.error(f"keys and certificates stay as they were: {failure}")
            self._failure = failure
            return
        self._failure = ""
        if tls is not self._handshakes.tls:
            self._handshakes.tls = tls
            self._logger.info("keys and certificates were read again; new connections use them")
