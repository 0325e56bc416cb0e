"""Produce on an asyncio loop: records are collected into batches, which the loop sends."""

import asyncio
import logging
from collections.abc import Callable, Generator, Mapping, Sequence
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar, Unpack

from headrace.client.aio.session import Session
from headrace.client.config import ProducerConfig, resolve_config
from headrace.client.config_options import ProducerOptions
from headrace.client.consumer_base import Place, as_offsets
from headrace.client.core.accumulator import NEVER, Appended
from headrace.client.delivery_base import DeliveryBase
from headrace.client.errors import (
    BufferFull,
    ClientClosed,
    ClientError,
    DeadlineExceeded,
    InvalidArgument,
    TransactionFailed,
)
from headrace.client.producer_base import GivenBatch, ProducerBase, check_timestamp, given_batch, make_core, serialized
from headrace.client.serializers import serializer
from headrace.client.telemetry import Headers
from headrace.client.timeouts import named_timeout
from headrace.client.types import GroupIdentity, OffsetAndMetadata, PreparedTransaction, RecordMetadata

if TYPE_CHECKING:
    from headrace.client.core.transactions import TransactionManager

T = TypeVar("T")

CLOSE_TIMEOUT_MS = 30_000
NOT_ENDED = "the previous transaction has not ended yet; wait for its end"
logger = logging.getLogger("headrace.client")


class Delivery(DeliveryBase):
    """The delivery of one record; await it to get the record's offset or the error."""

    __slots__ = ()

    def result(self) -> RecordMetadata:
        if not self._batch.is_done:
            raise InvalidArgument("the record is not delivered yet: await its delivery")
        return self._where()

    def add_done_callback(self, callback: "Callable[[Delivery], object]") -> None:
        """Call the callback on the loop when the record is delivered or has failed: it must not block."""
        if not self._await_end(partial(self._tell, callback)):
            self._tell(callback)

    def __await__(self) -> Generator[Any, None, RecordMetadata]:
        ended = asyncio.get_running_loop().create_future()
        if self._await_end(lambda: None if ended.done() else ended.set_result(None)):
            yield from ended.__await__()
        return self.result()


def _promised(delivery: Delivery, on_delivery: Callable[[Delivery], object] | None) -> Delivery:
    if on_delivery is not None:
        delivery.add_done_callback(on_delivery)
    return delivery


