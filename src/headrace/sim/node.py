"""A whole node on a virtual machine: started, stopped, killed and started again."""

from collections.abc import Callable, Mapping

from headrace.broker.node import Node
from headrace.model.configs.values import BrokerConfig
from headrace.ports.bundle import Ports
from headrace.sim.messages import Messages
from headrace.sim.world import VirtualMachine, World

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

    def __init__(self, world: World, settings: Mapping[str, str] | None = None, *, name: str = HOST) -> None:
        self.world = world
        self.machine = world.machine(name)
        self.config = BrokerConfig.from_texts({**SETTINGS, **(settings or {})})
        self.messages = Messages(self.machine.entropy.branch("messages"), world.trace)
        self.on_composed: Callable[[Node], None] = lambda node: None
        """Called with every node that is started."""

    @property
    def node(self) -> Node | None:
        """Return the running node, if there is one."""
        node = self.machine.node
        assert node is None or isinstance(node, Node)
        return node

    @property
    def running(self) -> Node:
        node = self.node
        assert node is not None, "the node is not running"
        return node

    @property
    def serves(self) -> bool:
        """Return whether it accepts clients and has its turns."""
        node = self.node
        if node is None or not node.ready or node.stopping or node.failed:
            return False
        return self.machine.paused_until_ms <= self.world.time.now_ms

    # Starting

    def start(self) -> None:
        """Start the process. A planned kill may come meanwhile; an OSError means that the disk refused the start."""
        try:
            self.machine.run(lambda: self.machine.boot(self._compose))
        except BaseException:
            self.machine.kill()
            raise

    def boots(self) -> bool:
        """Start the node and wait until it is ready; return False if a planned kill came before."""
        self.start()
        self.world.run_until(lambda: self.node is None or self.node.ready)
        self.machine.disk.on_operation = None
        return self.node is not None

    def boot(self) -> None:
        assert self.boots(), "no kill was planned"

    def _compose(self, machine: VirtualMachine) -> Node:
        ports = Ports(machine.clock, machine.disk, machine.network, machine.entropy, machine.spawner)
        node = Node(self.config, ports, write_log=self._say)
        node.loop.strict = True
        self.messages.carry(node)
        self.on_composed(node)
        return node

    def _say(self, lines: str) -> None:
        """Record only the first line: a traceback names folders, which differ between machines."""
        self.world.trace.record(f"{self.machine.name} says {lines.splitlines()[0]}")

    # Stopping

    def finish_stop(self) -> None:
        """Complete a clean stop that `begin_stop` of the node began; a planned kill may come before it is done."""
        self.machine.run(self._close)

    def _close(self) -> None:
        try:
            self.running.close()
        except OSError:
            self.machine.kill()  # the process ends anyway, with a traceback
            raise
        self.machine.stopped()

    def stop(self) -> None:
        """Stop cleanly, as on SIGTERM."""
        node = self.running
        node.begin_stop()
        self.world.run_until(lambda: node.drained)
        self.finish_stop()
