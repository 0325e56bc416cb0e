"""Decisions of the producer: which batch is sent where and when, what is retried, and each result.

Without a clock or a socket: `append` and `poll` take the time, `poll` returns calls, and the reply of each goes to its
`completed`. One rule preserves the order within a partition: a batch that is retried precedes all younger ones. With
idempotence (acks=all) the broker refuses duplicates and reordering.
"""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from headrace.client.core.accumulator import Accumulator, ProducerSettings
from headrace.client.core.calls import PendingCall
from headrace.client.core.cluster import Cluster
from headrace.client.core.partitioners import Choose
from headrace.client.core.produce_requests import CONCURRENT_PAUSE_MS, identity_call, produce_call
from headrace.client.core.produced_batches import PartitionQueue, ProducedBatch
from headrace.client.errors import (
    BrokerError,
    ClientClosed,
    ClientError,
    DeadlineExceeded,
    InvalidArgument,
    TransactionFailed,
    UnsupportedByBroker,
)
from headrace.model.errors import RETRIABLE, ErrorCode
from headrace.wire.messages import produce

if TYPE_CHECKING:
    from headrace.client.core.transactions import TransactionManager

_IDENTITY_ERRORS = frozenset({ErrorCode.UNKNOWN_PRODUCER_ID, ErrorCode.INVALID_PRODUCER_EPOCH})
_UNCERTAIN_ERRORS = frozenset({ErrorCode.REQUEST_TIMED_OUT, ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND})


