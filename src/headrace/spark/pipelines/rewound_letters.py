"""Dead letters and rewinds: warn before a record and its dead letter are both processed again.

A rewind notes the end of the dead letter topic. Dead letters below that are older than the rewind; the pipeline reads
their records again if they lie after its new start, so replaying the dead letters too would process both.
"""

from collections.abc import Callable, Mapping
from typing import Any

from headrace.client import LATEST, Admin, ConsumerRecord, TopicPartition
from headrace.model.errors import ErrorCode
from headrace.spark.pipelines.checkpoints import Note, Vector
from headrace.spark.pipelines.dead_letters import DeadLetters, NoDeadLetters, origin_of
from headrace.spark.pipelines.definition import Pipeline
from headrace.spark.pipelines.rewind import vector_at


def letter_ends(admin: Admin, pipeline: Pipeline) -> Vector:
    """Return the current end of the dead letter topic; empty if there is none."""
    topic = pipeline.bad_records.topic
    if topic is None:
        return {}
    (described,) = admin.topics([topic])
    if described.error is not ErrorCode.NONE:
        return {}
    return vector_at(admin, [TopicPartition(topic, each.partition) for each in described.partitions], LATEST)


def reread_choice(note: Note) -> Callable[[ConsumerRecord], bool]:
    """Select dead letters from before the last rewind whose records have been read again since."""

    def is_reread(letter: ConsumerRecord) -> bool:
        end = note.letters.get(letter.topic, {}).get(str(letter.partition), 0)
        return letter.offset < end and _is_behind(letter, note.starts)

    return is_reread


def count_read_twice(settings: Mapping[str, Any], pipeline: Pipeline, starts: Mapping[str, Vector]) -> int:
    """Count replayed dead letters whose records also lie after the starts: a run from there processes both."""
    if pipeline.bad_records.topic is None:
        return 0
    try:
        box = DeadLetters(settings=settings, pipeline=pipeline.name, topic=pipeline.bad_records.topic)
    except NoDeadLetters:
        return 0
    return sum(letter.is_sent and _is_behind(letter.record, starts) for letter in box.letters())


def _is_behind(letter: ConsumerRecord, starts: Mapping[str, Vector]) -> bool:
    origin = origin_of(letter)
    if origin is None:
        return False
    place, offset = origin
    begins = [topics[place.topic].get(str(place.partition)) for topics in starts.values() if place.topic in topics]
    return any(begin is not None and offset >= begin for begin in begins)
