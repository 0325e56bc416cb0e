"""Where the offsets of a group are to go: to an end, a time, an offset, or so many records forth or back."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from headrace.cli.failures import Failure, Misuse
from headrace.cli.outcomes import fail_on_errors, topic_names
from headrace.client import Admin
from headrace.client.types import EARLIEST, LATEST, Outcome
from headrace.model.errors import ErrorCode, error_name
from headrace.model.ids import TopicPartition


class Target(NamedTuple):
    """Exactly one of them is given."""

    time: int | None = None
    """A time in milliseconds, or EARLIEST or LATEST."""
    offset: int | None = None
    shift: int | None = None


class Move(NamedTuple):
    partition: TopicPartition
    before: int | None
    asked: int
    after: int
    """What was asked for, within the offsets there are."""


def wanted_partitions(admin: Admin, texts: Sequence[str], committed: Iterable[TopicPartition]) -> list[TopicPartition]:
    """`orders` is all of a topic, `orders:0,2` some of it; without any text, what the group has committed."""
    if not texts:
        return sorted(committed)
    names = [text.partition(":")[0] for text in texts]
    known = {topic.name: topic for topic in admin.topics(list(dict.fromkeys(names)))}
    wanted: dict[TopicPartition, None] = {}
    for text, name in zip(texts, names, strict=True):
        topic = known[name]
        fail_on_errors({f'topic "{name}"': Outcome(topic.error)}, "cannot reset", known=lambda: topic_names(admin))
        everything = range(len(topic.partitions))
        for partition in _numbers(text) or everything:
            if partition not in everything:
                raise Failure(f'topic "{name}" has no partition {partition}: it has {len(everything)}')
            wanted[TopicPartition(name, partition)] = None
    return sorted(wanted)


def _numbers(text: str) -> list[int]:
    _name, colon, numbers = text.partition(":")
    if not colon:
        return []
    try:
        return [int(number) for number in numbers.split(",")]
    except ValueError:
        raise Misuse(f'--topic "{text}": write it as --topic orders or --topic orders:0,2') from None


def moves(
    admin: Admin, partitions: Sequence[TopicPartition], committed: Mapping[TopicPartition, int], target: Target
) -> list[Move]:
    """What becomes of each partition; never below the first record that there is, nor above the last."""
    first = _offsets(admin, dict.fromkeys(partitions, EARLIEST))
    end = _offsets(admin, dict.fromkeys(partitions, LATEST))
    at_time = {}
    if target.time is not None and target.time >= 0:
        at_time = _offsets(admin, dict.fromkeys(partitions, target.time))
    found = []
    for part in partitions:
        before = committed.get(part)
        if target.shift is not None:
            if before is None:
                raise Failure(f"{part} cannot be shifted: the group has committed nothing for it")
            after = before + target.shift
        elif target.offset is not None:
            after = target.offset
        elif target.time == EARLIEST:
            after = first[part]
        else:
            after = at_time.get(part, -1)
            after = end[part] if after < 0 else after  # nothing is as new as that
        found.append(Move(part, before, after, min(max(after, first[part]), end[part])))
    return found


def _offsets(admin: Admin, times: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
    found = admin.offsets(times)
    for part, at in found.items():
        if at.error is not ErrorCode.NONE:
            raise Failure(f"the offsets of {part} cannot be read: {error_name(at.error)}")
    return {part: at.offset for part, at in found.items()}
