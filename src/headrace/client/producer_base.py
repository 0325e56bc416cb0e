"""Common parts of the producers of all fronts, around the core: settings, serializers and unusable topics."""

import logging
from typing import TYPE_CHECKING, Any, NamedTuple

from headrace.client.config import ProducerConfig
from headrace.client.core.accumulator import ACKS_ALL, Appended, ProducerSettings
from headrace.client.core.cluster import Cluster
from headrace.client.core.partitioners import Choose, RoundRobin, partition_for_checksum
from headrace.client.core.producer import ProducerCore
from headrace.client.errors import (
    AuthenticationFailed,
    BrokerError,
    BufferFull,
    ClientError,
    DeadlineExceeded,
    InvalidArgument,
    SerializationError,
)
from headrace.client.serializers import Serialize
from headrace.client.telemetry import Headers, SendObserver, Telemetry
from headrace.model.errors import ErrorCode
from headrace.ports.entropy import Entropy
from headrace.wire.errors import ProtocolError
from headrace.wire.records.compression import Compression
from headrace.wire.records.header import BASE_TIMESTAMP, HEADER
from headrace.wire.records.reader import check_produced

if TYPE_CHECKING:
    from headrace.client.core.transactions import TransactionManager

FIRST_CONTACT_WAIT_MS = 5_000
"""Time for which no broker may be reached at first, or a topic be unknown (a broker that creates it needs a moment)."""

logger = logging.getLogger("headrace.client")

TIMESTAMP_MIN, TIMESTAMP_MAX = -1, 2**63 - 1
"""-1 means that the record has no timestamp."""


def producer_settings(config: ProducerConfig) -> ProducerSettings:
    acks = ACKS_ALL if config.acks == "all" else int(config.acks)
    return ProducerSettings(
        acks=acks,
        idempotent=acks == ACKS_ALL if config.idempotent is None else config.idempotent,
        compression=Compression[config.compression.upper()],
        linger_ms=config.linger_ms,
        batch_bytes_max=config.batch_size,
        request_bytes_max=config.max_request_size,
        buffer_bytes_max=config.buffer_memory,
        requests_in_flight_max=config.max_in_flight_requests_per_connection,
        request_timeout_ms=config.request_timeout_ms,
        delivery_timeout_ms=config.delivery_timeout_ms,
        retry_pause_ms=config.retry_backoff_ms,
    )


def make_core(
    config: ProducerConfig, cluster: Cluster, entropy: Entropy
) -> "tuple[ProducerCore, TransactionManager | None]":
    transactions = None
    if config.transactional_id is not None:
        from headrace.client.core.transactions import TransactionManager  # with codecs that few applications need

        transactions = TransactionManager(
            config.transactional_id,
            cluster,
            timeout_ms=config.transaction_timeout_ms,
            retry_pause_ms=config.retry_backoff_ms,
        )
    core = ProducerCore(
        producer_settings(config),
        cluster,
        entropy.below,
        partitioner=_partitioner(config, entropy),
        transactions=transactions,
    )
    return core, transactions


def _partitioner(config: ProducerConfig, entropy: Entropy) -> Choose | None:
    if config.partitioner == "murmur2":
        return None
    if config.partitioner == "round-robin":
        return RoundRobin()
    if config.partitioner == "hash":
        return lambda _topic, key, count: entropy.below(count) if key is None else partition_for_checksum(key, count)
    assert callable(config.partitioner), "the config was checked before"
    return config.partitioner


def serialized(what: str, value: Any, serializer: Serialize | None) -> bytes | None:
    """Return the bytes of a key or a value."""
    if serializer is not None and value is not None:
        try:
            value = serializer(value)
        except Exception as error:
            raise SerializationError(f"the {what} {value!r} cannot be serialized: {error!r}") from error
    if isinstance(value, bytearray | memoryview):
        value = bytes(value)
    if value is not None and not isinstance(value, bytes):
        hint = "" if serializer is not None else f": encode it, or set {what}_serializer of the producer"
        raise InvalidArgument(f"a {what} must be bytes or None, not {type(value).__name__}{hint}")
    return value


def check_timestamp(timestamp: object) -> None:
    """Check the timestamp given for a record."""
    if not isinstance(timestamp, int) or not TIMESTAMP_MIN <= timestamp <= TIMESTAMP_MAX:
        raise InvalidArgument(f"a timestamp is a whole number of milliseconds since 1970, not {timestamp!r}")


