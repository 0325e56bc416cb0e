"""The topics of a pipeline: those it reads must exist, those it writes are created if they do not."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from headrace.client import Admin, NewTopic
from headrace.client.errors import BrokerError
from headrace.model.errors import ErrorCode
from headrace.model.nearest_names import guess
from headrace.spark.pipelines.definition import Pipeline, ReadAs, Source, SourceFormat, TopicSink
from headrace.spark.pipelines.definition_reader import written_topics
from headrace.spark.pipelines.problems import DefinitionError, Problem

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from headrace.spark.pipelines.compiler import Reader

FORMAT = "headrace"
_WRONG_SHAPES = {ErrorCode.INVALID_CONFIG: "configs", ErrorCode.INVALID_PARTITIONS: "partitions"}
"""The setting of a sink that is at fault when the broker refuses to create its topic."""
SOURCE_COLUMNS = "key,value,topic,partition,offset,timestamp"


def prepare_topics(admin: Admin, pipeline: Pipeline) -> list[str]:
    """Return the names of the topics that were created."""
    present = {topic.name for topic in admin.topics()}
    problems = []
    for source in pipeline.sources:
        path = (
            "source" if len(pipeline.sources) == 1 and "source.topic" in pipeline.places else f"sources.{source.name}"
        )
        for topic in source.topics:
            if topic not in present:
                hint = guess(topic, present) if present else "the cluster has none"
                place = pipeline.place_of(f"{path}.topic", f"{path}.topics")
                text = f'{path}: topic "{topic}" does not exist: {hint} (headrace topics create {topic})'
                problems.append(Problem(place.file, place.line, text))
    if problems:
        raise DefinitionError(problems)
    missing = sorted({topic for _, topic in written_topics(pipeline)} - present)
    if missing:
        _make_topics(admin, pipeline, missing)
    return missing


def _make_topics(admin: Admin, pipeline: Pipeline, names: list[str]) -> None:
    sinks = {topic: sink for sink in pipeline.sinks if isinstance(sink, TopicSink) for topic in sink.named_topics}
    wanted = []
    for name in names:
        sink = sinks.get(name)
        count = -1 if sink is None or sink.partitions is None else sink.partitions
        configs = {} if sink is None else dict(sink.configs)
        wanted.append(NewTopic(name, partitions=count, replication_factor=-1, configs=configs))
    for name, outcome in admin.create_topics(wanted).items():
        if outcome.error in _WRONG_SHAPES and name in sinks:
            path = f"{sinks[name].name}.{_WRONG_SHAPES[outcome.error]}"
            text = f'topic "{name}" cannot be created: {outcome.message or outcome.error.name}'
            raise DefinitionError([pipeline.problem(path, text)])
        if outcome.error not in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS):
            raise BrokerError(outcome.error, f'topic "{name}" cannot be created', outcome.message)


def other_partitions(admin: Admin, pipeline: Pipeline) -> list[str]:
    """Report existing topics with another number of partitions than their sink sets."""
    wanted = {
        topic: sink.partitions
        for sink in pipeline.sinks
        if isinstance(sink, TopicSink) and sink.partitions is not None
        for topic in sink.named_topics
    }
    if not wanted:
        return []
    return [
        f'topic "{each.name}" has {len(each.partitions)} partitions and not {wanted[each.name]}: it existed '
        "before and is not changed (headrace topics alter changes it)"
        for each in admin.topics(list(wanted))
        if not each.error and len(each.partitions) != wanted[each.name]
    ]


def stream_of(
    spark: "SparkSession",
    pipeline: Pipeline,
    *,
    bootstrap: str,
    starts: Mapping[str, str],
    with_headers: bool,
    checkpoint: str | None = None,
) -> "Reader":
    """Return a reader of each source by its definition; `starts` are offsets by source that override its `start`.

    With Spark's checkpoint, rows of a source with a watermark carry the watermark of their batch.
    """

    def read(source: Source) -> "DataFrame":
        options = source_options(pipeline, source, bootstrap, with_headers=with_headers)
        if source.read_as is ReadAs.TABLE:
            ends = {"startingOffsets": "earliest", "endingOffsets": "latest"}
            return spark.read.format(FORMAT).options(**options, **ends).load()
        if source.rows_per_batch is not None:
            options["maxOffsetsPerTrigger"] = str(source.rows_per_batch)
        if source.watermark is not None and checkpoint is not None:
            options["watermarkFrom"] = checkpoint
        options["commitGroup"] = group_of(pipeline, source)
        options["sourceName"] = source.name
        options.update(_start(source, starts.get(source.name)))
        return spark.readStream.format(FORMAT).options(**options).load()

    return read


def source_options(pipeline: Pipeline, source: Source, bootstrap: str, *, with_headers: bool) -> dict[str, str]:
    what = (
        {"subscribePattern": source.pattern} if source.pattern is not None else {"subscribe": ",".join(source.topics)}
    )
    columns = f"{SOURCE_COLUMNS},headers" if with_headers or "headers" in source.columns else SOURCE_COLUMNS
    return {"kafka.bootstrap.servers": bootstrap, **what, "columns": columns, **source.options}


def group_of(pipeline: Pipeline, source: Source) -> str:
    """Return the group that shows the progress of a source; several sources have one each."""
    return pipeline.name if len(pipeline.sources) == 1 else f"{pipeline.name}.{source.name}"


def needs_headers(pipeline: Pipeline) -> bool:
    """Return whether records need their headers: records that are routed elsewhere keep them."""
    checked = any(source.format is not SourceFormat.BINARY for source in pipeline.sources)
    return (pipeline.bad_records.topic is not None and checked) or any(
        each.quarantine is not None for each in pipeline.expectations
    )


def _start(source: Source, offsets: str | None) -> dict[str, str]:
    if offsets is not None:
        return {"startingOffsets": offsets}
    if source.start in ("earliest", "latest"):
        return {"startingOffsets": source.start}
    return {"startingTimestamp": source.start, "startingOffsetsByTimestampStrategy": "latest"}


def client_settings(bootstrap: str, pipeline: Pipeline | None = None) -> dict[str, Any]:
    """Return settings for our own clients: the address, and the security settings of the first source."""
    settings = {"bootstrap.servers": bootstrap}
    if pipeline is not None and pipeline.sources:
        for name, value in pipeline.sources[0].options.items():
            if name.startswith(("kafka.security.", "kafka.sasl.", "kafka.ssl.")):
                settings[name.removeprefix("kafka.")] = value
    return settings