class Producer(ProducerBase):
    """Sends records; idempotent unless acks is weaker than "all". For the loop in which it was created."""

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
        self._session.engine.attach(self)
        self._key_serializer = serializer(self.config.key_serializer)
        self._value_serializer = serializer(self.config.value_serializer)
        self._telemetry = self.config.telemetry
        self._is_closing = False
        self._giving_up: asyncio.Task[None] | None = None
        """The abort of a transaction whose task was cancelled or failed."""
        if self._telemetry is not None:
            self._telemetry.opened(self)

    def poll(self, now_ms: float) -> tuple[list[Any], float]:
        """Return the core's calls to the engine and notify the waiters of completed batches."""
        calls, wakeup_ms = self._core.poll(now_ms)
        for batch in self._core.settled:
            for callback in batch.callbacks or ():
                callback()
        self._core.settled.clear()
        return calls, wakeup_ms

    async def send(
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

        `on_delivery` is called on the loop when the record is delivered or has failed.
        """
        value = serialized("value", value, self._value_serializer)
        if key is not None:
            key = serialized("key", key, self._key_serializer)
        if timestamp is None:
            timestamp = self._clock.wall_ms()
        else:
            check_timestamp(timestamp)
        sending = None if self._telemetry is None else self._sending(topic, key, value, partition, headers)
        sent = headers if sending is None else sending.headers
        try:
            appended = self._append(topic, value, key, sent, partition, timestamp)
            if appended is None:
                appended = await self._wait_for(
                    topic, lambda: self._append(topic, value, key, sent, partition, timestamp)
                )
        except BaseException as error:
            if sending is not None:
                sending.failed(error)
            raise
        delivery = Delivery(appended.batch, appended.place, timestamp)
        if sending is not None:
            delivery.add_done_callback(lambda each: sending.ended(each.outcome()))
        if appended.due_ms != NEVER:
            self._session.schedule()
            if appended.batch.is_full:
                await asyncio.sleep(0)  # A sender that never waits would keep the loop from sending.
        return _promised(delivery, on_delivery)

    async def send_and_wait(self, topic: str, value: Any, key: Any = None, **record: Any) -> RecordMetadata:
        """Send one record and wait until it is delivered."""
        return await (await self.send(topic, value, key, **record))

    async def send_batch(
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
        appended = await self._wait_for(topic, lambda: self._append_batch(topic, partition, given))
        self._session.schedule()
        await asyncio.sleep(0)  # As in `send`.
        return _promised(Delivery(appended.batch, appended.place, given.timestamp), on_delivery)

    async def partition_count(self, topic: str) -> int:
        """Return the number of partitions of the topic; waits for metadata for at most `max_block_ms`."""

        def count() -> int | None:
            self._check_usable()
            self._session.cluster.want((topic,))
            return self._session.cluster.partition_count(topic)

        return await self._wait_for(topic, count)

    def _append_batch(self, topic: str, partition: int, given: GivenBatch) -> Appended | None:
        self._check_usable()
        return self._append_given(topic, partition, given, self._clock.monotonic_ms())

    def _append(self, topic: str, value: Any, key: Any, headers: Headers, *place_and_time: Any) -> Appended | None:
        """Append the record; None if the caller must retry after a change."""
        self._check_usable()
        if self._transactions is not None:
            self._transactions.check_may_send()
        partition, timestamp = place_and_time
        try:
            return self._core.append(topic, partition, timestamp, key, value, headers, self._clock.monotonic_ms())
        except BufferFull:
            return None

    async def _wait_for(self, topic: str, attempt: Callable[[], T | None]) -> T:
        """Return the result of `attempt`: at once, or after a change."""
        began_ms = self._clock.monotonic_ms()
        while (found := attempt()) is None:
            self._session.schedule()
            waited_ms = self._clock.monotonic_ms() - began_ms
            self._raise_if_unusable(self._session.cluster, self._session.engine.trouble, topic, waited_ms)
            await self._session.changed(began_ms + waited_ms + self._recheck_ms(waited_ms))
        return found

    @named_timeout
    async def flush(self, *, timeout_ms: float = CLOSE_TIMEOUT_MS) -> None:
        """Wait until every record is delivered or has failed; its `Delivery` holds the result."""
        self._check_usable()
        self._core.fill()
        self._session.schedule()
        deadline_ms = self._clock.monotonic_ms() + timeout_ms
        while self._core.incomplete_count():
            if self._clock.monotonic_ms() >= deadline_ms:
                raise self._flush_overdue(self._session.engine.trouble, timeout_ms)
            await self._session.changed(deadline_ms)

    # Transactions

    async def begin_transaction(self) -> "Transaction":
        transactions = self._require_transactions()
        await self._last_ended(transactions)
        if transactions.is_new:
            await self._session.run(transactions.initialize(), self.config.max_block_ms)
        transactions.begin()
        return Transaction(self)

    def transaction(self) -> "Transaction":
        """`async with producer.transaction():` commits the records sent inside at the end, or aborts them on an
        error.
        """
        self._require_transactions()
        return Transaction(self, is_open=False)

    async def adopt(self, prepared: PreparedTransaction) -> "Transaction":
        """Write in a transaction that another producer handed over before writing anything; then commit, abort or hand
        it over.
        """
        await self._session.run(self._require_transactions().adopt(prepared), self.config.max_block_ms)
        return Transaction(self)

    async def add_transaction_offsets(
        self, offsets: Mapping[Place, int | OffsetAndMetadata], group: GroupIdentity
    ) -> None:
        operation = self._require_transactions().add_offsets(as_offsets(offsets), group)
        await self._session.run(operation, self.config.max_block_ms)

    async def end_transaction(self, *, commit: bool) -> None:
        transactions = self._require_transactions()
        if commit:
            transactions.check_may_commit()
        else:
            self._core.drop_waiting(TransactionFailed("the transaction of this record was aborted"))
        await self.flush(timeout_ms=self.config.max_block_ms)
        await self._until(
            lambda: not transactions.is_busy, "the offsets of the transaction are still being committed; wait for that"
        )
        transactions.seal()
        await self._session.run(transactions.end(commit=commit), self.config.max_block_ms)

    async def give_up_transaction(self) -> None:
        """Abort the open transaction, even if the waiting task is cancelled; an end in progress is left to complete."""
        self._giving_up = asyncio.ensure_future(self._give_up())
        await asyncio.shield(self._giving_up)

    async def _give_up(self) -> None:
        """Log an error of the abort: the error that led to it matters more."""
        transactions = self._require_transactions()
        try:
            await self._until(lambda: not transactions.is_ending, NOT_ENDED)
            if transactions.is_begun:
                await self.end_transaction(commit=False)
        except ClientError as error:
            logger.warning(
                "the transaction could not be aborted; the coordinator aborts it after its timeout: %s", error
            )

    async def _last_ended(self, transactions: "TransactionManager") -> None:
        """Wait for the end of the last transaction: the task that waited for it may have been cancelled."""
        if self._giving_up is not None:
            await asyncio.wait([self._giving_up], timeout=self.config.max_block_ms / 1000)
        await self._until(lambda: not (transactions.is_ending or transactions.is_busy), NOT_ENDED)

    async def _until(self, is_so: Callable[[], bool], otherwise: str) -> None:
        deadline_ms = self._clock.monotonic_ms() + self.config.max_block_ms
        while not is_so():
            if self._clock.monotonic_ms() >= deadline_ms:
                raise DeadlineExceeded(f"{otherwise} after {self.config.max_block_ms:g} ms")
            await self._session.changed(deadline_ms)

    async def hand_over_transaction(self) -> PreparedTransaction:
        transactions = self._require_transactions()
        await self.flush(timeout_ms=self.config.max_block_ms)
        return transactions.hand_over()

    # Closing

    def metrics(self) -> dict[str, float]:
        """Return the counters since the producer was created."""
        return {**self._session.links.counters(), **self._core.counters()}

    @named_timeout
    async def close(self, *, timeout_ms: float = CLOSE_TIMEOUT_MS) -> None:
        """Deliver the pending records, then stop; records that are not delivered in time fail."""
        if self._is_closing or not self._session.is_own_process():
            return
        try:
            if self._giving_up is not None and not self._giving_up.done():
                await asyncio.wait([self._giving_up], timeout=timeout_ms / 1000)
            await self.flush(timeout_ms=timeout_ms)
        finally:
            self._is_closing = True
            self._core.abandon(ClientClosed("the producer was closed before the record was delivered"))
            for batch in self._core.settled:
                for callback in batch.callbacks or ():
                    callback()
            self._log_failed_records()
            self._session.close()
            if self._telemetry is not None:
                self._telemetry.closed(self)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_exception: object) -> None:
        await self.close()

    def _check_usable(self) -> None:
        if self._is_closing:
            raise ClientClosed("the producer is closed; create a new one")
        self._session.check_usable()


class Transaction:
    """Its records become visible to read_committed consumers together, or never."""

    def __init__(self, producer: Producer, *, is_open: bool = True) -> None:
        self._producer = producer
        self._is_open = is_open

    async def commit_offsets(
        self, offsets: Mapping[Place, int | OffsetAndMetadata], group: GroupIdentity | str
    ) -> None:
        """Commit these offsets of a group with the transaction; pass `consumer.group_identity()`."""
        self._check_open()
        identity = GroupIdentity(group) if isinstance(group, str) else group
        await self._producer.add_transaction_offsets(offsets, identity)

    async def commit(self) -> None:
        self._check_open()
        await self._producer.end_transaction(commit=True)
        self._is_open = False

    async def abort(self) -> None:
        self._check_open()
        try:
            await self._producer.end_transaction(commit=False)
        except ClientError as error:
            if not isinstance(error, InvalidArgument):  # a refused call leaves the transaction unchanged
                self._is_open = False
            raise
        self._is_open = False

    async def hand_over(self) -> PreparedTransaction:
        """Leave the transaction open, with all records delivered, for `Admin.end_transaction`; afterwards the producer
        can only be closed.
        """
        self._check_open()
        prepared = await self._producer.hand_over_transaction()
        self._is_open = False
        return prepared

    def _check_open(self) -> None:
        if not self._is_open:
            raise InvalidArgument("this transaction has ended: begin another with `producer.transaction()`")

    async def __aenter__(self) -> Self:
        if not self._is_open:
            await self._producer.begin_transaction()
            self._is_open = True
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if not self._is_open:
            return
        try:
            if error is None:
                await self.commit()
        finally:
            if self._is_open:
                self._is_open = False
                await self._producer.give_up_transaction()
