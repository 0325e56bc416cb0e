"""OffsetCommit (8): commits offsets for a group, or for a consumer that assigns partitions to itself."""

from headrace.broker.api.context import RequestContext
from headrace.broker.api.offset_commit_templates import CommitTemplates, commit_response
from headrace.broker.api.support.commit_partitions import CommitPartitions
from headrace.broker.api.support.coordinators import group_error, topic_name, when_known
from headrace.broker.cluster.proposal import ProposalFailed
from headrace.core.groups.commands import Commit, MemberClaim
from headrace.model.access import Operation
from headrace.model.errors import ErrorCode
from headrace.wire.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse

MEMBER_EPOCHS_FROM = 9


def handle(request: OffsetCommitRequest, ctx: RequestContext) -> object:
    partitions = CommitPartitions(ctx)
    for topic in request.topics:
        partitions.add_topic(topic_name(ctx, topic.name, topic.topic_id), topic.partitions)

    def respond(outcome: list[ErrorCode] | ProposalFailed) -> OffsetCommitResponse:
        return commit_response(request, partitions.errors(outcome), ctx.throttle_time_ms)

    error = group_error(ctx, Operation.READ, request.group_id)
    if error is not ErrorCode.NONE:
        partitions.refuse(error)
    if not partitions.offsets:
        return respond([])
    knows_epochs = ctx.version >= MEMBER_EPOCHS_FROM
    command = Commit(
        member=MemberClaim(
            group=request.group_id,
            member_id=request.member_id,
            instance_id=request.group_instance_id,
            generation=request.generation_id_or_member_epoch,
        ),
        offsets=tuple(partitions.offsets),
        retention_ms=request.retention_time_ms,
        unknown_group_error=ErrorCode.GROUP_ID_NOT_FOUND if knows_epochs else ErrorCode.ILLEGAL_GENERATION,
        epochs_understood=knows_epochs,
    )
    if len(partitions.offsets) == sum(len(topic.partitions) for topic in request.topics):
        ctx.connection.commits = ctx.connection.commits or CommitTemplates()
        ctx.connection.commits.note(request, command)
    return when_known(ctx, ctx.groups.commit_offsets(command), respond)
