"""RemoveRaftVoter (81): makes a voter of the metadata quorum an observer, or forgets one that is gone.

The node stays an observer, also after a restart and under another controller, until AddRaftVoter names it.
"""

from functools import partial

from headrace.broker.api.context import Parked, RequestContext
from headrace.broker.api.support.voter_changes import park_until_changed, refusal_of, voter_key, with_promotion
from headrace.model.errors import ErrorCode
from headrace.wire.messages.remove_raft_voter import RemoveRaftVoterRequest, RemoveRaftVoterResponse


def handle(request: RemoveRaftVoterRequest, ctx: RequestContext) -> RemoveRaftVoterResponse | Parked:
    def make_response(code: ErrorCode, message: str | None) -> RemoveRaftVoterResponse:
        return RemoveRaftVoterResponse(throttle_time_ms=ctx.throttle_time_ms, error_code=code, error_message=message)

    refusal = refusal_of(ctx, request.cluster_id)
    if refusal is not None:
        return make_response(*refusal)
    voter = voter_key(request.voter_id, request.voter_directory_id)
    quorum = ctx.controller.quorum
    remove = partial(quorum.remove_voter, voter)
    is_refused = voter not in quorum.voters or len(quorum.voters) == 1
    change = remove if is_refused else with_promotion(ctx, voter, remove, allowed=False)
    return park_until_changed(ctx, change, make_response)
