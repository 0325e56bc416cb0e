"""Producing from threads that need not wait: records are collected here, and one background thread sends them."""

import os
import threading
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Self, Unpack

from headrace.client.blocking.session import Session
from headrace.client.config import ProducerConfig, ProducerOptions, settle
from headrace.client.core.calls import Errand
from headrace.client.core.produced_batches import ProducedBatch
from headrace.client.core.producer import Appended, ProducerCore
from headrace.client.errors import BrokerError, BufferFull, ClientClosed, ClientError, DeadlineExceeded, InvalidArgument
from headrace.client.producing import producer_settings
from headrace.client.types import RecordMetadata
from headrace.model.errors import ErrorCode

Headers = Sequence[tuple[str, bytes | None]]

FIRST_CONTACT_WAIT_MS = 5_000
"""How long no broker may be reached at first, or a topic be unknown (a broker that creates it needs a moment)."""

CLOSE_TIMEOUT_MS = 30_000
THREAD_JOIN_MS = 5_000


class Delivery:
    """The promise of one record: where it is, once its broker said so."""

    __slots__ = ("_batch", "_changed", "_place", "_timestamp")

    def __init__(self, changed: threading.Condition, batch: ProducedBatch, place: int, timestamp: int) -> None:
        self._changed = changed
        self._batch = batch
        self._place = place
        self._timestamp = timestamp

    def done(self) -> bool:
        return self._batch.is_done

    def result(self, timeout_ms: float | None = None) -> RecordMetadata:
        """Where the record is; raises why it is nowhere, or `DeadlineExceeded` if that is not known in time."""
        batch = self._batch
        if not batch.is_done:
            with self._changed:
                self._changed.wait_for(lambda: batch.is_done, None if timeout_ms is None else timeout_ms / 1000)
        if batch.error is not None:
            raise batch.error
        if not batch.is_done:
            raise DeadlineExceeded(f"the record for {batch.partition} is still on its way after {timeout_ms:g} ms")
        return RecordMetadata(
            batch.partition.topic,
            batch.partition.partition,
            batch.base_offset + self._place if batch.base_offset >= 0 else -1,
            batch.log_append_time_ms if batch.log_append_time_ms >= 0 else self._timestamp,
        )


