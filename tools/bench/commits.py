"""Offset commit load: rate and CPU over many connections, each with its own group."""

import time
from collections.abc import Mapping, Sequence

from headrace.bench.brokers import MeasuredBroker
from headrace.bench.errors import BenchError, RunRejected
from headrace.bench.figures import Round
from headrace.bench.links import CLIENT_ID, BenchConnection
from headrace.bench.replay import ReplayClient
from headrace.bench.requests import ReplayFrames
from headrace.bench.topics import LEADERS_SECONDS_MAX, LOOK_AGAIN_SECONDS, create_topics
from headrace.model.errors import error_name
from headrace.wire.apis import ApiKey
from headrace.wire.frames import request_frame
from headrace.wire.messages import find_coordinator, offset_commit, offset_fetch

COMMIT_VERSION = 8
FETCH_VERSION = 8
FIND_VERSION = 4
NO_MEMBER = -1
"""The generation of a consumer without membership."""

OFFSETS_PER_ROUND = 1_000
"""Distance of the offsets of two rounds, so that a round does not read offsets of an earlier one."""

_ANSWER_HEAD_BYTES = 4 + 4 + 1 + 4
"""Size, correlation id, no tags, throttle time."""


class CommitRounds:
    """Each connection commits one offset of one group repeatedly; the offsets are read back at the end."""

    def __init__(
        self, broker: MeasuredBroker, client: ReplayClient, *, topic: str, connections: int, depth: int, seconds: float
    ) -> None:
        self._broker = broker
        self._client = client
        self._topic = topic
        self._groups = [f"{topic}-{number:05}" for number in range(connections)]
        self._depth = depth
        self._seconds = seconds
        self._round = 0

    def __call__(self) -> Round:
        self._round += 1
        address = self._broker.address
        if self._round == 1:
            create_topics(address, [self._topic], partitions=1)
            wait_for_coordinators(address, self._groups)
        first = self._round * OFFSETS_PER_ROUND
        offsets = {group: first + number for number, group in enumerate(self._groups)}
        before = self._broker.cpu_seconds()
        report = self._client.exchange(
            address, commit_frames(self._topic, offsets), depth=self._depth, seconds=self._seconds
        )
        after = self._broker.cpu_seconds()
        check_commits(address, self._topic, offsets)
        figures = {
            "requests_per_second": report.requests / report.seconds,
            "p50_us": report.p50_us(),
            "p99_us": report.p99_us(),
        }
        if before is not None and after is not None:
            figures["cpu_us_per_request"] = (after - before) / report.requests * 1e6
        return figures


def check_commits(address: str, topic: str, offsets: dict[str, int]) -> None:
    """Read the offset of each group back; raise RunRejected unless it is the one that was committed."""
    asked_topic = offset_fetch.OffsetFetchRequestGroupTopic(name=topic, partition_indexes=(0,))
    asked = tuple(offset_fetch.OffsetFetchRequestGroup(group_id=group, topics=(asked_topic,)) for group in offsets)
    with BenchConnection(address) as link:
        answer = link.call(offset_fetch, offset_fetch.OffsetFetchRequest(groups=asked), FETCH_VERSION)
    found = {each.group_id: each.topics[0].partitions[0].committed_offset for each in answer.groups if each.topics}
    if found != offsets:
        wrong = sum(found.get(group) != offset for group, offset in offsets.items())
        raise RunRejected(f"{wrong} of {len(offsets)} groups have a different offset than was committed")


def wait_for_coordinators(address: str, groups: Sequence[str]) -> dict[str, str]:
    """Wait until the coordinator of each group responds, and return their addresses.

    The first request creates the offsets topic.
    """
    request = find_coordinator.FindCoordinatorRequest(key=groups[0], coordinator_keys=tuple(groups))
    deadline = time.monotonic() + LEADERS_SECONDS_MAX
    while True:
        with BenchConnection(address) as link:
            coordinators = link.call(find_coordinator, request, FIND_VERSION).coordinators
        errors = {each.error_code for each in coordinators}
        if errors == {0}:
            found = {each.key: f"{each.host}:{each.port}" for each in coordinators}
            errors = {error for at in set(found.values()) for error in _errors(at, found)}
            if errors == {0}:
                return found
        if time.monotonic() > deadline:
            raise BenchError(f"groups have no coordinator: {', '.join(map(error_name, errors - {0}))}")
        time.sleep(LOOK_AGAIN_SECONDS)


def _errors(address: str, coordinators: Mapping[str, str]) -> set[int]:
    """Return the errors of all groups of one coordinator, which are not loaded at once."""
    groups = [group for group, at in coordinators.items() if at == address]
    asked = tuple(offset_fetch.OffsetFetchRequestGroup(group_id=group, topics=None) for group in groups)
    with BenchConnection(address) as link:
        answer = link.call(offset_fetch, offset_fetch.OffsetFetchRequest(groups=asked), FETCH_VERSION)
    return {each.error_code for each in answer.groups}


def commit_frames(topic: str, offsets: dict[str, int]) -> ReplayFrames:
    frames = [_frame(topic, group, offset) for group, offset in offsets.items()]
    error_at = _ANSWER_HEAD_BYTES + 1 + 1 + len(topic) + 1 + 4  # one topic, its name, one partition, its number
    return ReplayFrames(b"".join(frames), len(frames[0]), error_at=error_at)


def _frame(topic: str, group: str, offset: int) -> bytes:
    partition = offset_commit.OffsetCommitRequestPartition(
        partition_index=0, committed_offset=offset, committed_metadata=""
    )
    request = offset_commit.OffsetCommitRequest(
        group_id=group,
        generation_id_or_member_epoch=NO_MEMBER,
        member_id="",
        topics=(offset_commit.OffsetCommitRequestTopic(name=topic, partitions=(partition,)),),
    )
    body = offset_commit.encode_request(request, COMMIT_VERSION)
    return request_frame(ApiKey.OFFSET_COMMIT, COMMIT_VERSION, 0, CLIENT_ID, body)
