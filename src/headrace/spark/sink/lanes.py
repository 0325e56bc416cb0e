"""Lanes: exactly-once writes to any broker of Kafka's protocol, with one transactional producer per lane.

The lane of a row is computed from the row, so that a replay assigns the same one. One transaction holds the rows of a
lane in a micro-batch, and a committed offset that names the micro-batch. The next task of the lane takes its
transactional id over, which ends the transactions of its predecessors, then reads that offset and skips a micro-batch
that is written. The price: the rows are shuffled, lanes become visible one by one, and a replay must produce the same
rows.
"""

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

from pyspark import TaskContext

from headrace.client.types import GroupIdentity, OffsetAndMetadata
from headrace.model.ids import TopicPartition
from headrace.spark.log_once import log_once
from headrace.spark.option_names import OptionError
from headrace.spark.sink import connections
from headrace.spark.sink.identity import NAME_EACH_WRITE, Identity
from headrace.spark.sink.options import LANES, LANES_MAX, SinkOptions
from headrace.spark.sink.reports import TaskReport
from headrace.spark.sink.rows import chunks
from headrace.spark.sink.schemas import LANE_COLUMN
from headrace.spark.sink.tasks import Sending

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, DataFrameWriter
    from pyspark.sql.streaming.readwriter import DataStreamWriter

LANES_DEFAULT = 4
TRANSACTION_MS = 900_000
"""The timeout of a lane's transaction unless kafka.transaction.timeout.ms is set: the default limit of brokers."""


class LanesMixed(RuntimeError):
    """Rows of one lane are in several tasks, of which only one would be written."""


class SameLaneTwice(RuntimeError):
    """Two writes of one run share a name, so that the second would be mistaken for a repetition."""


class LaneNote(NamedTuple):
    """The metadata of a lane's committed offset: the number of lanes, and the run and write that committed it."""

    lanes: str
    run: str = ""
    write_id: str = ""

    def text(self) -> str:
        return f"lanes={self.lanes},{self.run},{self.write_id}"


def write_lanes(rows: "DataFrame", *, lanes: int = LANES_DEFAULT) -> "DataFrameWriter | DataStreamWriter":
    """Return a writer of these rows, for `.option(...)`, then `.start()` or `.save()`.

    There are at most as many lanes as the topic has partitions.
    """
    from pyspark.sql import functions

    if type(lanes) is not int or not 1 <= lanes <= LANES_MAX:
        raise OptionError(f"there are 1 to {LANES_MAX} lanes, not {lanes!r}")
    columns = set(rows.columns)
    if "value" not in columns:
        raise OptionError(f"a column `value` is needed; the rows have {', '.join(rows.columns) or 'no columns'}")
    chosen = [functions.col(name).cast("string") for name in ("partition", "key") if name in columns]
    follows = functions.coalesce(*chosen, functions.col("value").cast("string"), functions.lit(""))
    lane = functions.pmod(functions.hash(follows), functions.lit(lanes)).cast("int")
    dealt = rows.withColumn(LANE_COLUMN, lane).repartitionById(lanes, LANE_COLUMN)
    if rows.isStreaming:
        return dealt.writeStream.format("headrace").option("delivery", LANES).option("lanes", lanes)
    return dealt.write.format("headrace").mode("append").option("delivery", LANES).option("lanes", lanes)


def write_lane(batches: Iterable[Any], options: SinkOptions, identity: Identity | None) -> TaskReport:
    """Write the rows of one task, which is one lane."""
    task = TaskContext.get()
    assert task is not None, "a writer writes within a task"
    if identity is None:
        raise OptionError(
            "write_lanes in a batch job needs the option idempotenceKey: a name that every run of the job shares"
        )
    return write_rows_of_lane(batches, options, identity, task.partitionId())


