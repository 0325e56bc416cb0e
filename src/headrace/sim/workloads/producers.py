"""Producers: idempotent ones that retry everything in order, and plain ones that send once."""

from collections.abc import Sequence
from typing import Any

from headrace.model.errors import ErrorCode
from headrace.sim.checkers.history import PartitionHistory, SendingProducer, SentBatch
from headrace.sim.checkers.violation import Violation
from headrace.sim.context import RunContext
from headrace.sim.workloads import requests
from headrace.sim.workloads.batches import BatchMaker
from headrace.sim.workloads.client import Client
from headrace.wire.apis import ApiKey

NO_PRODUCER = -1
UNANSWERED = 0
TIMEOUTS_MS = (1_000, 5_000, 20_000)
PAUSE_ONE_IN = 12

HONEST_ERRORS = "responses to clients are true"
NEVER_REFUSED = "an idempotent producer that retries in order is not refused"
GONE = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID)


class SimulatedProducer(Client):
    """Keeps some batches in flight to `targets`, which others may extend and change meanwhile."""

    def __init__(
        self,
        context: RunContext,
        name: str,
        targets: Sequence[PartitionHistory],
        *,
        idempotent: bool,
        acks: int,
        in_flight_max: int,
        pause_ms_max: int,
    ) -> None:
        super().__init__(context, name)
        self._maker = BatchMaker(context, name)
        self._targets = targets
        self._idempotent = idempotent
        self._acks = acks
        self._in_flight_max = in_flight_max
        self._pause_ms_max = pause_ms_max
        self._version = (requests.PRODUCE_BY_NAME, requests.PRODUCE_BY_ID)[self.entropy.below(2)]
        self._timeout_ms = TIMEOUTS_MS[self.entropy.below(len(TIMEOUTS_MS))]
        self._producer_id = NO_PRODUCER
        self._sequences: dict[PartitionHistory, int] = {}
        self._unacknowledged: list[SentBatch] = []
        self._losses_seen = 0
        self._next_ms = 0.0
        self._hurries = False
        self._acknowledged: set[PartitionHistory] = set()
        """Targets that accepted a batch; used for lookups, never iterated."""

    @property
    def settled(self) -> bool:
        return not self._unacknowledged

    def hurry(self) -> None:
        """From now on send only one more batch to every target, to see it acknowledged."""
        self._hurries = True
        self._acknowledged.clear()

    def has_progressed(self) -> bool:
        """Return whether every target has accepted a batch since `hurry`; a producer without responses cannot know."""
        return self._acks == UNANSWERED or not self._choices()

    def _choices(self) -> list[PartitionHistory]:
        return [target for target in self._targets if not self._hurries or target not in self._acknowledged]

    # The connection

    def connected(self) -> None:
        losses = sum(target.losses for target in self._targets)
        if losses != self._losses_seen:
            self._begin_again()  # the batches it built on were lost with the power, so it cannot continue its sequence
            self._losses_seen = losses
        if self._idempotent and self._producer_id == NO_PRODUCER:
            self.ask(ApiKey.INIT_PRODUCER_ID, requests.INIT_PRODUCER_ID, requests.new_producer(), self._identified)
            return
        for batch in self._unacknowledged:
            self._send(batch)

    def lost(self) -> None:
        if not self._idempotent:
            self._unacknowledged.clear()

    def _begin_again(self) -> None:
        self._producer_id = NO_PRODUCER
        self._sequences.clear()
        self._unacknowledged.clear()

    def _identified(self, response: Any) -> None:
        if response.error_code == ErrorCode.NONE:
            self._producer_id = response.producer_id
        else:
            self.drop()

    # Sending

    def work(self) -> None:
        if self.stopped or (self._idempotent and self._producer_id == NO_PRODUCER):
            return
        while len(self._unacknowledged) < self._in_flight_max and self._is_due():
            choices = self._choices()
            if not choices:
                return
            batch = self._new_batch(choices[self.entropy.below(len(choices))])
            if self._acks != UNANSWERED:
                self._unacknowledged.append(batch)
            self._send(batch)
            if self._acks == UNANSWERED or self.entropy.one_in(PAUSE_ONE_IN):
                self._next_ms = self.now_ms + self.entropy.below(self._pause_ms_max)

    def _is_due(self) -> bool:
        if self._hurries:
            return self._acks != UNANSWERED
        return self.now_ms >= self._next_ms and self.context.may_send()

    def _new_batch(self, target: PartitionHistory) -> SentBatch:
        if not self._idempotent:
            return self._maker.make(target)
        sequence = self._sequences.get(target, 0)
        batch = self._maker.make(target, producer=SendingProducer(self._producer_id, 0), sequence=sequence)
        self._sequences[target] = sequence + batch.count
        return batch

    def _send(self, batch: SentBatch) -> None:
        topic = batch.partition.topic
        request = requests.produced(
            topic.name,
            batch.partition.index,
            batch.content,
            acks=self._acks,
            topic_id=topic.topic_id,
            timeout_ms=self._timeout_ms,
        )
        version = requests.PRODUCE_BY_ID if topic.mortal else self._version
        if self._acks == UNANSWERED:
            self.tell(ApiKey.PRODUCE, version, request)
        else:
            self.ask(ApiKey.PRODUCE, version, request, lambda response: self._answered(batch, response))

    # Responses

    def _answered(self, batch: SentBatch, response: Any) -> None:
        result = response.responses[0].partition_responses[0]
        if result.error_code == ErrorCode.NONE:
            self._unacknowledged.remove(batch)
            self.context.histories.acknowledge(batch, result.base_offset)
            batch.partition.starts_at(result.log_start_offset)
            self._acknowledged.add(batch.partition)
            return
        error = ErrorCode(result.error_code)
        self._judge(batch, error)
        if not self._idempotent or error in GONE:
            self._unacknowledged.remove(batch)
        else:
            if error is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER:
                self._begin_again()
            self.drop()

    def _judge(self, batch: SentBatch, error: ErrorCode) -> None:
        partition = batch.partition
        if error is ErrorCode.KAFKA_STORAGE_ERROR:
            honest = self.excused
        elif error is ErrorCode.REQUEST_TIMED_OUT:
            honest = self._acks == -1 or partition.topic.sync_level >= 0
        elif error in GONE:
            honest = not partition.topic.certain
        elif error is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER:
            if not partition.losses:
                raise Violation(NEVER_REFUSED, f"{error.name} for {batch}")
            honest = True
        else:
            honest = False
        if not honest:
            raise Violation(HONEST_ERRORS, f"{error.name} for {batch}")
