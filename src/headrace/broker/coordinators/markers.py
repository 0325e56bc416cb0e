"""Sends transaction markers to the leaders of partitions, and retries until each partition has committed its marker.

The leader gets a marker in a later turn, and the marker counts as written when it is committed there. Today every
leader is in this process; a leader on another node will get a WriteTxnMarkers request with the same results.
"""

from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from headrace.broker.coordinators.host import Runtime
from headrace.broker.partitions.replica import Replica
from headrace.broker.services import CoordinatorServices
from headrace.core.transactions.records import Partition
from headrace.model.errors import ErrorCode

MARKER_RETRY_MS = 100
"""The pause before a marker that a partition could not take is sent again."""

MARKERS_PER_TURN = 25
"""Markers that are written in one turn. Each takes 50 us, including the record that it was written."""

_FENCED = (ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.TRANSACTION_COORDINATOR_FENCED)
"""Errors of a partition that a newer producer or coordinator has fenced: sending the marker again is useless."""


class TransactionMarker(NamedTuple):
    producer_id: int
    producer_epoch: int
    commit: bool
    coordinator_epoch: int
    transaction_version: int
    partitions: frozenset[Partition]


class _Sending:
    """One marker that is being sent to all of its partitions."""

    __slots__ = ("done", "marker", "missing")

    def __init__(self, marker: TransactionMarker, done: Callable[[], None]) -> None:
        self.marker = marker
        self.missing = len(marker.partitions)
        self.done = done

    def written(self) -> None:
        self.missing -= 1
        if not self.missing:
            self.done()


class _Waiter:
    """The markers of one partition that are staged and not committed yet."""

    def __init__(self, sender: "MarkerSender", partition: Replica, target: Partition) -> None:
        self._sender = sender
        self.partition = partition
        self._target = target
        self._staged: deque[tuple[int, _Sending]] = deque()
        partition.add_waiter(self)

    def add(self, end_offset: int, sending: _Sending) -> None:
        self._staged.append((end_offset, sending))

    def readable(self, partition: Replica, new_bytes: int) -> None:
        """React to the partition: its high watermark rose, a write failed, or another broker leads it."""
        high_watermark, staged = partition.role.high_watermark, self._staged
        while staged and staged[0][0] <= high_watermark:
            self._sender.written(staged.popleft()[1])
        written_end = partition.log.staged_end_offset if partition.serves else -1
        while staged and staged[-1][0] > written_end:
            self._sender.retry(self._target, staged.pop()[1])
        if not staged:
            partition.remove_waiter(self)
            self._sender.forget(self._target, self)


class MarkerSender:
    def __init__(self, services: CoordinatorServices, runtime: Runtime) -> None:
        self._services = services
        self._timers = runtime.timers
        self._logger = runtime.logger
        self._waiters: dict[Partition, _Waiter] = {}
        self._queue: deque[tuple[Partition, _Sending]] = deque()
        self._queued = False
        self.unwritten = 0
        """Markers that a partition has not committed yet."""

    def send(self, marker: TransactionMarker, done: Callable[[], None]) -> None:
        """Send a marker; `done` is called in a later turn, when every partition has committed it."""
        if not marker.partitions:
            self._timers.next_turn(done)
            return
        sending = _Sending(marker, done)
        self.unwritten += len(marker.partitions)
        self._queue.extend((partition, sending) for partition in sorted(marker.partitions))
        self._deliver_later()

    def retry(self, target: Partition, sending: _Sending) -> None:
        self._timers.after(MARKER_RETRY_MS, lambda: self._queue_again(target, sending))

    def _queue_again(self, target: Partition, sending: _Sending) -> None:
        self._queue.append((target, sending))
        self._deliver_later()

    def forget(self, target: Partition, waiter: _Waiter) -> None:
        if self._waiters.get(target) is waiter:
            del self._waiters[target]

    def _deliver_later(self) -> None:
        if self._queue and not self._queued:
            self._queued = True
            self._timers.next_turn(self._deliver)

    def _deliver(self) -> None:
        self._queued = False
        for _ in range(min(len(self._queue), MARKERS_PER_TURN)):
            target, sending = self._queue.popleft()
            self._deliver_one(target, sending)
        self._deliver_later()

    def _deliver_one(self, target: Partition, sending: _Sending) -> None:
        topic, index = target
        services, marker = self._services, sending.marker
        if services.image.partition(topic, index) is None:
            self.written(sending)  # the partition was deleted, with the records of the transaction
            return
        led = services.partitions.partition_of(services.partitions.by_name.get(topic.encode()), index)
        if isinstance(led, ErrorCode):
            self.retry(target, sending)
            return
        outcome = led.append_marker(
            marker.producer_id,
            marker.producer_epoch,
            commit=marker.commit,
            coordinator_epoch=marker.coordinator_epoch,
            transaction_version=marker.transaction_version,
            wall_ms=services.clock.wall_ms(),
        )
        if not isinstance(outcome, ErrorCode):
            self._await(led, target, sending, outcome)
        elif outcome in _FENCED:
            self._logger.error(
                "partition refused a transaction marker",
                partition=f"{topic}-{index}",
                producer_id=marker.producer_id,
                producer_epoch=marker.producer_epoch,
                error=outcome.name,
            )
            self.written(sending)
        else:
            self.retry(target, sending)

    def _await(self, led: Replica, target: Partition, sending: _Sending, end_offset: int) -> None:
        if end_offset <= led.role.high_watermark:
            self.written(sending)
            return
        waiter = self._waiters.get(target)
        if waiter is None or waiter.partition is not led:
            waiter = self._waiters[target] = _Waiter(self, led, target)
        waiter.add(end_offset, sending)

    def written(self, sending: _Sending) -> None:
        self.unwritten -= 1
        sending.written()
