"""OffsetCommit (8): how far a group, or a consumer without one, has read."""

from headrace.broker.api.context import RequestContext
from headrace.broker.api.offset_commit_shapes import CommitShapes, commit_response
from headrace.broker.api.offset_places import OffsetPlaces
from headrace.broker.api.support.coordinators import ask_group, group_error, topic_name
from headrace.broker.cluster.proposal import ProposalFailed
from headrace.core.groups.commands import Commit, Membership
from headrace.model.access import Operation
from headrace.model.errors import ErrorCode
from headrace.wire.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse

MEMBER_EPOCHS_FROM = 9


def handle(request: OffsetCommitRequest, ctx: RequestContext) -> object:
    places = OffsetPlaces(ctx)
    for topic in request.topics:
        places.add_topic(topic_name(ctx, topic.name, topic.topic_id), topic.partitions)

    def respond(outcome: list[ErrorCode] | ProposalFailed) -> OffsetCommitResponse:
        return commit_response(request, places.errors(outcome), ctx.throttle_time_ms)

    error = group_error(ctx, Operation.READ, request.group_id)
    if error is not ErrorCode.NONE:
        return respond(ProposalFailed(error, ""))
    if not places.offsets:
        return respond([])
    knows_epochs = ctx.version >= MEMBER_EPOCHS_FROM
    command = Commit(
        member=Membership(
            group=request.group_id,
            member_id=request.member_id,
            instance_id=request.group_instance_id,
            generation=request.generation_id_or_member_epoch,
        ),
        offsets=tuple(places.offsets),
        retention_ms=request.retention_time_ms,
        unknown_group_error=ErrorCode.GROUP_ID_NOT_FOUND if knows_epochs else ErrorCode.ILLEGAL_GENERATION,
        epochs_understood=knows_epochs,
    )
    if len(places.offsets) == sum(len(topic.partitions) for topic in request.topics):
        ctx.connection.commits = ctx.connection.commits or CommitShapes()
        ctx.connection.commits.note(request, command)
    return ask_group(ctx, request.group_id, lambda groups, ticket, now: groups.commit(command, ticket, now), respond)
