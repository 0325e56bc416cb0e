"""Templates that recognise a consumer's next OffsetCommit request by the bytes that it shares with the last one.

A consumer commits the same partitions of the same group under the same membership again and again; only the offsets
and the leader epochs differ. Most of the cost would be to decode the request, build a command, and encode records and
response. A template holds the request without those numbers, the record batch without the numbers and the time, and
the response without its correlation id. The coordinator still decides every commit. A request that no template
matches is decoded in the ordinary way, which is always correct.
"""

from collections.abc import Iterable
from dataclasses import replace
from struct import Struct
from typing import Protocol

from headrace.broker.coordinators.groups import GroupHost, Groups
from headrace.broker.net.connection import Connection
from headrace.broker.partitions.acknowledgements import CoordinatorResponseSlot
from headrace.broker.services import MetadataSource, RequestServices, TurnClock
from headrace.core.groups.commands import Commit
from headrace.core.groups.commit_batches import OffsetCommitBatch, differing_runs
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
"""From this version on a leader epoch follows each offset."""

TEMPLATE_BYTES_MAX = 8 << 10
"""The size of a request that becomes a template."""

UNUSED_TEMPLATES_MAX = 8
"""Templates of one connection that were replaced without ever being used; after that the connection gets no more."""

_NUMBERS_BYTES = 8 + 4
"""The size of an offset and its leader epoch."""

_HEAD_BYTES = 8
"""The size of a response's length field and correlation id."""
_EVERY_BIT = -1
_COMMIT = int(ApiKey.OFFSET_COMMIT)


class CommitServices(RequestServices, MetadataSource, TurnClock, Protocol):
    @property
    def groups(self) -> Groups: ...


class CommitTemplate:
    __slots__ = (
        "batch",
        "command",
        "constants",
        "errors_at",
        "host",
        "image_version",
        "is_used",
        "layout",
        "response_layout",
        "response_rest",
        "response_size",
        "targets",
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
        self.targets = tuple((each.topic, each.partition, each.metadata) for each in command.offsets)
        self._set_request(body, numbers_at)
        self.batch = OffsetCommitBatch(command.member.group, self.targets)
        self._set_response(request)

    def _set_request(self, body: bytes, numbers_at: list[int]) -> None:
        """Note the bytes before, between and after the numbers, which must be the same in the next request."""
        ends = [0, *(at + _NUMBERS_BYTES for at in numbers_at)]
        sizes = [begin - end for end, begin in zip(ends, [*numbers_at, len(body)], strict=True)]
        self.layout = Struct(">" + "qi".join(f"{size}s" for size in sizes))
        self.constants = self.layout.unpack(body)[::3]

    def _set_response(self, request: OffsetCommitRequest) -> None:
        """Encode the response without errors, and note the position of each partition's error code in it."""
        good, bad = (
            response_frame(_COMMIT, self.version, 0, offset_commit.encode_response(response, self.version))
            for response in (_response_with(request, ErrorCode.NONE), _response_with(request, _EVERY_BIT))
        )
        self.response_rest = good[_HEAD_BYTES:]
        self.response_size = len(good) - SIZE_BYTES
        self.response_layout = Struct(f">ii{len(self.response_rest)}s")
        self.errors_at = tuple(begin for begin, _ in differing_runs(good, bad))


class CommitTemplates:
    """The template of a connection's OffsetCommit requests, and the evidence from which it is made."""

    __slots__ = ("_bytes_before", "_noted", "_unused", "template")

    def __init__(self) -> None:
        self.template: CommitTemplate | None = None
        self._noted: tuple[OffsetCommitRequest, Commit] | None = None
        self._bytes_before = -1
        self._unused = 0

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
        """HOT. Process a request that matches the template; return False, and do nothing, for any other request."""
        template = self.template
        if template is None or end - position != template.layout.size or version != template.version:
            return False
        fields = template.layout.unpack_from(frame, position)
        if fields[::3] != template.constants or template.image_version != services.image.version:
            return False
        host, wall_ms = template.host, services.turn_wall_ms
        machine, partition = host.machine, host.partition
        if machine is None or not partition.serves or not partition.role.acks_all_allowed:
            return False
        now = services.turn_now or services.now_of_turn()
        offsets, epochs = fields[1::3], fields[2::3]
        if not machine.offset_requests.commit_again(template.command, template.targets, offsets, epochs, now):
            return False
        slot = CoordinatorResponseSlot(
            connection,
            template.response_layout.pack(template.response_size, correlation_id, template.response_rest),
            0,
            template.errors_at,
        )
        batch = template.batch
        host.append_with_response(
            batch.of(offsets, epochs, wall_ms), batch.header(len(offsets), wall_ms), wall_ms, slot
        )
        connection.responses.append(slot)
        if not connection.dirty:
            connection.mark_dirty()
        services.metrics.commits_of_turn += 1
        template.is_used = True
        return True

    def note(self, request: OffsetCommitRequest, command: Commit) -> None:
        """Note a request that was decoded in the ordinary way and none of whose partitions the handler refused."""
        self._noted = request, command

    def learn(self, services: CommitServices, body: memoryview, version: int) -> None:
        """Make a template of the noted request if the request before it had the same size."""
        noted, self._noted = self._noted, None
        again, self._bytes_before = len(body) == self._bytes_before, len(body)
        if noted is None or not again or version < VERSION_MIN:
            return
        if self.template is not None and not self.template.is_used:
            self._unused += 1
        if self._unused < UNUSED_TEMPLATES_MAX and len(body) <= TEMPLATE_BYTES_MAX:
            self.template = _new_template(services, bytes(body), version, *noted)


def _new_template(
    services: CommitServices, body: bytes, version: int, request: OffsetCommitRequest, command: Commit
) -> CommitTemplate | None:
    """Return None for a request with too much metadata, or with tagged fields that its codec does not know."""
    host = services.groups.topic.host_of(command.member.group)
    if host is None or host.machine is None or offset_commit.encode_request(request, version) != body:
        return None
    metadata_bytes_max = host.machine.settings.offset_metadata_bytes_max
    if any(len(each.metadata.encode()) > metadata_bytes_max for each in command.offsets):
        return None
    runs = differing_runs(body, offset_commit.encode_request(_with_inverted_numbers(request), version))
    if [end - begin for begin, end in runs] != [_NUMBERS_BYTES] * len(command.offsets):
        return None
    return CommitTemplate(services, host, request, command, body, [begin for begin, _ in runs], version)


def _response_with(request: OffsetCommitRequest, error: int) -> OffsetCommitResponse:
    return commit_response(request, [[(each.partition_index, error) for each in t.partitions] for t in request.topics])


def _with_inverted_numbers(request: OffsetCommitRequest) -> OffsetCommitRequest:
    """Return the request with every bit of its offsets and leader epochs inverted."""
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
    """Build the response to a request from the partitions of each topic and their errors."""
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
