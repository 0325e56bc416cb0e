"""Listeners of a node: bound when it is created, opened to clients when its partitions are recovered."""

from collections.abc import Callable, Mapping, Sequence

from headrace.broker.access import OPEN_LISTENER, OPEN_LISTENER_ADVICE, UNENCRYPTED_LOGINS, open_listeners
from headrace.broker.logs import NodeLogger
from headrace.broker.net.handshakes import Handshakes
from headrace.broker.net.loop import Loop
from headrace.core.access.sasl import SaslSession
from headrace.core.controller.records import Endpoint
from headrace.model.configs.listeners import Listener, address_text
from headrace.model.configs.tls import ClientAuth, SecurityProtocol
from headrace.ports.network import ListeningSocket, Network


class Listeners:
    def __init__(self, network: Network, protocols: Mapping[str, SecurityProtocol], *, client_auth: ClientAuth) -> None:
        """`protocols` has the security protocol of each listener, by its name."""
        self._network = network
        self._protocols = protocols
        self._client_auth = client_auth
        self.handshakes: Handshakes | None = None
        """Set before clients are admitted if a listener has TLS."""
        self._bound: list[tuple[Listener, list[ListeningSocket]]] = []

    def bind(self, configs: Sequence[Listener]) -> None:
        """Bind every address at once, so that a start on a port in use fails before any recovery."""
        for config in configs:
            self._bound.append((config, self._network.listen(config.host, config.port)))

    @property
    def addresses(self) -> list[str]:
        """HOST:PORT of every listener, as bound."""
        return [address_text(config.host, bound[0].port) for config, bound in self._bound]

    def endpoints(self, advertised: Sequence[Listener], host_name: str) -> list[Endpoint]:
        """Return the endpoints that clients connect to; `host_name` replaces an address that stands for all."""
        return [
            Endpoint(
                config.name,
                host_name if address.any_host else address.host,
                address.port or bound[0].port,
                self._protocols[config.name],
            )
            for (config, bound), address in zip(self._bound, advertised, strict=True)
        ]

    def admit_clients(self, loop: Loop, new_session: Callable[[], SaslSession]) -> None:
        """`new_session` returns the state of a connection at a listener with SASL."""
        for config, bound in self._bound:
            protocol = self._protocols[config.name]
            for listener in bound:
                loop.add_listener(
                    listener,
                    config.name,
                    handshakes=self.handshakes if protocol.uses_tls else None,
                    new_session=new_session if protocol.uses_sasl else None,
                )

    def warn_if_open(self, logger: NodeLogger) -> None:
        """Log the listeners that other machines can reach without authentication, or where logins are readable."""
        found = open_listeners(
            (listener.host, listener.port)
            for config, bound in self._bound
            if not self._protocols[config.name].authenticates(self._client_auth)
            for listener in bound
        )
        if found:
            logger.warning(f"{', '.join(found)} is {OPEN_LISTENER}: {OPEN_LISTENER_ADVICE}")

        readable = open_listeners(
            (listener.host, listener.port)
            for config, bound in self._bound
            if self._protocols[config.name] is SecurityProtocol.SASL_PLAINTEXT
            for listener in bound
        )
        if readable:
            logger.warning(f"{', '.join(readable)} {UNENCRYPTED_LOGINS}")

    def close(self) -> None:
        for _, bound in self._bound:
            for listener in bound:
                listener.close()
