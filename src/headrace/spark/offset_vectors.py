"""Offsets of many partitions as Spark's checkpoint stores them: the Kafka connector's JSON with additions.

    {"orders": {"0": 23, "1": 42}, "hr:cluster:NkU3OE": {}, "hr:id:orders:6f1e...": {}, "hr:start:orders:1:40": {}}

Every addition is a topic name without partitions, so that programs for the Kafka connector's JSON can read it:
the progress of a query shows these offsets. No real topic has such a name, because topic names have no colons.

`hr:id` are the topic ids, which reveal a recreated topic, and `hr:cluster` is the id of their cluster. `hr:start`
is the start of partitions that the offset before does not have: all of them in the first batch, later those that were
added. It is in the end of a batch, because Spark requests the initial offset more than once and keeps none of the
results; so a replay begins where the first attempt did. `hr:source` is the name of the stream, if it has one:
Spark's log has the offsets of several streams without their names, and twice those of a stream that is used twice.

Older checkpoints have `hr:ids` and `hr:start` as mappings and `hr:source` as a string; they are read too.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from headrace.model.ids import TopicPartition

RESERVED = "hr:"
ID_PREFIX, START_PREFIX, SOURCE_PREFIX, CLUSTER_PREFIX = "hr:id:", "hr:start:", "hr:source:", "hr:cluster:"
OLD_IDS_KEY, OLD_START_KEY, OLD_SOURCE_KEY = "hr:ids", "hr:start", "hr:source"

OffsetVector = Mapping[TopicPartition, int]


class CheckpointOffsetError(ValueError):
    """The checkpoint has an offset that this kind of source did not write, or that cannot be continued."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamOffset:
    ends: OffsetVector
    topic_ids: Mapping[str, str] = field(default_factory=dict)
    starts: OffsetVector = field(default_factory=dict)
    source: str | None = None
    cluster: str | None = None


def initial_offset() -> dict[str, Any]:
    """A constant that stands for "not decided yet"."""
    return {OLD_START_KEY: {}}


def is_initial(tree: object) -> bool:
    return tree == initial_offset()


def to_json(offset: StreamOffset) -> dict[str, Any]:
    """Encode in a fixed order, because Spark compares offsets by their text."""
    tree: dict[str, Any] = _by_topic(offset.ends)
    names = [f"{ID_PREFIX}{topic}:{each}" for topic, each in sorted(offset.topic_ids.items())]
    names += [
        f"{START_PREFIX}{place.topic}:{place.partition}:{begin}" for place, begin in sorted(offset.starts.items())
    ]
    names += [] if offset.source is None else [SOURCE_PREFIX + offset.source]
    names += [] if offset.cluster is None else [CLUSTER_PREFIX + offset.cluster]
    return tree | {name: {} for name in names}


def from_json(tree: Mapping[str, Any]) -> StreamOffset:
    """Decode an offset, including one that Spark's Kafka connector wrote."""
    try:
        ids = {str(topic): str(each) for topic, each in dict(tree.get(OLD_IDS_KEY, {})).items()}
        for rest in _after(tree, ID_PREFIX):
            topic, ids[topic] = rest.split(":")
        starts = _vector(tree.get(OLD_START_KEY, {}))
        for rest in _after(tree, START_PREFIX):
            topic, partition, begin = rest.split(":")
            starts[TopicPartition(topic, int(partition))] = int(begin)
        ends = _vector({topic: inner for topic, inner in tree.items() if not topic.startswith(RESERVED)})
    except (TypeError, ValueError, AttributeError):
        raise CheckpointOffsetError(
            f"the checkpoint has an offset that is not a mapping of topics: {str(tree)[:200]}; it may be the "
            'checkpoint of another query: give this one its own "checkpointLocation"'
        ) from None
    cluster = next(_after(tree, CLUSTER_PREFIX), None)
    return StreamOffset(ends=ends, topic_ids=ids, starts=starts, source=source_of(tree), cluster=cluster)


def source_of(tree: Mapping[str, Any]) -> str | None:
    """Return the name of the stream that an offset belongs to; None if it has none."""
    found: str | None = tree.get(OLD_SOURCE_KEY)
    return found if found is not None else next(_after(tree, SOURCE_PREFIX), None)


def _after(tree: Mapping[str, Any], prefix: str) -> Iterator[str]:
    return (name.removeprefix(prefix) for name in tree if name.startswith(prefix))


def ranges_text(ranges: Iterable[tuple[TopicPartition, int, int]]) -> str:
    """Format ranges of offsets: "orders-0 offsets 5 to 9"."""
    return ", ".join(f"{partition} offsets {begin} to {end - 1}" for partition, begin, end in ranges)


def ends_text(ends: OffsetVector, topics: Collection[str]) -> str:
    """Format the ends of these topics: "orders-0 offset 9"."""
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
