"""Faults of one machine: its process, its power, its disk and its clocks."""

from collections.abc import Callable

from headrace.sim.context import RunContext
from headrace.sim.entropy import SeededEntropy
from headrace.sim.operator import Operator
from headrace.sim.schedule import Schedule

DISK_CALLS_MAX, DISK_CALLS_OF_A_START_MAX = 150, 80
ARMED_MS_MAX = 2_000
PAUSE_MS_MAX = 15_000
LONG_PAUSE_MS = 60_000
LONG_PAUSE_ONE_IN = 12
WALL_JUMP_MS_MAX = 3_600_000
LONG_WALL_JUMP_MS_MAX = 30 * 24 * 3_600_000
"""Longer than producer ids, transactional ids and owners are remembered."""
LONG_WALL_JUMP_ONE_IN = 2
DRIFT_RATES = (0.5, 0.9, 1.1, 2.0)
DRIFT_MS_MAX = 8_000
REPAIR_MS_MIN, REPAIR_MS_MAX = 1_000, 6_000
FULL_DISK_FREE_BYTES_MAX = 20_000
FAILING_PATHS = ("__cluster_metadata", "checkpoint", "")


class MachineFaults:
    def __init__(
        self,
        context: RunContext,
        operator: Operator,
        entropy: SeededEntropy,
        schedule: Schedule,
        *,
        may_cut_power: Callable[[], bool],
        full_disk_free_bytes_max: int = FULL_DISK_FREE_BYTES_MAX,
    ) -> None:
        """Where the power may not be cut, the process is killed instead."""
        self._full_disk_free_bytes_max = full_disk_free_bytes_max
        self._context = context
        self._operator = operator
        self._entropy = entropy
        self._schedule = schedule
        self._may_cut_power = may_cut_power
        self._machine = context.virtual.machine
        self._capacity_bytes = self._machine.disk.capacity_bytes

    # Kills and power cuts

    def end(self, *, power: bool) -> None:
        """End the process at once, or at a disk call soon; if no process runs, only the power can be cut."""
        power = power and self._may_cut_power()
        if self._context.virtual.node is None:
            if power:
                self._operator.cut_power()
            return
        if self._entropy.below(2):
            self._end_now(power=power)
            return
        self._machine.cut_off_after(self._entropy.below(DISK_CALLS_MAX), power=power)
        boots = self._machine.boots

        def insist() -> None:
            if self._machine.boots == boots and self._context.virtual.node is not None:
                self._end_now(power=power)

        self._schedule.after(ARMED_MS_MAX, insist)

    def _end_now(self, *, power: bool) -> None:
        if power:
            self._operator.cut_power()
        else:
            self._operator.kill()

    def end_the_next_start(self) -> None:
        """Plan the end of a process that is about to start."""
        power = self._entropy.below(2) == 0 and self._may_cut_power()
        self._machine.cut_off_after(self._entropy.below(DISK_CALLS_OF_A_START_MAX), power=power)

    def pause(self) -> None:
        if self._context.virtual.node is not None:
            pause_ms = LONG_PAUSE_MS if self._entropy.one_in(LONG_PAUSE_ONE_IN) else self._entropy.below(PAUSE_MS_MAX)
            self._machine.paused_until_ms = self._context.world.time.now_ms + pause_ms
            self._context.world.trace.count_fault("pause")

    # The disk

    def disk_is_failing(self) -> bool:
        return self._machine.disk.faults.is_planned or self._machine.disk.capacity_bytes < self._capacity_bytes

    def fail_disk(self, operation: str) -> None:
        paths = [f"{target}/" for target in self._context.targets] + list(FAILING_PATHS)
        self._machine.disk.faults.fail(
            operation,
            path_contains=paths[self._entropy.below(len(paths))],
            skip=self._entropy.below(3),
            times=1 + self._entropy.below(3),
        )
        self._plan_repair()

    def fill_disk(self) -> None:
        disk = self._machine.disk
        free_bytes = self._entropy.below(self._full_disk_free_bytes_max)
        disk.capacity_bytes = self._capacity_bytes - disk.free_bytes("") + free_bytes
        self._plan_repair()

    def _plan_repair(self) -> None:
        self._context.disk_trouble = True
        self._schedule.after(REPAIR_MS_MIN + self._entropy.below(REPAIR_MS_MAX), self.repair_disk)

    def repair_disk(self) -> None:
        """Repair the disk or free space, and restart the node if a directory is offline."""
        disk = self._machine.disk
        disk.faults.heal()
        disk.capacity_bytes = self._capacity_bytes
        node = self._context.virtual.node
        if node is None or node.failed or not node.ready:
            return
        if any(partition.offline for partition in node.broker.partitions) or disk.faults.raised:
            disk.faults.raised.clear()
            if self._entropy.below(2):
                self._operator.begin_stop()
            else:
                self._end_now(power=False)

    # Clocks

    def jump(self) -> None:
        is_long = self._entropy.one_in(LONG_WALL_JUMP_ONE_IN)
        most_ms = LONG_WALL_JUMP_MS_MAX if is_long else WALL_JUMP_MS_MAX
        self._machine.clock.jump_wall(self._entropy.below(2 * most_ms) - most_ms)
        self._context.world.trace.count_fault("wall clock jump")

    def drift(self) -> None:
        clock = self._machine.clock
        clock.drift_wall(DRIFT_RATES[self._entropy.below(len(DRIFT_RATES))])
        self._context.world.trace.count_fault("wall clock drift")
        self._schedule.after(self._entropy.below(DRIFT_MS_MAX), lambda: clock.drift_wall(1.0))

    # The end of all faults

    def heal(self) -> None:
        """End all faults of the machine; the node is restarted if a directory is offline."""
        machine = self._machine
        machine.paused_until_ms = 0.0
        machine.disk.on_operation = None
        machine.clock.drift_wall(1.0)
        machine.disk.faults.short_writes_one_in = machine.disk.faults.cold_reads_one_in = 0
        self.repair_disk()

    def heal_helpers(self) -> None:
        """End delays and losses of helper threads; the node is restarted if one was lost."""
        if self._context.virtual.node is not None and self._machine.spawner.lost:
            self._operator.kill()
        self._machine.spawner.heal()
        self._context.virtual.messages.heal()
