"""DeleteGroups (42): deletes groups without members, and their committed offsets."""

from headrace.broker.api.context import RequestContext
from headrace.broker.api.support.coordinators import ask_each_group
from headrace.broker.cluster.proposal import ProposalFailed
from headrace.model.access import Operation
from headrace.model.errors import ErrorCode
from headrace.wire.messages.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse, DeleteGroupsResponseResult


def handle(request: DeleteGroupsRequest, ctx: RequestContext) -> object:
    def result(name: str, outcome: ErrorCode | ProposalFailed) -> DeleteGroupsResponseResult:
        error = outcome.code if isinstance(outcome, ProposalFailed) else outcome
        return DeleteGroupsResponseResult(group_id=name, error_code=error)

    def respond(results: list[DeleteGroupsResponseResult]) -> DeleteGroupsResponse:
        return DeleteGroupsResponse(throttle_time_ms=ctx.throttle_time_ms, results=tuple(results))

    names = tuple(dict.fromkeys(request.groups_names))
    return ask_each_group(ctx, Operation.DELETE, names, ctx.groups.delete_group, result, respond)
