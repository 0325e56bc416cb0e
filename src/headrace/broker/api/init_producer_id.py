"""InitProducerId (22): an id for an idempotent producer. Transactions are not served yet."""

from headrace.broker.api.committing import COMMIT_WAIT_MS
from headrace.broker.api.context import Parked, RequestContext
from headrace.broker.cluster.proposal import ProposalFailed
from headrace.model.access import CLUSTER_NAME, Operation, ResourceType
from headrace.model.errors import ErrorCode
from headrace.model.ids import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, ProducerId
from headrace.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse

FIRST_EPOCH = 0


def handle(request: InitProducerIdRequest, ctx: RequestContext) -> InitProducerIdResponse | Parked:
    error = _refusal(request, ctx)
    if error is not ErrorCode.NONE:
        return _failed(ctx, error)
    producer_ids = ctx.broker.producer_ids
    # Without a transactional id there is no state to resume, so whoever asks gets a fresh id (KIP-360).
    taken = producer_ids.take()
    if taken is not None:
        return _given(ctx, taken)
    if producer_ids.overloaded:
        return _failed(ctx, ErrorCode.COORDINATOR_NOT_AVAILABLE)
    parked = ctx.park(timeout_ms=COMMIT_WAIT_MS, on_timeout=lambda: _failed(ctx, ErrorCode.REQUEST_TIMED_OUT))

    def given(outcome: ProducerId | ProposalFailed) -> None:
        parked.complete(_failed(ctx, outcome.code) if isinstance(outcome, ProposalFailed) else _given(ctx, outcome))

    producer_ids.wait(given)
    return parked


def _refusal(request: InitProducerIdRequest, ctx: RequestContext) -> ErrorCode:
    has_id, has_epoch = request.producer_id != NO_PRODUCER_ID, request.producer_epoch != NO_PRODUCER_EPOCH
    if has_id != has_epoch or request.transactional_id == "":
        return ErrorCode.INVALID_REQUEST
    if request.transactional_id is not None:
        allowed = ctx.authorized(Operation.WRITE, ResourceType.TRANSACTIONAL_ID, request.transactional_id)
        return ErrorCode.COORDINATOR_NOT_AVAILABLE if allowed else ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    if not ctx.authorized(Operation.IDEMPOTENT_WRITE, ResourceType.CLUSTER, CLUSTER_NAME):
        return ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    return ErrorCode.NONE


def _given(ctx: RequestContext, producer_id: ProducerId) -> InitProducerIdResponse:
    return InitProducerIdResponse(
        throttle_time_ms=ctx.throttle_time_ms, producer_id=producer_id, producer_epoch=FIRST_EPOCH
    )


def _failed(ctx: RequestContext, error: ErrorCode) -> InitProducerIdResponse:
    return InitProducerIdResponse(
        throttle_time_ms=ctx.throttle_time_ms,
        error_code=error,
        producer_id=NO_PRODUCER_ID,
        producer_epoch=NO_PRODUCER_EPOCH,
    )
