"""Faults of a run. The seed first draws which faults exist and how often, then when they happen (swarm testing).

A run with every fault at once would hide bugs that only appear when some are absent, so each run has its own mixture,
and a quarter of the runs have only few.
"""

import errno
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from headrace.sim.context import RunContext
from headrace.sim.entropy import SeededEntropy
from headrace.sim.machine_faults import MachineFaults
from headrace.sim.operator import Operator
from headrace.sim.schedule import Schedule
from headrace.sim.spawner import LATER_ANSWERS, OTHER_WORK
from headrace.sim.streams import WHOLE_EIGHTHS
from headrace.sim.workloads.canary import SERVED_MEANWHILE
from headrace.sim.workloads.client import Client
from headrace.sim.workloads.hostile import HostilePeers

CALM_ONE_IN = 4
PRESENT_PERCENT, PRESENT_PERCENT_WHEN_CALM = 55, 15
STALL_MS_MAX = 4_000
SELDOM_CUT_EIGHTHS = 6
MANDATORY_CUT_SHARE = (2, 7)
"""Between these tenths of a run the power is cut at least once, and again until a cut tore something."""

METADATA_LOST = "metadata directory lost"


class Rate(NamedTuple):
    """The mean time between two strikes, drawn from this range."""

    shortest_ms: int
    longest_ms: int


STRIKES = {
    "kill": Rate(6_000, 25_000),
    "power": Rate(6_000, 25_000),
    "stop": Rate(8_000, 30_000),
    "reset": Rate(800, 8_000),
    "stall": Rate(1_500, 10_000),
    "slow reader": Rate(2_000, 10_000),
    "half-close": Rate(2_000, 12_000),
    "accept": Rate(4_000, 20_000),
    "hostile": Rate(500, 5_000),
    "EIO on write_vector": Rate(15_000, 40_000),
    "EIO on data_sync": Rate(15_000, 40_000),
    "EIO on rename": Rate(15_000, 40_000),
    "disk full": Rate(15_000, 40_000),
    "jump": Rate(4_000, 20_000),
    "drift": Rate(6_000, 25_000),
    "pause": Rate(10_000, 40_000),
}
HABITS = ("short write", "cold read", "slices", "delays", "losses", "cut starts")
"""Faults that do not strike at moments but apply throughout a run, at a rate."""

MET = (
    "kill -9",
    "power cut",
    "clean stop",
    "end at a disk call",
    "end during a start",
    "unsynced page torn",
    "unsynced page dropped",
    "unsynced name undone",
    "frame cut in the middle",
    "frame left unfinished",
    "stream stalled",
    "connection reset",
    "half-close",
    "slow reader",
    "accept refused",
    "hostile frame",
    "EIO on write_vector",
    "EIO on data_sync",
    "EIO on rename",
    "disk full",
    METADATA_LOST,
    "short write",
    "cold read",
    "wall clock jump",
    "wall clock drift",
    "pause",
    *(f"{kind} delayed" for kind in LATER_ANSWERS),
    *(f"{kind} lost" for kind in LATER_ANSWERS),
    f"{OTHER_WORK} delayed",
    SERVED_MEANWHILE,
)
"""Every fault that a report counts."""


def draw_rates(
    entropy: SeededEntropy, strikes: Mapping[str, Rate], habits: Sequence[str], *, always: Sequence[str] = ()
) -> tuple[dict[str, float], dict[str, int]]:
    """Draw the strikes of a run with the mean time between two of each, and its habits with their "one in" rates."""
    percent = PRESENT_PERCENT_WHEN_CALM if entropy.one_in(CALM_ONE_IN) else PRESENT_PERCENT
    rates: dict[str, float] = {}
    for name, rate in strikes.items():
        present, place = entropy.below(100) < percent, entropy.below(1_000) / 1_000
        if present:
            rates[name] = rate.shortest_ms * (rate.longest_ms / rate.shortest_ms) ** place
    one_in: dict[str, int] = {}
    for name in habits:
        present, rarity = entropy.below(100) < percent, 4 + entropy.below(30)
        if present or name in always:
            one_in[name] = rarity
    return rates, one_in