class Producer:
    """Sends records; idempotent unless acks is weaker than "all". Safe for several threads, not across a fork."""

    def __init__(
        self,
        bootstrap_servers: str | Sequence[str] | None = None,
        *,
        config: ProducerConfig | Mapping[str, Any] | None = None,
        **options: Unpack[ProducerOptions],
    ) -> None:
        """Options are those of `ProducerConfig`; `config` also takes a dict with Kafka's names."""
        self.config: ProducerConfig = settle(ProducerConfig, config, bootstrap_servers, options)
        settings = producer_settings(self.config)
        self._session = Session(self.config)
        self._max_block_ms = self.config.max_block_ms
        self._clock = self._session.clock
        self._core = ProducerCore(settings, self._session.cluster, self._session.entropy.below)
        self._changed = threading.Condition()
        """Held for every look at the core; told when batches are settled or the cluster is better known."""
        self._process = os.getpid()
        self._is_closing = False
        self._fault: BaseException | None = None
        self._last_error: ClientError | None = None
        """What the last reply was, if it was an error; only for messages."""
        self._thread = threading.Thread(target=self._send_for_ever, name="headrace-producer", daemon=True)
        self._thread.start()

    def send(
        self,
        topic: str,
        value: bytes | None,
        key: bytes | None = None,
        headers: Headers = (),
        partition: int | None = None,
        timestamp: int | None = None,
    ) -> Delivery:
        """Hand over one record. Waits only for a topic that is not known yet or for room, at most `max_block_ms`."""
        if (value is not None and not isinstance(value, bytes)) or (key is not None and not isinstance(key, bytes)):
            raise InvalidArgument(f"key and value are bytes or None, not {type(key).__name__}, {type(value).__name__}")
        if timestamp is None:
            timestamp = self._clock.wall_ms()
        with self._changed:
            appended = self._append(topic, value, key, headers, partition, timestamp)
            if appended is None:
                appended = self._wait_and_append(topic, value, key, headers, partition, timestamp)
        if appended.needs_poll:
            self._session.network.wake()
        return Delivery(self._changed, appended.batch, appended.place, timestamp)

    def _append(
        self,
        topic: str,
        value: bytes | None,
        key: bytes | None,
        headers: Headers,
        partition: int | None,
        timestamp: int,
    ) -> Appended | None:
        """None if it must be tried again after something changed."""
        self._check_usable()
        try:
            return self._core.append(topic, partition, timestamp, key, value, headers, self._clock.monotonic_ms())
        except BufferFull:
            return None

    def _wait_and_append(self, topic: str, *record: Any) -> Appended:
        began_ms = self._clock.monotonic_ms()
        while True:
            self._session.network.wake()
            waited_ms = self._clock.monotonic_ms() - began_ms
            self._refuse_hopeless(topic, waited_ms)
            self._changed.wait(max(0.001, min(self._max_block_ms - waited_ms, FIRST_CONTACT_WAIT_MS) / 1000))
            appended = self._append(topic, *record)
            if appended is not None:
                return appended

    def _refuse_hopeless(self, topic: str, waited_ms: float) -> None:
        error = self._session.cluster.topic_errors.get(topic)
        if error in (ErrorCode.INVALID_TOPIC_EXCEPTION, ErrorCode.TOPIC_AUTHORIZATION_FAILED) or (
            error == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION and waited_ms >= FIRST_CONTACT_WAIT_MS
        ):
            raise BrokerError(error, f"topic {topic!r} cannot be written to")
        if self._last_error is not None and not self._session.cluster.brokers and waited_ms >= FIRST_CONTACT_WAIT_MS:
            raise self._last_error
        if waited_ms < self._max_block_ms:
            return
        if self._session.cluster.partition_count(topic):
            raise BufferFull(
                f"no room for another record in {self._max_block_ms:g} ms: the brokers are slower than this producer; "
                "send less at once or raise buffer_memory"
            )
        raise DeadlineExceeded(
            f"nothing is known of topic {topic!r} after {self._max_block_ms:g} ms: {self._trouble()}"
        )

    def _trouble(self) -> str:
        return str(self._last_error) if self._last_error is not None else "no broker said which partitions it has"

    def flush(self, timeout_ms: float = CLOSE_TIMEOUT_MS) -> None:
        """Wait until every record handed over is delivered or given up; `Delivery.result` says which."""
        with self._changed:
            self._check_usable()
            self._core.fill()
            self._session.network.wake()
            if not self._changed.wait_for(lambda: not self._core.unsettled() or self._fault, timeout_ms / 1000):
                left = self._core.unsettled()
                raise DeadlineExceeded(
                    f"{left} batches are still on their way after {timeout_ms:g} ms: {self._trouble()}"
                )
            self._check_usable()

    def close(self, timeout_ms: float = CLOSE_TIMEOUT_MS) -> None:
        """Deliver what was handed over, then stop; what is not delivered by then is given up."""
        if self._is_closing or self._process != os.getpid():
            return
        try:
            if self._fault is None:
                self.flush(timeout_ms)
        finally:
            with self._changed:
                self._is_closing = True
            self._session.network.wake()
            self._thread.join(THREAD_JOIN_MS / 1000)
            with self._changed:
                self._core.abandon(ClientClosed("the producer was closed before the record was delivered"))
                self._changed.notify_all()
            self._session.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    def _check_usable(self) -> None:
        if self._fault is not None:
            raise ClientClosed(f"the producer stopped: {self._fault!r}; make a new one") from self._fault
        if self._is_closing:
            raise ClientClosed("the producer was closed: make a new one")
        if self._process != os.getpid():
            raise ClientClosed("a producer does not survive a fork: make one in each process, after the fork")

    def _send_for_ever(self) -> None:
        links = self._session.links
        try:
            while not self._is_closing:
                with self._changed:
                    now_ms = self._clock.monotonic_ms()
                    errands, wakeup_ms = self._core.poll(now_ms)
                    self._tell_settled()
                for errand in errands:
                    links.submit(errand.call, partial(self._completed, errand))
                links.turn(max(0.0, wakeup_ms - now_ms))
        except BaseException as fault:
            with self._changed:
                self._fault = fault
                self._core.abandon(ClientClosed(f"the producer stopped: {fault!r}"))
                self._changed.notify_all()
            raise

    def _completed(self, errand: Errand, reply: Any) -> None:
        with self._changed:
            self._last_error = reply if isinstance(reply, ClientError) else None
            errand.completed(reply, self._clock.monotonic_ms())
            self._core.settled.clear()
            self._changed.notify_all()

    def _tell_settled(self) -> None:
        if self._core.settled:
            self._core.settled.clear()
            self._changed.notify_all()
