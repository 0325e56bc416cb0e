"""Where a pipeline is to begin anew: a rewind notes other starts and another generation, and touches nothing else."""

from dataclasses import dataclass

from headrace.client import EARLIEST, LATEST, Admin, TopicPartition
from headrace.client.errors import BrokerError
from headrace.model.errors import ErrorCode
from headrace.spark.pipelines.checkpoints import Checkpoint, CheckpointError, Vector, offsets_of
from headrace.spark.pipelines.definition import Pipeline, ReadAs, Source


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """One of these."""

    time_ms: int | None = None
    """EARLIEST and LATEST too."""
    batch: int | None = None
    """To where this batch ended."""


def starts_at(admin: Admin, pipeline: Pipeline, target: Target, checkpoint: Checkpoint) -> dict[str, Vector]:
    """Where each stream of the pipeline would begin."""
    streams = [source for source in pipeline.sources if source.read_as is ReadAs.STREAM]
    if target.batch is not None:
        return _starts_of_batch(pipeline, streams, checkpoint, target.batch)
    assert target.time_ms is not None
    return {source.name: _vector_at(admin, source, target.time_ms) for source in streams}


def first_starts(admin: Admin, pipeline: Pipeline) -> dict[str, Vector]:
    """Where the definition has its streams begin, as of now."""
    times = {"earliest": EARLIEST, "latest": LATEST}
    return {
        source.name: _vector_at(admin, source, times.get(source.start) or int(source.start))
        for source in pipeline.sources
        if source.read_as is ReadAs.STREAM
    }


def vector_at(admin: Admin, partitions: list[TopicPartition], time_ms: int) -> dict[str, dict[str, int]]:
    """The offsets at a time; behind the last record where nothing is as new."""
    # The ends are asked for first: what comes meanwhile lies behind them, and is not passed over.
    ends = admin.offsets(dict.fromkeys(partitions, LATEST))
    found = admin.offsets(dict.fromkeys(partitions, time_ms))
    vector: dict[str, dict[str, int]] = {}
    for place, asked in sorted(found.items()):
        at = asked if asked.error or asked.offset >= 0 else ends[place]
        if at.error is not ErrorCode.NONE:
            raise BrokerError(at.error, f"where {place} was at that time is not known")
        vector.setdefault(place.topic, {})[str(place.partition)] = at.offset
    return vector


def partitions_of(admin: Admin, source: Source) -> list[TopicPartition]:
    if source.pattern is not None:
        from headrace.core.groups.topic_patterns import TopicPattern

        everything = {topic.name: topic for topic in admin.topics()}
        described = [everything[name] for name in TopicPattern(source.pattern).matching(everything)]
    else:
        described = list(admin.topics(source.topics))
    for topic in described:
        if topic.error is not ErrorCode.NONE:
            raise BrokerError(topic.error, f'topic "{topic.name}"')
    return [TopicPartition(topic.name, each.partition) for topic in described for each in topic.partitions]


def _vector_at(admin: Admin, source: Source, time_ms: int) -> Vector:
    return vector_at(admin, partitions_of(admin, source), time_ms)


def _starts_of_batch(
    pipeline: Pipeline, streams: list[Source], checkpoint: Checkpoint, number: int
) -> dict[str, Vector]:
    """A query with several streams has their ends in the order of the definition."""
    batches = {batch.number: batch for batch in checkpoint.batches(checkpoint.note().generation)}
    if number not in batches:
        known = f"{min(batches)} to {max(batches)}" if batches else "none"
        raise CheckpointError(f"batch {number} is not in the checkpoint any more: there are {known}")
    found: dict[str, Vector] = {}
    for source in streams:
        read = [pair for end in batches[number].ends for pair in offsets_of(end).items()]
        found[source.name] = {
            topic: offsets for topic, offsets in read if topic in source.topics or source.pattern is not None
        }
    return found
