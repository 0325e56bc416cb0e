"""Transactional producers: they write to several partitions and commit or abort, and sometimes come too late.

A transaction is a list of steps, one request each; an unanswered step is sent again. After any worse error the producer
initialises its transactional id again, and the coordinator aborts the old transaction.
"""

from collections.abc import Callable, Sequence
from typing import Any

from headrace.model.errors import ErrorCode
from headrace.sim.checkers.groups import CommittedOffsetHistory, GroupHistory
from headrace.sim.checkers.history import PartitionHistory, SendingProducer, SentBatch
from headrace.sim.checkers.transactions import FENCED_PRODUCER, TransactionHistory
from headrace.sim.checkers.violation import Violation, require
from headrace.sim.context import RunContext
from headrace.sim.workloads import group_requests
from headrace.sim.workloads import transaction_requests as requests
from headrace.sim.workloads.batches import BatchMaker
from headrace.sim.workloads.producers import HONEST_ERRORS
from headrace.sim.workloads.step_client import Step, SteppingClient
from headrace.wire.apis import ApiKey

PARTITIONS_MAX, BATCHES_MAX = 3, 2
PAUSE_MS_MAX, RETRY_MS_MAX = 300, 300
ABORT_ONE_IN = 4
ABANDON_ONE_IN = 12
SLEEP_ONE_IN = 15
OFFSETS_ONE_IN = 2
ZOMBIE_ONE_IN = 2
PRODUCE_TIMEOUT_MS = 3_000

RETRIED_ERRORS = (
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.NOT_ENOUGH_REPLICAS,
    ErrorCode.REQUEST_TIMED_OUT,
    ErrorCode.KAFKA_STORAGE_ERROR,
    ErrorCode.UNSTABLE_OFFSET_COMMIT,
)
"""Errors after which the same request is sent again."""
FENCED = (
    ErrorCode.INVALID_PRODUCER_EPOCH,
    ErrorCode.PRODUCER_FENCED,
    ErrorCode.INVALID_TXN_STATE,
    ErrorCode.INVALID_PRODUCER_ID_MAPPING,
    ErrorCode.UNKNOWN_PRODUCER_ID,
    ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
    ErrorCode.TRANSACTION_ABORTABLE,
)
"""The transaction took too long, or its id was taken over."""


