"""Offsets of many partitions as Spark's checkpoint keeps them: the Kafka connector's JSON, and what we add to it.

    {"orders": {"0": 23, "1": 42}, "hr:ids": {"orders": "..."}, "hr:start": {"orders": {"1": 40}}, "hr:source": "sales"}

`hr:ids` are the ids of the topics, so that one made anew is noticed. `hr:start` says where partitions begin that the
offset before does not have: all of them in the first batch, later those that were added. It is in the end of a batch,
because Spark asks for the initial offset more than once and keeps none of the answers; so a replay begins where the
first try did. `hr:source` is the name of the stream, where it was given one: Spark's log has the offsets of several
streams without their names, and of one that is used twice two times. No topic is called so: their names have no colons.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from headrace.model.ids import TopicPartition

IDS_KEY = "hr:ids"
START_KEY = "hr:start"
SOURCE_KEY = "hr:source"

OffsetVector = Mapping[TopicPartition, int]


class CheckpointError(ValueError):
    """An offset in the checkpoint that no source of this kind has written, or that cannot be continued."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamOffset:
    ends: OffsetVector
    topic_ids: Mapping[str, str] = field(default_factory=dict)
    starts: OffsetVector = field(default_factory=dict)
    source: str | None = None


def initial_offset() -> dict[str, Any]:
    """Stands for "not decided yet": the same at each call."""
    return {START_KEY: {}}


def is_initial(tree: object) -> bool:
    return tree == initial_offset()


def to_json(offset: StreamOffset) -> dict[str, Any]:
    """In one order, for Spark compares offsets by their text."""
    tree: dict[str, Any] = _by_topic(offset.ends)
    if offset.topic_ids:
        tree[IDS_KEY] = dict(sorted(offset.topic_ids.items()))
    if offset.starts:
        tree[START_KEY] = _by_topic(offset.starts)
    if offset.source is not None:
        tree[SOURCE_KEY] = offset.source
    return tree


def from_json(tree: Mapping[str, Any]) -> StreamOffset:
    """Also what Spark's Kafka connector wrote."""
    try:
        ids = {str(topic): str(each) for topic, each in dict(tree.get(IDS_KEY, {})).items()}
        starts = _vector(tree.get(START_KEY, {}))
        own = (IDS_KEY, START_KEY, SOURCE_KEY)
        ends = _vector({topic: inner for topic, inner in tree.items() if topic not in own})
    except (TypeError, ValueError, AttributeError):
        raise CheckpointError(
            f"the checkpoint has an offset that is not one of topics: {str(tree)[:200]}; is it the checkpoint of "
            'another query? give this one its own "checkpointLocation"'
        ) from None
    return StreamOffset(ends=ends, topic_ids=ids, starts=starts, source=tree.get(SOURCE_KEY))


def ranges_text(ranges: Iterable[tuple[TopicPartition, int, int]]) -> str:
    """Ranges of offsets in words: "orders-0 offsets 5 to 9"."""
    return ", ".join(f"{partition} offsets {begin} to {end - 1}" for partition, begin, end in ranges)


def ends_text(ends: OffsetVector, topics: Collection[str]) -> str:
    """The ends of these topics in words: "orders-0 offset 9"."""
    return ", ".join(f"{each} offset {ends[each] - 1}" for each in sorted(ends) if each.topic in topics)


def _by_topic(vector: OffsetVector) -> dict[str, Any]:
    tree: dict[str, Any] = {}
    for partition in sorted(vector):
        tree.setdefault(partition.topic, {})[str(partition.partition)] = vector[partition]
    return tree


def _vector(tree: Mapping[str, Mapping[str, int]]) -> dict[TopicPartition, int]:
    vector: dict[TopicPartition, int] = {}
    for topic, inner in tree.items():
        for index, offset in inner.items():
            if type(offset) is not int:
                raise TypeError
            vector[TopicPartition(topic, int(index))] = offset
    return vector