class Nemesis:
    def __init__(
        self,
        context: RunContext,
        operator: Operator,
        clients: Sequence[Client],
        entropy: SeededEntropy,
        *,
        duration_ms: float,
        habits: Sequence[str],
        losses_factor: int,
        torn: str,
        with_power_cuts: bool,
    ) -> None:
        """`habits` always apply; a loss is `losses_factor` times as rare as its habit; the power is cut until `torn`
        was met. Without power cuts there are kills instead.
        """
        self._torn = torn
        self._with_power_cuts = with_power_cuts
        self._context = context
        self._operator = operator
        self._clients = clients
        self._entropy = entropy
        self._machine = context.virtual.machine
        self._hostile = HostilePeers(context, entropy.branch("hostile"))
        self._schedule = Schedule(context.world.time)
        self._faults = MachineFaults(context, operator, entropy, self._schedule, may_cut_power=lambda: with_power_cuts)
        self._healed = False
        self._losses_factor = losses_factor
        self._rates, self._habits = draw_rates(entropy.branch("swarm"), STRIKES, HABITS, always=habits)
        for name in self._rates:
            self._plan_strike(name)
        self._plan_mandatory_cut(duration_ms)
        operator.before_start = self._before_start
        self._apply_habits()

    def _plan_mandatory_cut(self, duration_ms: float) -> None:
        earliest, latest = (duration_ms * tenths / 10 for tenths in MANDATORY_CUT_SHARE)
        self._schedule.after(earliest + self._entropy.below(max(1, int(latest - earliest))), self._mandatory_cut)

    def _mandatory_cut(self) -> None:
        if not self._with_power_cuts:
            self._faults.end(power=False)
        elif not self._context.world.trace.met[self._torn]:
            self._operator.cut_power()
            self._schedule.after(2_000 + self._entropy.below(3_000), self._mandatory_cut)

    # Time

    def _plan_strike(self, name: str) -> None:
        """Draw uniformly up to twice the mean: bounded, so that a rare fault still happens within a run."""
        self._schedule.after(self._entropy.below(max(1, int(2 * self._rates[name]))), lambda: self._strike(name))

    def step(self) -> None:
        self._schedule.run_due()
        self._hostile.step()

    def _strike(self, name: str) -> None:
        if self._healed:
            return
        self._context.world.trace.record(f"nemesis {name}")
        {
            "kill": lambda: self._faults.end(power=False),
            "power": lambda: self._faults.end(power=True),
            "stop": self._operator.begin_stop,
            "reset": self._reset,
            "stall": lambda: self._stall("stream stalled", sending=True),
            "slow reader": lambda: self._stall("slow reader", receiving=True),
            "half-close": self._half_close,
            "accept": lambda: self._machine.network.fail_accepts(errno.EMFILE, 1 + self._entropy.below(3)),
            "hostile": self._hostile.attack,
            "EIO on write_vector": lambda: self._faults.fail_disk("write_vector"),
            "EIO on data_sync": lambda: self._faults.fail_disk("data_sync"),
            "EIO on rename": lambda: self._faults.fail_disk("rename"),
            "disk full": self._faults.fill_disk,
            "jump": self._faults.jump,
            "drift": self._faults.drift,
            "pause": self._faults.pause,
        }[name]()
        self._plan_strike(name)

    # Starts

    def _before_start(self) -> None:
        self._context.disk_trouble = self._faults.disk_is_failing()
        if self._healed:
            return
        self._apply_habits()
        if "cut starts" in self._habits and self._entropy.one_in(self._habits["cut starts"] // 2):
            self._faults.end_the_next_start()

    def _apply_habits(self) -> None:
        """Apply the habits. Helper threads and network are new with every start; the disk stays."""
        habits = self._habits
        self._machine.disk.faults.short_writes_one_in = habits.get("short write", 0)
        self._machine.disk.faults.cold_reads_one_in = habits.get("cold read", 0)
        self._context.world.fabric.whole_eighths = WHOLE_EIGHTHS if "slices" in habits else SELDOM_CUT_EIGHTHS
        spawner = self._machine.spawner
        spawner.long_delays_one_in = habits.get("delays", 0)
        spawner.losses_one_in = self._losses_factor * habits.get("losses", 0)
        messages = self._context.virtual.messages
        messages.delays_one_in, messages.losses_one_in = spawner.long_delays_one_in, 2 * habits.get("losses", 0)

    # The network

    def _victim(self) -> Client | None:
        connected = [client for client in self._clients if client.connection is not None]
        return connected[self._entropy.below(len(connected))] if connected else None

    def _reset(self) -> None:
        client = self._victim()
        if client is not None and client.connection is not None:
            if client.connection.wire.is_within_a_frame():
                self._context.world.trace.count_fault("frame left unfinished")
            client.connection.wire.reset()
            self._context.world.trace.count_fault("connection reset")

    def _stall(self, fault: str, *, sending: bool = False, receiving: bool = False) -> None:
        client = self._victim()
        if client is None or client.connection is None:
            return
        wire = client.connection.wire
        wire.stall(sending=sending, receiving=receiving)
        self._context.world.trace.count_fault(fault)
        self._schedule.after(self._entropy.below(STALL_MS_MAX), wire.stall)

    def _half_close(self) -> None:
        client = self._victim()
        if client is not None and client.connection is not None and not client.silent:
            client.connection.wire.finish()
            client.silent = True
            self._context.world.trace.count_fault("half-close")

    # The end of all faults

    def heal(self) -> None:
        """End all faults; the node is restarted if a directory is offline or a helper thread was lost."""
        self._healed = True
        self._schedule.clear()
        self._context.world.trace.record("nemesis heals")
        self._faults.heal()
        for client in self._clients:
            if client.connection is not None:
                client.connection.wire.stall()
        self._faults.heal_helpers()
