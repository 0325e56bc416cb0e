"""Writes the markers that end transactions to partitions of this broker, and waits for their commit."""

from collections import deque
from collections.abc import Callable, Mapping
from functools import partial
from typing import NamedTuple

from headrace.broker.partitions.replica import Replica
from headrace.broker.services import PartitionAdmin
from headrace.broker.timers import Timers
from headrace.model.errors import ErrorCode
from headrace.ports.clock import Clock

MARKERS_PER_TURN = 25
"""Markers of one request that are appended per turn. Each takes 50 us, with the record that all markers are written."""

Target = tuple[int, str, int]
"""(number of the marker in its request, topic, partition)."""


class MarkerFields(NamedTuple):
    producer_id: int
    producer_epoch: int
    commit: bool
    coordinator_epoch: int
    transaction_version: int
    sync: bool = False
    """True if the marker counts as written when it is synced to disk, and not as soon as it is committed."""


class _PartitionWait:
    """The markers of one request on one partition, until the last of them is committed."""

    def __init__(self, writes: "MarkerWrites", partition: Replica) -> None:
        self._writes = writes
        self._partition = partition
        self.staged: list[tuple[Target, int]] = []
        partition.add_waiter(self)

    def readable(self, partition: Replica, new_bytes: int) -> None:
        """React to the partition: its high watermark rose, a write failed, or another broker leads it."""
        high_watermark, waiting, staged = partition.role.high_watermark, [], self.staged
        self.staged = []
        for target, end_offset in staged:
            if end_offset <= high_watermark:
                self._writes.committed(target, partition, end_offset)
            elif not partition.serves:
                self._writes.ended(target, partition.refusal)
            elif end_offset > partition.log.staged_end_offset:
                self._writes.ended(target, ErrorCode.KAFKA_STORAGE_ERROR)
            else:
                waiting.append((target, end_offset))
        self.staged = waiting
        if not waiting:
            self.stop()
            self._writes.partition_done(partition)

    def stop(self) -> None:
        self._partition.remove_waiter(self)


class MarkerWrites:
    """The markers of one request, appended over several turns; done when each is committed or has failed."""

    def __init__(
        self,
        markers: Mapping[Target, MarkerFields],
        *,
        partitions: PartitionAdmin,
        clock: Clock,
        timers: Timers,
        on_ended: Callable[[Target, ErrorCode], None] = lambda target, error: None,
    ) -> None:
        """`on_ended` is called for each marker, with NONE once it is committed and, if it asks for that, synced."""
        self._markers = markers
        self._partitions = partitions
        self._clock = clock
        self._timers = timers
        self._on_ended = on_ended
        self._unwritten: deque[Target] = deque(markers)
        self._waits: dict[Replica, _PartitionWait] = {}
        self._syncing: set[Target] = set()
        self.errors: dict[Target, ErrorCode] = {}
        """Error code of each marker that has ended."""
        self.on_done: Callable[[], None] = lambda: None
        """Called once, in a later turn than the first."""

    @property
    def is_done(self) -> bool:
        return not self._unwritten and not self._waits and not self._syncing

    def step(self) -> None:
        """Append some markers, and continue in the next turn until all are appended."""
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
            self.ended(target, partition)
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
            self.ended(target, outcome)
            return
        if partition not in self._waits:
            self._waits[partition] = _PartitionWait(self, partition)
        self._waits[partition].staged.append((target, outcome))

    def committed(self, target: Target, partition: Replica, end_offset: int) -> None:
        if not self._markers[target].sync:
            self.ended(target, ErrorCode.NONE)
            return
        self._syncing.add(target)
        self._partitions.syncs.when_synced(partition, end_offset, partial(self._synced, target))

    def _synced(self, target: Target, ok: bool) -> None:
        if target not in self._syncing:
            return  # the wait was given up
        self._syncing.remove(target)
        self.ended(target, ErrorCode.NONE if ok else ErrorCode.KAFKA_STORAGE_ERROR)
        if self.is_done:
            self.on_done()

    def ended(self, target: Target, error: ErrorCode) -> None:
        self.errors[target] = error
        self._on_ended(target, error)

    def partition_done(self, partition: Replica) -> None:
        del self._waits[partition]
        if self.is_done:
            self.on_done()

    def give_up(self, error: ErrorCode) -> None:
        """Wait no longer: every marker that has not ended gets the error."""
        given_up = [*self._syncing, *self._unwritten]
        for wait in self._waits.values():
            wait.stop()
            given_up += [target for target, _ in wait.staged]
        self._syncing.clear()
        self._waits.clear()
        self._unwritten.clear()
        for target in given_up:
            self.ended(target, error)
