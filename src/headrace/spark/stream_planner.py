"""The end of the next micro-batch: what is there, how much of it may be taken, and what has changed or gone since."""

import time
from collections.abc import Mapping
from math import inf
from typing import Any

from headrace.model.ids import TopicPartition
from headrace.spark.bounds import resolve
from headrace.spark.data_loss import lost_text, settle_loss
from headrace.spark.log_once import log_once
from headrace.spark.offset_vectors import (
    OffsetVector,
    StreamOffset,
    ends_text,
    from_json,
    is_initial,
    ranges_text,
    to_json,
)
from headrace.spark.option_names import OptionError
from headrace.spark.range_planner import count_between, limited, offsets_within
from headrace.spark.source_options import Bound, SourceOptions
from headrace.spark.topic_view import TopicsSeen, TopicView, require_topics

START_BOUND = Bound(option="startingOffsets", place="latest")
BACKWARDS_TRIES_MAX = 10
"""How often an end that went backwards is asked for again: a new leader may only be about to know it."""
BACKWARDS_PAUSE_MS = 300
LOOKS_MAX = 3
"""How often a batch is planned anew because topics were deleted or created again while it was."""


class _TopicsChanged(RuntimeError):
    """What was seen of the topics is out of date: a log that seems shorter is another topic's."""