def write_rows_of_lane(batches: Iterable[Any], options: SinkOptions, identity: Identity, lane: int) -> TaskReport:
    from headrace.client.blocking.producer import Producer

    pieces = chunks(_checked(batches, lane, options.lanes))
    first = next(pieces, None)
    if first is None:
        return TaskReport(identity=None, writer=None, records=0, batch_bytes=0)
    assert options.topic is not None, "the options were checked"
    log_once(f"rows are written exactly once in {options.lanes} lanes of {identity.owner}")
    lane_partition = TopicPartition(options.topic, lane)
    timeout_ms = dict(options.client).get("transaction_timeout_ms", TRANSACTION_MS)
    config = options.producer_config(transactional_id=f"{identity.owner}.{lane}", transaction_timeout_ms=timeout_ms)
    with Producer(config=config) as producer:
        partitions = connections.retry_until_deadline(options, lambda: producer.partition_count(lane_partition.topic))
        if partitions < options.lanes:
            raise OptionError(f'topic "{options.topic}" has {partitions} partitions: write_lanes takes at most as many')
        with connections.retry_until_deadline(options, producer.transaction) as transaction:
            sending = Sending(options, producer)
            next_batch_id, noted = connections.retry_until_deadline(
                options, lambda: _next_batch_id(options, identity.owner, lane_partition, partitions)
            )
            if next_batch_id > identity.batch_id:
                for _ in pieces:
                    pass  # operators before the sink rely on all rows being consumed
            else:
                for rows in chain((first,), pieces):
                    sending.send(rows)
            if next_batch_id <= identity.batch_id or _is_first_repeat(identity, next_batch_id, noted):
                own = LaneNote(str(options.lanes), identity.run, identity.write_id)
                done = OffsetAndMetadata(max(next_batch_id, identity.batch_id + 1), metadata=own.text())
                transaction.commit_offsets({lane_partition: done}, GroupIdentity(identity.owner))
                transaction.commit()
            else:
                transaction.abort()
    return TaskReport(identity=None, writer=None, records=sending.records, batch_bytes=sending.batch_bytes)


def _is_first_repeat(identity: Identity, next_batch_id: int, noted: LaneNote) -> bool:
    """Return whether this is the first write of a later run that repeats the batch; if so, it has to be noted."""
    if next_batch_id != identity.batch_id + 1 or not identity.write_id:
        return False
    if noted.run == identity.run and noted.write_id not in ("", identity.write_id):
        raise SameLaneTwice(
            f"another write of this run has written batch {identity.batch_id} of {identity.owner}, so it is unknown "
            f"whether these rows are in the topic: {NAME_EACH_WRITE}"
        )
    return noted.run != identity.run


def _next_batch_id(
    options: SinkOptions, group: str, lane_partition: TopicPartition, partitions: int
) -> tuple[int, LaneNote]:
    """Return the next micro-batch of the lane and the note of the last one, when no transaction is still ending."""
    from headrace.client.blocking.consumer import Consumer
    from headrace.client.config import ConsumerConfig

    config = ConsumerConfig(group_id=group, enable_auto_commit=False, **options.connection())
    with Consumer(config=config) as consumer:
        found = consumer.committed([TopicPartition(lane_partition.topic, number) for number in range(partitions)])
    notes = {each: _note(offset.metadata or "") for each, offset in found.items()}
    others = {each.lanes for each in notes.values()} - {str(options.lanes)}
    if others:
        raise OptionError(
            f"{group} was written with lanes={others.pop()} before, not with {options.lanes}: rows would be lost or "
            "repeated; keep the number of lanes, or start again with another sinkName"
        )
    return (
        (found[lane_partition].offset, notes[lane_partition])
        if lane_partition in found
        else (0, LaneNote(str(options.lanes)))
    )


def _note(text: str) -> LaneNote:
    return LaneNote(*text.removeprefix("lanes=").split(",", 2))


def _checked(batches: Iterable[Any], lane: int, lanes: int) -> Iterator[Any]:
    """Check that every row is in the task of its lane: a lane in two tasks would lose the rows of one."""
    for batch in batches:
        column = batch.column(LANE_COLUMN).to_numpy()
        if lane >= lanes or (column != lane).any():
            raise LanesMixed(
                "rows of several lanes are in one task: write what headrace.spark.write_lanes(df) gives, as it is"
            )
        yield batch
