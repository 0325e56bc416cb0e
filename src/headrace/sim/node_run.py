"""One run of one broker: work under faults, healing, progress, and a comparison with the promises.

The seed draws the settings, the topics, the clients and the faults. Under faults the clients work for the given time;
then everything is healed, all clients must make progress, and the result is compared with the promises.
"""

from collections.abc import Callable

from headrace.sim.checkers.violation import Violation
from headrace.sim.context import RunContext
from headrace.sim.nemesis import Nemesis
from headrace.sim.node import VirtualNode
from headrace.sim.operator import Operator
from headrace.sim.scenarios.scenario import Scenario
from headrace.sim.trace import Trace
from headrace.sim.workloads.canary import Canary
from headrace.sim.world import World

MINUTE_MS = 60_000
STEP_MS_MAX = 80
"""Turns of a run are rarer than real ones, so that minutes of timers, pauses and retention need few of them."""
PROGRESS_MS_MAX = 30_000
FRAME_CUT = "frame cut in the middle"

PROGRESS = "once everything is healed, every client makes progress within 30 s"


class SimulationRun:
    def __init__(self, seed: int, scenario: Scenario, *, duration_ms: float) -> None:
        self.world = World(seed)
        self.world.step_ms_max = STEP_MS_MAX
        self.scenario = scenario
        self._duration_ms = duration_ms
        draws = self.world.entropy.branch("run")
        self._virtual = VirtualNode(self.world, scenario.settings(draws))
        self.context = RunContext(self.world, self._virtual, scenario.plans(draws))
        self.operator = Operator(self.context, self.world.entropy.branch("operator"))
        self._victims = scenario.clients(self.context, draws)
        self._clients = [*self._victims, Canary(self.context)]

    @property
    def trace(self) -> Trace:
        return self.world.trace

    @property
    def steps(self) -> int:
        return self.world.steps

    @property
    def progress(self) -> int:
        return self.scenario.progress(self.context)

    @property
    def restarts(self) -> int:
        return self.operator.restarts

    def must_meet(self) -> tuple[str, ...]:
        """Return the faults that this run must have met in order to count."""
        return (FRAME_CUT, *self.scenario.must_meet())

    def carry_out(self) -> None:
        self._open()
        nemesis = Nemesis(
            self.context,
            self.operator,
            self._victims,
            self.world.entropy.branch("nemesis"),
            duration_ms=self._duration_ms,
            habits=self.scenario.habits,
            losses_factor=self.scenario.losses_factor,
            torn=self.scenario.torn,
            with_power_cuts=self.scenario.with_power_cuts,
        )
        end_ms = self.world.time.now_ms + self._duration_ms
        while self.world.time.now_ms < end_ms:
            nemesis.step()
            self._step()
        nemesis.heal()
        self._catch_up_after_outages()
        self._await_progress()
        self._settle()
        self.scenario.audit(self.context)
        self._cut_once_more()

    # Phases

    def _open(self) -> None:
        """Start for the first time, without faults, and create the topics."""
        self._run_until(lambda: self._virtual.serves, "the first start fails")
        self.scenario.open(self.context)

    def _catch_up_after_outages(self) -> None:
        """Continue until there are enough batches to prove anything, if the faults left too few."""
        self._run_until(lambda: self._virtual.serves, "the node does not serve")
        progress_min = self.scenario.progress_min * min(1.0, self._duration_ms / MINUTE_MS)
        end_ms = self.world.time.now_ms + self._duration_ms
        while self.world.time.now_ms < end_ms and self.progress < progress_min:
            self._step()

    def _await_progress(self) -> None:
        for client in self._clients:
            client.hurry()
        waiting = list(self._clients)

        def progressed() -> bool:
            waiting[:] = [client for client in waiting if not client.has_progressed()]
            return not waiting

        self._run_until(progressed, lambda: f"{', '.join(client.name for client in waiting)} got nowhere")

    def _settle(self) -> None:
        """Let clients begin nothing new and wait until their requests have ended."""
        for client in self._clients:
            client.stopped = True
        self._run_until(lambda: all(client.settled for client in self._clients), "requests in progress do not end")
        for client in self._clients:
            client.drop()

    def _cut_once_more(self) -> None:
        """Cut the power a last time without warning; the start after it must find everything that was synced."""
        if self.scenario.with_power_cuts:
            self.operator.cut_power()
        else:
            self.operator.kill()
        self._run_until(lambda: self._virtual.serves, "the last start fails")
        self.scenario.audit_again(self.context)

    # Turns

    def _step(self) -> None:
        self.operator.step()
        for client in self._clients:
            client.step()
        try:
            self.world.step()
        except OSError as error:
            node = self._virtual.node
            if node is None or node.ready:
                raise
            self.operator.start_refused(error)
        self.operator.check()
        if self._virtual.serves:
            self.scenario.check(self.context, self._virtual.running)

    def _run_until(self, reached: Callable[[], bool], otherwise: str | Callable[[], str]) -> None:
        """Run turns until the condition holds; `otherwise` is the violation if it does not in time."""
        deadline_ms = self.world.time.now_ms + PROGRESS_MS_MAX
        while not reached():
            if self.world.time.now_ms >= deadline_ms:
                raise Violation(PROGRESS, otherwise if isinstance(otherwise, str) else otherwise())
            self._step()
