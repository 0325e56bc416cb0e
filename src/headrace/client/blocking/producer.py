"""Produce without waiting: records are collected here, and one background thread sends them."""

import atexit
import os
import threading
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from time import monotonic, time_ns
from typing import Any, Self, TypeVar, Unpack

from headrace.client.blocking.delivery import FORKED, ChangeCondition, Delivery
from headrace.client.blocking.producer_thread import Driven, drive
from headrace.client.blocking.session import Session
from headrace.client.blocking.transaction import Transaction
from headrace.client.config import ProducerConfig, resolve_config
from headrace.client.config_options import ProducerOptions
from headrace.client.core.accumulator import NOW, Appended
from headrace.client.core.calls import Operation
from headrace.client.errors import BufferFull, ClientClosed, ClientError, DeadlineExceeded, TransactionFailed
from headrace.client.producer_base import (
    GivenBatch,
    ProducerBase,
    check_timestamp,
    given_batch,
    logger,
    make_core,
    serialized,
)
from headrace.client.serializers import serializer
from headrace.client.telemetry import Headers
from headrace.client.timeouts import named_timeout
from headrace.client.types import GroupIdentity, OffsetAndMetadata, PreparedTransaction
from headrace.model.ids import TopicPartition

T = TypeVar("T")

CLOSE_TIMEOUT_MS = 30_000
THREAD_JOIN_MS = 5_000
EXIT_TIMEOUT_MS = 10_000
"""Time that the end of the program waits for records of producers that were not closed."""

_unclosed: "weakref.WeakValueDictionary[int, Producer]" = weakref.WeakValueDictionary()
"""Producers by identity. The references are copied in one step: other threads may create producers during an
iteration.
"""


@atexit.register
def _close_all() -> None:
    deadline = monotonic() + EXIT_TIMEOUT_MS / 1000
    unclosed = (reference() for reference in _unclosed.valuerefs())
    left = [producer for producer in unclosed if producer is not None and producer._send_remaining()]
    for producer in left:
        producer._leave(max(0, round((deadline - monotonic()) * 1000)))


