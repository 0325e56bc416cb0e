"""Parse and check the options of a source: topics, bounds, limits and output format."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, cast

from headrace.client.config import ConsumerConfig
from headrace.client.types import EARLIEST, LATEST
from headrace.model.ids import TopicPartition
from headrace.spark.kafka_options import checked, client_settings
from headrace.spark.option_names import SINK_NAMES, OptionError, check_names, refuse_names
from headrace.spark.option_values import OptionReader
from headrace.spark.values import ValueFormat, value_format

SELECTION_NAMES = ("subscribe", "subscribePattern", "assign")
MAX_TRIGGER_DELAY_MS = 15 * 60 * 1_000
POLL_TIMEOUT_MS = 120_000
COLUMN_NAMES = ("key", "value", "topic", "partition", "offset", "timestamp", "timestampType", "headers")
DEFAULT_COLUMNS = COLUMN_NAMES[:-1]
ERROR_COLUMN = "_error"
WATERMARK_COLUMN = "_watermark"

DataLossPolicy = Literal["fail", "skip-and-report", "earliest"]
BadRecords = Literal["fail", "drop", "column"]
Scan = Literal["broker", "direct", "auto"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """The topics: by name, by pattern, or exact partitions."""

    topics: tuple[str, ...] = ()
    pattern: str | None = None
    partitions: tuple[TopicPartition, ...] = ()

    def has(self, partition: TopicPartition) -> bool:
        """Return whether the selection includes it, whether it exists or not."""
        if self.pattern is not None:
            from headrace.core.groups.topic_patterns import NamePattern

            return bool(NamePattern(self.pattern).matching([partition.topic]))
        return partition.topic in self.topics or partition in self.partitions


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """The start or the end of a read."""

    option: str
    """The name of the option that sets it, for messages."""
    place: Literal["earliest", "latest", "offsets", "time"]
    offsets: Mapping[TopicPartition, int] = field(default_factory=dict)
    """For `offsets`: may contain EARLIEST and LATEST. For `time`: milliseconds for some partitions."""
    time_ms: int | None = None
    """For `time`: for all partitions."""
    else_latest: bool = False
    """For `time`: use the end if no record is as new; otherwise that is an error."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceOptions:
    settings: Mapping[str, Any]
    """Client settings, by Kafka's names."""
    isolation: Literal["read_uncommitted", "read_committed"]
    selection: Selection
    starting: Bound | None
    """None: the default, which differs between batches and streams."""
    ending: Bound | None
    data_loss: DataLossPolicy
    offsets_max: int | None
    offsets_min: int | None
    bytes_max: int | None
    trigger_delay_ms_max: int
    partitions_min: int | None
    partition_records_max: int | None
    group: str | None
    poll_timeout_ms: int
    columns: tuple[str, ...]
    values: ValueFormat
    bad_records: BadRecords
    is_pushed_down: bool
    scan: Scan
    """For batches: through the broker, from its files, or only from its closed files."""
    watermark_folder: str | None
    """The checkpoint whose log has the watermark of each micro-batch, if rows carry it."""
    name: str | None
    """The mark of the offsets in the checkpoint, which distinguishes several streams."""


def parse_source_options(options: Mapping[str, str]) -> SourceOptions:
    """Check everything that needs no broker; `OptionError` names the option."""
    check_names(options)
    reader = OptionReader(options)
    chosen = next(filter(reader.has, SELECTION_NAMES), "subscribe")
    refuse_names(options, SINK_NAMES, f'is for writing and "{chosen}" for reading: leave one of them out')
    settings = client_settings(options)
    settings.setdefault("isolation.level", "read_committed")
    group = settings.pop("group.id", None)
    config = cast(ConsumerConfig, checked(ConsumerConfig, settings, options))
    offsets_max, offsets_min = reader.number("maxOffsetsPerTrigger"), reader.number("minOffsetsPerTrigger")
    if offsets_max is not None and offsets_min is not None and offsets_min > offsets_max:
        raise OptionError(
            f'options "minOffsetsPerTrigger" ({offsets_min}) and "maxOffsetsPerTrigger" ({offsets_max}) contradict '
            "each other: the first is at most the second"
        )
    values = value_format(reader)
    bad_records = cast(BadRecords, reader.choice("onBadRecord", ("fail", "drop", "column"), default="fail"))
    for unused in ("fetchOffset.numRetries", "fetchOffset.retryIntervalMs"):
        reader.number(unused, least=0)
    reader.text("groupIdPrefix")
    return SourceOptions(
        settings=settings,
        isolation=config.isolation_level,
        selection=_selection(reader),
        starting=_starting(reader),
        ending=_ending(reader),
        data_loss=_data_loss(reader),
        offsets_max=offsets_max,
        offsets_min=offsets_min,
        bytes_max=reader.number("maxBytesPerTrigger"),
        trigger_delay_ms_max=reader.duration_ms("maxTriggerDelay", default_ms=MAX_TRIGGER_DELAY_MS),
        partitions_min=reader.number("minPartitions"),
        partition_records_max=reader.number("maxRecordsPerPartition"),
        group=group or reader.text("commitGroup"),
        poll_timeout_ms=reader.number("kafkaConsumer.pollTimeoutMs") or POLL_TIMEOUT_MS,
        columns=_columns(reader, values, bad_records),
        values=values,
        bad_records=bad_records,
        is_pushed_down=reader.truth("pushdown", default=False),
        scan=cast(Scan, reader.choice("scan", ("broker", "direct", "auto"), default="broker")),
        watermark_folder=reader.text("watermarkFrom"),
        name=reader.text("sourceName"),
    )


