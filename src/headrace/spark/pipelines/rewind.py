"""Rewind a pipeline: store other start offsets and begin another generation; nothing else changes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from headrace.client import EARLIEST, LATEST, Admin, TopicPartition
from headrace.client.errors import BrokerError
from headrace.model.errors import ErrorCode
from headrace.spark.offset_vectors import source_of
from headrace.spark.pipelines.checkpoints import Batch, Checkpoint, CheckpointError, Vector, offsets_of
from headrace.spark.pipelines.definition import Pipeline, ReadAs, Source


@dataclass(frozen=True, slots=True, kw_only=True)
class RewindTarget:
    """Exactly one of these is set."""

    time_ms: int | None = None
    """May also be EARLIEST or LATEST."""
    batch: int | None = None
    """The end of this batch."""


def starts_at(admin: Admin, pipeline: Pipeline, target: RewindTarget, checkpoint: Checkpoint) -> dict[str, Vector]:
    """Return where each stream of the pipeline would begin."""
    streams = [source for source in pipeline.sources if source.read_as is ReadAs.STREAM]
    if target.batch is not None:
        return _starts_of_batch(admin, streams, checkpoint, target.batch)
    assert target.time_ms is not None
    return {source.name: _vector_at(admin, source, target.time_ms) for source in streams}


def first_starts(admin: Admin, pipeline: Pipeline) -> dict[str, Vector]:
    """Return where the definition lets its streams begin, as of now."""
    times = {"earliest": EARLIEST, "latest": LATEST}
    return {
        source.name: _vector_at(admin, source, times.get(source.start) or int(source.start))
        for source in pipeline.sources
        if source.read_as is ReadAs.STREAM
    }


def vector_at(admin: Admin, partitions: list[TopicPartition], time_ms: int) -> dict[str, dict[str, int]]:
    """Return the offsets at a time; after the last record where no record is as new."""
    # The ends are looked up first: records that arrive meanwhile lie behind them and are not skipped.
    ends = admin.offsets(dict.fromkeys(partitions, LATEST))
    found = admin.offsets(dict.fromkeys(partitions, time_ms))
    vector: dict[str, dict[str, int]] = {}
    for place, asked in sorted(found.items()):
        at = asked if asked.error or asked.offset >= 0 else ends[place]
        if at.error is not ErrorCode.NONE:
            raise BrokerError(at.error, f"the offset of {place} at that time is not known")
        vector.setdefault(place.topic, {})[str(place.partition)] = at.offset
    return vector


def partitions_of(admin: Admin, source: Source) -> list[TopicPartition]:
    if source.pattern is not None:
        from headrace.core.groups.topic_patterns import NamePattern

        everything = {topic.name: topic for topic in admin.topics()}
        described = [everything[name] for name in NamePattern(source.pattern).matching(everything)]
    else:
        described = list(admin.topics(source.topics))
    for topic in described:
        if topic.error is not ErrorCode.NONE:
            raise BrokerError(topic.error, f'topic "{topic.name}"')
    return [TopicPartition(topic.name, each.partition) for topic in described for each in topic.partitions]


def _vector_at(admin: Admin, source: Source, time_ms: int) -> Vector:
    return vector_at(admin, partitions_of(admin, source), time_ms)


def _starts_of_batch(admin: Admin, streams: list[Source], checkpoint: Checkpoint, number: int) -> dict[str, Vector]:
    ends = _finished_batch(checkpoint, number).ends
    return {source.name: _start_behind(admin, source, ends, number) for source in streams}


def _finished_batch(checkpoint: Checkpoint, number: int) -> Batch:
    """Return a completed batch. A batch that was only planned is refused: its rows may be in no sink and would be
    skipped.
    """
    batches = {batch.number: batch for batch in checkpoint.batches(checkpoint.note().generation)}
    finished = [batch.number for batch in batches.values() if batch.is_committed]
    if number in batches and not batches[number].is_committed:
        before = f", or rewind to batch {number - 1}" if number - 1 in finished else ""
        raise CheckpointError(
            f"batch {number} was begun and not finished, so its rows would be skipped: run the pipeline with "
            f"--once to finish it{before}"
        )
    if number not in batches:
        known = f"{min(finished)} to {max(finished)}" if finished else "none"
        raise CheckpointError(f"batch {number} is no longer in the checkpoint, which has {known}")
    return batches[number]


def _start_behind(admin: Admin, source: Source, ends: Sequence[Mapping[str, Any] | None], number: int) -> Vector:
    """Return the end of the source's own part of a batch; partitions that it lacked are read from their beginning.

    Unnamed ends may belong to another source of the same topic: then the smaller offset counts, because reading rows
    again is better than never reading them.
    """
    own = [offsets_of(end) for end in ends if end is not None and source_of(end) in (None, source.name)]
    if not own:
        raise CheckpointError(f'batch {number} has nothing of source "{source.name}": rewind to a time instead')
    starts: dict[str, dict[str, int]] = {}
    for topic, first in _vector_at(admin, source, EARLIEST).items():
        read = [end[topic] for end in own if topic in end]
        starts[topic] = {
            partition: min((each[partition] for each in read if partition in each), default=offset)
            for partition, offset in first.items()
        }
    return starts
