"""EndTxn (26): commits or aborts a transaction; from version 5 the response has the epoch of the next one."""

from headrace.broker.api.context import RequestContext
from headrace.broker.api.support.coordinators import when_known
from headrace.broker.api.support.transactions import BUMPING_VERSION, PLAIN_VERSION, error_for_version, id_error
from headrace.broker.cluster.proposal import ProposalFailed
from headrace.core.coordination.machine import PendingProducer
from headrace.core.transactions.commands import EndTransaction, ProducerResult
from headrace.model.errors import ErrorCode
from headrace.wire.messages.end_txn import EndTxnRequest, EndTxnResponse

_FENCED_FROM = 2
_BUMPING_FROM = 5


def handle(request: EndTxnRequest, ctx: RequestContext) -> object:
    def respond(outcome: ProducerResult | ProposalFailed) -> EndTxnResponse:
        result = ProducerResult(outcome.code) if isinstance(outcome, ProposalFailed) else outcome
        return EndTxnResponse(
            throttle_time_ms=ctx.throttle_time_ms,
            error_code=error_for_version(result.error, ctx.version, fenced_from=_FENCED_FROM),
            producer_id=result.producer.producer_id,
            producer_epoch=result.producer.producer_epoch,
        )

    error = id_error(ctx, request.transactional_id)
    if error is not ErrorCode.NONE:
        return respond(ProducerResult(error))
    command = EndTransaction(
        transactional_id=request.transactional_id,
        producer=PendingProducer(request.producer_id, request.producer_epoch),
        commit=request.committed,
        client_version=BUMPING_VERSION if ctx.version >= _BUMPING_FROM else PLAIN_VERSION,
    )
    return when_known(ctx, ctx.transactions.end(command), respond)
