"""A whole node on a virtual machine: started, stopped, ended by force and started again."""

from collections.abc import Mapping

from headrace.broker.node import Node
from headrace.model.configs.values import BrokerConfig
from headrace.ports.bundle import Ports
from headrace.sim.messages import Messages
from headrace.sim.world import Machine, World

HOST, PORT = "node", 9092
SETTINGS = {
    "listeners": f"PLAINTEXT://{HOST}:{PORT}",
    "advertised.listeners": f"PLAINTEXT://{HOST}:{PORT}",
    "log.dirs": "data",
    "auto.create.topics.enable": "false",
    "headrace.log.level": "warning",
}


class VirtualNode:
    """A world's machine and the node that runs on it from boot to boot."""

    def __init__(self, world: World, settings: Mapping[str, str] | None = None) -> None:
        self.world = world
        self.machine = world.machine()
        self.config = BrokerConfig.from_texts({**SETTINGS, **(settings or {})})
        self.messages = Messages(self.machine.entropy.branch("messages"), world.trace)

    @property
    def node(self) -> Node | None:
        """The running node, if there is one."""
        node = self.machine.node
        assert node is None or isinstance(node, Node)
        return node

    @property
    def running(self) -> Node:
        node = self.node
        assert node is not None, "the node does not run"
        return node

    @property
    def serves(self) -> bool:
        """Whether it lets clients in and has its turns."""
        node = self.node
        if node is None or not node.ready or node.stopping or node.failed:
            return False
        return self.machine.paused_until_ms <= self.world.time.now_ms

    # Starting

    def start(self) -> None:
        """Start the process. An armed end may come meanwhile; an OSError is a start that the disk refused."""
        try:
            self.machine.run(lambda: self.machine.boot(self._compose))
        except BaseException:
            self.machine.kill()
            raise

    def boots(self) -> bool:
        """Start the node and wait until it is ready; False if an armed end came before."""
        self.start()
        self.world.run_until(lambda: self.node is None or self.node.ready)
        self.machine.disk.on_operation = None
        return self.node is not None

    def boot(self) -> None:
        assert self.boots(), "nothing was armed that could end it"

    def _compose(self, machine: Machine) -> Node:
        ports = Ports(machine.clock, machine.disk, machine.network, machine.entropy, machine.spawner)
        node = Node(self.config, ports, write_log=self._say)
        node.loop.strict = True
        self.messages.carry(node)
        return node

    def _say(self, lines: str) -> None:
        """Only the first line: a traceback names folders, which differ from machine to machine."""
        self.world.trace.record(f"node says {lines.splitlines()[0]}")

    # Stopping

    def finish_stop(self) -> None:
        """The end of a clean stop, which `begin_stop` of the node began; an armed end may come before it is done."""
        self.machine.run(self._close)

    def _close(self) -> None:
        try:
            self.running.close()
        except OSError:
            self.machine.kill()  # the process ends anyway, with a traceback
            raise
        self.machine.stopped()

    def stop(self) -> None:
        """A clean stop, as SIGTERM does it."""
        node = self.running
        node.begin_stop()
        self.world.run_until(lambda: node.drained)
        self.finish_stop()
