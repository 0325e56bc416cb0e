"""AddRaftVoter (80): makes an observer of the metadata quorum a voter.

If it cannot yet, because it has not caught up, the active controller may do so later by itself.
"""

from functools import partial

from headrace.broker.api.context import Parked, RequestContext
from headrace.broker.api.support.voter_changes import park_until_changed, refusal_of, voter_key, with_promotion
from headrace.model.errors import ErrorCode
from headrace.wire.messages.add_raft_voter import AddRaftVoterRequest, AddRaftVoterResponse


def handle(request: AddRaftVoterRequest, ctx: RequestContext) -> AddRaftVoterResponse | Parked:
    def make_response(code: ErrorCode, message: str | None) -> AddRaftVoterResponse:
        return AddRaftVoterResponse(throttle_time_ms=ctx.throttle_time_ms, error_code=code, error_message=message)

    refusal = refusal_of(ctx, request.cluster_id)
    if refusal is not None:
        return make_response(*refusal)
    voter = voter_key(request.voter_id, request.voter_directory_id)
    add = with_promotion(ctx, voter, partial(ctx.controller.quorum.add_voter, voter), allowed=True)
    return park_until_changed(ctx, add, make_response)
