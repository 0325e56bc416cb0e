"""Faults of a cluster's run. The seed first draws which exist and how often, then when and at which broker."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

from headrace.sim.cluster.applications import Application
from headrace.sim.cluster.context import ClusterContext
from headrace.sim.context import RunContext
from headrace.sim.entropy import SeededEntropy
from headrace.sim.machine_faults import MachineFaults
from headrace.sim.nemesis import Rate, draw_rates
from headrace.sim.node import VirtualNode
from headrace.sim.operator import Operator
from headrace.sim.schedule import Schedule
from headrace.sim.streams import WHOLE_EIGHTHS

CUT_MS_MAX = 12_000
RESETS_MS_MAX = 3_000
RESET_ONE_IN = 6
SLOW_MS_MAX = 6_000
SLOW_DELAY_MS_MAX = 900
DRIFT_PERCENT_MAX = 1.0
CUTS_ONE_IN = 3
"""Kills that are power cuts, if the power may be cut then."""
FULL_DISK_FREE_BYTES_MAX = 500
"""Little, because a broker of a cluster writes little before it sees that its disk is almost full."""
USUAL_DELAYS_MS_MAX = (0, 0, 15, 60, 150)
SELDOM_CUT_EIGHTHS = 6
MANDATORY_SHARE = (2, 7)
"""Between these tenths of a run, at least one broker is stopped and at least one link is cut."""

STRIKES = {
    "kill": Rate(5_000, 25_000),
    "kill the controller": Rate(8_000, 30_000),
    "power": Rate(8_000, 30_000),
    "stop": Rate(10_000, 40_000),
    "pause": Rate(10_000, 40_000),
    "isolate": Rate(6_000, 25_000),
    "one-way cut": Rate(6_000, 25_000),
    "split": Rate(8_000, 30_000),
    "resets": Rate(4_000, 20_000),
    "slow link": Rate(4_000, 20_000),
    "jump": Rate(6_000, 25_000),
    "drift": Rate(8_000, 30_000),
    "EIO on write_vector": Rate(20_000, 60_000),
    "EIO on data_sync": Rate(20_000, 60_000),
    "EIO on rename": Rate(20_000, 60_000),
    "disk full": Rate(20_000, 60_000),
    "application": Rate(6_000, 25_000),
}
HABITS = ("short write", "cold read", "slices", "delays", "packet loss", "cut starts")

MET = (
    "kill -9",
    "power cut",
    "clean stop",
    "end at a disk call",
    "end during a start",
    "pause",
    "link cut",
    "link cut one way",
    "link slow",
    "connection between brokers reset",
    "packet lost",
    "frame cut in the middle",
    "wall clock jump",
    "wall clock drift",
    "EIO on write_vector",
    "EIO on data_sync",
    "disk full",
    "application killed",
    "controller killed",
    "broker fenced",
)


class _Broker(NamedTuple):
    context: RunContext
    operator: Operator
    faults: MachineFaults

    @property
    def host(self) -> str:
        return self.context.virtual.machine.name


class ClusterNemesis:
    def __init__(
        self,
        context: ClusterContext,
        operators: Sequence[tuple[RunContext, Operator]],
        applications: Sequence[Application],
        entropy: SeededEntropy,
        *,
        duration_ms: float,
        may_cut_power: Callable[[VirtualNode], bool],
        kills_are_cuts: bool,
    ) -> None:
        self._context = context
        self._entropy = entropy
        self._applications = applications
        self._schedule = Schedule(context.world.time)
        self._healed = False
        self._kills_are_cuts = kills_are_cuts
        self._cuts_instead = entropy.branch("cuts instead of kills")
        self._brokers = [
            _Broker(
                own,
                operator,
                MachineFaults(
                    own,
                    operator,
                    entropy.branch(own.virtual.machine.name),
                    self._schedule,
                    may_cut_power=partial(may_cut_power, own.virtual),
                    full_disk_free_bytes_max=FULL_DISK_FREE_BYTES_MAX,
                ),
            )
            for own, operator in operators
        ]
        self._rates, self._habits = draw_rates(entropy.branch("swarm"), STRIKES, HABITS)
        for name in self._rates:
            self._plan_strike(name)
        self._usual_delay_ms_max = USUAL_DELAYS_MS_MAX[entropy.below(len(USUAL_DELAYS_MS_MAX))]
        for broker in self._brokers:
            broker.operator.before_start = partial(self._before_start, broker)
            self._apply_habits(broker)
            drift_percent = (entropy.below(201) - 100) / 100 * DRIFT_PERCENT_MAX
            broker.context.virtual.machine.clock.drift_monotonic(1 + drift_percent / 100)
        self._apply_links()
        earliest, latest = (int(duration_ms * tenths / 10) for tenths in MANDATORY_SHARE)
        for strike in ("kill", "isolate"):
            self._schedule.after(earliest + entropy.below(latest - earliest + 1), partial(self._do, strike))

    # Time

    def step(self) -> None:
        self._schedule.run_due()

    def _plan_strike(self, name: str) -> None:
        self._schedule.after(self._entropy.below(max(1, int(2 * self._rates[name]))), lambda: self._strike(name))

    def _strike(self, name: str) -> None:
        self._do(name)
        self._plan_strike(name)

    def _do(self, name: str) -> None:
        broker = self._brokers[self._entropy.below(len(self._brokers))]
        self._context.world.trace.record(f"nemesis {name} {broker.host}")
        actions: dict[str, Callable[[], None]] = {
            "kill": lambda: broker.faults.end(power=self._cuts_instead.one_in(CUTS_ONE_IN) and self._kills_are_cuts),
            "kill the controller": self._kill_controller,
            "power": lambda: broker.faults.end(power=True),
            "stop": broker.operator.begin_stop,
            "pause": broker.faults.pause,
            "isolate": lambda: self._isolate(broker),
            "one-way cut": lambda: self._cut_one_way(broker),
            "split": self._split,
            "resets": lambda: self._reset(broker),
            "slow link": lambda: self._slow(broker),
            "jump": broker.faults.jump,
            "drift": broker.faults.drift,
            "EIO on write_vector": lambda: broker.faults.fail_disk("write_vector"),
            "EIO on data_sync": lambda: broker.faults.fail_disk("data_sync"),
            "EIO on rename": lambda: broker.faults.fail_disk("rename"),
            "disk full": broker.faults.fill_disk,
            "application": self._kill_application,
        }
        actions[name]()

    # Processes

    def _kill_controller(self) -> None:
        controller = self._context.cluster.controller()
        if controller is not None:
            self._context.world.trace.count_fault("controller killed")
            broker = next(each for each in self._brokers if each.context.virtual is controller[0])
            broker.operator.kill()

    def _kill_application(self) -> None:
        self._applications[self._entropy.below(len(self._applications))].restart()

    def _before_start(self, broker: _Broker) -> None:
        broker.context.disk_trouble = broker.faults.disk_is_failing()
        if self._healed:
            return
        self._apply_habits(broker)
        if "cut starts" in self._habits and self._entropy.one_in(self._habits["cut starts"] // 2):
            broker.faults.end_the_next_start()

    def _apply_habits(self, broker: _Broker) -> None:
        """Apply the habits of one broker; its helper threads and its network are new with every start."""
        machine = broker.context.virtual.machine
        machine.disk.faults.short_writes_one_in = self._habits.get("short write", 0)
        machine.disk.faults.cold_reads_one_in = self._habits.get("cold read", 0)
        machine.spawner.long_delays_one_in = 4 * self._habits.get("delays", 0)
        is_sliced = "slices" in self._habits
        self._context.world.fabric.whole_eighths = WHOLE_EIGHTHS if is_sliced else SELDOM_CUT_EIGHTHS

    # Links

    def _hosts(self) -> list[str]:
        return [broker.host for broker in self._brokers]

    def _pairs(self) -> list[tuple[str, str]]:
        hosts = self._hosts()
        return [(source, to) for source in hosts for to in hosts if source != to]

    def _apply_links(self) -> None:
        for source, to in self._pairs():
            link = self._context.world.fabric.links.between(source, to)
            link.delay_ms_max = self._usual_delay_ms_max
            link.lost_one_in = 4 * self._habits.get("packet loss", 0)

    def _cut(self, pairs: Sequence[tuple[str, str]], fault: str) -> None:
        links = [self._context.world.fabric.links.between(source, to) for source, to in pairs]
        if not links:
            return
        self._context.world.trace.count_fault(fault)
        for link in links:
            link.is_cut = True

        def restore() -> None:
            for link in links:
                link.is_cut = False

        self._schedule.after(self._entropy.below(CUT_MS_MAX), restore)

    def _isolate(self, broker: _Broker) -> None:
        """Cut a broker off from the others, and sometimes from the applications too."""
        others = [host for host in self._hosts() if host != broker.host]
        if self._entropy.one_in(3):
            others += [application.name for application in self._applications]
        self._cut([pair for other in others for pair in ((broker.host, other), (other, broker.host))], "link cut")

    def _cut_one_way(self, broker: _Broker) -> None:
        others = [host for host in self._hosts() if host != broker.host]
        outwards = self._entropy.one_in(2)
        self._cut([(broker.host, other) if outwards else (other, broker.host) for other in others], "link cut one way")

    def _split(self) -> None:
        sides = {host: self._entropy.one_in(2) for host in self._hosts()}
        self._cut([(source, to) for source, to in self._pairs() if sides[source] != sides[to]], "link cut")

    def _reset(self, broker: _Broker) -> None:
        """Reset connections of a broker for a while."""
        links = [
            self._context.world.fabric.links.between(source, to)
            for source, to in self._pairs()
            if source == broker.host
        ]
        for link in links:
            link.reset_one_in = RESET_ONE_IN

        def restore() -> None:
            for link in links:
                link.reset_one_in = 0

        self._schedule.after(self._entropy.below(RESETS_MS_MAX), restore)

    def _slow(self, broker: _Broker) -> None:
        self._context.world.trace.count_fault("link slow")
        delay_ms_max = self._entropy.below(SLOW_DELAY_MS_MAX)
        for source, to in self._pairs():
            if broker.host in (source, to):
                self._context.world.fabric.links.between(source, to).delay_ms_max = delay_ms_max
        self._schedule.after(self._entropy.below(SLOW_MS_MAX), self._apply_links)

    # The end of all faults

    def heal(self) -> None:
        self._healed = True
        self._schedule.clear()
        self._context.world.trace.record("nemesis heals")
        self._context.world.fabric.links.heal()
        for broker in self._brokers:
            broker.faults.heal()
            broker.faults.heal_helpers()
