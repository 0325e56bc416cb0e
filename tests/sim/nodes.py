"""A whole node on a virtual machine."""

import structlog.dev  # noqa: F401 - it looks at the clock when it is imported, which the guard would refuse

from headrace.broker.node import Node
from headrace.model.configs.values import BrokerConfig
from headrace.ports.bundle import Ports
from headrace.sim.world import World
from tests.sim.workload import HOST, PORT

DATA = "data"
SETTINGS = {
    "listeners": f"PLAINTEXT://{HOST}:{PORT}",
    "advertised.listeners": f"PLAINTEXT://{HOST}:{PORT}",
    "log.dirs": DATA,
    "auto.create.topics.enable": "false",
}


class VirtualNode:
    """A world with one machine, and the node that runs on it from boot to boot."""

    def __init__(self, seed):
        self.world = World(seed)
        self.machine = self.world.machine()
        self.machine.disk.make_directory(DATA)
        self.machine.disk.sync_directory("")
        self.config = BrokerConfig.from_texts(SETTINGS)
        self.node = None

    def boot(self):
        self.node = self.machine.boot(self._start)
        self.world.run_until(lambda: self.node.ready)

    def _start(self, machine):
        ports = Ports(machine.clock, machine.disk, machine.network, machine.entropy, machine.spawner)
        return Node(self.config, ports)

    def stop(self):
        """A clean stop, as SIGTERM does it."""
        self.node.begin_stop()
        self.world.run_until(lambda: self.node.drained)
        self.node.close()
        self.machine.stopped()
