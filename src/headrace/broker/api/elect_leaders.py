"""ElectLeaders (43): elects the preferred leaders of partitions, or any live replicas of those without a leader."""

from collections.abc import Sequence

from headrace.broker.api.context import Parked, RequestContext
from headrace.broker.api.support.authorization import cluster_refusal
from headrace.broker.api.support.proposals import park_until_committed
from headrace.broker.cluster.proposal import ProposalFailed
from headrace.core.controller.elections import ElectionResult
from headrace.core.controller.partition_changes import Election
from headrace.model.errors import ErrorCode
from headrace.wire.messages.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    ElectLeadersResponsePartition,
    ElectLeadersResponseTopic,
)

_ELECTIONS = {0: Election.PREFERRED, 1: Election.UNCLEAN}


def handle(request: ElectLeadersRequest, ctx: RequestContext) -> ElectLeadersResponse | Parked:
    wanted = request.topic_partitions
    named = None if wanted is None else [(topic.topic, topic.partitions) for topic in wanted]
    refusal = cluster_refusal(ctx, "leaders are elected")
    if refusal is not None:
        return _failed(ctx, named, ErrorCode.CLUSTER_AUTHORIZATION_FAILED, refusal)
    election = _ELECTIONS.get(request.election_type)
    if election is None:
        message = f"election type {request.election_type} is unknown: use preferred (0) or unclean (1)"
        return _failed(ctx, named, ErrorCode.INVALID_REQUEST, message)

    def respond(outcome: tuple[ElectionResult, ...] | ProposalFailed) -> ElectLeadersResponse:
        if isinstance(outcome, ProposalFailed):
            return _failed(ctx, named, outcome.code, outcome.message)
        return _response(ctx, outcome)

    proposal = ctx.controller.elect_leaders(election, named)
    return park_until_committed(ctx, proposal, respond, timeout_ms=request.timeout_ms)


def _response(
    ctx: RequestContext, results: Sequence[ElectionResult], code: ErrorCode = ErrorCode.NONE
) -> ElectLeadersResponse:
    by_topic: dict[str, list[ElectLeadersResponsePartition]] = {}
    for result in results:
        by_topic.setdefault(result.topic, []).append(
            ElectLeadersResponsePartition(
                partition_id=result.partition, error_code=result.error, error_message=result.message
            )
        )
    return ElectLeadersResponse(
        throttle_time_ms=ctx.throttle_time_ms,
        error_code=code,
        replica_election_results=tuple(
            ElectLeadersResponseTopic(topic=topic, partition_result=tuple(partitions))
            for topic, partitions in by_topic.items()
        ),
    )


def _failed(
    ctx: RequestContext, named: Sequence[tuple[str, Sequence[int]]] | None, code: ErrorCode, message: str
) -> ElectLeadersResponse:
    """Give the error to the whole request and, for version 0, to each partition that it names."""
    results = [ElectionResult(topic, index, code, message) for topic, partitions in named or () for index in partitions]
    return _response(ctx, results, code)
