"""DeleteGroups (42): forget groups without members, and their offsets."""

from headrace.broker.api.context import RequestContext
from headrace.broker.api.support.coordinators import ask_each_group
from headrace.broker.cluster.proposal import ProposalFailed
from headrace.broker.coordinators.groups import GroupDecide
from headrace.core.coordination.machine import Now, Ticket
from headrace.core.groups.coordinator import GroupCoordinator
from headrace.core.groups.tables import GroupDecision
from headrace.model.access import Operation
from headrace.model.errors import ErrorCode
from headrace.wire.messages.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse, DeleteGroupsResponseResult


def handle(request: DeleteGroupsRequest, ctx: RequestContext) -> object:
    names = tuple(dict.fromkeys(request.groups_names))

    def told(name: str, outcome: ErrorCode | ProposalFailed) -> DeleteGroupsResponseResult:
        error = outcome.code if isinstance(outcome, ProposalFailed) else outcome
        return DeleteGroupsResponseResult(group_id=name, error_code=error)

    def respond(results: list[DeleteGroupsResponseResult]) -> DeleteGroupsResponse:
        return DeleteGroupsResponse(throttle_time_ms=ctx.throttle_time_ms, results=tuple(results))

    return ask_each_group(ctx, Operation.DELETE, names, _deleting, told, respond)


def _deleting(name: str) -> GroupDecide:
    def decide(groups: GroupCoordinator, ticket: Ticket, now: Now) -> GroupDecision:
        return groups.delete_group(name, ticket, now)

    return decide
