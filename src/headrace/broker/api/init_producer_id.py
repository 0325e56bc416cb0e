"""InitProducerId (22): an id and an epoch for an idempotent or a transactional producer."""

from headrace.broker.api.context import Parked, RequestContext
from headrace.broker.api.support.coordinators import when_known
from headrace.broker.api.support.proposals import COMMIT_WAIT_MS
from headrace.broker.api.support.transactions import error_for_version, id_error
from headrace.broker.cluster.proposal import ProposalFailed
from headrace.core.coordination.machine import PendingProducer
from headrace.core.transactions.commands import InitProducer, ProducerResult
from headrace.model.access import CLUSTER_NAME, AclResourceType, Operation
from headrace.model.errors import ErrorCode
from headrace.model.ids import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, ProducerId
from headrace.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse

FIRST_EPOCH = 0
_FENCED_FROM = 4


def handle(request: InitProducerIdRequest, ctx: RequestContext) -> object:
    has_id, has_epoch = request.producer_id != NO_PRODUCER_ID, request.producer_epoch != NO_PRODUCER_EPOCH
    if has_id != has_epoch:
        return _failed(ctx, ErrorCode.INVALID_REQUEST)
    if request.transactional_id is not None:
        return _transactional(request, request.transactional_id, ctx)
    if not _may_be_idempotent(ctx):
        return _failed(ctx, ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    return _idempotent(ctx)


def _may_be_idempotent(ctx: RequestContext) -> bool:
    """Return whether the client may write idempotently; a client that may write to a topic may (KIP-679)."""
    return ctx.authorized(Operation.IDEMPOTENT_WRITE, AclResourceType.CLUSTER, CLUSTER_NAME) or ctx.access.permits_some(
        ctx.principal, ctx.connection.peer_host, Operation.WRITE, AclResourceType.TOPIC
    )


def _transactional(request: InitProducerIdRequest, transactional_id: str, ctx: RequestContext) -> object:
    error = id_error(ctx, transactional_id)
    if error is not ErrorCode.NONE:
        return _failed(ctx, error)
    resumes = request.producer_id != NO_PRODUCER_ID
    command = InitProducer(
        transactional_id=transactional_id,
        timeout_ms=request.transaction_timeout_ms,
        expected=PendingProducer(request.producer_id, request.producer_epoch) if resumes else None,
    )

    def respond(outcome: ProducerResult | ProposalFailed) -> InitProducerIdResponse:
        if isinstance(outcome, ProposalFailed):
            return _failed(ctx, outcome.code)
        if outcome.error is not ErrorCode.NONE:
            return _failed(ctx, outcome.error)
        return _given(ctx, *outcome.producer)

    return when_known(ctx, ctx.transactions.init_producer(command), respond)


def _idempotent(ctx: RequestContext) -> InitProducerIdResponse | Parked:
    """Return a new id: without a transactional id there is no state to resume (KIP-360)."""
    producer_ids = ctx.producer_ids
    taken = producer_ids.take()
    if taken is not None:
        return _given(ctx, taken, FIRST_EPOCH)
    if producer_ids.overloaded:
        return _failed(ctx, ErrorCode.COORDINATOR_NOT_AVAILABLE)
    parked = ctx.park(timeout_ms=COMMIT_WAIT_MS, on_timeout=lambda: _failed(ctx, ErrorCode.REQUEST_TIMED_OUT))

    def given(outcome: ProducerId | ProposalFailed) -> None:
        if isinstance(outcome, ProposalFailed):
            parked.complete(_failed(ctx, outcome.code))
        else:
            parked.complete(_given(ctx, outcome, FIRST_EPOCH))

    producer_ids.wait(given)
    return parked


def _given(ctx: RequestContext, producer_id: int, producer_epoch: int) -> InitProducerIdResponse:
    return InitProducerIdResponse(
        throttle_time_ms=ctx.throttle_time_ms, producer_id=producer_id, producer_epoch=producer_epoch
    )


def _failed(ctx: RequestContext, error: ErrorCode) -> InitProducerIdResponse:
    return InitProducerIdResponse(
        throttle_time_ms=ctx.throttle_time_ms,
        error_code=error_for_version(error, ctx.version, fenced_from=_FENCED_FROM),
        producer_id=NO_PRODUCER_ID,
        producer_epoch=NO_PRODUCER_EPOCH,
    )
