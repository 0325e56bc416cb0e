"""Resolve option values to offsets for each partition: earliest, latest, given offsets, or those of a time."""

from collections.abc import Sequence

from headrace.client.types import EARLIEST, LATEST
from headrace.model.ids import TopicPartition
from headrace.spark.option_names import OptionError
from headrace.spark.source_options import Bound
from headrace.spark.topic_view import NO_OFFSET, TopicView


def resolve(bound: Bound, partitions: Sequence[TopicPartition], view: TopicView) -> dict[TopicPartition, int]:
    """Resolve the bound now: look up beginnings and ends, and check given offsets against them."""
    if bound.place == "earliest":
        return view.earliest(partitions)
    if bound.place == "latest":
        return view.latest(partitions)
    if bound.place == "offsets":
        return _given(bound, partitions, view)
    return _at_times(bound, partitions, view)


def _given(bound: Bound, partitions: Sequence[TopicPartition], view: TopicView) -> dict[TopicPartition, int]:
    _require_same(bound, partitions)
    asked = {each: offset for each, offset in bound.offsets.items() if offset in (EARLIEST, LATEST)}
    return {each: offset for each, offset in bound.offsets.items() if offset >= 0} | view.at(asked)


def _at_times(bound: Bound, partitions: Sequence[TopicPartition], view: TopicView) -> dict[TopicPartition, int]:
    if bound.time_ms is not None:
        times = dict.fromkeys(partitions, bound.time_ms)
    else:
        _require_same(bound, partitions)
        times = dict(bound.offsets)
    # The end is looked up first: records that arrive meanwhile lie behind it and are not skipped.
    latest = view.latest(times) if bound.else_latest else {}
    found = view.at(times)
    late = sorted(each for each, offset in found.items() if offset == NO_OFFSET)
    if late and not bound.else_latest:
        names = ", ".join(map(str, late))
        raise OptionError(
            f'option "{bound.option}": {names} has no record at or after that time; choose an earlier time, '
            'or set "startingOffsetsByTimestampStrategy" to latest'
        )
    return found | {each: latest[each] for each in late}


def _require_same(bound: Bound, partitions: Sequence[TopicPartition]) -> None:
    """Require an offset for each partition and a partition for each offset; a start is never guessed."""
    lacking = sorted(set(partitions) - bound.offsets.keys())
    if lacking:
        raise OptionError(
            f'option "{bound.option}" lacks {", ".join(map(str, lacking))}: name every partition (of offsets, '
            "-2 stands for earliest and -1 for latest)"
        )
    unknown = sorted(bound.offsets.keys() - set(partitions))
    if unknown:
        raise OptionError(f'option "{bound.option}" names {", ".join(map(str, unknown))}, which is not being read')