class StreamPlanner:
    """Lives as long as its query, in the process that plans."""

    def __init__(self, options: SourceOptions) -> None:
        if options.ending is not None:
            raise OptionError(f'option "{options.ending.option}" is for batch reads: a stream has no end')
        if options.scan != "broker":
            raise OptionError(f'option "scan" ({options.scan}) is for batch reads: a stream reads through the broker')
        if options.is_pushed_down:
            raise OptionError('option "pushdown" is for batch reads: Spark pushes no filters into a stream')
        self._options = options
        self._view = TopicView(options)
        self._fixed: OffsetVector | None = None
        """With the trigger availableNow: where the query ends."""
        self._newest: OffsetVector | None = None
        self._published: OffsetVector | None = None
        self._cluster: str | None = None
        """The id of the cluster; it cannot change while this object's topics stay the same ones."""
        self._triggered_ms = -inf
        """When a batch was planned last; the first one after a start does not wait."""
        self._planned: dict[str, Any] | None = None
        """The end of the last batch that was planned here; any other that is asked for is a replay."""
        if options.group is None:
            log_once('progress is not shown as a group: set option "commitGroup" or "kafka.group.id" for that')

    def fix_ends(self) -> None:
        """Topics that are missing are a matter of the first batch, and later of the policy for losses."""
        self._fixed = self._view.latest(self._view.topics().partitions)

    def newest(self) -> dict[str, Any] | None:
        """The ends as they were at the last look, to compute a lag from."""
        return None if self._newest is None else to_json(StreamOffset(ends=self._newest))

    def lost_topics(self, end: dict[str, Any]) -> set[str]:
        """Of a batch that is replayed: the topics that are not, or not any more, the ones it was planned for."""
        if end == self._planned:
            return set()
        after, seen = from_json(end), self._view.topics()
        there, ids = {each.topic for each in seen.partitions}, after.topic_ids
        gone = {
            each
            for each in sorted({place.topic for place in after.ends})
            if each not in there or ids.get(each, "") not in ("", seen.topic_ids.get(each))
        }
        if gone:
            self._settle_cluster(after)
            names = ", ".join(f'"{each}"' for each in sorted(gone))
            self._lose(
                f"a batch that is replayed up to {ends_text(after.ends, gone)} cannot be read again, as {names} was "
                f"deleted or created again since, or is not read any more"
            )
        return gone

    def next_offset(self, start: dict[str, Any], *, is_limited: bool) -> dict[str, Any]:
        """Where the batch that begins at `start` ends; `start` itself if there is nothing to do."""
        for tries in range(LOOKS_MAX):
            try:
                self._planned = self._next_offset(start, is_limited=is_limited)
                break
            except _TopicsChanged:
                if tries == LOOKS_MAX - 1:
                    raise
        assert self._planned is not None
        return self._planned

    def _next_offset(self, start: dict[str, Any], *, is_limited: bool) -> dict[str, Any]:
        seen = self._view.topics()
        if is_initial(start):
            require_topics(seen, self._options.selection)
            return self._first(seen, is_limited=is_limited)
        before = from_json(start)
        self._publish(before.ends)
        begun = _Begun(before, seen)
        self._settle_losses(begun)
        ends = self._ends(begun.starts, begun.ends)
        if not begun.has_changed and all(ends[each] <= offset for each, offset in begun.starts.items()):
            return start
        if not begun.has_changed and self._waits_for_more(begun.starts, ends, is_limited=is_limited):
            return start
        if is_limited:
            ends = self._limited(begun.starts, ends)
        ends = {each: max(end, begun.starts[each]) for each, end in ends.items()}
        return self._end(seen, ends, begun.new_starts)

    def close(self) -> None:
        self._view.close()

    def _first(self, seen: TopicsSeen, *, is_limited: bool) -> dict[str, Any]:
        """The first batch is always planned, even with nothing in it: its end keeps the starts."""
        bound = self._options.starting or START_BOUND
        starts = resolve(bound, seen.partitions, self._view)
        ends = self._ends(starts, {})
        self._check_starts(bound, starts)
        if is_limited:
            ends = self._limited(starts, ends)
        self._triggered_ms = _now_ms()
        ends = {each: max(end, starts[each]) for each, end in ends.items()}
        return self._end(seen, ends, starts)

    def _end(self, seen: TopicsSeen, ends: OffsetVector, starts: OffsetVector) -> dict[str, Any]:
        if self._cluster is None:
            self._cluster = self._view.cluster_id()
        return to_json(
            StreamOffset(
                ends=ends, topic_ids=seen.topic_ids, starts=starts, source=self._options.name, cluster=self._cluster
            )
        )

    def _check_starts(self, bound: Bound, starts: OffsetVector) -> None:
        """Transactions that are open hide the end from readers of committed records; a start may be there."""
        newest = self._newest or {}
        if any(starts[each] > newest[each] for each in starts):
            newest = self._view.high_watermarks(starts)
        behind = next((each for each in sorted(starts) if starts[each] > newest[each]), None)
        if behind is not None:
            raise OptionError(
                f'option "{bound.option}" has {behind} begin at offset {starts[behind]}, and it ends at '
                f"{newest[behind]}"
            )

    def _ends(self, starts: OffsetVector, known: OffsetVector) -> dict[TopicPartition, int]:
        """The ends of all partitions; those that are known need not be asked for."""
        newest = {each: end for each, end in known.items() if each in starts}
        newest |= self._view.latest(each for each in starts if each not in newest)
        self._newest = newest
        if self._fixed is None:
            return newest
        return {each: min(end, self._fixed.get(each, starts[each])) for each, end in newest.items()}

    def _limited(self, starts: OffsetVector, ends: dict[TopicPartition, int]) -> dict[TopicPartition, int]:
        options = self._options
        if options.bytes_max is not None and count_between(starts, ends):
            sizes = self._view.bytes_per_offset(ends)
            ends = offsets_within(starts, ends, sizes, bytes_max=options.bytes_max)
        if options.offsets_max is not None:
            ends = limited(starts, ends, offsets_max=options.offsets_max)
        return ends

    def _waits_for_more(self, starts: OffsetVector, ends: OffsetVector, *, is_limited: bool) -> bool:
        """Whether there is less than `minOffsetsPerTrigger`, and `maxTriggerDelay` is not over."""
        least, now_ms = self._options.offsets_min, _now_ms()
        if least is not None and is_limited and self._fixed is None:
            is_due = now_ms - self._triggered_ms >= self._options.trigger_delay_ms_max
            if count_between(starts, ends) < least and not is_due:
                return True
        self._triggered_ms = now_ms
        return False

    def _publish(self, ends: OffsetVector) -> None:
        """`ends` are in Spark's log of finished batches, since the next batch begins there."""
        if self._options.group is not None and ends != self._published:
            self._view.publish(self._options.group, ends)
            self._published = dict(ends)

    # What is not as it was

    def _settle_losses(self, begun: "_Begun") -> None:
        if begun.deleted() or begun.recreated():
            self._settle_cluster(begun.before)
        self._settle_deleted(begun)
        self._settle_recreated(begun)
        self._settle_backwards(begun)
        added = begun.added()
        first = self._view.earliest(added)
        lost = [(each, 0, first[each]) for each in added if first[each] > 0]
        if lost:
            self._lose(lost_text(lost, "they were gone when the partition was seen first"))
        begun.begin(first)

    def _settle_deleted(self, begun: "_Begun") -> None:
        gone = begun.deleted()
        if gone:
            places = ", ".join(f"{each} from offset {begun.starts[each]} on" for each in gone)
            if any(self._options.selection.has(each) for each in gone):
                self._lose(f"{places} cannot be read any more, as the topic or partition was deleted")
            else:
                own = 'its own "checkpointLocation"' if self._options.name is None else "a `checkpoint` of its own"
                why = "is in the checkpoint, and the options do not name it: is it the checkpoint of another query?"
                self._lose(f"{places} {why}", f"give this one {own}")
            begun.forget(gone)

    def _settle_recreated(self, begun: "_Begun") -> None:
        again = begun.recreated()
        if again:
            names = ", ".join(f'"{each}"' for each in sorted({each.topic for each in again}))
            places = ", ".join(f"{each} from offset {begun.starts[each]} on" for each in again)
            self._lose(f"topic {names} was deleted and created again, so {places} is lost")
            begun.begin(self._begin_again(again))

    def _settle_backwards(self, begun: "_Begun") -> None:
        read = {each: offset for each, offset in begun.starts.items() if each not in begun.new_starts}
        ends = self._view.latest(read)
        begun.ends = ends
        for tries in range(BACKWARDS_TRIES_MAX + 1):
            if tries:
                time.sleep(BACKWARDS_PAUSE_MS / 1_000)
                if begun.is_outdated(self._view.topics()):
                    raise _TopicsChanged("topics are deleted and created again faster than they can be looked at")
                ends = self._view.high_watermarks(read)
            back = sorted(each for each, offset in read.items() if ends[each] < offset)
            if not back:
                return
        places = ", ".join(f"{each} ends at offset {ends[each]}, and was read up to {read[each]}" for each in back)
        self._lose(f"records are lost that were read before: {places}")
        begun.ends = {}
        begun.begin(self._begin_again(back))

    def _begin_again(self, partitions: list[TopicPartition]) -> dict[TopicPartition, int]:
        """Also what is passed over is reported: a topic that was made anew may have records already."""
        first = self._view.earliest(partitions)
        if self._options.data_loss == "earliest":
            return first
        last = self._view.latest(partitions)
        passed = [(each, first[each], last[each]) for each in partitions if first[each] < last[each]]
        if passed:
            self._lose(f"records are passed over to go on behind them: {ranges_text(passed)}")
        return last

    def _settle_cluster(self, before: StreamOffset) -> None:
        """Topics that are not the same may be those of another cluster: then it is that which is to be said."""
        now = self._view.cluster_id()
        if before.cluster in (None, now):
            return
        if self._options.name is None:
            advice = 'point option "kafka.bootstrap.servers" at that cluster, or begin with a new checkpoint'
        else:
            advice = "point `bootstrap` (or --bootstrap) at that cluster, or give the pipeline another `checkpoint`"
        self._lose(
            f"the brokers at {self._view.servers} are another cluster ({now}) than the one that the checkpoint is of "
            f"({before.cluster}), so nothing of what was to be read next is there",
            advice,
        )

    def _lose(self, text: str, advice: str | None = None) -> None:
        settle_loss(text, self._options, advice=advice)


