"""Samples of `headrace top`: counts of a cluster at one instant, and the rates between two samples."""

import time
from collections.abc import Mapping
from typing import NamedTuple

from headrace.client import Admin
from headrace.client.types import EARLIEST
from headrace.model.errors import ErrorCode
from headrace.model.ids import TopicPartition
from headrace.operations.group_lag import end_offsets
from headrace.operations.metrics_page import (
    LOOP_TURNS,
    MetricsPage,
    difference,
    histogram,
    percentile,
    read_page,
    total,
    totals_by,
)

GROUPS_MAX = 200
"""Groups whose offsets are fetched; of more, the first by name."""

TOPICS_MAX = 1_000
LOOP_LAG = "headrace_loop_lag_max_seconds"


class GroupCount(NamedTuple):
    state: str
    type: str
    members: int
    committed: Mapping[TopicPartition, int]
    lag: int


class Sample(NamedTuple):
    at_seconds: float
    brokers: int
    partitions: Mapping[str, int]
    """Number of partitions by topic."""
    starts: Mapping[TopicPartition, int]
    ends: Mapping[TopicPartition, int]
    sizes: Mapping[str, int]
    """Bytes by topic, counting one replica of each partition."""
    groups: Mapping[str, GroupCount]
    metrics: MetricsPage | None
    """None without a metrics page."""


def take_sample(admin: Admin, metrics: tuple[str, int] | None, *, with_internal: bool) -> Sample:
    topics = [topic for topic in admin.topics() if with_internal or not topic.internal][:TOPICS_MAX]
    parts = [TopicPartition(topic.name, each.partition) for topic in topics for each in topic.partitions]
    ends = end_offsets(admin, parts)
    starts = {
        part: at.offset
        for part, at in (admin.offsets(dict.fromkeys(parts, EARLIEST)) if parts else {}).items()
        if at.error is ErrorCode.NONE
    }
    return Sample(
        at_seconds=time.monotonic(),
        brokers=len(admin.cluster().brokers),
        partitions={topic.name: len(topic.partitions) for topic in topics},
        starts=starts,
        ends=ends,
        sizes=_sizes(admin),
        groups=_groups(admin, ends),
        metrics=None if metrics is None else read_page(*metrics),
    )


def _sizes(admin: Admin) -> dict[str, int]:
    """Return bytes by topic. Only the largest replica of each partition counts."""
    largest: dict[TopicPartition, int] = {}
    for folder in admin.log_dirs():
        for replica in folder.replicas:
            part = TopicPartition(replica.topic, replica.partition)
            largest[part] = max(largest.get(part, 0), replica.size_bytes)
    sizes: dict[str, int] = {}
    for part, size in largest.items():
        sizes[part.topic] = sizes.get(part.topic, 0) + size
    return sizes


def _groups(admin: Admin, ends: Mapping[TopicPartition, int]) -> dict[str, GroupCount]:
    listed = sorted(admin.groups(), key=lambda group: group.group)[:GROUPS_MAX]
    described = admin.describe_groups([group.group for group in listed]) if listed else {}
    found = {}
    for group in listed:
        offsets = {part: at.offset for part, at in admin.group_offsets(group.group).items() if at.offset >= 0}
        known = {**ends, **end_offsets(admin, [part for part in offsets if part not in ends])}
        lag = sum(max(known[part] - offset, 0) for part, offset in offsets.items() if part in known)
        members = described[group.group].members if group.group in described else ()
        found[group.group] = GroupCount(group.state, group.type or "classic", len(members), offsets, lag)
    return found


class TopicRow(NamedTuple):
    topic: str
    partitions: int
    size_bytes: int
    records: int
    in_per_second: float
    out_per_second: float
    """From the offsets that groups commit; consumers without a group are not counted."""


class GroupRow(NamedTuple):
    group: str
    state: str
    type: str
    members: int
    lag: int
    read_per_second: float


class NodeRow(NamedTuple):
    bytes_in_per_second: float
    bytes_out_per_second: float
    requests_per_second: float
    errors_per_second: float
    errors: dict[str, float]
    """Rates by error: Produce and Fetch errors by error name, others by API."""
    connections: int
    loop_lag_ms: float
    """The longest turn since the previous sample."""
    loop_p99_ms: float
    """The 99th percentile of the turns between the two samples."""


class View(NamedTuple):
    brokers: int
    topics: list[TopicRow]
    groups: list[GroupRow]
    node: NodeRow | None


def view_of(before: Sample, now: Sample) -> View:
    """Return the difference of two samples: busiest topics first, groups with the largest lag first."""
    seconds = max(now.at_seconds - before.at_seconds, 1e-9)
    read: dict[str, float] = {}
    groups = []
    for name, group in now.groups.items():
        earlier = before.groups[name].committed if name in before.groups else {}
        moved = {part: max(offset - earlier.get(part, offset), 0) for part, offset in group.committed.items()}
        for part, count in moved.items():
            read[part.topic] = read.get(part.topic, 0.0) + count / seconds
        groups.append(GroupRow(name, group.state, group.type, group.members, group.lag, sum(moved.values()) / seconds))
    topics = []
    parts_of: dict[str, list[TopicPartition]] = {}
    for part in now.ends:
        parts_of.setdefault(part.topic, []).append(part)
    for name, partitions in now.partitions.items():
        parts = parts_of.get(name, [])
        written = sum(max(now.ends[part] - before.ends.get(part, now.ends[part]), 0) for part in parts)
        records = sum(max(now.ends[part] - now.starts.get(part, 0), 0) for part in parts)
        size = now.sizes.get(name, 0)
        topics.append(TopicRow(name, partitions, size, records, written / seconds, read.get(name, 0.0)))
    topics.sort(key=lambda row: (-row.in_per_second, -row.out_per_second, row.topic))
    groups.sort(key=lambda row: (-row.lag, row.group))
    return View(now.brokers, topics, groups, _node(before, now, seconds))


def _node(before: Sample, now: Sample, seconds: float) -> NodeRow | None:
    if before.metrics is None or now.metrics is None:
        return None
    earlier, later = before.metrics, now.metrics

    def rate(name: str) -> float:
        return max(total(later, name) - total(earlier, name), 0.0) / seconds

    turns = difference(histogram(later, LOOP_TURNS), histogram(earlier, LOOP_TURNS))
    longest = max((value for _, value in later.get(LOOP_LAG, ())), default=0.0)  # of all shards
    return NodeRow(
        rate("headrace_bytes_in_total"),
        rate("headrace_bytes_out_total"),
        rate("headrace_requests_total"),
        rate("headrace_request_errors_total"),
        _error_rates(earlier, later, seconds),
        int(total(later, "headrace_connections")),
        longest * 1000,
        min(percentile(turns, 0.99), longest) * 1000,  # a histogram gives the upper bound of a bucket
    )


def _error_rates(earlier: MetricsPage, later: MetricsPage, seconds: float) -> dict[str, float]:
    """Return the rates, most frequent first."""
    found: dict[str, float] = {}
    for family, label, name_of in (
        ("headrace_produce_errors_total", "error", "produce {}".format),
        ("headrace_fetch_errors_total", "error", "fetch {}".format),
        ("headrace_request_errors_total", "api", str),
    ):
        before, now = totals_by(earlier, family, label), totals_by(later, family, label)
        for name, value in now.items():
            grown = value - before.get(name, 0.0)
            if grown > 0 and name not in ("produce", "fetch"):  # counted by error above
                found[name_of(name)] = round(grown / seconds, 3)
    return dict(sorted(found.items(), key=lambda item: (-item[1], item[0])))
