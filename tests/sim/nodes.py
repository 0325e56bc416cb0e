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
        self.config = BrokerConfig.from_texts(SETTINGS)

    @property
    def runs(self):
        return self.machine.node is not None

    def boot(self):
        assert self.boots(), "nothing was armed that could end it"

    def boots(self):
        """Start the node; False if an armed end came before it was ready."""
        self.machine.run(lambda: self.machine.boot(self._start))
        self.world.run_until(lambda: not self.runs or self.machine.node.ready)
        self.machine.disk.on_operation = None
        return self.runs

    def _start(self, machine):
        ports = Ports(machine.clock, machine.disk, machine.network, machine.entropy, machine.spawner)
        node = Node(self.config, ports)
        node.loop.strict = True
        return node

    def stop(self):
        """A clean stop, as SIGTERM does it."""
        node = self.machine.node
        node.begin_stop()
        self.world.run_until(lambda: node.drained)
        node.close()
        self.machine.stopped()
