"""Plan the end of the next micro-batch: available records, limits, and changed or deleted topics."""

import time
from collections.abc import Mapping
from math import inf
from typing import Any

from headrace.model.ids import TopicPartition
from headrace.spark.bounds import resolve
from headrace.spark.data_loss import handle_loss, lost_text
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
"""Retries of an end offset that went backwards: a new leader may not know the latest one yet."""
BACKWARDS_PAUSE_MS = 300
LOOKS_MAX = 3
"""Attempts to plan a batch while topics are being deleted or recreated."""


class _TopicsChanged(RuntimeError):
    """The metadata of the topics is out of date: a log that seems shorter belongs to another topic."""


class StreamPlanner:
    """Lives as long as its query, in the planning process."""

    def __init__(self, options: SourceOptions) -> None:
        if options.ending is not None:
            raise OptionError(f'option "{options.ending.option}" is only for batch reads: a stream has no end')
        if options.scan != "broker":
            raise OptionError(
                f'option "scan" ({options.scan}) is only for batch reads: a stream reads through the broker'
            )
        if options.is_pushed_down:
            raise OptionError('option "pushdown" is only for batch reads: Spark pushes no filters into a stream')
        self._options = options
        self._view = TopicView(options)
        self._fixed: OffsetVector | None = None
        """With the trigger availableNow: where the query ends."""
        self._newest: OffsetVector | None = None
        self._published: OffsetVector | None = None
        self._cluster: str | None = None
        """The cluster id; it cannot change while the topics of this object stay the same."""
        self._triggered_ms = -inf
        """When the last batch was planned; the first one after a start does not wait."""
        self._planned: dict[str, Any] | None = None
        """The end of the last batch planned here; a request for any other is a replay."""
        if options.group is None:
            log_once(
                'the progress is not published to a group: set option "commitGroup" or "kafka.group.id" to publish it'
            )

    def fix_ends(self) -> None:
        """Fix the ends. Missing topics are handled in the first batch, and later by the data loss policy."""
        self._fixed = self._view.latest(self._view.topics().partitions)

    def newest(self) -> dict[str, Any] | None:
        """Return the ends of the last lookup, to compute a lag."""
        return None if self._newest is None else to_json(StreamOffset(ends=self._newest))

    def lost_topics(self, end: dict[str, Any]) -> set[str]:
        """Return, for a replayed batch, the topics that are not, or no longer, those it was planned for."""
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
            self._report_other_cluster(after)
            names = ", ".join(f'"{each}"' for each in sorted(gone))
            self._lose(
                f"a batch that is replayed up to {ends_text(after.ends, gone)} cannot be read again, because "
                f"{names} was deleted or created again since, or is no longer read"
            )
        return gone

    def next_offset(self, start: dict[str, Any], *, is_limited: bool) -> dict[str, Any]:
        """Return the end of the batch that begins at `start`; `start` itself if there is nothing to do."""
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
        self._handle_losses(begun)
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
        """Plan the first batch, even an empty one: its end stores the starts."""
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
        """Check the starts against the high watermarks: open transactions hide the end from readers of committed
        records.
        """
        newest = self._newest or {}
        if any(starts[each] > newest[each] for each in starts):
            newest = self._view.high_watermarks(starts)
        behind = next((each for each in sorted(starts) if starts[each] > newest[each]), None)
        if behind is not None:
            raise OptionError(
                f'option "{bound.option}" starts {behind} at offset {starts[behind]}, but it ends at {newest[behind]}'
            )

    def _ends(self, starts: OffsetVector, known: OffsetVector) -> dict[TopicPartition, int]:
        """Return the ends of all partitions; known ones are not looked up."""
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
        """Return whether there is less than `minOffsetsPerTrigger` and `maxTriggerDelay` is not over."""
        least, now_ms = self._options.offsets_min, _now_ms()
        if least is not None and is_limited and self._fixed is None:
            is_due = now_ms - self._triggered_ms >= self._options.trigger_delay_ms_max
            if count_between(starts, ends) < least and not is_due:
                return True
        self._triggered_ms = now_ms
        return False

    def _publish(self, ends: OffsetVector) -> None:
        """Publish progress; `ends` are in Spark's log of completed batches, because the next batch begins there."""
        if self._options.group is not None and ends != self._published:
            self._view.publish(self._options.group, ends)
            self._published = dict(ends)

    # Changes and losses

    def _handle_losses(self, begun: "_Begun") -> None:
        if begun.deleted() or begun.recreated():
            self._report_other_cluster(begun.before)
        self._handle_deleted(begun)
        self._handle_recreated(begun)
        self._handle_backwards(begun)
        added = begun.added()
        first = self._view.earliest(added)
        lost = [(each, 0, first[each]) for each in added if first[each] > 0]
        if lost:
            self._lose(lost_text(lost, "they were already deleted when the partition was first seen"))
        begun.begin(first)

    def _handle_deleted(self, begun: "_Begun") -> None:
        gone = begun.deleted()
        if gone:
            places = ", ".join(f"{each} from offset {begun.starts[each]} on" for each in gone)
            if any(self._options.selection.has(each) for each in gone):
                self._lose(f"{places} cannot be read any more, because the topic or partition was deleted")
            else:
                own = 'its own "checkpointLocation"' if self._options.name is None else "a `checkpoint` of its own"
                why = "is in the checkpoint, but not in the options; it may be the checkpoint of another query"
                self._lose(f"{places} {why}", f"give this one {own}")
            begun.forget(gone)

    def _handle_recreated(self, begun: "_Begun") -> None:
        again = begun.recreated()
        if again:
            names = ", ".join(f'"{each}"' for each in sorted({each.topic for each in again}))
            places = ", ".join(f"{each} from offset {begun.starts[each]} on" for each in again)
            self._lose(f"topic {names} was deleted and created again, so {places} is lost")
            begun.begin(self._begin_again(again))

    def _handle_backwards(self, begun: "_Begun") -> None:
        read = {each: offset for each, offset in begun.starts.items() if each not in begun.new_starts}
        ends = self._view.latest(read)
        begun.ends = ends
        for tries in range(BACKWARDS_TRIES_MAX + 1):
            if tries:
                time.sleep(BACKWARDS_PAUSE_MS / 1_000)
                if begun.is_outdated(self._view.topics()):
                    raise _TopicsChanged(
                        "topics are deleted and created again faster than they can be looked up; try again later"
                    )
                ends = self._view.high_watermarks(read)
            back = sorted(each for each, offset in read.items() if ends[each] < offset)
            if not back:
                return
        places = ", ".join(f"{each} ends at offset {ends[each]}, but was read up to {read[each]}" for each in back)
        self._lose(f"records that were already read are lost: {places}")
        begun.ends = {}
        begun.begin(self._begin_again(back))

    def _begin_again(self, partitions: list[TopicPartition]) -> dict[TopicPartition, int]:
        """Restart partitions; skipped records are reported too: a recreated topic may have records already."""
        first = self._view.earliest(partitions)
        if self._options.data_loss == "earliest":
            return first
        last = self._view.latest(partitions)
        passed = [(each, first[each], last[each]) for each in partitions if first[each] < last[each]]
        if passed:
            self._lose(f"records are skipped to continue after them: {ranges_text(passed)}")
        return last

    def _report_other_cluster(self, before: StreamOffset) -> None:
        """Report another cluster, if that is why the topics differ."""
        now = self._view.cluster_id()
        if before.cluster in (None, now):
            return
        if self._options.name is None:
            advice = 'set option "kafka.bootstrap.servers" to that cluster, or use a new checkpoint'
        else:
            advice = "set `bootstrap` (or --bootstrap) to that cluster, or give the pipeline another `checkpoint`"
        self._lose(
            f"the brokers at {self._view.servers} belong to another cluster ({now}) than the checkpoint "
            f"({before.cluster}), so none of the records to read next are there",
            advice,
        )

    def _lose(self, text: str, advice: str | None = None) -> None:
        handle_loss(text, self._options, advice=advice)


class _Begun:
    """The starts of a batch's partitions: the end of the previous batch, except for new or restarted partitions."""

    def __init__(self, before: StreamOffset, seen: TopicsSeen) -> None:
        self.before = before
        self._seen = set(seen.partitions)
        self._ids: Mapping[str, str] = seen.topic_ids
        self.starts: dict[TopicPartition, int] = dict(before.ends)
        self.new_starts: dict[TopicPartition, int] = {}
        self.ends: OffsetVector = {}
        """As far as they were looked up."""
        self.has_changed = False

    def deleted(self) -> list[TopicPartition]:
        return sorted(each for each in self.starts if each not in self._seen)

    def is_outdated(self, seen: TopicsSeen) -> bool:
        """Return whether a topic was recreated or deleted meanwhile."""
        return any(self._ids.get(each.topic) != seen.topic_ids.get(each.topic) for each in self.starts)

    def recreated(self) -> list[TopicPartition]:
        """Return topics whose id differs from the one in the checkpoint."""
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
