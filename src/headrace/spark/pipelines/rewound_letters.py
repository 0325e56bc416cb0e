"""Dead letters and rewinds: a record and its letter are not both read again without a word.

A rewind notes where the topic of dead letters ends. Letters below that are of the time before it; the pipeline reads
their records again if they lie behind its new start, so sending the letters too would give both.
"""

from collections.abc import Callable, Mapping
from typing import Any

from headrace.client import LATEST, Admin, ConsumerRecord, TopicPartition
from headrace.model.errors import ErrorCode
from headrace.spark.pipelines.checkpoints import Note, Vector
from headrace.spark.pipelines.dead_letters import Letterbox, NoLetters, origin_of
from headrace.spark.pipelines.definition import Pipeline
from headrace.spark.pipelines.rewind import vector_at


def letter_ends(admin: Admin, pipeline: Pipeline) -> Vector:
    """Where the topic of dead letters ends now; empty where there is none."""
    topic = pipeline.bad_records.topic
    if topic is None:
        return {}
    (described,) = admin.topics([topic])
    if described.error is not ErrorCode.NONE:
        return {}
    return vector_at(admin, [TopicPartition(topic, each.partition) for each in described.partitions], LATEST)


def reread_choice(note: Note) -> Callable[[ConsumerRecord], bool]:
    """Choose letters of before the last rewind whose records are read again since."""

    def is_reread(letter: ConsumerRecord) -> bool:
        end = note.letters.get(letter.topic, {}).get(str(letter.partition), 0)
        return letter.offset < end and _is_behind(letter, note.starts)

    return is_reread


def count_read_twice(settings: Mapping[str, Any], pipeline: Pipeline, starts: Mapping[str, Vector]) -> int:
    """Count letters that were sent again and whose records lie behind the starts too: a run there reads both."""
    if pipeline.bad_records.topic is None:
        return 0
    try:
        box = Letterbox(settings=settings, pipeline=pipeline.name, topic=pipeline.bad_records.topic)
    except NoLetters:
        return 0
    return sum(letter.is_sent and _is_behind(letter.record, starts) for letter in box.letters())


def _is_behind(letter: ConsumerRecord, starts: Mapping[str, Vector]) -> bool:
    origin = origin_of(letter)
    if origin is None:
        return False
    place, offset = origin
    begins = [topics[place.topic].get(str(place.partition)) for topics in starts.values() if place.topic in topics]
    return any(begin is not None and offset >= begin for begin in begins)
