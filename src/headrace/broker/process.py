"""A broker as a process: the real ports, signals, and an orderly stop."""

import os
import signal
import sys
from collections.abc import Callable
from types import FrameType

from headrace import __version__
from headrace.broker.node import Node
from headrace.model.configs.values import BrokerConfig
from headrace.ports.bundle import Ports

HELPER_SWITCH_S = 0.0005
"""Time for which a helper thread keeps the interpreter while the loop waits for it. Python's default is 5 ms, which
every request would wait while a helper decompresses records."""

STOP_TURN_MS = 50
"""Interval at which a stopping broker checks whether every client has its response."""


def real_ports() -> Ports:
    from headrace.ports.real.clock import RealClock
    from headrace.ports.real.disk import RealDisk
    from headrace.ports.real.entropy import RealEntropy
    from headrace.ports.real.network import RealNetwork
    from headrace.ports.real.spawner import ThreadSpawner

    network = RealNetwork()
    return Ports(RealClock(), RealDisk(), network, RealEntropy(), ThreadSpawner(network.wake, wake_on=network.wake_on))


def run(config: BrokerConfig, *, on_ready: Callable[[Node], None] = lambda node: None) -> int:
    """Run a broker in this process until a signal stops it, and return the exit status.

    A second signal ends the process at once.
    """
    from headrace.broker.gc_policy import GcPolicy
    from headrace.ports.real.disk import raise_open_file_limit

    sys.setswitchinterval(HELPER_SWITCH_S)
    descriptors_max = raise_open_file_limit()
    node = Node(config, real_ports(), host_name=os.uname().nodename, descriptors_max=descriptors_max)
    _log_start(node)
    signals = 0

    def stop(_signal: int, _frame: FrameType | None) -> None:
        nonlocal signals
        signals += 1
        if signals > 1:
            os._exit(1)
        node.wake()

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    announced = False
    while not signals and not node.failed:
        node.turn(-1)
        if node.ready and not announced:
            announced = True
            on_ready(node)
            GcPolicy(timers=node.broker.timers, metrics=node.metrics).begin()
    return _stop(node)


def _log_start(node: Node) -> None:
    from headrace.wire.compiled import has_request_helper

    node.logger.info(
        "broker starts",
        version=__version__,
        data=", ".join(os.path.abspath(path) for path in node.config.log_dirs),
        listeners=", ".join(map(str, node.config.listeners)),
        helpers="compiled" if has_request_helper() else "pure Python",
        process=os.getpid(),
    )


def _stop(node: Node) -> int:
    """Let clients have their responses until the shutdown timeout, close the node, and return the exit status."""
    node.logger.info("broker stops")
    node.begin_stop()
    deadline_ms = node.broker.clock.monotonic_ms() + node.config.shutdown_timeout_ms
    while not node.failed and not node.drained and node.broker.clock.monotonic_ms() < deadline_ms:
        node.turn(STOP_TURN_MS)
    node.close()
    if not node.failed:
        node.logger.info("stopped cleanly")
    return 1 if node.failed else 0
