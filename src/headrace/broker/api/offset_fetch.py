"""OffsetFetch (9): how far groups had read; one group up to version 7, several from version 8 on."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from headrace.broker.api.context import RequestContext
from headrace.broker.api.support.coordinators import ask_each, group_error, known, topic_name, when_known
from headrace.broker.cluster.proposal import Proposal, ProposalFailed
from headrace.core.coordination.machine import Now, Ticket
from headrace.core.groups.commands import FetchedOffset, Membership
from headrace.core.groups.coordinator import GroupCoordinator
from headrace.core.groups.tables import GroupDecision
from headrace.model.access import Operation, ResourceType
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
GROUPS_MAX = 10_000
_SEVERAL_GROUPS_FROM = 8
_TOPIC_IDS_FROM = 10
_GROUP_ERROR_FROM = 2


class _Wanted(NamedTuple):
    """A topic of the request: as it was named, the name it has here, and why it is refused, if it is."""

    name: str
    topic_id: bytes
    partitions: tuple[int, ...]
    error: ErrorCode


class _Question(NamedTuple):
    group_id: str
    topics: list[_Wanted] | None
    """None asks for all."""
    member: Membership | None
    """As whom it is asked, where the request says so."""
    require_stable: bool


class _Found(NamedTuple):
    topic: str
    topic_id: bytes
    partitions: list[FetchedOffset]


def handle(request: OffsetFetchRequest, ctx: RequestContext) -> object:
    if ctx.version < _SEVERAL_GROUPS_FROM:
        question = _question(ctx, request.group_id, request.topics, None, request.require_stable)
        return when_known(ctx, _ask(ctx, question), lambda outcome: _one_group(ctx, question, outcome))
    questions = [
        _question(ctx, group.group_id, group.topics, _member(group), request.require_stable)
        for group in _each_once(request.groups)[:GROUPS_MAX]
    ]

    def told(
        question: _Question, outcome: list[FetchedOffset] | ProposalFailed | ErrorCode
    ) -> OffsetFetchResponseGroup:
        return _group(ctx, question, outcome)

    def respond(groups: list[OffsetFetchResponseGroup]) -> OffsetFetchResponse:
        return OffsetFetchResponse(throttle_time_ms=ctx.throttle_time_ms, groups=tuple(groups))

    return ask_each(ctx, questions, lambda question: _ask(ctx, question), told, respond)


def _each_once(groups: Sequence[OffsetFetchRequestGroup]) -> list[OffsetFetchRequestGroup]:
    """All offsets of a group are told once: what is named is paid for by its bytes, all is not."""
    entire: set[str] = set()
    found = []
    for group in groups:
        if group.topics is None and group.group_id in entire:
            continue
        if group.topics is None:
            entire.add(group.group_id)
        found.append(group)
    return found


def _question(
    ctx: RequestContext,
    group_id: str,
    topics: Iterable[OffsetFetchRequestTopic | OffsetFetchRequestGroupTopic] | None,
    member: Membership | None,
    require_stable: bool,
) -> _Question:
    if topics is None:
        return _Question(group_id, None, member, require_stable)
    wanted = []
    for topic in topics:
        topic_id = topic.topic_id if isinstance(topic, OffsetFetchRequestGroupTopic) else NO_TOPIC_ID
        name = topic_name(ctx, topic.name, topic_id)
        error = ErrorCode.NONE
        if name is None:
            error = ErrorCode.UNKNOWN_TOPIC_ID
        elif not ctx.authorized(Operation.DESCRIBE, ResourceType.TOPIC, name):
            error = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        wanted.append(_Wanted(name or "", topic_id, topic.partition_indexes, error))
    return _Question(group_id, wanted, member, require_stable)


def _member(group: OffsetFetchRequestGroup) -> Membership | None:
    if group.member_id is None and group.member_epoch < 0:
        return None
    member_id = group.member_id or ""
    return Membership(group=group.group_id, member_id=member_id, instance_id=None, generation=group.member_epoch)


def _ask(ctx: RequestContext, question: _Question) -> Proposal[Any]:
    error = group_error(ctx, Operation.DESCRIBE, question.group_id)
    if error is not ErrorCode.NONE:
        return known(ProposalFailed(error, ""))
    wanted = None
    if question.topics is not None:
        wanted = [
            (topic.name, partition)
            for topic in question.topics
            if topic.error is ErrorCode.NONE
            for partition in topic.partitions
        ]

    def decide(groups: GroupCoordinator, ticket: Ticket, now: Now) -> GroupDecision:
        return groups.fetch_offsets(
            question.group_id, wanted, ticket, now, question.member, require_stable=question.require_stable
        )

    return ctx.groups.propose(question.group_id, decide)


def _found(ctx: RequestContext, question: _Question, outcome: list[FetchedOffset] | ProposalFailed) -> list[_Found]:
    """By topic, in the order of the request; what is refused beside what is found."""
    if question.topics is None:
        return [] if isinstance(outcome, ProposalFailed) else _all_topics(ctx, outcome)
    offsets = iter(() if isinstance(outcome, ProposalFailed) else outcome)
    found = []
    for name, topic_id, partitions, topic_error in question.topics:
        error = outcome.code if isinstance(outcome, ProposalFailed) else topic_error
        found.append(
            _Found(
                name,
                topic_id,
                [
                    next(offsets) if error is ErrorCode.NONE else FetchedOffset(name, partition, None, error)
                    for partition in partitions
                ],
            )
        )
    return found


def _all_topics(ctx: RequestContext, offsets: list[FetchedOffset]) -> list[_Found]:
    found: dict[str, _Found] = {}
    for offset in offsets:
        if offset.topic not in found:
            topic = ctx.image.topics.get(offset.topic)
            found[offset.topic] = _Found(offset.topic, NO_TOPIC_ID if topic is None else topic.topic_id, [])
        found[offset.topic].partitions.append(offset)
    return [
        each
        for each in found.values()
        if ctx.authorized(Operation.DESCRIBE, ResourceType.TOPIC, each.topic)
        and (ctx.version < _TOPIC_IDS_FROM or each.topic_id != NO_TOPIC_ID)
    ]


def _one_group(
    ctx: RequestContext, question: _Question, outcome: list[FetchedOffset] | ProposalFailed
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
            for each in _found(ctx, question, outcome)
            if error is ErrorCode.NONE or ctx.version < _GROUP_ERROR_FROM
        ),
    )


def _group(
    ctx: RequestContext, question: _Question, outcome: list[FetchedOffset] | ProposalFailed | ErrorCode
) -> OffsetFetchResponseGroup:
    if isinstance(outcome, ErrorCode):
        outcome = ProposalFailed(outcome, "")
    if isinstance(outcome, ProposalFailed):
        return OffsetFetchResponseGroup(group_id=question.group_id, error_code=outcome.code)
    return OffsetFetchResponseGroup(
        group_id=question.group_id,
        topics=tuple(
            OffsetFetchResponseGroupTopic(
                name=each.topic,
                topic_id=each.topic_id,
                partitions=tuple(OffsetFetchResponseGroupPartition(**_partition(one)) for one in each.partitions),
            )
            for each in _found(ctx, question, outcome)
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