class ProducerCore:
    def __init__(
        self,
        settings: ProducerSettings,
        cluster: Cluster,
        choose: Callable[[int], int],
        *,
        partitioner: Choose | None = None,
        transactions: "TransactionManager | None" = None,
    ) -> None:
        self.settled: list[ProducedBatch] = []
        """Batches that completed since the caller last emptied this list."""
        self._accumulator = Accumulator(settings, cluster, choose, partitioner=partitioner)
        self.append = self._accumulator.append
        self.append_batch = self._accumulator.append_batch
        self.fill = self._accumulator.fill
        self._lines = self._accumulator.lines
        self._settings = settings
        self._cluster = cluster
        self._transactions = transactions
        self.last_failed: ProducedBatch | None = None
        """Failed batches, without those that were aborted or dropped by a close."""
        self._records_count = self._failed_count = self._retries_count = 0
        self._requests: dict[int, int] = {}
        self._producer_id = -1
        self._producer_epoch = -1
        self._identity_due_ms: float | None = 0.0
        """When to request a producer id; None while one is requested or held."""

    @property
    def buffered_bytes(self) -> int:
        return self._accumulator.buffered_bytes

    def incomplete_count(self) -> int:
        return sum(len(line.waiting) + len(line.in_flight) for line in self._lines.values())

    def refusal(self) -> ClientError | None:
        """Return why the last attempt to send a pending batch failed."""
        unsettled = (batch for line in self._lines.values() for batch in (*line.in_flight, *line.waiting))
        return next((batch.last_error for batch in unsettled if batch.last_error is not None), None)

    def counters(self) -> dict[str, float]:
        return {
            "record-send-total": self._records_count,
            "record-error-total": self._failed_count,
            "record-retry-total": self._retries_count,
            "buffered-bytes": self.buffered_bytes,
            "batches-unsettled": self.incomplete_count(),
        }

    def abandon(self, error: ClientError) -> None:
        """Fail everything that is not complete."""
        self.drop_waiting(error)
        for line in self._lines.values():
            for batch in line.in_flight:
                self._fail(batch, error)
            line.in_flight.clear()

    def drop_waiting(self, error: ClientError) -> None:
        """Fail the batches that are not in flight; the others complete by their responses."""
        for line in self._lines.values():
            for batch in line.waiting:
                self._fail(batch, error)
            line.waiting.clear()

    def poll(self, now_ms: float) -> tuple[list[PendingCall], float]:
        """Return the calls to make now, and the time of the next `poll` unless a reply or a record comes first."""
        calls: list[PendingCall] = []
        wakeup_ms = self._expire(now_ms)
        if self._cluster.has_wanted():
            refresh = self._cluster.refresh(now_ms, create_topics=True)
            if refresh is not None:
                calls.append(PendingCall(refresh, self._refreshed))
            wakeup_ms = min(wakeup_ms, self._cluster.next_refresh_ms())
        if self._transactions is not None:
            if self._transactions.is_lost:
                self.drop_waiting(TransactionFailed(f"the transaction can only be aborted: {self._transactions.error}"))
            self._take_identity(self._transactions)
        elif self._settings.idempotent and self._producer_id < 0:
            if self._identity_due_ms is not None and self._lines:
                if self._identity_due_ms <= now_ms:
                    self._identity_due_ms = None
                    calls.append(PendingCall(identity_call(), self._identified))
                else:
                    wakeup_ms = min(wakeup_ms, self._identity_due_ms)
            return calls, wakeup_ms
        by_node, drain_wakeup_ms = self._drain(now_ms)
        calls.extend(self._produce(node, batches) for node, batches in by_node.items())
        wakeup_ms = min(wakeup_ms, drain_wakeup_ms)
        if self._transactions is not None:
            additions, due_ms = self._transactions.poll(now_ms)
            calls += additions
            wakeup_ms = min(wakeup_ms, due_ms)
        return calls, wakeup_ms

    def _take_identity(self, transactions: "TransactionManager") -> None:
        """Apply an identity. With a new epoch the sequences of every partition begin at zero; nothing is in flight
        then.
        """
        if (transactions.producer_id, transactions.producer_epoch) != (self._producer_id, self._producer_epoch):
            self._producer_id, self._producer_epoch = transactions.producer_id, transactions.producer_epoch
            for line in self._lines.values():
                line.next_sequence = 0

    def _drain(self, now_ms: float) -> tuple[dict[int, list[ProducedBatch]], float]:
        """Return the batches to send now, one per partition and at most one request per broker."""
        wakeup_ms = float("inf")
        by_node: dict[int, list[ProducedBatch]] = {}
        sizes: dict[int, int] = {}
        limit = self._settings.requests_in_flight_max
        for place, line in self._lines.items():
            if not line.waiting or not self._may_send(line):
                continue
            batch = line.waiting[0]
            is_ready = batch.ready_ms <= now_ms or (batch.is_full and batch.last_error is None)
            if not is_ready:
                wakeup_ms = min(wakeup_ms, batch.ready_ms)
                continue
            node = self._cluster.leader(place)
            if node is None:
                self._cluster.want((place.topic,))
                self._cluster.mark_wrong()
                wakeup_ms = min(wakeup_ms, self._cluster.next_refresh_ms())
                continue
            if self._requests.get(node, 0) >= limit or line.is_sent_elsewhere(node):
                continue
            size = sizes.get(node, 0) + batch.builder.plain_bytes
            if node in by_node and size > self._settings.request_bytes_max:
                wakeup_ms = now_ms
                continue
            if self._transactions is not None and not self._transactions.includes(place):
                continue
            sizes[node] = size
            by_node.setdefault(node, []).append(line.waiting.popleft())
            line.in_flight.append(batch)
            if line.waiting:
                wakeup_ms = now_ms
        return by_node, wakeup_ms

    def _may_send(self, line: PartitionQueue) -> bool:
        if not self._settings.idempotent:
            return not line.in_flight
        return len(line.in_flight) < self._settings.requests_in_flight_max and all(
            batch.producer_id == self._producer_id for batch in line.in_flight
        )

    def _produce(self, node: int, batches: list[ProducedBatch]) -> PendingCall:
        settings = self._settings
        for batch in batches:
            batch.node = node
            if batch.encoded is None:
                line = self._lines[batch.partition]
                batch.encode(
                    compression=settings.compression,
                    producer_id=self._producer_id,
                    producer_epoch=self._producer_epoch,
                    sequence=line.take_sequence(batch.builder.count) if settings.idempotent else -1,
                    transactional=self._transactions is not None,
                )
        call = produce_call(
            self._cluster,
            node,
            batches,
            acks=settings.acks,
            timeout_ms=settings.request_timeout_ms,
            transactions=self._transactions,
        )
        self._requests[node] = self._requests.get(node, 0) + 1
        return PendingCall(call, partial(self._produced, node, batches))

    def _refreshed(self, reply: Any, now_ms: float) -> None:
        if isinstance(reply, ClientError):
            self._cluster.refresh_failed()
        else:
            self._cluster.refreshed(reply, now_ms)

    def _identified(self, reply: Any, now_ms: float) -> None:
        if isinstance(reply, UnsupportedByBroker):
            self.abandon(reply)
        if isinstance(reply, ClientError) or reply.error_code:
            self._identity_due_ms = now_ms + self._settings.retry_pause_ms
            for line in self._lines.values():
                for batch in line.waiting:
                    batch.last_error = (
                        reply
                        if isinstance(reply, ClientError)
                        else BrokerError(reply.error_code, "the broker gave no producer id")
                    )
            return
        self._producer_id = reply.producer_id
        self._producer_epoch = reply.producer_epoch

    def _produced(self, node: int, batches: list[ProducedBatch], reply: Any, now_ms: float) -> None:
        """Handle the reply to a Produce request: every batch of it completes or is queued again."""
        self._requests[node] -= 1
        alive = [batch for batch in batches if not batch.is_done]
        for batch in alive:
            self._lines[batch.partition].in_flight.remove(batch)
        if isinstance(reply, ClientError):
            self._cluster.mark_wrong()
            for batch in alive:
                self._unanswered(batch, reply, now_ms)
            return
        if reply is None:
            for batch in alive:
                self._settle(batch)
            return
        self._cluster.learn_endpoints(reply.node_endpoints)
        results = {
            (topic.name or self._cluster.topic_name(topic.topic_id), partition.index): partition
            for topic in reply.responses
            for partition in topic.partition_responses
        }
        for batch in alive:
            result = results.get(batch.partition)
            if result is None:
                missing = BrokerError(ErrorCode.UNKNOWN_SERVER_ERROR, f"the response lacks {batch.partition}")
                self._unanswered(batch, missing, now_ms)
            else:
                self._answered(batch, result, now_ms)

    def _answered(self, batch: ProducedBatch, result: produce.ProduceResponsePartition, now_ms: float) -> None:
        code = result.error_code
        if code in (ErrorCode.NONE, ErrorCode.DUPLICATE_SEQUENCE_NUMBER):
            batch.base_offset = result.base_offset
            batch.log_append_time_ms = result.log_append_time_ms
            self._settle(batch)
            return
        error = BrokerError(code, f"the records for {batch.partition} were refused", result.error_message)
        if code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER and self._is_behind(batch):
            self._retry(batch, error, now_ms)
        elif code in _IDENTITY_ERRORS or code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER:
            self._fail(batch, error)
            self._renew_identity(batch.producer_id, error, now_ms)
        elif code == ErrorCode.CONCURRENT_TRANSACTIONS:
            self._retry(batch, error, now_ms, pause_ms=CONCURRENT_PAUSE_MS)
        elif code in RETRIABLE:
            batch.is_uncertain = batch.is_uncertain or code in _UNCERTAIN_ERRORS
            self._cluster.mark_wrong()
            leader = result.current_leader
            is_known = self._cluster.learn_leader(batch.partition, leader.leader_id, leader.leader_epoch)
            # Retried at once, but not repeatedly: leaders that redirect us to each other must not keep us busy.
            may_hurry = is_known and now_ms - batch.redirected_ms >= self._settings.retry_pause_ms
            batch.redirected_ms = now_ms
            self._retry(batch, error, now_ms, pause_ms=0 if may_hurry else self._settings.retry_pause_ms)
        else:
            self._fail(batch, error)
            # Its sequence is never written, so later ones would be out of order for ever.
            self._renew_identity(batch.producer_id, error, now_ms)

    def _is_behind(self, batch: ProducedBatch) -> bool:
        """Return whether an older batch failed: that one is sent first, or its sequence was given up already."""
        return batch.producer_id != self._producer_id or self._lines[batch.partition].has_older(batch)

    def _unanswered(self, batch: ProducedBatch, error: ClientError, now_ms: float) -> None:
        if isinstance(error, UnsupportedByBroker | InvalidArgument):
            self._fail(batch, error)
            self._renew_identity(batch.producer_id, error, now_ms)
            return
        batch.is_uncertain = True
        self._retry(batch, error, now_ms)

    def _retry(self, batch: ProducedBatch, error: ClientError, now_ms: float, *, pause_ms: float | None = None) -> None:
        batch.last_error = error
        self._retries_count += 1
        is_stale = batch.producer_id >= 0 and batch.producer_id != self._producer_id
        if now_ms >= batch.deadline_ms:
            self._give_up(batch, now_ms)
        elif is_stale and batch.is_uncertain:
            self._fail(batch, _uncertain(batch, error))
        else:
            if is_stale:
                batch.forget_identity()
            batch.ready_ms = now_ms + (self._settings.retry_pause_ms if pause_ms is None else pause_ms)
            self._lines[batch.partition].put_back(batch)

    def _expire(self, now_ms: float) -> float:
        """Fail batches that waited too long; return when the next one will have."""
        earliest_ms = float("inf")
        for line in self._lines.values():
            while line.waiting and line.waiting[0].deadline_ms <= now_ms:
                self._give_up(line.waiting.popleft(), now_ms)
            if line.waiting:
                earliest_ms = min(earliest_ms, line.waiting[0].deadline_ms)
        return earliest_ms

    def _give_up(self, batch: ProducedBatch, now_ms: float) -> None:
        reason = f": {batch.last_error}" if batch.last_error else "; no leader could be reached"
        error = DeadlineExceeded(
            f"the records for {batch.partition} were not delivered in {self._settings.delivery_timeout_ms:g} ms{reason}"
        )
        self._fail(batch, error)
        if batch.sequence >= 0:
            self._renew_identity(batch.producer_id, error, now_ms)

    def _renew_identity(self, producer_id: int, error: ClientError, now_ms: float) -> None:
        """Start again with a new producer id, because a gap in the sequences cannot be closed.

        Batches that may have been written under the old id cannot be sent again without the risk of a duplicate.
        """
        if producer_id < 0 or producer_id != self._producer_id or self._transactions is not None:
            return  # A transaction that lost a batch is aborted, and the next begins with another epoch.
        self._producer_id = self._producer_epoch = -1
        self._identity_due_ms = now_ms
        for line in self._lines.values():
            line.next_sequence = 0
            for batch in [batch for batch in line.waiting if batch.sequence >= 0]:
                if batch.is_uncertain:
                    line.waiting.remove(batch)
                    self._fail(batch, _uncertain(batch, error))
                else:
                    batch.forget_identity()

    def _settle(self, batch: ProducedBatch) -> None:
        self._records_count += batch.builder.count
        self._accumulator.release(batch)
        batch.is_done = batch.is_full = True
        batch.encoded = None
        self.settled.append(batch)

    def _fail(self, batch: ProducedBatch, error: ClientError) -> None:
        batch.error = error
        self._failed_count += batch.builder.count
        if not isinstance(error, TransactionFailed | ClientClosed):
            self.last_failed = batch
        if self._transactions is not None:
            self._transactions.batch_failed(error, is_numbered=batch.sequence >= 0)
        self._settle(batch)


def _uncertain(batch: ProducedBatch, error: ClientError) -> ClientError:
    return DeadlineExceeded(
        f"the records for {batch.partition} may or may not be written: the connection broke before the "
        f"response ({error}); read the end of the topic before sending them again"
    )