class GivenBatch(NamedTuple):
    """An encoded and checked batch, in a buffer that the producer owns."""

    data: bytearray
    records_count: int
    timestamp: int
    """Timestamp of its first record."""


def given_batch(batch: bytes | bytearray) -> GivenBatch:
    try:
        count = check_produced(batch)
    except ProtocolError as error:
        raise InvalidArgument(f"this is not one batch of records as producers send it: {error}") from None
    data = batch if isinstance(batch, bytearray) else bytearray(batch)
    return GivenBatch(data, count, HEADER.unpack_from(data)[BASE_TIMESTAMP])


class ProducerBase:
    """Methods of the producers of all fronts that do not wait."""

    config: ProducerConfig
    _core: ProducerCore
    _transactions: "TransactionManager | None"
    _telemetry: Telemetry | None

    def _sending(
        self, topic: str, key: bytes | None, value: bytes | None, partition: int | None, headers: Headers
    ) -> SendObserver:
        """Return the telemetry observer of one record."""
        assert self._telemetry is not None, "only called with telemetry"
        return self._telemetry.sending(self.config.client_id, topic, key, value, partition, headers)

    def __repr__(self) -> str:
        own = f" as {self.config.transactional_id}" if self.config.transactional_id is not None else ""
        count = self._core.incomplete_count()
        return f"<{type(self).__name__}{own} at {self.config.servers()}, {count} batches on their way>"

    def _require_transactions(self) -> "TransactionManager":
        if self._transactions is None:
            raise InvalidArgument("transactions need a transactional_id: give the producer a unique one")
        return self._transactions

    def _append_given(self, topic: str, partition: int, given: GivenBatch, now_ms: float) -> Appended | None:
        """Append a given batch; None if the caller must retry after a change."""
        if self._transactions is not None:
            self._transactions.check_may_send()
        try:
            return self._core.append_batch(topic, partition, given.data, given.records_count, now_ms)
        except BufferFull:
            return None

    def _recheck_ms(self, waited_ms: float) -> float:
        """Return how long to wait for a change before checking again whether waiting can help."""
        return min(self.config.max_block_ms - waited_ms, FIRST_CONTACT_WAIT_MS)

    def _raise_if_unusable(self, cluster: Cluster, trouble: ClientError | None, topic: str, waited_ms: float) -> None:
        """Raise if a record for the topic can never be accepted, or the time limit has passed."""
        error = cluster.topic_errors.get(topic)
        if error in (ErrorCode.INVALID_TOPIC_EXCEPTION, ErrorCode.TOPIC_AUTHORIZATION_FAILED) or (
            error == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION and waited_ms >= FIRST_CONTACT_WAIT_MS
        ):
            raise BrokerError(error, f"topic {topic!r} cannot be written to")
        has_failed = isinstance(trouble, AuthenticationFailed) or waited_ms >= FIRST_CONTACT_WAIT_MS
        if trouble is not None and not cluster.brokers and has_failed:
            raise trouble
        limit_ms = self.config.max_block_ms
        if waited_ms < limit_ms:
            return
        if cluster.partition_count(topic):
            raise BufferFull(
                f"no space for another record in {limit_ms:g} ms: the brokers are slower than this producer; "
                "send less at once or raise buffer_memory"
            )
        why = trouble or "no broker returned its partitions"
        raise DeadlineExceeded(f"the metadata of topic {topic!r} is not known after {limit_ms:g} ms: {why}")

    def _log_failed_records(self) -> None:
        """Log failed records once, at the end: a record whose delivery is never checked must not be lost silently."""
        failed = self._core.last_failed
        if failed is not None and not failed.is_told:
            failed.is_told = True
            logger.warning("records were not delivered, as their deliveries report; the last error: %s", failed.error)

    def _flush_overdue(
        self, trouble: ClientError | None, timeout_ms: float, *, is_calling: bool = False
    ) -> DeadlineExceeded:
        """Return the error of an overdue flush; `is_calling` means that callbacks run or are pending."""
        count = self._core.incomplete_count()
        left = "1 batch is" if count == 1 else f"{count} batches are"
        if is_calling:
            unsent = f"; {left} not delivered yet" if count else ""
            return DeadlineExceeded(
                f"delivery callbacks are still running after {timeout_ms:g} ms, and nothing is sent "
                f"meanwhile: let them return sooner, or flush with more time{unsent}"
            )
        why = trouble or self._core.refusal() or "the brokers have not responded yet"
        return DeadlineExceeded(f"{left} not delivered yet after {timeout_ms:g} ms: {why}")
