"""A world of virtual machines, created from one seed and driven step by step."""

import functools
from collections.abc import Callable
from typing import Protocol, TypeVar

from headrace.sim.clock import VirtualClock, VirtualTime
from headrace.sim.connections import VirtualClient
from headrace.sim.disk import CAPACITY_BYTES, VirtualDisk
from headrace.sim.entropy import SeededEntropy
from headrace.sim.fabric import LOOPBACK, Fabric
from headrace.sim.network import VirtualNetwork
from headrace.sim.spawner import VirtualSpawner
from headrace.sim.trace import Trace

STEP_MS_MAX = 5
STEPS_MAX = 20_000


class TurningNode(Protocol):
    """The program of a machine: a node that does one turn of its loop per call."""

    def turn(self, timeout_ms: float = 0.0) -> object: ...


NodeT = TypeVar("NodeT", bound=TurningNode)


class RunTooLong(AssertionError):
    """The awaited state was not reached within the limit of steps."""


class CutOff(BaseException):
    """Ends the process here, between two disk calls. A BaseException, so that nothing in the node can catch it."""


class VirtualMachine:
    """One computer: its disk and clock persist; the process, its sockets and its helper threads come and go."""

    def __init__(self, world: "World", name: str, *, capacity_bytes: int) -> None:
        self._world = world
        self.name = name
        self.boots = 0
        self.power_cuts = 0
        self.entropy = world.entropy.branch(name)
        self.disk = VirtualDisk(self.entropy.branch("disk"), world.trace, capacity_bytes=capacity_bytes)
        self.clock = VirtualClock(world.time)
        self.network: VirtualNetwork
        self.spawner: VirtualSpawner
        self.node: TurningNode | None = None
        self.paused_until_ms = 0.0
        """The process is paused (SIGSTOP) for this long: time passes and bytes arrive, but it has no turns."""
        self.cut_off = False
        """True if the last process was ended by a planned kill."""
        self._end = self.cut_power
        self._networks: list[VirtualNetwork] = []
        """Networks of every process so far: bytes that a killed one has sent may still be in flight."""
        world.fabric.set_power(name, is_on=True)
        self._plug_in()

    def _plug_in(self) -> None:
        boot = self.entropy.branch(f"boot {self.boots}")
        self.network = VirtualNetwork(self._world.fabric, self.disk, boot.branch("network"), host=self.name)
        self._networks.append(self.network)
        self.spawner = VirtualSpawner(
            boot.branch("spawner"), self._world.trace, now_ms=lambda: self.clock.monotonic_ms()
        )

    def boot(self, start: Callable[["VirtualMachine"], NodeT]) -> NodeT:
        """Start a process: `start` composes a node from this machine's ports."""
        assert self.node is None, f"{self.name} runs already"
        self.boots += 1
        self.cut_off = False
        self._world.fabric.set_power(self.name, is_on=True)
        self._world.trace.record(f"machine {self.name} boot {self.boots}")
        node = start(self)
        self.node = node
        return node

    def cut_off_after(self, disk_calls: int, *, power: bool) -> None:
        """Plan the end: after this many more disk calls the power is cut, or only the process is killed."""
        left = disk_calls

        def count(_operation: str, _path: str) -> None:
            nonlocal left
            if left == 0:
                raise CutOff
            left -= 1

        self.disk.on_operation = count
        self._end = self.cut_power if power else self.kill

    def run(self, action: Callable[[], object]) -> None:
        """Let the process run something; a planned kill ends it."""
        try:
            action()
        except CutOff:
            self.cut_off = True
            self._end()

    def take_turn(self) -> None:
        """Give the process one turn, if it runs and is not paused."""
        if self.node is not None and self.paused_until_ms <= self._world.time.now_ms:
            self.run(functools.partial(self.node.turn, 0.0))

    def stopped(self) -> None:
        """Note that the node has closed itself; the next boot gets new sockets and helper threads."""
        self.node = None
        self.paused_until_ms = 0.0
        self.disk.on_operation = None
        self._plug_in()

    def kill(self) -> None:
        """kill -9: the node cannot react, and everything written stays."""
        self._world.trace.record(f"machine {self.name} kill")
        self.spawner.kill()
        self.network.kill()
        self.disk.kill()
        self.stopped()

    def cut_power(self) -> None:
        """Do as `kill`; the disk keeps only what was synced and what the seed lets through."""
        self.power_cuts += 1
        self._world.trace.record(f"machine {self.name} power cut")
        self._world.fabric.set_power(self.name, is_on=False)
        self.spawner.kill()
        for network in self._networks:
            network.lose_power()
        self.disk.crash(self.entropy.branch(f"power cut {self.power_cuts}"))
        self.stopped()


class World:
    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.entropy = SeededEntropy(seed)
        self.time = VirtualTime()
        self.trace = Trace()
        self.fabric = Fabric(self.time, self.entropy.branch("fabric"), self.trace)
        self.steps = 0
        self.step_ms_max = STEP_MS_MAX
        self._pace = self.entropy.branch("pace")
        self._machines: list[VirtualMachine] = []

    def machine(self, name: str = "node", *, capacity_bytes: int = CAPACITY_BYTES) -> VirtualMachine:
        machine = VirtualMachine(self, name, capacity_bytes=capacity_bytes)
        self._machines.append(machine)
        return machine

    def connect(self, host: str, port: int, *, from_host: str = LOOPBACK) -> VirtualClient:
        return self.fabric.connect(host, port, from_host=from_host)

    def step(self) -> None:
        """Advance time a little, move some bytes, then give every running node one turn."""
        for machine in self.begin_step():
            machine.take_turn()

    def begin_step(self) -> list[VirtualMachine]:
        """Advance time and move bytes; return the machines in the order of their turns, which begins at a drawn one."""
        self.steps += 1
        self.time.advance(self._pace.below(self.step_ms_max + 1))
        self.fabric.deliver()
        machines = self._machines
        first = self._pace.below(len(machines)) if len(machines) > 1 else 0
        return machines[first:] + machines[:first]

    def run_until(self, reached: Callable[[], bool], limit_steps: int = STEPS_MAX) -> None:
        for _ in range(limit_steps):
            if reached():
                return
            self.step()
        if not reached():
            tail = "\n".join(self.trace.tail)
            raise RunTooLong(f"seed {self.seed}: not reached in {limit_steps} steps; the last events:\n{tail}")
