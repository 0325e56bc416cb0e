"""Applications: programs that use the cluster through the shipped client, each on a machine of its own."""

from headrace.client.config import ClientConfig
from headrace.client.loop import LoopClient
from headrace.sim.cluster.context import ClusterContext
from headrace.sim.world import VirtualMachine

REQUEST_TIMEOUT_MS = 8_000
METADATA_AGE_MS = 20_000


class Application:
    """A subclass creates its producers and consumers in `begin` and uses them in `work`, once per turn."""

    def __init__(self, context: ClusterContext, name: str) -> None:
        self.context = context
        self.name = name
        self.entropy = context.world.entropy.branch(f"application {name}")
        self.machine = context.world.machine(name)
        self.stopped = False
        """Begins nothing new any more, and waits for what is in progress."""
        self.progress = 0
        self._progress_before = 0
        self._next_ms = 0.0
        self._wakeup_ms = 0.0
        """When the client needs its next step, by the machine's clock."""
        self.client: LoopClient
        self.machine.boot(self._compose)

    def _compose(self, machine: VirtualMachine) -> "Application":
        servers = self.context.cluster.bootstrap_servers
        first = self.entropy.below(len(servers))
        config = ClientConfig(
            bootstrap_servers=servers[first:] + servers[:first], request_timeout_ms=REQUEST_TIMEOUT_MS
        )
        self.client = LoopClient(config, network=machine.network, clock=machine.clock, entropy=machine.entropy)
        self.begin()
        return self

    @property
    def now_ms(self) -> float:
        return self.context.world.time.now_ms

    def restart(self) -> None:
        """End the process without warning, and start it again."""
        self.context.world.trace.count_fault("application killed")
        self.machine.kill()
        self.ended()
        self.machine.boot(self._compose)

    def turn(self, timeout_ms: float = 0.0) -> None:
        """Let the client and the program do what is due; most turns of most applications have nothing to do."""
        events = self.machine.network.poll(0)
        is_due = self.now_ms >= self._next_ms
        if is_due:
            self.work()
        if events or is_due or self.machine.clock.monotonic_ms() >= self._wakeup_ms:
            self.client.handle(events)
            self._wakeup_ms = self.client.step()
            self.received()

    def rest(self, longest_ms: int) -> None:
        self._next_ms = self.now_ms + self.entropy.below(longest_ms)

    # For subclasses

    def begin(self) -> None:
        """Create what the process uses."""

    def work(self) -> None:
        """Begin something; called once per turn unless it rests."""

    def received(self) -> None:
        """Called after the client may have received something."""

    def ended(self) -> None:
        """Called when the process was killed."""

    @property
    def settled(self) -> bool:
        """Return whether nothing is in progress."""
        return True

    # Progress

    def hurry(self) -> None:
        """Show progress from now on, because everything is healed."""
        self._progress_before = self.progress
        self._next_ms = 0.0

    def has_progressed(self) -> bool:
        return self.progress > self._progress_before
