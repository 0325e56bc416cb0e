"""OffsetFetch (9): reads committed offsets of one group, or of several from version 8 on."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from headrace.broker.api.context import RequestContext
from headrace.broker.api.support.coordinators import ask_each, group_error, known, topic_name, when_known
from headrace.broker.cluster.proposal import Proposal, ProposalFailed
from headrace.core.groups.commands import FetchedOffset, FetchOffsets, MemberClaim
from headrace.model.access import AclResourceType, Operation
from headrace.model.errors import ErrorCode
from headrace.model.ids import NO_TOPIC_ID
from headrace.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestGroupTopic,
    OffsetFetchRequestTopic,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponseGroupPartition,
    OffsetFetchResponseGroupTopic,
    OffsetFetchResponsePartition,
    OffsetFetchResponseTopic,
)

NO_OFFSET = -1
OFFSET_FETCH_GROUPS_MAX = 10_000
"""Groups of one OffsetFetch request whose offsets are read. The others get INVALID_REQUEST: the client must request
them separately.
"""
_SEVERAL_GROUPS_FROM = 8
_TOPIC_IDS_FROM = 10
_GROUP_ERROR_FROM = 2


class _Topic(NamedTuple):
    """A topic of the request, with its name if the request gives its id, and the error if it is refused."""

    name: str
    topic_id: bytes
    partitions: tuple[int, ...]
    error: ErrorCode


class _Group(NamedTuple):
    """A group of the request."""

    group_id: str
    topics: list[_Topic] | None
    """None for all topics."""
    member: MemberClaim | None
    require_stable: bool


class _TopicOffsets(NamedTuple):
    topic: str
    topic_id: bytes
    partitions: list[FetchedOffset]


def handle(request: OffsetFetchRequest, ctx: RequestContext) -> object:
    if ctx.version < _SEVERAL_GROUPS_FROM:
        group = _group(ctx, request.group_id, request.topics, None, request.require_stable)
        return when_known(ctx, _fetch(ctx, group), lambda outcome: _single_group_response(ctx, group, outcome))
    groups = [
        _group(ctx, each.group_id, each.topics, _member(each), request.require_stable)
        for each in _without_repetitions(request.groups)
    ]

    def result(group: _Group, outcome: list[FetchedOffset] | ProposalFailed | ErrorCode) -> OffsetFetchResponseGroup:
        return _response_group(ctx, group, outcome)

    def respond(groups: list[OffsetFetchResponseGroup]) -> OffsetFetchResponse:
        return OffsetFetchResponse(throttle_time_ms=ctx.throttle_time_ms, groups=tuple(groups))

    return ask_each(ctx, groups, lambda group: _fetch(ctx, group), result, respond, items_max=OFFSET_FETCH_GROUPS_MAX)


def _without_repetitions(groups: Sequence[OffsetFetchRequestGroup]) -> list[OffsetFetchRequestGroup]:
    """Drop repeated requests for all offsets of a group, by which a small request would get a huge response.

    Partitions that the request names may repeat: the size of the request limits the size of their response.
    """
    entire: set[str] = set()
    found = []
    for group in groups:
        if group.topics is None and group.group_id in entire:
            continue
        if group.topics is None:
            entire.add(group.group_id)
        found.append(group)
    return found


def _group(
    ctx: RequestContext,
    group_id: str,
    topics: Iterable[OffsetFetchRequestTopic | OffsetFetchRequestGroupTopic] | None,
    member: MemberClaim | None,
    require_stable: bool,
) -> _Group:
    if topics is None:
        return _Group(group_id, None, member, require_stable)
    found = []
    for topic in topics:
        topic_id = topic.topic_id if isinstance(topic, OffsetFetchRequestGroupTopic) else NO_TOPIC_ID
        name = topic_name(ctx, topic.name, topic_id)
        error = ErrorCode.NONE
        if name is None:
            error = ErrorCode.UNKNOWN_TOPIC_ID
        elif not ctx.authorized(Operation.DESCRIBE, AclResourceType.TOPIC, name):
            error = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        found.append(_Topic(name or "", topic_id, topic.partition_indexes, error))
    return _Group(group_id, found, member, require_stable)


def _member(group: OffsetFetchRequestGroup) -> MemberClaim | None:
    if group.member_id is None and group.member_epoch < 0:
        return None
    member_id = group.member_id or ""
    return MemberClaim(group=group.group_id, member_id=member_id, instance_id=None, generation=group.member_epoch)


def _fetch(ctx: RequestContext, group: _Group) -> Proposal[Any]:
    error = group_error(ctx, Operation.DESCRIBE, group.group_id)
    if error is not ErrorCode.NONE:
        return known(ProposalFailed(error, ""))
    return ctx.groups.fetch_offsets(_command(group))


def _command(group: _Group) -> FetchOffsets:
    partitions = None
    if group.topics is not None:
        partitions = tuple(
            (topic.name, partition)
            for topic in group.topics
            if topic.error is ErrorCode.NONE
            for partition in topic.partitions
        )
    return FetchOffsets(
        group=group.group_id, partitions=partitions, member=group.member, require_stable=group.require_stable
    )


def _topic_offsets(
    ctx: RequestContext, group: _Group, outcome: list[FetchedOffset] | ProposalFailed
) -> list[_TopicOffsets]:
    """Return offsets and errors by topic, in the order of the request."""
    if group.topics is None:
        return [] if isinstance(outcome, ProposalFailed) else _all_topics(ctx, outcome)
    offsets = iter(() if isinstance(outcome, ProposalFailed) else outcome)
    found = []
    for name, topic_id, partitions, topic_error in group.topics:
        error = outcome.code if isinstance(outcome, ProposalFailed) else topic_error
        found.append(
            _TopicOffsets(
                name,
                topic_id,
                [
                    next(offsets) if error is ErrorCode.NONE else FetchedOffset(name, partition, None, error)
                    for partition in partitions
                ],
            )
        )
    return found


def _all_topics(ctx: RequestContext, offsets: list[FetchedOffset]) -> list[_TopicOffsets]:
    found: dict[str, _TopicOffsets] = {}
    for offset in offsets:
        if offset.topic not in found:
            topic = ctx.image.topics.get(offset.topic)
            found[offset.topic] = _TopicOffsets(offset.topic, NO_TOPIC_ID if topic is None else topic.topic_id, [])
        found[offset.topic].partitions.append(offset)
    return [
        each
        for each in found.values()
        if ctx.authorized(Operation.DESCRIBE, AclResourceType.TOPIC, each.topic)
        and (ctx.version < _TOPIC_IDS_FROM or each.topic_id != NO_TOPIC_ID)
    ]


def _single_group_response(
    ctx: RequestContext, group: _Group, outcome: list[FetchedOffset] | ProposalFailed
) -> OffsetFetchResponse:
    error = outcome.code if isinstance(outcome, ProposalFailed) else ErrorCode.NONE
    return OffsetFetchResponse(
        throttle_time_ms=ctx.throttle_time_ms,
        error_code=error,
        topics=tuple(
            OffsetFetchResponseTopic(
                name=each.topic,
                partitions=tuple(OffsetFetchResponsePartition(**_partition(one)) for one in each.partitions),
            )
            for each in _topic_offsets(ctx, group, outcome)
            if error is ErrorCode.NONE or ctx.version < _GROUP_ERROR_FROM
        ),
    )


def _response_group(
    ctx: RequestContext, group: _Group, outcome: list[FetchedOffset] | ProposalFailed | ErrorCode
) -> OffsetFetchResponseGroup:
    if isinstance(outcome, ErrorCode):
        outcome = ProposalFailed(outcome, "")
    if isinstance(outcome, ProposalFailed):
        return OffsetFetchResponseGroup(group_id=group.group_id, error_code=outcome.code)
    return OffsetFetchResponseGroup(
        group_id=group.group_id,
        topics=tuple(
            OffsetFetchResponseGroupTopic(
                name=each.topic,
                topic_id=each.topic_id,
                partitions=tuple(OffsetFetchResponseGroupPartition(**_partition(one)) for one in each.partitions),
            )
            for each in _topic_offsets(ctx, group, outcome)
        ),
    )


def _partition(fetched: FetchedOffset) -> dict[str, Any]:
    committed = fetched.committed
    return {
        "partition_index": fetched.partition,
        "committed_offset": NO_OFFSET if committed is None else committed.offset,
        "committed_leader_epoch": -1 if committed is None else committed.leader_epoch,
        "metadata": "" if committed is None else committed.metadata,
        "error_code": fetched.error,
    }