def is_source(options: Mapping[str, str]) -> bool:
    """Return whether these options describe a read."""
    reader = OptionReader(options)
    return any(map(reader.has, SELECTION_NAMES))


def _selection(reader: OptionReader) -> Selection:
    given = [name for name in SELECTION_NAMES if reader.has(name)]
    if len(given) != 1:
        what = f"{' and '.join(given)} are given" if given else "none is given"
        raise OptionError(f'one of the options "subscribe", "subscribePattern" and "assign" is needed: {what}')
    if given == ["assign"]:
        return Selection(partitions=reader.partitions("assign") or ())
    if given == ["subscribePattern"]:
        from headrace.core.groups.topic_patterns import NamePattern, PatternRefused

        pattern = reader.text("subscribePattern") or ""
        try:
            NamePattern(pattern)
        except PatternRefused as refused:
            raise OptionError(f'option "subscribePattern" ("{pattern}") cannot be used: {refused}') from None
        return Selection(pattern=pattern)
    topics = tuple(sorted({each.strip() for each in (reader.text("subscribe") or "").split(",")} - {""}))
    if not topics:
        raise OptionError('option "subscribe" names no topic: give names separated by commas')
    return Selection(topics=topics)


def _starting(reader: OptionReader) -> Bound | None:
    """Return the start. As in Spark's Kafka connector, one time overrides times by partition, which override
    offsets.
    """
    else_latest = reader.choice("startingOffsetsByTimestampStrategy", ("error", "latest"), default="error") == "latest"
    time_ms = reader.number("startingTimestamp", least=0)
    if time_ms is not None:
        return Bound(option="startingTimestamp", place="time", time_ms=time_ms, else_latest=else_latest)
    times = reader.numbers_by_partition("startingOffsetsByTimestamp", least=0)
    if times is not None:
        return Bound(option="startingOffsetsByTimestamp", place="time", offsets=times, else_latest=else_latest)
    return _offsets(reader, "startingOffsets")


def _ending(reader: OptionReader) -> Bound | None:
    time_ms = reader.number("endingTimestamp", least=0)
    if time_ms is not None:
        return Bound(option="endingTimestamp", place="time", time_ms=time_ms, else_latest=True)
    times = reader.numbers_by_partition("endingOffsetsByTimestamp", least=0)
    if times is not None:
        return Bound(option="endingOffsetsByTimestamp", place="time", offsets=times, else_latest=True)
    bound = _offsets(reader, "endingOffsets")
    if bound is not None and (bound.place == "earliest" or EARLIEST in bound.offsets.values()):
        raise OptionError('option "endingOffsets" cannot be earliest (-2): there would be nothing to read')
    return bound


def _offsets(reader: OptionReader, name: str) -> Bound | None:
    text = (reader.text(name) or "").lower()
    if not text:
        return None
    if text == "earliest":
        return Bound(option=name, place="earliest")
    if text == "latest":
        return Bound(option=name, place="latest")
    if not text.startswith("{"):
        raise OptionError(
            f'option "{name}" must be earliest, latest or JSON such as {{"orders": {{"0": 23}}}}, not "{text}"'
        )
    return Bound(option=name, place="offsets", offsets=reader.numbers_by_partition(name, least=EARLIEST) or {})


def _data_loss(reader: OptionReader) -> DataLossPolicy:
    fails = reader.truth("failOnDataLoss", default=True)
    default = "fail" if fails else "skip-and-report"
    policy = reader.choice("dataLossPolicy", ("fail", "skip-and-report", "earliest"), default=default)
    if reader.has("failOnDataLoss") and fails != (policy == "fail"):
        raise OptionError(
            f'options "failOnDataLoss" ({str(fails).lower()}) and "dataLossPolicy" ({policy}) contradict each other: '
            "leave one of them out"
        )
    return cast(DataLossPolicy, policy)


def _columns(reader: OptionReader, values: ValueFormat, bad_records: BadRecords) -> tuple[str, ...]:
    with_headers = reader.truth("includeHeaders", default=False)
    text = reader.text("columns")
    extra = (ERROR_COLUMN,) if values.can_fail and bad_records == "column" else ()
    last = (WATERMARK_COLUMN,) if reader.has("watermarkFrom") else ()
    if text is None:
        return (*(COLUMN_NAMES if with_headers else DEFAULT_COLUMNS), *extra, *last)
    wanted = [each.strip() for each in text.split(",")]
    for name in wanted:
        if name not in COLUMN_NAMES:
            raise OptionError(f'option "columns" names "{name}": the columns are {", ".join(COLUMN_NAMES)}')
    if len(set(wanted)) != len(wanted):
        raise OptionError('option "columns" names a column twice')
    if with_headers and "headers" not in wanted:
        raise OptionError('options "includeHeaders" (true) and "columns" (without headers) contradict each other')
    return (*wanted, *(extra if "value" in wanted else ()), *last)


def latest_is_not_a_start(bound: Bound | None) -> None:
    """Refuse a batch that begins at the end: it would read nothing, which is never intended."""
    if bound is not None and (
        bound.place == "latest" or (bound.place == "offsets" and LATEST in bound.offsets.values())
    ):
        raise OptionError(
            'option "startingOffsets" cannot be latest (-1) in a batch read: there would be nothing to read'
        )