class _Begun:
    """Where the partitions of a batch begin: behind the batch before, but for those that are new or begin again."""

    def __init__(self, before: StreamOffset, seen: TopicsSeen) -> None:
        self.before = before
        self._seen = set(seen.partitions)
        self._ids: Mapping[str, str] = seen.topic_ids
        self.starts: dict[TopicPartition, int] = dict(before.ends)
        self.new_starts: dict[TopicPartition, int] = {}
        self.ends: OffsetVector = {}
        """As far as they were asked for."""
        self.has_changed = False

    def deleted(self) -> list[TopicPartition]:
        return sorted(each for each in self.starts if each not in self._seen)

    def is_outdated(self, seen: TopicsSeen) -> bool:
        """Whether a topic is another one by now, or gone."""
        return any(self._ids.get(each.topic) != seen.topic_ids.get(each.topic) for each in self.starts)

    def recreated(self) -> list[TopicPartition]:
        """Of topics that have another id than the one in the checkpoint."""
        known = self.before.topic_ids
        return sorted(each for each in self.starts if known.get(each.topic, "") not in ("", self._ids.get(each.topic)))

    def added(self) -> list[TopicPartition]:
        return sorted(self._seen - self.starts.keys())

    def forget(self, partitions: list[TopicPartition]) -> None:
        for each in partitions:
            del self.starts[each]
        self.has_changed = self.has_changed or bool(partitions)

    def begin(self, starts: OffsetVector) -> None:
        self.starts.update(starts)
        self.new_starts.update(starts)
        self.has_changed = self.has_changed or bool(starts)


def _now_ms() -> float:
    return time.monotonic() * 1_000
