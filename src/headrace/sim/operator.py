"""Restart the node whenever it has ended, for any reason, and check it after every turn."""

from collections.abc import Callable

from headrace.broker.node import Node
from headrace.sim.checkers.turns import TurnInvariants
from headrace.sim.checkers.violation import Violation
from headrace.sim.context import RunContext
from headrace.sim.entropy import SeededEntropy
from headrace.sim.results import NO_CRASH

DOWN_MS_MAX = 1_500
START_MS_MAX = 30_000
"""A node that is not ready after this time, without being paused by a signal, is killed and restarted; it must have an
excuse.
"""
STARTS_REFUSED_MAX = 40

NO_HAND_WORK = "a restart needs no manual work"


class Operator:
    def __init__(self, context: RunContext, entropy: SeededEntropy) -> None:
        self._context = context
        self._virtual = context.virtual
        self._entropy = entropy
        self._invariants: TurnInvariants | None = None
        self._start_at_ms = 0.0
        self._deadline_ms = 0.0
        self._refusals = 0
        self._ready_seen = False
        self.before_start: Callable[[], None] = lambda: None
        """Called when helper threads and network are new; may plan a kill during the start."""
        self.may_start_late: Callable[[], bool] = lambda: False
        """Return whether a start may wait for other nodes, which are not reachable."""
        self.restarts = 0

    @property
    def _now_ms(self) -> float:
        return self._context.world.time.now_ms

    # Kills and power cuts

    def kill(self) -> None:
        self._context.world.trace.count_fault("kill -9")
        self._virtual.machine.kill()
        self._rest()

    def cut_power(self) -> None:
        """Cut the power, also of a machine whose node has ended before."""
        self._context.world.trace.count_fault("power cut")
        self._virtual.machine.cut_power()
        self._rest()

    def begin_stop(self) -> None:
        node = self._virtual.node
        if node is not None and node.ready and not node.stopping:
            self._context.world.trace.record("operator stops the node")
            self._virtual.machine.run(node.begin_stop)
            self._deadline_ms = self._now_ms + node.config.shutdown_timeout_ms

    def _rest(self) -> None:
        self._invariants = None
        self._start_at_ms = self._now_ms + self._entropy.below(DOWN_MS_MAX)

    # The turn

    def step(self) -> None:
        """Before a turn: check the state of the node, and act as an operator or a supervisor would."""
        node = self._virtual.node
        if node is None:
            if self._invariants is not None:
                self._context.world.trace.count_fault("end at a disk call")
                self._rest()
            if self._now_ms >= self._start_at_ms:
                self._start()
        elif node.failed:
            self._context.world.trace.count_fault("metadata directory lost")
            self._end_failed(node)
        elif node.stopping:
            if node.drained or self._now_ms >= self._deadline_ms:
                self._finish_stop(node)
        elif not node.ready and self._virtual.machine.paused_until_ms > self._now_ms:
            self._deadline_ms = self._virtual.machine.paused_until_ms + START_MS_MAX
        elif not node.ready and self.may_start_late():
            self._deadline_ms = self._now_ms + START_MS_MAX
        elif not node.ready and self._now_ms >= self._deadline_ms:
            self._give_up_starting()

    def check(self) -> None:
        """Check the node after a turn."""
        node = self._virtual.node
        if node is None or not node.ready or self._invariants is None:
            return
        if not self._ready_seen:
            self._ready_seen = True
            self._refusals = 0
            self._invariants.ready()
        self._invariants.check()

    def _start(self) -> None:
        self._ready_seen = False
        self.before_start()
        try:
            self._virtual.start()
        except OSError as error:
            self.start_refused(error)
            return
        node = self._virtual.node
        if node is None:
            self._context.world.trace.count_fault("end during a start")
            self._rest()
            return
        self.restarts += 1
        self._invariants = TurnInvariants(self._context, node)
        self._deadline_ms = self._now_ms + START_MS_MAX

    def start_refused(self, error: OSError) -> None:
        """Handle a disk failure during the start: the process ends, and is started again later."""
        self._context.world.trace.record(f"operator sees a start refused: {type(error).__name__}")
        self._refusals += 1
        if not self._context.disk_trouble or self._refusals > STARTS_REFUSED_MAX:
            raise Violation(NO_HAND_WORK, f"the node does not start: {error}") from error
        if self._virtual.node is not None:
            self._virtual.machine.kill()
        self._rest()

    def _give_up_starting(self) -> None:
        if not self._virtual.machine.spawner.lost:
            raise Violation(NO_HAND_WORK, f"the node is not ready after {START_MS_MAX} ms")
        self.kill()

    def _end_failed(self, node: Node) -> None:
        node.begin_stop()
        self._close()
        self._rest()

    def _finish_stop(self, node: Node) -> None:
        whole = not self._context.disk_trouble
        self._close()
        if whole and not self._virtual.machine.cut_off:
            self._context.world.trace.count_fault("clean stop")
            for topic in self._context.histories.topics.values():
                for partition in topic.partitions:
                    partition.closed_cleanly()
        self._rest()

    def _close(self) -> None:
        try:
            self._virtual.finish_stop()
        except OSError as error:
            if not self._context.disk_trouble:
                raise Violation(NO_CRASH, f"a stop ended with {error}") from error
