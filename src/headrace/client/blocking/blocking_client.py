"""What all clients have that only ask and wait for the answer: their config, their connections, and an end."""

from collections.abc import Mapping, Sequence
from typing import Any, Self, Unpack

from headrace.client.blocking.session import Session
from headrace.client.config import AdminConfig, resolve_config
from headrace.client.config_options import AdminOptions


class Asking:
    """Nothing is sent before the first call; every call ends by `timeout_ms`."""

    def __init__(
        self,
        bootstrap_servers: str | Sequence[str] | None = None,
        *,
        config: AdminConfig | Mapping[str, Any] | None = None,
        **options: Unpack[AdminOptions],
    ) -> None:
        """Options are those of `AdminConfig`; `config` also takes a dict with Kafka's names."""
        self.config: AdminConfig = resolve_config(AdminConfig, config, bootstrap_servers, options)
        self._timeout_ms = self.config.timeout_ms
        self._session = Session(self.config)
        if self.config.telemetry is not None:
            self.config.telemetry.opened(self)

    def metrics(self) -> dict[str, float]:
        """Counters since the client was made."""
        return self._session.links.counters()

    def close(self) -> None:
        self._session.close()
        if self.config.telemetry is not None:
            self.config.telemetry.closed(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()
