"""New offsets for a consumer group: an end of the log, a time, an offset, or a number of records forward or back."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from headrace.client import Admin
from headrace.client.types import EARLIEST, LATEST, TopicDescription
from headrace.model.errors import ErrorCode, error_name
from headrace.model.ids import TopicPartition
from headrace.operations.errors import OperationError


class ResetTarget(NamedTuple):
    """The target of a reset; exactly one field is set."""

    time: int | None = None
    """A time in milliseconds, or EARLIEST or LATEST."""
    offset: int | None = None
    shift: int | None = None


class Move(NamedTuple):
    partition: TopicPartition
    before: int | None
    asked: int
    after: int
    """The requested offset, limited to the offsets that exist."""


class ResetSelection(NamedTuple):
    topic: str
    partitions: tuple[int, ...]
    """Empty for every partition of the topic."""


def parse_selection(text: str) -> ResetSelection:
    """Read `orders` as a whole topic and `orders:0,2` as two of its partitions; raise ValueError for anything else."""
    topic, colon, numbers = text.partition(":")
    return ResetSelection(topic, tuple(int(number) for number in numbers.split(",")) if colon else ())


def selected_partitions(
    selections: Iterable[ResetSelection], topics: Mapping[str, TopicDescription]
) -> list[TopicPartition]:
    """Return the partitions in order, each once. `topics` holds every topic that a selection names."""
    wanted: dict[TopicPartition, None] = {}
    for name, chosen in selections:
        everything = range(len(topics[name].partitions))
        for partition in chosen or everything:
            if partition not in everything:
                raise OperationError(f'topic "{name}" has no partition {partition}: it has {len(everything)}')
            wanted[TopicPartition(name, partition)] = None
    return sorted(wanted)


def moves(
    admin: Admin, partitions: Sequence[TopicPartition], committed: Mapping[TopicPartition, int], target: ResetTarget
) -> list[Move]:
    """Return the move of each partition; no offset goes below the log start offset or above the end of the log."""
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
                raise OperationError(f"{part} cannot be shifted: the group has no committed offset for it")
            after = before + target.shift
        elif target.offset is not None:
            after = target.offset
        elif target.time == EARLIEST:
            after = first[part]
        else:
            after = at_time.get(part, -1)
            after = end[part] if after < 0 else after  # no record is that new
        found.append(Move(part, before, after, min(max(after, first[part]), end[part])))
    return found


def _offsets(admin: Admin, times: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
    found = admin.offsets(times)
    for part, at in found.items():
        if at.error is not ErrorCode.NONE:
            raise OperationError(f"the offsets of {part} cannot be read: {error_name(at.error)}")
    return {part: at.offset for part, at in found.items()}