class Producer(ProducerBase):
    """Sends records; idempotent unless acks is weaker than "all". Safe for several threads, not across a fork."""

    def __init__(
        self,
        bootstrap_servers: str | Sequence[str] | None = None,
        *,
        config: ProducerConfig | Mapping[str, Any] | None = None,
        **options: Unpack[ProducerOptions],
    ) -> None:
        """Options are those of `ProducerConfig`; `config` also accepts a dict with Kafka's names."""
        self.config: ProducerConfig = resolve_config(ProducerConfig, config, bootstrap_servers, options)
        self._session = Session(self.config)
        self._clock = self._session.clock
        self._core, self._transactions = make_core(self.config, self._session.cluster, self._session.entropy)
        self._session.engine.attach(self._core)
        self._process_id = os.getpid()
        self._wakeup_ms = NOW
        """When the producer's thread will next run the core, so that it is not woken needlessly."""
        self._lock = threading.RLock()
        self._changed = ChangeCondition(self._lock)
        """Held for every access to the core and the engine; notified when anything in them may have changed."""
        self._inbox: deque[tuple[Operation[Any], float, Callable[[Any], None]]] = deque()
        """Operations that the producer's thread has to begin."""
        self._key_serializer = serializer(self.config.key_serializer)
        self._value_serializer = serializer(self.config.value_serializer)
        self._telemetry = self.config.telemetry
        self._is_closing = False
        self._is_calling = False
        """True if delivery callbacks run or are about to."""
        self._fault: BaseException | None = None
        self._forgotten: deque[Driven] = deque()
        """The producer itself, once the application no longer references it."""
        self._thread = threading.Thread(
            target=drive,
            args=(weakref.ref(self), self._forgotten, self._session.network, self._session.links),
            name="headrace-producer",
            daemon=True,
        )
        self._changed.teller = self._thread
        _unclosed[id(self)] = self
        self._thread.start()
        if self._telemetry is not None:
            self._telemetry.opened(self)

    def send(
        self,
        topic: str,
        value: Any,
        key: Any = None,
        headers: Headers = (),
        partition: int | None = None,
        timestamp: int | None = None,
        on_delivery: Callable[[Delivery], object] | None = None,
    ) -> Delivery:
        """Add one record. Waits only for an unknown topic or for buffer space, at most `max_block_ms`.

        `on_delivery` is called in the producer's own thread when the record is delivered or has failed.
        """
        if type(value) is not bytes or self._value_serializer is not None:
            value = serialized("value", value, self._value_serializer)
        if key is not None:
            key = serialized("key", key, self._key_serializer)
        if timestamp is None:
            timestamp = time_ns() // 1_000_000
        else:
            check_timestamp(timestamp)
        if os.getpid() != self._process_id:
            self._check_usable()  # Before the lock: a fork may have happened while the producer's thread held it.
        sending = None if self._telemetry is None else self._sending(topic, key, value, partition, headers)
        sent = headers if sending is None else sending.headers
        try:
            with self._lock:
                appended = self._append(topic, value, key, sent, partition, timestamp)
                if appended is None:
                    appended = self._wait_for(
                        topic, lambda: self._append(topic, value, key, sent, partition, timestamp)
                    )
                wakes = appended.due_ms < self._wakeup_ms
                if wakes:
                    self._wakeup_ms = appended.due_ms
        except BaseException as error:
            if sending is not None:
                sending.failed(error)
            raise
        if wakes:
            self._session.network.wake()
        delivery = Delivery(self._changed, appended.batch, appended.place, timestamp)
        if sending is not None:
            delivery.add_done_callback(lambda each: sending.ended(each.outcome()))
        if on_delivery is not None:
            delivery.add_done_callback(on_delivery)
        return delivery

    def send_batch(
        self,
        topic: str,
        partition: int,
        batch: bytes | bytearray,
        on_delivery: Callable[[Delivery], object] | None = None,
    ) -> Delivery:
        """Add a whole encoded batch and return the delivery of its first record; waits as `send` does.

        The batch gets the producer's identity and keeps its compression. Do not use a bytearray after passing it.
        """
        given = given_batch(batch)
        with self._changed:
            appended = self._wait_for(topic, lambda: self._append_batch(topic, partition, given))
            self._wakeup_ms = NOW
        self._session.network.wake()
        delivery = Delivery(self._changed, appended.batch, appended.place, given.timestamp)
        if on_delivery is not None:
            delivery.add_done_callback(on_delivery)
        return delivery

    def partition_count(self, topic: str) -> int:
        """Return the number of partitions of the topic; waits for metadata for at most `max_block_ms`."""

        def count() -> int | None:
            self._check_usable()
            self._session.cluster.want((topic,))
            return self._session.cluster.partition_count(topic)

        with self._changed:
            return self._wait_for(topic, count)

    def _append_batch(self, topic: str, partition: int, given: GivenBatch) -> Appended | None:
        self._check_usable()
        return self._append_given(topic, partition, given, self._clock.monotonic_ms())

    def _append(
        self,
        topic: str,
        value: bytes | None,
        key: bytes | None,
        headers: Headers,
        partition: int | None,
        timestamp: int,
    ) -> Appended | None:
        """Append the record; None if the caller must retry after a change."""
        if self._is_closing or self._fault is not None:
            self._check_usable()
        if self._transactions is not None:
            self._transactions.check_may_send()
        try:
            return self._core.append(topic, partition, timestamp, key, value, headers, monotonic() * 1000)
        except BufferFull:
            return None

    def _wait_for(self, topic: str, attempt: Callable[[], T | None]) -> T:
        """Return the result of `attempt`: at once, or after a change."""
        began_ms = self._clock.monotonic_ms()
        while (found := attempt()) is None:
            self._session.network.wake()
            waited_ms = self._clock.monotonic_ms() - began_ms
            self._raise_if_unusable(self._session.cluster, self._session.engine.trouble, topic, waited_ms)
            self._changed.wait(max(0.001, self._recheck_ms(waited_ms) / 1000))
        return found

    # Transactions

    def transaction(self) -> Transaction:
        """`with producer.transaction():` commits the records sent inside at the end, or aborts them on an error."""
        transactions = self._require_transactions()
        if transactions.is_new:
            self._run(transactions.initialize, self.config.max_block_ms)
        with self._changed:
            self._await_calls(lambda: not (transactions.is_busy or transactions.is_ending))
            self._check_usable()
            transactions.begin()
        return Transaction(self)

    def adopt(self, prepared: PreparedTransaction) -> Transaction:
        """Write in a transaction that another producer handed over before writing anything; then commit, abort or hand
        it over.
        """
        self._run(partial(self._require_transactions().adopt, prepared), self.config.max_block_ms)
        return Transaction(self)

    def add_transaction_offsets(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata], group: GroupIdentity
    ) -> None:
        self._run(partial(self._require_transactions().add_offsets, offsets, group), self.config.max_block_ms)

    def end_transaction(self, *, commit: bool) -> None:
        transactions = self._require_transactions()
        self._changed.refuse_callbacks("end a transaction")
        with self._changed:
            if commit:
                transactions.check_may_commit()
            else:
                self._core.drop_waiting(TransactionFailed("the transaction of this record was aborted"))
            self.flush(timeout_ms=self.config.max_block_ms)
            self._await_calls(lambda: not transactions.is_busy)
            transactions.seal()
        self._run(partial(transactions.end, commit=commit), self.config.max_block_ms)

    def _await_calls(self, are_done: Callable[[], bool]) -> None:
        """Wait for calls that continue after Ctrl-C interrupted the thread that waited for them."""
        if not self._changed.wait_for(lambda: are_done() or self._fault is not None, self.config.max_block_ms / 1000):
            raise DeadlineExceeded(
                f"the coordinator did not respond in {self.config.max_block_ms:g} ms; check that its broker is running"
            )

    def give_up_transaction(self) -> None:
        """Abort the open transaction; an end that Ctrl-C interrupted is left to complete.

        An error of the abort is only logged: the error that led to it matters more.
        """
        transactions = self._require_transactions()
        try:
            if transactions.is_begun and not transactions.is_ending:
                self.end_transaction(commit=False)
        except ClientError as error:
            logger.warning(
                "the transaction could not be aborted; the coordinator aborts it after its timeout: %s", error
            )

    def hand_over_transaction(self) -> PreparedTransaction:
        transactions = self._require_transactions()
        with self._changed:
            self.flush(timeout_ms=self.config.max_block_ms)
            return transactions.hand_over()

    def _run(self, make: Callable[[], Operation[T]], timeout_ms: float) -> T:
        """Run an operation in the producer's thread and wait for its end; it is created only if waiting is allowed."""
        outcome: list[Any] = []

        def ended(result: Any) -> None:
            outcome.append(result)
            self._changed.notify_all()

        self._changed.refuse_callbacks("wait for its producer")
        with self._changed:
            self._check_usable()
            self._inbox.append((make(), self._clock.monotonic_ms() + timeout_ms, ended))
            self._session.network.wake()
            while not outcome:
                self._check_usable()
                self._changed.wait()
        if isinstance(outcome[0], Exception):
            raise outcome[0]
        result: T = outcome[0]
        return result

    # Closing

    @named_timeout
    def flush(self, *, timeout_ms: float = CLOSE_TIMEOUT_MS) -> None:
        """Wait until every record is delivered or has failed and its callbacks have run.

        `Delivery.result` returns the result.
        """
        self._changed.refuse_callbacks("flush its producer")
        with self._changed:
            self._check_usable()
            self._core.fill()
            self._session.network.wake()
            if not self._changed.wait_for(self._is_flushed, timeout_ms / 1000):
                is_calling = self._is_calling or bool(self._core.settled)
                raise self._flush_overdue(self._session.engine.trouble, timeout_ms, is_calling=is_calling)
            if self._fault is not None:
                self._check_usable()

    def _is_flushed(self) -> bool:
        core = self._core
        return self._fault is not None or not (core.incomplete_count() or core.settled or self._is_calling)

    @named_timeout
    def close(self, *, timeout_ms: float = CLOSE_TIMEOUT_MS) -> None:
        """Deliver the pending records, then stop; records that are not delivered in time fail."""
        if self._is_closing or not self._session.is_own_process():
            return
        self._changed.refuse_callbacks("close its producer")
        try:
            with self._changed:
                if self._fault is None and not self._is_closing:
                    self.flush(timeout_ms=timeout_ms)
        finally:
            with self._changed:
                self._is_closing = True
            self._session.network.wake()
            self._thread.join(THREAD_JOIN_MS / 1000)
            with self._changed:
                self._core.abandon(ClientClosed("the producer was closed before the record was delivered"))
                callbacks = self._settle()
            self._call(callbacks)
            self._log_failed_records()
            with self._changed:  # Notify the threads that wait for an operation.
                self._session.close()
            if self._telemetry is not None:
                self._telemetry.closed(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    def metrics(self) -> dict[str, float]:
        """Return the counters since the producer was created."""
        with self._changed:
            return {**self._session.links.counters(), **self._core.counters()}

    def _check_usable(self) -> None:
        if self._fault is not None:
            raise ClientClosed(f"the producer stopped: {self._fault!r}; create a new one") from self._fault
        if self._is_closing:
            raise ClientClosed("the producer is closed; create a new one")
        if not self._session.is_own_process():
            raise ClientClosed(FORKED)

    def _send_remaining(self) -> bool:
        """Send everything at once because the program ends; return False if there is nothing to wait for."""
        if not self._session.is_own_process():
            return False
        with self._changed:
            if self._fault is not None or self._is_closing or not self._core.incomplete_count():
                return False
            self._core.fill()
        self._session.network.wake()
        return True

    def _leave(self, timeout_ms: float) -> None:
        """Log the records that could not be delivered before the program ends."""
        try:
            self.close(timeout_ms=timeout_ms)
        except ClientError as error:
            logger.warning(
                "the program ends, and records of a producer that was not closed are lost; call "
                "close() or flush() before: %s",
                error,
            )

    def _turn(self, events: Iterable[Any], *, is_last: bool) -> float | None:
        try:
            self._hear(events)
            if self._is_closing:
                return None  # Perhaps a callback took longer than the close waited, and the connections are closed.
            with self._changed:
                if is_last:
                    self._core.fill()
                while self._inbox:
                    operation, deadline_ms, ended = self._inbox.popleft()
                    self._session.engine.start(operation, deadline_ms=deadline_ms, ended=ended)
                self._wakeup_ms = self._session.engine.step()
                wait_ms = self._session.links.wait_ms(self._wakeup_ms - self._clock.monotonic_ms())
                callbacks = self._settle()
            self._call(callbacks)
            if is_last and self._is_flushed():
                self._end()
            return None if self._is_closing else 0 if callbacks else wait_ms
        except BaseException as fault:
            self._stop(fault)
            raise

    def _hear(self, events: Iterable[Any]) -> None:
        with self._changed:
            self._wakeup_ms = NOW
            self._session.links.handle(events)
            callbacks = self._settle()
            if events:
                self._changed.notify_all()
        self._call(callbacks)

    def _stop(self, fault: BaseException) -> None:
        with self._changed:
            self._fault = fault
            self._core.abandon(ClientClosed(f"the producer stopped: {fault!r}"))
            self._changed.notify_all()

    def _end(self) -> None:
        """Stop when the application no longer references the producer and every record is delivered or has failed."""
        self._log_failed_records()
        with self._changed:
            self._is_closing = True
            self._session.close()

    def __del__(self) -> None:
        """Hand the producer to its thread, which delivers the remaining records."""
        thread = getattr(self, "_thread", None)
        if thread is not None and thread.is_alive() and self._session.is_own_process() and not self._session.is_closed:
            _unclosed[id(self)] = self  # The garbage collector has removed it.
            self._forgotten.append(self)
            self._session.network.wake()

    def _settle(self) -> list[Callable[[], None]]:
        """Notify the waiters of completed batches; their callbacks run outside the lock."""
        settled = self._core.settled
        if not settled:
            return []
        callbacks = [callback for batch in settled if batch.callbacks is not None for callback in batch.callbacks]
        settled.clear()
        self._is_calling = bool(callbacks)
        self._changed.notify_all()
        return callbacks

    def _call(self, callbacks: Sequence[Callable[[], None]]) -> None:
        for callback in callbacks:
            callback()
        if callbacks:
            with self._changed:
                self._is_calling = False
                self._changed.notify_all()