class TransactionalProducer(SteppingClient):
    def __init__(
        self, context: RunContext, name: str, targets: Sequence[PartitionHistory], group: GroupHistory, *, version: int
    ) -> None:
        super().__init__(context, name)
        self._targets = targets
        self._group = group
        self._version = version
        self._maker = BatchMaker(context, name)
        self._producer: SendingProducer | None = None
        self._sequences: dict[PartitionHistory, int] = {}
        self._transaction: TransactionHistory | None = None
        self._offset: tuple[CommittedOffsetHistory, int] | None = None
        self._former: tuple[SendingProducer, PartitionHistory, int] | None = None
        """Its identity before it initialised its id again, and the batch it would have written next."""
        self._offset_next = 0
        self.transactions: list[TransactionHistory] = []

    def resume(self) -> None:
        if self._producer is None:
            if not self.stopped:
                self._take_the_id()
        elif self._former is not None and self.entropy.one_in(ZOMBIE_ONE_IN):
            self._write_as_a_zombie(*self._former)
        elif self._steps:
            self._steps[0]()
        elif not self.stopped and self._targets:
            self._begin()

    # The transactional id

    def _take_the_id(self) -> None:
        def taken(response: Any) -> None:
            error = ErrorCode(response.error_code)
            if error is ErrorCode.NONE:
                self._become(SendingProducer(response.producer_id, response.producer_epoch))
            else:
                require(error in RETRIED_ERRORS, HONEST_ERRORS, f"{error.name} for {self.name}, who takes its id")
                self._rest(RETRY_MS_MAX)

        self._request(ApiKey.INIT_PRODUCER_ID, requests.INIT_PRODUCER_ID, requests.init(self.name), taken)

    def _become(self, producer: SendingProducer) -> None:
        if producer != self._producer:
            self._producer = producer
            self._sequences.clear()

    def _start_again(self) -> None:
        """Leave the transaction to its coordinator; unless its commit was requested, it counts as never written."""
        if self._producer is not None and self._sequences:
            partition, sequence = next(iter(self._sequences.items()))
            self._former = (self._producer, partition, sequence)
        if self._offset is not None and self._transaction is not None and not self._transaction.commit_asked:
            truth, offset = self._offset
            truth.refused(offset)
        self._producer = self._transaction = self._offset = None
        self._steps.clear()
        self._rest(RETRY_MS_MAX)

    def _write_as_a_zombie(self, producer: SendingProducer, partition: PartitionHistory, sequence: int) -> None:
        """Write under the former identity after the new one was confirmed: nothing of it may be accepted."""
        self._former = None
        transaction = TransactionHistory(f"{self.name} as a zombie")
        batch = self._maker.make(partition, producer=producer, sequence=sequence, transaction=transaction)

        def answered(response: Any) -> None:
            error = ErrorCode(response.responses[0].partition_responses[0].error_code)
            if error is ErrorCode.NONE:
                raise Violation(FENCED_PRODUCER, f"{batch} was accepted, although {self._producer} has the id")
            require(error in (*FENCED, *RETRIED_ERRORS), HONEST_ERRORS, f"{error.name} for {batch} of a zombie")

        self._send(batch, answered)

    # A transaction

    def _begin(self) -> None:
        transaction = self._transaction = TransactionHistory(f"{len(self.transactions)} of {self.name}")
        self.transactions.append(transaction)
        targets = list(self._targets)
        chosen: list[PartitionHistory] = []
        for _ in range(1 + self.entropy.below(PARTITIONS_MAX)):
            target = targets[self.entropy.below(len(targets))]
            if target not in chosen:
                chosen.append(target)
        if self._version == requests.FIRST:
            self._steps.append(lambda: self._add_partitions(chosen))
        for partition in chosen:
            for _ in range(1 + self.entropy.below(BATCHES_MAX)):
                self._steps.append(self._writing(partition, transaction))
        if self.entropy.one_in(OFFSETS_ONE_IN):
            self._commit_offsets(chosen[0])
        if not self._hurries and self.entropy.one_in(ABANDON_ONE_IN):
            self._steps.append(self._abandon)
        commit = self._hurries or not self.entropy.one_in(ABORT_ONE_IN)
        self._steps.append(lambda: self._end(transaction, commit=commit))

    def _done(self, error_code: int) -> bool:
        """Return whether a step is done; a step to be repeated stays the next one."""
        error = ErrorCode(error_code)
        if error is ErrorCode.NONE:
            if self._steps:
                self._steps.pop(0)
            return True
        if error in RETRIED_ERRORS:
            self._rest(RETRY_MS_MAX)
            return False
        require(error in FENCED, HONEST_ERRORS, f"{error.name} for {self._transaction}")
        self._start_again()
        return False

    def _add_partitions(self, partitions: list[PartitionHistory]) -> None:
        assert self._producer is not None

        def added(response: Any) -> None:
            codes = [
                part.partition_error_code
                for topic in response.results_by_topic_v3_and_below
                for part in topic.results_by_partition
            ]
            told = [code for code in codes if code and ErrorCode(code) is not ErrorCode.OPERATION_NOT_ATTEMPTED]
            self._done(told[0] if told else ErrorCode.NONE)

        message = requests.add_partitions(self.name, self._producer, partitions)
        self._request(ApiKey.ADD_PARTITIONS_TO_TXN, requests.ADD_PARTITIONS, message, added)

    def _writing(self, partition: PartitionHistory, transaction: TransactionHistory) -> Step:
        """Write the same batch until it is accepted."""
        made: list[SentBatch] = []

        def write() -> None:
            assert self._producer is not None
            if not made:
                sequence = self._sequences.get(partition, 0)
                batch = self._maker.make(partition, producer=self._producer, sequence=sequence, transaction=transaction)
                self._sequences[partition] = sequence + batch.count
                made.append(batch)
            self._send(made[0], written)

        def written(response: Any) -> None:
            result = response.responses[0].partition_responses[0]
            if self._done(result.error_code):
                self.context.histories.acknowledge(made[0], result.base_offset)
                transaction.acknowledged.append(made[0])

        return write

    def _send(self, batch: SentBatch, handle: Callable[[Any], object]) -> None:
        message = requests.produced(self.name, batch.partition, batch.content, timeout_ms=PRODUCE_TIMEOUT_MS)
        self._request(ApiKey.PRODUCE, requests.PRODUCE[self._version], message, handle)

    def _commit_offsets(self, partition: PartitionHistory) -> None:
        self._offset_next += 1 + self.entropy.below(20)
        truth, offset = self._group.offset(partition), self._offset_next

        def add() -> None:
            assert self._producer is not None
            message = requests.add_offsets(self.name, self._producer, self._group.group_id)
            self._request(
                ApiKey.ADD_OFFSETS_TO_TXN,
                requests.ADD_OFFSETS,
                message,
                lambda response: self._done(response.error_code),
            )

        def commit() -> None:
            assert self._producer is not None
            if self._offset is None:
                self._offset = (truth, offset)
                truth.sent(offset)
            message = requests.commit_offset(self.name, self._producer, self._group.group_id, partition, offset)
            self._request(
                ApiKey.TXN_OFFSET_COMMIT,
                requests.OFFSET_COMMIT[self._version],
                message,
                lambda response: self._done(response.topics[0].partitions[0].error_code),
            )

        def look() -> None:
            message = group_requests.committed(
                self._group.group_id, [(partition.topic.name, partition.index)], stable=True
            )
            asked = truth.moment
            self._request(
                ApiKey.OFFSET_FETCH,
                group_requests.OFFSET_FETCH,
                message,
                lambda response: looked(response, asked=asked),
            )

        def looked(response: Any, *, asked: int) -> None:
            group = response.groups[0]
            code = group.error_code or group.topics[0].partitions[0].error_code
            if self._done(code):
                truth.shown(group.topics[0].partitions[0].committed_offset, asked=asked)

        if self._version == requests.FIRST:
            self._steps.append(add)
        self._steps += [commit]
        self._steps.insert(0, look)

    def _abandon(self) -> None:
        """Leave the transaction without an end: for some time, or for good."""
        self._steps.pop(0)
        if self.entropy.below(2):
            self._rest(2 * requests.TIMEOUT_MS)
        else:
            self._start_again()

    def _end(self, transaction: TransactionHistory, *, commit: bool) -> None:
        assert self._producer is not None
        transaction.commit_asked = transaction.commit_asked or commit

        def ended(response: Any) -> None:
            if not self._done(response.error_code):
                return
            if self._offset is not None:
                truth, offset = self._offset
                (truth.acknowledged if commit else truth.refused)(offset)
            if commit:
                transaction.committed = True
                self.committed += 1
            self._transaction = self._offset = None
            if self._version == requests.SECOND:
                self._become(SendingProducer(response.producer_id, response.producer_epoch))
            self._rest(PAUSE_MS_MAX)

        message = requests.end(self.name, self._producer, commit=commit)
        self._request(ApiKey.END_TXN, requests.END[self._version], message, ended)
