"""Producers of transactions whose partitions are on several brokers."""

from functools import partial
from typing import Any

from headrace.client.config import ProducerConfig
from headrace.client.errors import ClientError
from headrace.client.loop import LoopProducer
from headrace.sim.cluster.applications import REQUEST_TIMEOUT_MS, Application
from headrace.sim.cluster.records import SentTransaction, TransactionOutcome

RECORDS_MAX = 5
PAUSE_MS_MAX = 600
TRANSACTION_TIMEOUT_MS = 10_000
BLOCK_MS_MAX = 25_000
ABORTS_ONE_IN = 4
DESERTIONS_ONE_IN = 20
"""Transactions whose process ends before their end."""


class TransactionalApplication(Application):
    _producer: LoopProducer
    _transaction: SentTransaction | None = None
    _left = 0
    _waits = False
    _count = 0
    _fails = False

    def begin(self) -> None:
        self._producer = self.client.producer(
            ProducerConfig(
                transactional_id=self.name,
                transaction_timeout_ms=TRANSACTION_TIMEOUT_MS,
                max_block_ms=BLOCK_MS_MAX,
                request_timeout_ms=REQUEST_TIMEOUT_MS,
                delivery_timeout_ms=BLOCK_MS_MAX,
            )
        )

    def ended(self) -> None:
        """A transaction whose commit was not requested is never committed."""
        transaction, self._transaction = self._transaction, None
        if transaction is not None and transaction.outcome is TransactionOutcome.OPEN:
            transaction.outcome = TransactionOutcome.ABORTED
        self._waits = self._fails = False

    @property
    def settled(self) -> bool:
        return self._transaction is None and not self._waits

    def work(self) -> None:
        if self._fails:
            self.restart()
            self.rest(PAUSE_MS_MAX)
        elif self._waits:
            return
        elif self._transaction is None:
            if not self.stopped:
                self._begin()
        elif self._left:
            self._send(self._transaction)
        else:
            self._end(self._transaction)

    # One transaction

    def _begin(self) -> None:
        self._wait()
        self._producer.begin_transaction(ended=partial(self._answered, self.machine.boots, self._begun))

    def _begun(self) -> None:
        self._count += 1
        self._transaction = self.context.history.begin(f"{self.name} transaction {self._count}")
        self._left = 1 + self.entropy.below(RECORDS_MAX)

    def _send(self, transaction: SentTransaction) -> None:
        history = self.context.history
        value = f"{transaction.name} record {self._left}".encode()
        place = self.context.places[self.entropy.below(len(self.context.places))]
        history.send(value, place, transaction)
        try:
            accepted = self._producer.send(place.topic, value, partition=place.partition)
        except ClientError:
            history.withdraw(value)
            self._left = 0
            return
        if accepted:
            self._left -= 1
        else:
            history.withdraw(value)

    def _end(self, transaction: SentTransaction) -> None:
        if self.entropy.one_in(DESERTIONS_ONE_IN):
            self.restart()
            return
        commit = not self.entropy.one_in(ABORTS_ONE_IN)
        transaction.outcome = TransactionOutcome.UNKNOWN if commit else TransactionOutcome.ABORTED
        self._wait()
        then = partial(self._finished, transaction, commit=commit)
        self._producer.end_transaction(commit=commit, ended=partial(self._answered, self.machine.boots, then))

    def _finished(self, transaction: SentTransaction, *, commit: bool) -> None:
        if commit:
            transaction.outcome = TransactionOutcome.COMMITTED
            self.progress += 1
        self._transaction = None
        self.rest(PAUSE_MS_MAX)

    # Answers

    def _wait(self) -> None:
        self._waits = True

    def _answered(self, boot: int, then: Any, outcome: Any) -> None:
        if boot != self.machine.boots:
            return  # a stopped engine ends its operations, also those of a process that is gone
        self._waits = False
        if isinstance(outcome, Exception):
            self._fails = True  # what is left of the transaction is up to the coordinator
        else:
            then()
