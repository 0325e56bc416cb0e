"""Sends transaction markers to the leaders of partitions, and retries until each partition has committed its marker.

A marker counts as written when the leader says so, or when the partition is deleted. The leader is this broker or
another one, which gets a WriteTxnMarkers request; it is looked up again for every attempt.

A partition that the metadata image does not show is deleted only if the image has reached the offset at which the
coordinator wrote the record of the transaction, since the coordinator adds no partition that its own image does not
show. An image that is behind may lack a topic that exists, or may show the former topic of the same name with other
leaders. Until it has caught up, nothing is sent and nothing counts as written.
"""

from collections import deque
from collections.abc import Callable
from typing import NamedTuple, Protocol

from headrace.broker.coordinators.host import Runtime
from headrace.broker.coordinators.marker_requests import MarkerRequests
from headrace.broker.marker_writes import MARKERS_PER_TURN, MarkerFields, MarkerWrites, Target
from headrace.broker.services import CoordinatorServices, PeerServices
from headrace.core.transactions.records import Partition
from headrace.model.errors import ErrorCode
from headrace.model.ids import NO_NODE

MARKER_RETRY_MS_MIN = 100
"""The pause before a marker that a partition could not take is sent again; doubled each time."""

MARKER_RETRY_MS_MAX = 1_000

_DOUBLINGS_MAX = 10

_FENCED = (ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.TRANSACTION_COORDINATOR_FENCED)
"""Errors of a partition that a newer producer or coordinator has fenced: sending the marker again is useless."""


class TransactionMarker(NamedTuple):
    fields: MarkerFields
    partitions: frozenset[Partition]
    metadata_offset: int
    """The metadata offset that the coordinator had reached when it decided on the end of the transaction."""


class MarkerServices(CoordinatorServices, PeerServices, Protocol):
    """Serves the sender of markers."""


class _Sending:
    """One marker that is being sent to all of its partitions."""

    __slots__ = ("done", "is_void", "marker", "missing")

    def __init__(self, marker: TransactionMarker, done: Callable[[], None], is_void: Callable[[], bool]) -> None:
        self.marker = marker
        self.missing = len(marker.partitions)
        self.done = done
        self.is_void = is_void

    def written(self) -> None:
        self.missing -= 1
        if not self.missing:
            self.done()


class MarkerDelivery:
    """A marker for one partition."""

    __slots__ = ("attempts", "partition", "sending")

    def __init__(self, partition: Partition, sending: _Sending) -> None:
        self.partition = partition
        self.sending = sending
        self.attempts = 0

    @property
    def fields(self) -> MarkerFields:
        return self.sending.marker.fields


class MarkerSender:
    def __init__(self, services: MarkerServices, runtime: Runtime) -> None:
        self._services = services
        self._timers = runtime.timers
        self._logger = runtime.logger
        self._requests: MarkerRequests[MarkerDelivery] = MarkerRequests(services, runtime.timers, self._ended)
        self._queue: deque[MarkerDelivery] = deque()
        self._queued = False
        self.unwritten = 0
        """Markers that a partition has not committed yet."""

    def send(self, marker: TransactionMarker, done: Callable[[], None], is_void: Callable[[], bool]) -> None:
        """Send a marker; `done` is called in a later turn, when every partition has committed it.

        `is_void` returns whether the coordinator is lost: another one sends the markers then, and `done` is not called.
        """
        if not marker.partitions:
            self._timers.next_turn(done)
            return
        sending = _Sending(marker, done, is_void)
        self.unwritten += len(marker.partitions)
        self._queue.extend(MarkerDelivery(partition, sending) for partition in sorted(marker.partitions))
        self._deliver_later()

    def _deliver_later(self) -> None:
        if self._queue and not self._queued:
            self._queued = True
            self._timers.next_turn(self._deliver)

    def _deliver(self) -> None:
        self._queued = False
        taken = [self._queue.popleft() for _ in range(min(len(self._queue), MARKERS_PER_TURN))]
        self.deliver(taken)
        self._deliver_later()

    def deliver(self, deliveries: list[MarkerDelivery]) -> None:
        """Make one attempt for each of these markers."""
        led_here = [each for each in deliveries if self._is_for_this_broker(each)]
        if led_here:
            self._write(led_here)
        self._requests.flush()

    def _is_for_this_broker(self, delivery: MarkerDelivery) -> bool:
        """Return whether this broker leads the partition; otherwise do with the marker what else there is to do."""
        services = self._services
        if delivery.sending.is_void():
            self.unwritten -= 1
            return False
        if services.image.version < delivery.sending.marker.metadata_offset:
            self.retry(delivery)
            return False
        state = services.image.partition(*delivery.partition)
        if state is None:
            self._written(delivery)  # the partition was deleted, with the records of the transaction
        elif state.leader == services.node_id:
            return True
        elif state.leader == NO_NODE:
            self.retry(delivery)
        else:
            self._requests.add(state.leader, delivery)
        return False

    def _write(self, led_here: list[MarkerDelivery]) -> None:
        services = self._services
        by_target: dict[Target, MarkerDelivery] = {
            (number, *each.partition): each for number, each in enumerate(led_here)
        }
        MarkerWrites(
            {target: delivery.fields for target, delivery in by_target.items()},
            partitions=services.partitions,
            clock=services.clock,
            timers=self._timers,
            on_ended=lambda target, error: self._ended(by_target[target], error),
        ).step()

    def _ended(self, delivery: MarkerDelivery, error: ErrorCode) -> None:
        """React to the response of the leader, or to its absence."""
        if error is ErrorCode.NONE:
            self._written(delivery)
        elif error in _FENCED:
            topic, index = delivery.partition
            self._logger.error(
                "partition refused a transaction marker",
                partition=f"{topic}-{index}",
                producer_id=delivery.fields.producer_id,
                producer_epoch=delivery.fields.producer_epoch,
                error=error.name,
            )
            self._written(delivery)
        else:
            self.retry(delivery)

    def retry(self, delivery: MarkerDelivery) -> None:
        pause_ms = min(MARKER_RETRY_MS_MIN << min(delivery.attempts, _DOUBLINGS_MAX), MARKER_RETRY_MS_MAX)
        delivery.attempts += 1
        self._timers.after(pause_ms, lambda: self._queue_again(delivery))

    def _queue_again(self, delivery: MarkerDelivery) -> None:
        self._queue.append(delivery)
        self._deliver_later()

    def _written(self, delivery: MarkerDelivery) -> None:
        self.unwritten -= 1
        if not delivery.sending.is_void():
            delivery.sending.written()
