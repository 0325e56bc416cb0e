"""Common base of clients that send a request and wait for the response: config, connections and closing."""

from collections.abc import Mapping, Sequence
from typing import Any, Self, Unpack

from headrace.client.blocking.session import Session
from headrace.client.config import AdminConfig, resolve_config
from headrace.client.config_options import AdminOptions


class BlockingClient:
    """Sends nothing before the first call; every call ends by `timeout_ms`."""

    def __init__(
        self,
        bootstrap_servers: str | Sequence[str] | None = None,
        *,
        config: AdminConfig | Mapping[str, Any] | None = None,
        **options: Unpack[AdminOptions],
    ) -> None:
        """Options are those of `AdminConfig`; `config` also accepts a dict with Kafka's names."""
        self.config: AdminConfig = resolve_config(AdminConfig, config, bootstrap_servers, options)
        self._timeout_ms = self.config.timeout_ms
        self._session = Session(self.config)
        if self.config.telemetry is not None:
            self.config.telemetry.opened(self)

    def metrics(self) -> dict[str, float]:
        """Return the counters since the client was created."""
        return self._session.links.counters()

    def close(self) -> None:
        self._session.close()
        if self.config.telemetry is not None:
            self.config.telemetry.closed(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()
