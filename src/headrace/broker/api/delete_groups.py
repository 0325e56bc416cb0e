"""DeleteGroups (42): forget groups without members, and their offsets."""

from typing import Any

from headrace.broker.api.context import RequestContext
from headrace.broker.api.coordinating import ask_each_group, when_known
from headrace.broker.cluster.proposal import ProposalFailed
from headrace.broker.coordinators.groups import GroupDecide
from headrace.core.coordination.machine import Now, Ticket
from headrace.core.groups.coordinator import GroupCoordinator
from headrace.core.groups.tables import GroupDecision
from headrace.model.access import Operation
from headrace.wire.messages.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse, DeleteGroupsResponseResult


def handle(request: DeleteGroupsRequest, ctx: RequestContext) -> object:
    names = tuple(dict.fromkeys(request.groups_names))

    def respond(outcomes: list[Any]) -> DeleteGroupsResponse:
        return DeleteGroupsResponse(
            throttle_time_ms=ctx.throttle_time_ms,
            results=tuple(
                DeleteGroupsResponseResult(
                    group_id=name, error_code=outcome.code if isinstance(outcome, ProposalFailed) else outcome
                )
                for name, outcome in zip(names, outcomes, strict=True)
            ),
        )

    return when_known(ctx, ask_each_group(ctx, Operation.DELETE, names, _deleting), respond)


def _deleting(name: str) -> GroupDecide:
    def decide(groups: GroupCoordinator, ticket: Ticket, now: Now) -> GroupDecision:
        return groups.delete_group(name, ticket, now)

    return decide
