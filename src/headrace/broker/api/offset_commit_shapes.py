"""Recognition of a consumer's next OffsetCommit by the bytes that it has in common with the last.

A consumer commits the same partitions of the same group under the same membership again and again; only the offsets
and the leader epochs differ. Decoding that, building a command and encoding records and answer would be most of the
cost. A shape knows the request but for those numbers, the record batch but for them and the time, and the answer but
for its correlation id. Whether the group still takes the commit is decided by its machine every time. A request that
is not recognised takes the long way, which is always right.
"""

from collections.abc import Iterable
from dataclasses import replace
from struct import Struct
from typing import Protocol

from headrace.broker.coordinators.groups import GroupHost, Groups
from headrace.broker.net.connection import Connection
from headrace.broker.partitions.acknowledgements import CoordinatorAnswer
from headrace.broker.services import MetadataSource, RequestServices, TurnClock
from headrace.core.groups.commands import Commit
from headrace.core.groups.commit_batches import CommitBatch, differing_runs
from headrace.model.errors import ErrorCode
from headrace.wire.apis import ApiKey
from headrace.wire.frames import SIZE_BYTES, response_frame
from headrace.wire.messages import offset_commit
from headrace.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)

VERSION_MIN = 6
"""From here on a leader epoch follows each offset."""

SHAPE_BYTES_MAX = 8 << 10
"""Of a request that is remembered."""

WASTED_SHAPES_MAX = 8
"""Shapes of one connection that may be given up unused; then its client is one that never repeats itself."""

_NUMBERS_BYTES = 8 + 4
"""An offset and its leader epoch."""

_HEAD_BYTES = 8
"""Size and correlation id of an answer."""
_EVERY_BIT = -1
_COMMIT = int(ApiKey.OFFSET_COMMIT)


class CommitServices(RequestServices, MetadataSource, TurnClock, Protocol):
    @property
    def groups(self) -> Groups: ...


class CommitShape:
    __slots__ = (
        "answer_layout",
        "answer_rest",
        "answer_size",
        "batch",
        "command",
        "constants",
        "errors_at",
        "host",
        "image_version",
        "is_used",
        "layout",
        "places",
        "version",
    )

    def __init__(
        self,
        services: CommitServices,
        host: GroupHost,
        request: OffsetCommitRequest,
        command: Commit,
        body: bytes,
        numbers_at: list[int],
        version: int,
    ) -> None:
        self.host = host
        self.command = command
        self.version = version
        self.image_version = services.image.version
        self.is_used = False
        self.places = tuple((each.topic, each.partition, each.metadata) for each in command.offsets)
        self._take_request(body, numbers_at)
        self.batch = CommitBatch(command.member.group, self.places)
        self._take_answer(request)

    def _take_request(self, body: bytes, numbers_at: list[int]) -> None:
        """What stands before, between and behind the numbers must be the same."""
        ends = [0, *(at + _NUMBERS_BYTES for at in numbers_at)]
        sizes = [begin - end for end, begin in zip(ends, [*numbers_at, len(body)], strict=True)]
        self.layout = Struct(">" + "qi".join(f"{size}s" for size in sizes))
        self.constants = self.layout.unpack(body)[::3]

    def _take_answer(self, request: OffsetCommitRequest) -> None:
        """The answer without errors, and where in it the error of each partition would stand."""
        good, bad = (
            response_frame(_COMMIT, self.version, 0, offset_commit.encode_response(response, self.version))
            for response in (_all_answered(request, ErrorCode.NONE), _all_answered(request, _EVERY_BIT))
        )
        self.answer_rest = good[_HEAD_BYTES:]
        self.answer_size = len(good) - SIZE_BYTES
        self.answer_layout = Struct(f">ii{len(self.answer_rest)}s")
        self.errors_at = tuple(begin for begin, _ in differing_runs(good, bad))


