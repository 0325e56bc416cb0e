"""WriteTxnMarkers (27): a transaction coordinator has partition leaders write the markers that end transactions.

A request is answered when all of its markers are committed. The coordinator sends a marker again that its partition
cannot take now. Long requests are processed over several turns. The response has no field for a message, so the reason
of a refusal is in the broker's log.
"""

from collections import deque

from headrace.broker.api.authorization import stranger_refusal
from headrace.broker.api.context import Parked, RequestContext
from headrace.broker.partitions.leader import LedPartition
from headrace.model.access import CLUSTER_NAME, Operation, ResourceType
from headrace.model.errors import ErrorCode
from headrace.wire.messages.write_txn_markers import (
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
    WriteTxnMarkersResponseMarker,
    WriteTxnMarkersResponsePartition,
    WriteTxnMarkersResponseTopic,
)

COMMIT_WAIT_MS_MAX = 30_000
"""Wait of a request for the commit of its markers, like request.timeout.ms of Kafka's brokers."""

MARKERS_PER_TURN = 25
"""Markers of one request."""

_Place = tuple[int, str, int]
"""(number of the marker, topic, partition)."""


class _Waiting:
    """The markers of one request on one partition, until the last of them is committed."""

    def __init__(self, writing: "_Writing", partition: LedPartition) -> None:
        self._writing = writing
        self._partition = partition
        self.staged: list[tuple[_Place, int]] = []
        partition.add_waiter(self)

    def readable(self, partition: LedPartition, new_bytes: int) -> None:
        """Called by the partition when the high watermark rose, a write failed, or the partition is gone."""
        high_watermark, waiting = partition.leader.high_watermark, []
        for place, end_offset in self.staged:
            if end_offset <= high_watermark:
                self._writing.errors[place] = ErrorCode.NONE
            elif partition.offline:
                self._writing.errors[place] = partition.offline_error
            elif end_offset > partition.log.staged_end_offset:
                self._writing.errors[place] = ErrorCode.KAFKA_STORAGE_ERROR
            else:
                waiting.append((place, end_offset))
        self.staged = waiting
        if not waiting:
            self.stop()
            self._writing.partition_done(partition)

    def stop(self) -> None:
        self._partition.remove_waiter(self)


class _Writing:
    def __init__(self, request: WriteTxnMarkersRequest, ctx: RequestContext) -> None:
        self._request = request
        self._ctx = ctx
        self.errors: dict[_Place, ErrorCode] = {}
        self._waiting: dict[LedPartition, _Waiting] = {}
        self._parked: Parked | None = None
        self._unwritten: deque[_Place] = deque(
            {
                (number, topic.name, index): None
                for number, marker in enumerate(request.markers)
                for topic in marker.topics
                for index in topic.partition_indexes
            }
        )

    def refuse(self, error: ErrorCode) -> WriteTxnMarkersResponse:
        self.errors.update((place, error) for place in self._unwritten)
        self._unwritten.clear()
        return self.response()

    def begin(self) -> WriteTxnMarkersResponse | Parked:
        self._append_some()
        if self._is_done:
            return self.response()
        self._parked = self._ctx.park(timeout_ms=COMMIT_WAIT_MS_MAX, on_timeout=self._give_up)
        return self._parked

    @property
    def _is_done(self) -> bool:
        return not self._unwritten and not self._waiting

    def _append_some(self) -> None:
        for _ in range(min(len(self._unwritten), MARKERS_PER_TURN)):
            self._append(self._unwritten.popleft())
        if self._unwritten:
            self._ctx.timers.next_turn(self._append_some)
        elif self._is_done and self._parked is not None:
            self._parked.complete(self.response())

    def _append(self, place: _Place) -> None:
        number, topic, index = place
        marker, partitions = self._request.markers[number], self._ctx.partitions
        partition = partitions.partition_of(partitions.by_name.get(topic.encode()), index)
        if isinstance(partition, ErrorCode):
            self.errors[place] = partition
            return
        outcome = partition.append_marker(
            marker.producer_id,
            marker.producer_epoch,
            commit=marker.transaction_result,
            coordinator_epoch=marker.coordinator_epoch,
            transaction_version=marker.transaction_version,
            wall_ms=self._ctx.clock.wall_ms(),
        )
        if isinstance(outcome, ErrorCode):
            self.errors[place] = outcome
            return
        if partition not in self._waiting:
            self._waiting[partition] = _Waiting(self, partition)
        self._waiting[partition].staged.append((place, outcome))

    def partition_done(self, partition: LedPartition) -> None:
        del self._waiting[partition]
        if self._is_done and self._parked is not None:
            self._parked.complete(self.response())

    def _give_up(self) -> WriteTxnMarkersResponse:
        for waiting in self._waiting.values():
            waiting.stop()
            self.errors.update((place, ErrorCode.REQUEST_TIMED_OUT) for place, _ in waiting.staged)
        self._waiting.clear()
        return self.refuse(ErrorCode.REQUEST_TIMED_OUT)

    def response(self) -> WriteTxnMarkersResponse:
        markers = tuple(
            WriteTxnMarkersResponseMarker(
                producer_id=marker.producer_id,
                topics=tuple(
                    WriteTxnMarkersResponseTopic(
                        name=topic.name,
                        partitions=tuple(
                            WriteTxnMarkersResponsePartition(
                                partition_index=index, error_code=self.errors[number, topic.name, index]
                            )
                            for index in topic.partition_indexes
                        ),
                    )
                    for topic in marker.topics
                ),
            )
            for number, marker in enumerate(self._request.markers)
        )
        return WriteTxnMarkersResponse(markers=markers)


def handle(request: WriteTxnMarkersRequest, ctx: RequestContext) -> WriteTxnMarkersResponse | Parked:
    writing = _Writing(request, ctx)
    allowed = any(
        ctx.authorized(operation, ResourceType.CLUSTER, CLUSTER_NAME)
        for operation in (Operation.ALTER, Operation.CLUSTER_ACTION)
    )
    allowed = allowed and stranger_refusal(ctx, "markers of transactions are written") is None
    return writing.begin() if allowed else writing.refuse(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
