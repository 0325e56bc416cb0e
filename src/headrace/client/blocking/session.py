"""One client's network for blocking calls: the real ports around the core's engine."""

import logging
import os
from typing import Any, TypeVar

from headrace.client.config import ClientConfig
from headrace.client.core.calls import Operation
from headrace.client.core.cluster import Cluster
from headrace.client.core.engine import ClientEngine
from headrace.client.core.link import PLAINTEXT, Security
from headrace.client.errors import ClientClosed
from headrace.client.link_factory import make_links
from headrace.ports.real.clock import RealClock
from headrace.ports.real.entropy import RealEntropy
from headrace.ports.real.network import RealNetwork

T = TypeVar("T")
logger = logging.getLogger("headrace.client")


def security_of(config: ClientConfig, entropy: RealEntropy) -> Security:
    """Create TLS and SASL only if they are configured: importing them takes longer than everything else."""
    if config.security_protocol == "PLAINTEXT":
        return PLAINTEXT
    from headrace.client.blocking.security import make_security

    return make_security(config, entropy)


class Session:
    """Not for several threads at once; only `network.wake` may be called from another thread."""

    def __init__(self, config: ClientConfig) -> None:
        self.cluster = Cluster(age_ms_max=config.metadata_max_age_ms)
        self.clock = RealClock()
        self.entropy = RealEntropy()
        security = security_of(config, self.entropy)
        self.network = RealNetwork()
        self.is_closed = False
        self.process_id = os.getpid()
        self.links = make_links(
            config,
            self.cluster,
            network=self.network,
            clock=self.clock,
            entropy=self.entropy,
            security=security,
            tell=logger.info,
        )
        self.engine = ClientEngine(self.links, self.clock)

    def run(self, operation: Operation[T], timeout_ms: float) -> T:
        """Drive the operation, and everything else that is due, until it returns, raises, or times out."""
        self.check_usable()
        deadline_ms = self.clock.monotonic_ms() + timeout_ms
        self.links.turn(0)  # A connection that the broker closed meanwhile is noticed before it is used.
        outcome: list[Any] = []
        self.engine.start(operation, deadline_ms=deadline_ms, ended=outcome.append)
        while not outcome:
            self.turn(deadline_ms)
        if isinstance(outcome[0], Exception):
            raise outcome[0]
        result: T = outcome[0]
        return result

    def turn(self, until_ms: float) -> None:
        """Send what is due, then wait for the network, at most until the given time."""
        wakeup_ms = self.engine.step()
        try:
            self.links.turn(max(0.0, min(wakeup_ms, until_ms) - self.clock.monotonic_ms()))
        except (OSError, ValueError):
            self.check_usable()  # Another thread may have closed what this one waits for.
            raise

    def check_usable(self) -> None:
        if self.is_closed:
            raise ClientClosed("this client is closed; create a new one")
        self.check_own_process()

    def check_own_process(self) -> None:
        if not self.is_own_process():
            raise ClientClosed("a client does not survive a fork: create one in each process, after the fork")

    def is_own_process(self) -> bool:
        return self.process_id == os.getpid()

    def close(self) -> None:
        if not self.is_closed:
            self.is_closed = True
            if self.is_own_process():
                self.engine.stop(ClientClosed("the client was closed before the response arrived"))
                self.links.close()
            self.network.close()