class CommitShapes:
    """What a connection's OffsetCommit requests have in common."""

    __slots__ = ("_bytes_before", "_noted", "_wasted", "shape")

    def __init__(self) -> None:
        self.shape: CommitShape | None = None
        self._noted: tuple[OffsetCommitRequest, Commit] | None = None
        self._bytes_before = -1
        self._wasted = 0

    def handle_repeat(
        self,
        services: CommitServices,
        connection: Connection,
        frame: memoryview,
        position: int,
        end: int,
        version: int,
        correlation_id: int,
    ) -> bool:
        """HOT. Commit by a request like the last one with other offsets; False, and nothing is done, for any other."""
        shape = self.shape
        if shape is None or end - position != shape.layout.size or version != shape.version:
            return False
        fields = shape.layout.unpack_from(frame, position)
        if fields[::3] != shape.constants or shape.image_version != services.image.version:
            return False
        host, wall_ms = shape.host, services.turn_wall_ms
        machine, partition = host.machine, host.partition
        if machine is None or partition.offline or not partition.leader.acks_all_allowed:
            return False
        now = services.turn_now or services.now_of_turn()
        offsets, epochs = fields[1::3], fields[2::3]
        if not machine.commit_again(shape.command, shape.places, offsets, epochs, now):
            return False
        answer = CoordinatorAnswer(
            connection,
            shape.answer_layout.pack(shape.answer_size, correlation_id, shape.answer_rest),
            0,
            shape.errors_at,
        )
        batch = shape.batch
        host.append_answered(batch.of(offsets, epochs, wall_ms), batch.header(len(offsets), wall_ms), wall_ms, answer)
        connection.answers.append(answer)
        if not connection.dirty:
            connection.mark_dirty()
        services.metrics.commits_of_turn += 1
        shape.is_used = True
        return True

    def note(self, request: OffsetCommitRequest, command: Commit) -> None:
        """Called for a request that takes the long way, if nothing of it is refused before its group is asked."""
        self._noted = request, command

    def learn(self, services: CommitServices, body: memoryview, version: int) -> None:
        """Remember the request that was noted, from the second of its size on."""
        noted, self._noted = self._noted, None
        again, self._bytes_before = len(body) == self._bytes_before, len(body)
        if noted is None or not again or version < VERSION_MIN or not services.access.open_to_all:
            return
        if self.shape is not None and not self.shape.is_used:
            self._wasted += 1
        if self._wasted < WASTED_SHAPES_MAX and len(body) <= SHAPE_BYTES_MAX:
            self.shape = _shape(services, bytes(body), version, *noted)


def _shape(
    services: CommitServices, body: bytes, version: int, request: OffsetCommitRequest, command: Commit
) -> CommitShape | None:
    """None for a request with too much metadata, or one that its codec would write otherwise: with unknown tags."""
    host = services.groups.topic.host_of(command.member.group)
    if host is None or host.machine is None or offset_commit.encode_request(request, version) != body:
        return None
    metadata_bytes_max = host.machine.settings.offset_metadata_bytes_max
    if any(len(each.metadata.encode()) > metadata_bytes_max for each in command.offsets):
        return None
    runs = differing_runs(body, offset_commit.encode_request(_with_other_numbers(request), version))
    if [end - begin for begin, end in runs] != [_NUMBERS_BYTES] * len(command.offsets):
        return None
    return CommitShape(services, host, request, command, body, [begin for begin, _ in runs], version)


def _all_answered(request: OffsetCommitRequest, error: int) -> OffsetCommitResponse:
    return commit_response(request, [[(each.partition_index, error) for each in t.partitions] for t in request.topics])


def _with_other_numbers(request: OffsetCommitRequest) -> OffsetCommitRequest:
    """The same request with every bit of its offsets and leader epochs turned."""
    topics = tuple(
        replace(
            topic,
            partitions=tuple(
                replace(
                    each,
                    committed_offset=~each.committed_offset,
                    committed_leader_epoch=~each.committed_leader_epoch,
                )
                for each in topic.partitions
            ),
        )
        for topic in request.topics
    )
    return replace(request, topics=topics)


def commit_response(
    request: OffsetCommitRequest, errors: Iterable[Iterable[tuple[int, int]]], throttle_time_ms: int = 0
) -> OffsetCommitResponse:
    """The answer to a request, by the partitions of each of its topics and what became of them."""
    return OffsetCommitResponse(
        throttle_time_ms=throttle_time_ms,
        topics=tuple(
            OffsetCommitResponseTopic(
                name=topic.name,
                topic_id=topic.topic_id,
                partitions=tuple(
                    OffsetCommitResponsePartition(partition_index=partition, error_code=error)
                    for partition, error in of_topic
                ),
            )
            for topic, of_topic in zip(request.topics, errors, strict=True)
        ),
    )
