"""Exactly once on any broker that speaks Kafka's protocol: rows are dealt out to lanes, each a producer of its own.

A row's lane follows from the row, so a replay puts it into the same one. One transaction holds the rows that a lane
has in a micro-batch, and an offset that says which micro-batch that was. Whoever writes a lane next takes its
transactional id over, which ends what others have begun under it, then reads that offset, and skips what is done.
The price: the rows are shuffled, lanes become visible one by one, and a replay must give the same rows.
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
"""How long a lane may write in one micro-batch unless kafka.transaction.timeout.ms says otherwise: the most that
brokers allow by default."""


class LanesMixed(RuntimeError):
    """Rows of one lane are in several tasks: only one of these would be written."""


class SameLaneTwice(RuntimeError):
    """Two writes of one run have one name: the rows of the second would be taken for a repeat."""


class LaneNote(NamedTuple):
    """What the offset of a lane says beside the epoch that comes next: of which write it is."""

    lanes: str
    run: str = ""
    write_id: str = ""

    def text(self) -> str:
        return f"lanes={self.lanes},{self.run},{self.write_id}"


def write_lanes(rows: "DataFrame", *, lanes: int = LANES_DEFAULT) -> "DataFrameWriter | DataStreamWriter":
    """The writer of these rows, for `.option(...)`, then `.start()` or `.save()`. At most as many as partitions."""
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
    """The rows of one task, which is one lane."""
    task = TaskContext.get()
    assert task is not None, "a writer writes within a task"
    if identity is None:
        raise OptionError("write_lanes in a batch job needs the option idempotenceKey: a name that lasts")
    return write_rows_of_lane(batches, options, identity, task.partitionId())


def write_rows_of_lane(batches: Iterable[Any], options: SinkOptions, identity: Identity, lane: int) -> TaskReport:
    from headrace.client.blocking.producer import Producer

    pieces = chunks(_checked(batches, lane, options.lanes))
    first = next(pieces, None)
    if first is None:
        return TaskReport(identity=None, member=None, records=0, batch_bytes=0)
    assert options.topic is not None, "the options were checked"
    log_once(f"rows are written exactly once in {options.lanes} lanes of {identity.owner}")
    place = TopicPartition(options.topic, lane)
    timeout_ms = dict(options.client).get("transaction_timeout_ms", TRANSACTION_MS)
    config = options.producer_config(transactional_id=f"{identity.owner}.{lane}", transaction_timeout_ms=timeout_ms)
    with Producer(config=config) as producer:
        partitions = connections.retry_until_deadline(options, lambda: producer.partition_count(place.topic))
        if partitions < options.lanes:
            raise OptionError(f'topic "{options.topic}" has {partitions} partitions: write_lanes takes at most as many')
        with connections.retry_until_deadline(options, producer.transaction) as transaction:
            sending = Sending(options, producer)
            next_epoch, noted = connections.retry_until_deadline(
                options, lambda: _next_epoch(options, identity.owner, place, partitions)
            )
            if next_epoch > identity.batch_id:
                for _ in pieces:
                    pass  # operators before the sink count on their rows being taken
            else:
                for rows in chain((first,), pieces):
                    sending.send(rows)
            if next_epoch <= identity.batch_id or _is_first_repeat(identity, next_epoch, noted):
                own = LaneNote(str(options.lanes), identity.run, identity.write_id)
                done = OffsetAndMetadata(max(next_epoch, identity.batch_id + 1), metadata=own.text())
                transaction.commit_offsets({place: done}, GroupIdentity(identity.owner))
                transaction.commit()
            else:
                transaction.abort()
    return TaskReport(identity=None, member=None, records=sending.records, batch_bytes=sending.batch_bytes)


def _is_first_repeat(identity: Identity, next_epoch: int, noted: LaneNote) -> bool:
    """Whether a later run finds the epoch written, and is to note by which of its writes."""
    if next_epoch != identity.batch_id + 1 or not identity.write_id:
        return False
    if noted.run == identity.run and noted.write_id not in ("", identity.write_id):
        raise SameLaneTwice(
            f"another write of this run has epoch {identity.batch_id} of {identity.owner}, so whether these rows are "
            f"in the topic cannot be known: {NAME_EACH_WRITE}"
        )
    return noted.run != identity.run


def _next_epoch(options: SinkOptions, group: str, place: TopicPartition, partitions: int) -> tuple[int, LaneNote]:
    """The micro-batch that the lane has not written yet. Transactions that are being ended are waited for."""
    from headrace.client.blocking.consumer import Consumer
    from headrace.client.config import ConsumerConfig

    config = ConsumerConfig(group_id=group, enable_auto_commit=False, **options.connection())
    with Consumer(config=config) as consumer:
        found = consumer.committed([TopicPartition(place.topic, number) for number in range(partitions)])
    notes = {each: _note(offset.metadata or "") for each, offset in found.items()}
    others = {each.lanes for each in notes.values()} - {str(options.lanes)}
    if others:
        raise OptionError(
            f"{group} was written with lanes={others.pop()} before, not with {options.lanes}: rows would be lost or "
            "repeated; keep the number of lanes, or begin anew with another sinkName"
        )
    return (found[place].offset, notes[place]) if place in found else (0, LaneNote(str(options.lanes)))


def _note(text: str) -> LaneNote:
    return LaneNote(*text.removeprefix("lanes=").split(",", 2))


def _checked(batches: Iterable[Any], lane: int, lanes: int) -> Iterator[Any]:
    """Every row is in the task of its lane, or nothing is written: a lane in two tasks would lose the rows of one."""
    for batch in batches:
        column = batch.column(LANE_COLUMN).to_numpy()
        if lane >= lanes or (column != lane).any():
            raise LanesMixed(
                "rows of several lanes are in one task: write what headrace.spark.write_lanes(df) gives, as it is"
            )
        yield batch
