"""ListGroups (16): lists the groups of this broker, filtered by state and type, a slice of groups per turn."""

from headrace.broker.api.context import Parked, RequestContext
from headrace.broker.cluster.proposal import ProposalFailed
from headrace.core.groups.commands import GroupListing
from headrace.model.access import CLUSTER_NAME, AclResourceType, Operation
from headrace.model.errors import ErrorCode
from headrace.wire.messages.list_groups import ListGroupsRequest, ListGroupsResponse, ListGroupsResponseGroup


def handle(request: ListGroupsRequest, ctx: RequestContext) -> ListGroupsResponse | Parked:
    if ctx.groups.is_loading:
        return ListGroupsResponse(
            throttle_time_ms=ctx.throttle_time_ms, error_code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        )
    listing = _Listing(request, ctx)
    listing.step()
    return listing.parked


class _Listing:
    """Lists one slice after another."""

    def __init__(self, request: ListGroupsRequest, ctx: RequestContext) -> None:
        self._ctx = ctx
        self._states = {state.lower() for state in request.states_filter}
        self._types = {kind.lower() for kind in request.types_filter}
        self._sees_all = ctx.authorized(Operation.DESCRIBE, AclResourceType.CLUSTER, CLUSTER_NAME)
        self._slices = iter(list(ctx.groups.slices()))
        self._found: list[ListGroupsResponseGroup] = []
        self.parked = ctx.park()

    def step(self) -> None:
        if self.parked.abandoned():
            return
        for part in self._slices:
            self._ctx.groups.list_groups(part).then(self._listed)
            return
        self._end(ErrorCode.NONE)

    def _listed(self, outcome: list[GroupListing] | ProposalFailed) -> None:
        if isinstance(outcome, ProposalFailed):
            self._end(outcome.code)
            return
        self._found.extend(
            ListGroupsResponseGroup(
                group_id=group.group,
                protocol_type=group.protocol_type,
                group_state=group.state,
                group_type=group.type,
            )
            for group in outcome
            if self._is_wanted(group)
        )
        self._ctx.next_turn(self.step)

    def _is_wanted(self, group: GroupListing) -> bool:
        if self._states and group.state.lower() not in self._states:
            return False
        if self._types and group.type.lower() not in self._types:
            return False
        return self._sees_all or self._ctx.authorized(Operation.DESCRIBE, AclResourceType.GROUP, group.group)

    def _end(self, error: ErrorCode) -> None:
        groups = tuple(self._found) if error is ErrorCode.NONE else ()
        self.parked.complete(
            ListGroupsResponse(throttle_time_ms=self._ctx.throttle_time_ms, error_code=error, groups=groups)
        )
