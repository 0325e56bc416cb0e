"""Writes the markers that end transactions to partitions of this broker, and waits for their commit."""

from collections import deque
from collections.abc import Callable, Mapping
from typing import NamedTuple

from headrace.broker.partitions.replica import Replica
from headrace.broker.services import PartitionLookup
from headrace.broker.timers import Timers
from headrace.model.errors import ErrorCode
from headrace.ports.clock import Clock

MARKERS_PER_TURN = 25
"""Markers of one request that are appended per turn."""

Target = tuple[int, str, int]
"""(number of the marker in its request, topic, partition)."""


class MarkerFields(NamedTuple):
    producer_id: int
    producer_epoch: int
    commit: bool
    coordinator_epoch: int
    transaction_version: int


class _PartitionWait:
    """The markers of one request on one partition, until the last of them is committed."""

    def __init__(self, writes: "MarkerWrites", partition: Replica) -> None:
        self._writes = writes
        self._partition = partition
        self.staged: list[tuple[Target, int]] = []
        partition.add_waiter(self)

    def readable(self, partition: Replica, new_bytes: int) -> None:
        """React to the partition: its high watermark rose, a write failed, or another broker leads it."""
        high_watermark, waiting = partition.role.high_watermark, []
        for target, end_offset in self.staged:
            if end_offset <= high_watermark:
                self._writes.errors[target] = ErrorCode.NONE
            elif not partition.serves:
                self._writes.errors[target] = partition.refusal
            elif end_offset > partition.log.staged_end_offset:
                self._writes.errors[target] = ErrorCode.KAFKA_STORAGE_ERROR
            else:
                waiting.append((target, end_offset))
        self.staged = waiting
        if not waiting:
            self.stop()
            self._writes.partition_done(partition)

    def stop(self) -> None:
        self._partition.remove_waiter(self)


class MarkerWrites:
    """The markers of one request: appended some per turn, done when each is committed or has failed."""

    def __init__(
        self, markers: Mapping[Target, MarkerFields], *, partitions: PartitionLookup, clock: Clock, timers: Timers
    ) -> None:
        self._markers = markers
        self._partitions = partitions
        self._clock = clock
        self._timers = timers
        self._unwritten: deque[Target] = deque(markers)
        self._waits: dict[Replica, _PartitionWait] = {}
        self.errors: dict[Target, ErrorCode] = {}
        """Error code of each marker that is done; NONE once it is committed."""
        self.on_done: Callable[[], None] = lambda: None
        """Called once, in a later turn than the first."""

    @property
    def is_done(self) -> bool:
        return not self._unwritten and not self._waits

    def step(self) -> None:
        """Append some markers, and go on in the next turn until all are appended."""
        for _ in range(min(len(self._unwritten), MARKERS_PER_TURN)):
            self._append(self._unwritten.popleft())
        if self._unwritten:
            self._timers.next_turn(self.step)
        elif self.is_done:
            self.on_done()

    def _append(self, target: Target) -> None:
        _, topic, index = target
        marker, partitions = self._markers[target], self._partitions
        partition = partitions.partition_of(partitions.by_name.get(topic.encode()), index)
        if isinstance(partition, ErrorCode):
            self.errors[target] = partition
            return
        outcome = partition.append_marker(
            marker.producer_id,
            marker.producer_epoch,
            commit=marker.commit,
            coordinator_epoch=marker.coordinator_epoch,
            transaction_version=marker.transaction_version,
            wall_ms=self._clock.wall_ms(),
        )
        if isinstance(outcome, ErrorCode):
            self.errors[target] = outcome
            return
        if partition not in self._waits:
            self._waits[partition] = _PartitionWait(self, partition)
        self._waits[partition].staged.append((target, outcome))

    def partition_done(self, partition: Replica) -> None:
        del self._waits[partition]
        if self.is_done:
            self.on_done()

    def give_up(self, error: ErrorCode) -> None:
        """Wait no longer: every marker that is not done gets the error."""
        for wait in self._waits.values():
            wait.stop()
            self.errors.update((target, error) for target, _ in wait.staged)
        self._waits.clear()
        self.errors.update((target, error) for target in self._unwritten)
        self._unwritten.clear()
