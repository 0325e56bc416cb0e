"""What one task does with its rows: encodes them, sends them, and reports what must be committed.

At least once: an idempotent producer of the worker sends the rows; a task that is tried again sends them again.
Exactly once: the coordinator lends the attempt a producer identity for the epoch; the rows are written under it and
stay unseen until the driver commits the epoch with the names of the attempts that count.
"""

from collections.abc import Iterable
from time import monotonic, time_ns
from typing import TYPE_CHECKING, Any

from headrace.client.epochs import EpochMember
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

    from headrace.client.blocking.delivery import Delivery
    from headrace.client.blocking.epochs import Epochs
    from headrace.client.blocking.producer import Producer

RENEW_S = 120.0
"""How often a task that writes for long tells the coordinator that it is alive."""


class LostMember(RuntimeError):
    """What a task has written will never count: the coordinator has given its part of the epoch up."""


class Sending:
    """The rows of one task on their way."""

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
            self._producer.send_batch(each.topic, each.partition, each.batch, on_delivery=self._settled)
            self.check()

    def check(self) -> None:
        if self._failure is not None:
            raise self._failure

    def _settled(self, delivery: "Delivery") -> None:
        if self._failure is None:
            self._failure = delivery.error()


def write_rows(batches: Iterable["pa.RecordBatch"], options: SinkOptions, identity: Identity | None) -> TaskReport:
    """All rows of a task, delivered, and what is to be committed of them."""
    freeze_imports()
    if options.delivery == LANES:
        from headrace.spark.sink.lanes import write_lane

        return write_lane(batches, options, identity)
    if options.delivery != "at-least-once":
        epochs = _usable_epochs(options, identity)
        if epochs is not None and identity is not None:
            return _write_epoch(batches, options, identity, epochs)
    return _write_plain(batches, options)


def _usable_epochs(options: SinkOptions, identity: Identity | None) -> "Epochs | None":
    """How epochs are committed there; None where nothing better than at least once can be had, which is said."""
    is_asked_for = options.delivery == "exactly-once"
    if identity is None:
        if is_asked_for:
            raise OptionError(
                "delivery=exactly-once in a batch job needs the option idempotenceKey: a name that is the same when "
                "the job is run again"
            )
        log_once("rows are written at least once: a batch job without the option idempotenceKey may repeat rows")
        return None
    epochs = connections.kept_epochs(options)
    if connections.retry_until_deadline(options, epochs.supported):
        log_once(f"rows are written exactly once, as epochs of {identity.owner}")
        return epochs
    if is_asked_for:
        raise OptionError(
            "delivery=exactly-once needs brokers with the feature headrace.epoch.version: use "
            "headrace.spark.write_lanes with others, or delivery=at-least-once"
        )
    log_once(
        "rows are written AT LEAST ONCE: the brokers have no feature headrace.epoch.version; restarts may repeat rows. "
        "Set delivery=at-least-once if that will do, or use headrace.spark.write_lanes"
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
        connections.drop("producer", options.client)  # what it still holds must not be sent by a later task
        raise
    return TaskReport(identity=None, member=None, records=sending.records, batch_bytes=sending.batch_bytes)


def _write_epoch(
    batches: Iterable["pa.RecordBatch"], options: SinkOptions, identity: Identity, epochs: "Epochs"
) -> TaskReport:
    from headrace.client.blocking.producer import Producer

    member = connections.retry_until_deadline(
        options,
        lambda: epochs.begin_epoch_member(
            identity.owner,
            run=identity.run,
            batch_id=identity.batch_id,
            task_attempt_id=identity.task_attempt_id,
            timeout_ms=dict(options.client).get("transaction_timeout_ms", 0),
        ),
    )
    if member is None:
        return _skip(batches, identity)
    _say_if_forgotten(options, epochs, member)
    config = options.producer_config(transactional_id=member.transactional_id)
    with Producer(config=config) as producer:
        lent = PreparedTransaction(
            transactional_id=member.transactional_id,
            producer_id=member.producer_id,
            producer_epoch=member.producer_epoch,
            partitions=(),
            has_offsets=False,
        )
        transaction = connections.retry_until_deadline(options, lambda: producer.adopt(lent))
        sending = Sending(options, producer)
        renewed_s = monotonic()
        for rows in chunks(batches):
            sending.send(rows)
            if monotonic() - renewed_s > RENEW_S:
                _renew(options, epochs, member)
                renewed_s = monotonic()
        transaction.hand_over()
        sending.check()
    return TaskReport(identity=identity, member=member, records=sending.records, batch_bytes=sending.batch_bytes)


def _say_if_forgotten(options: SinkOptions, epochs: "Epochs", member: EpochMember) -> None:
    """A query that is not at its beginning, and of which the brokers know nothing: a replay would not be noticed."""
    is_first = member.transactional_id == f"{member.owner}#0" and member.producer_epoch == 0
    if not is_first or member.batch_id == 0:
        return
    try:
        committed = connections.retry_until_deadline(options, lambda: epochs.describe(member.owner)).committed_batch_id
    except BrokerError:
        return
    if committed < 0:
        log_once(
            f"the brokers know of nothing that {member.owner} wrote before epoch {member.batch_id}. That is right for "
            "a new sink. Else it was quiet for longer than their transactional.id.expiration.ms, and an epoch that was "
            "committed when the query stopped, but is not in its checkpoint, is now written a second time"
        )


def _renew(options: SinkOptions, epochs: "Epochs", member: EpochMember) -> None:
    if connections.retry_until_deadline(options, lambda: epochs.renew(member)) != member:
        raise LostMember(
            f"epoch {member.batch_id} of {member.owner} was committed or given up while this task wrote for it"
        )


def _skip(batches: Iterable[Any], identity: Identity) -> TaskReport:
    """The epoch is there already. The rows are taken all the same: operators before the sink count on that."""
    for _ in batches:
        pass
    return TaskReport(identity=identity, member=None, records=0, batch_bytes=0)
