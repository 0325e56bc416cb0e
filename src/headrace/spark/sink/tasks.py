"""The task's part of a write: encodes and sends its rows, and reports its writer to the driver.

At least once: an idempotent producer of the worker sends the rows, and a retried task sends them again. Exactly once:
the coordinator lends the attempt a producer identity for the batch. The rows written under it stay invisible until the
driver commits the batch and names the attempts that count.
"""

from collections.abc import Iterable
from time import monotonic, time_ns
from typing import TYPE_CHECKING, Any

from headrace.client.batch_commits import BatchWriter
from headrace.client.errors import BrokerError, ClientError
from headrace.client.types import PreparedTransaction
from headrace.spark.log_once import log_once
from headrace.spark.option_names import OptionError
from headrace.spark.sink import connections
from headrace.spark.sink.identity import Identity
from headrace.spark.sink.options import LANES, SinkOptions
from headrace.spark.sink.reports import TaskReport
from headrace.spark.sink.rows import RowEncoder, chunks
from headrace.spark.workers import freeze_imports

if TYPE_CHECKING:
    import pyarrow as pa

    from headrace.client.blocking.batch_commits import BatchCommits
    from headrace.client.blocking.delivery import Delivery
    from headrace.client.blocking.producer import Producer

RENEW_S = 120.0
"""Interval at which a long task renews its writer, unless a third of the writer's timeout is shorter."""


class WriterLost(RuntimeError):
    """The coordinator has aborted the writer of a task, and its rows with it."""


