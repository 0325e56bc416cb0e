"""AddOffsetsToTxn (25): adds the partition that stores a group's offsets to a transaction."""

from headrace.broker.api.context import Parked, RequestContext
from headrace.broker.api.support.coordinators import group_error
from headrace.broker.api.support.transactions import PLAIN_VERSION, error_for_version, error_in, id_error
from headrace.broker.coordinators.groups import OFFSETS_TOPIC
from headrace.core.coordination.machine import PendingProducer
from headrace.model.access import Operation
from headrace.model.errors import ErrorCode
from headrace.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse

_FENCED_FROM = 2


def handle(request: AddOffsetsToTxnRequest, ctx: RequestContext) -> AddOffsetsToTxnResponse | Parked:
    error = id_error(ctx, request.transactional_id) or group_error(ctx, Operation.READ, request.group_id)
    if error is not ErrorCode.NONE:
        return _response(ctx, error)
    parked = ctx.park()
    topic = ctx.groups.topic

    def add() -> None:
        partition = topic.partition_of(request.group_id)
        if partition is None:  # the topic could not be created
            parked.complete(_response(ctx, ErrorCode.COORDINATOR_NOT_AVAILABLE))
            return
        producer = PendingProducer(request.producer_id, request.producer_epoch)
        ctx.transactions.add_partitions(
            request.transactional_id, producer, [(OFFSETS_TOPIC, partition)], PLAIN_VERSION
        ).then(lambda outcome: parked.complete(_response(ctx, error_in(outcome))))

    if topic.exists():
        add()
    else:
        topic.when_created(add)
    return parked


def _response(ctx: RequestContext, error: ErrorCode) -> AddOffsetsToTxnResponse:
    return AddOffsetsToTxnResponse(
        throttle_time_ms=ctx.throttle_time_ms,
        error_code=error_for_version(error, ctx.version, fenced_from=_FENCED_FROM),
    )