class Sending:
    """Encodes and sends the rows of one task."""

    def __init__(self, options: SinkOptions, producer: "Producer") -> None:
        self.records = self.batch_bytes = 0
        self._producer = producer
        self._failure: ClientError | None = None
        config = producer.config
        self._encoder = RowEncoder(
            topic=options.topic,
            partition_count=lambda topic: connections.retry_until_deadline(
                options, lambda: producer.partition_count(topic)
            ),
            batch_bytes_max=lambda topic: connections.topic_batch_bytes_max(options, topic),
            request_bytes_max=config.max_request_size,
            compression=options.compression,
        )

    def send(self, rows: "pa.RecordBatch") -> None:
        for each in self._encoder.encode(rows, time_ns() // 1_000_000):
            self.records += each.records
            self.batch_bytes += len(each.batch)
            self._producer.send_batch(each.topic, each.partition, each.batch, on_delivery=self._delivered)
            self.check()

    def check(self) -> None:
        if self._failure is not None:
            raise self._failure

    def _delivered(self, delivery: "Delivery") -> None:
        if self._failure is None:
            self._failure = delivery.error()


def write_rows(batches: Iterable["pa.RecordBatch"], options: SinkOptions, identity: Identity | None) -> TaskReport:
    """Write all rows of a task and return its report."""
    freeze_imports()
    if options.delivery == LANES:
        from headrace.spark.sink.lanes import write_lane

        return write_lane(batches, options, identity)
    if options.delivery != "at-least-once":
        batch_commits = _usable_batch_commits(options, identity)
        if batch_commits is not None and identity is not None:
            return _write_batch(batches, options, identity, batch_commits)
    return _write_plain(batches, options)


def _usable_batch_commits(options: SinkOptions, identity: Identity | None) -> "BatchCommits | None":
    """Return the client of batch commits; None, with a warning, where only at least once is possible."""
    is_asked_for = options.delivery == "exactly-once"
    if identity is None:
        if is_asked_for:
            raise OptionError(
                "delivery=exactly-once in a batch job needs the option idempotenceKey: a name that every run of the "
                "job shares"
            )
        log_once("rows are written at least once: a batch job without the option idempotenceKey may repeat rows")
        return None
    batch_commits = connections.kept_batch_commits(options)
    if connections.retry_until_deadline(options, batch_commits.supported):
        log_once(f"rows are written exactly once, by batch commits of {identity.owner}")
        return batch_commits
    if is_asked_for:
        raise OptionError(
            "delivery=exactly-once needs brokers with the feature headrace.batch.version: use "
            "headrace.spark.write_lanes with others, or delivery=at-least-once"
        )
    log_once(
        "rows are written AT LEAST ONCE: the brokers have no feature headrace.batch.version; restarts may repeat rows. "
        "Set delivery=at-least-once to accept that, or use headrace.spark.write_lanes"
    )
    return None


def _write_plain(batches: Iterable["pa.RecordBatch"], options: SinkOptions) -> TaskReport:
    from headrace.client.blocking.producer import Producer

    producer = connections.kept("producer", options.client, lambda: Producer(config=options.producer_config()))
    sending = Sending(options, producer)
    try:
        for rows in chunks(batches):
            sending.send(rows)
        producer.flush(timeout_ms=producer.config.delivery_timeout_ms)
        sending.check()
    except BaseException:
        connections.drop("producer", options.client)  # rows that it still holds must not be sent by a later task
        raise
    return TaskReport(identity=None, writer=None, records=sending.records, batch_bytes=sending.batch_bytes)


def _write_batch(
    batches: Iterable["pa.RecordBatch"], options: SinkOptions, identity: Identity, batch_commits: "BatchCommits"
) -> TaskReport:
    from headrace.client.blocking.producer import Producer

    writer = connections.retry_until_deadline(
        options,
        lambda: batch_commits.begin_batch_writer(
            identity.owner,
            run=identity.run,
            batch_id=identity.batch_id,
            task_attempt_id=identity.task_attempt_id,
            timeout_ms=dict(options.client).get("transaction_timeout_ms", 0),
        ),
    )
    if writer is None:
        return _skip(batches, identity)
    _warn_if_expired(options, batch_commits, writer)
    config = options.producer_config(transactional_id=writer.transactional_id)
    with Producer(config=config) as producer:
        lent = PreparedTransaction(
            transactional_id=writer.transactional_id,
            producer_id=writer.producer_id,
            producer_epoch=writer.producer_epoch,
            partitions=(),
            has_offsets=False,
        )
        transaction = connections.retry_until_deadline(options, lambda: producer.adopt(lent))
        sending = Sending(options, producer)
        renewed_s, renew_s = monotonic(), min(RENEW_S, writer.timeout_ms / 1000 / 3)
        for rows in chunks(batches):
            sending.send(rows)
            if monotonic() - renewed_s > renew_s:
                _renew(options, batch_commits, writer)
                renewed_s = monotonic()
        transaction.hand_over()
        sending.check()
    return TaskReport(identity=identity, writer=writer, records=sending.records, batch_bytes=sending.batch_bytes)


def _warn_if_expired(options: SinkOptions, batch_commits: "BatchCommits", writer: BatchWriter) -> None:
    """Warn if the query is not at its beginning and its owner is new: the brokers would not recognise a replay."""
    is_first = writer.transactional_id == f"{writer.owner}#0" and writer.producer_epoch == 0
    if not is_first or writer.batch_id == 0:
        return
    try:
        committed = connections.retry_until_deadline(
            options, lambda: batch_commits.describe(writer.owner)
        ).committed_batch_id
    except BrokerError:
        return
    if committed < 0:
        log_once(
            f"the brokers have no batch of {writer.owner} from before batch {writer.batch_id}. That is correct for a "
            "new sink. Otherwise the sink was idle for longer than transactional.id.expiration.ms of the brokers, and "
            "a batch that was committed when the query stopped, but is not in its checkpoint, is now written again"
        )


def _renew(options: SinkOptions, batch_commits: "BatchCommits", writer: BatchWriter) -> None:
    if connections.retry_until_deadline(options, lambda: batch_commits.renew(writer)) != writer:
        raise WriterLost(
            f"batch {writer.batch_id} of {writer.owner} was committed or aborted while this task was writing it"
        )


def _skip(batches: Iterable[Any], identity: Identity) -> TaskReport:
    """Report a committed batch. The rows are consumed nevertheless: operators before the sink rely on that."""
    for _ in batches:
        pass
    return TaskReport(identity=identity, writer=None, records=0, batch_bytes=0)
