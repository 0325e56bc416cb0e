"""WriteTxnMarkers (27): a transaction coordinator has partition leaders write the markers that end transactions.

A request is answered when all of its markers are committed. The coordinator sends a marker again that its partition
cannot take now. Long requests are processed over several turns. The response has no field for a message, so the reason
of a refusal is in the broker's log.
"""

from collections.abc import Mapping

from headrace.broker.api.context import Parked, RequestContext
from headrace.broker.api.support.authorization import stranger_refusal
from headrace.broker.marker_writes import MarkerFields, MarkerWrites, Target
from headrace.model.access import CLUSTER_NAME, AclResourceType, Operation
from headrace.model.errors import ErrorCode
from headrace.wire.messages.write_txn_markers import (
    WriteTxnMarkersRequest,
    WriteTxnMarkersRequestMarker,
    WriteTxnMarkersResponse,
    WriteTxnMarkersResponseMarker,
    WriteTxnMarkersResponsePartition,
    WriteTxnMarkersResponseTopic,
)

COMMIT_WAIT_MS_MAX = 30_000
"""Wait of a request for the commit of its markers, like request.timeout.ms of Kafka's brokers."""


def handle(request: WriteTxnMarkersRequest, ctx: RequestContext) -> WriteTxnMarkersResponse | Parked:
    fields = [_fields(marker) for marker in request.markers]
    markers: dict[Target, MarkerFields] = {
        (number, topic.name, index): fields[number]
        for number, marker in enumerate(request.markers)
        for topic in marker.topics
        for index in topic.partition_indexes
    }
    if not _is_allowed(ctx):
        return _response(request, dict.fromkeys(markers, ErrorCode.CLUSTER_AUTHORIZATION_FAILED))
    if ctx.image.version < request.metadata_offset:
        # This broker may still lead a former topic of the same name: the coordinator tries again.
        return _response(request, dict.fromkeys(markers, ErrorCode.NOT_LEADER_OR_FOLLOWER))
    writes = MarkerWrites(markers, partitions=ctx.partition_admin, clock=ctx.clock, timers=ctx.timers)
    writes.step()
    if writes.is_done:
        return _response(request, writes.errors)

    def timed_out() -> WriteTxnMarkersResponse:
        writes.give_up(ErrorCode.REQUEST_TIMED_OUT)
        return _response(request, writes.errors)

    parked = ctx.park(timeout_ms=COMMIT_WAIT_MS_MAX, on_timeout=timed_out)
    writes.on_done = lambda: parked.complete(_response(request, writes.errors))
    return parked


def _is_allowed(ctx: RequestContext) -> bool:
    allowed = any(
        ctx.authorized(operation, AclResourceType.CLUSTER, CLUSTER_NAME)
        for operation in (Operation.ALTER, Operation.CLUSTER_ACTION)
    )
    return allowed and stranger_refusal(ctx, "markers of transactions are written") is None


def _fields(marker: WriteTxnMarkersRequestMarker) -> MarkerFields:
    return MarkerFields(
        producer_id=marker.producer_id,
        producer_epoch=marker.producer_epoch,
        commit=marker.transaction_result,
        coordinator_epoch=marker.coordinator_epoch,
        transaction_version=marker.transaction_version,
        sync=marker.sync,
    )


def _response(request: WriteTxnMarkersRequest, errors: Mapping[Target, ErrorCode]) -> WriteTxnMarkersResponse:
    markers = tuple(
        WriteTxnMarkersResponseMarker(
            producer_id=marker.producer_id,
            topics=tuple(
                WriteTxnMarkersResponseTopic(
                    name=topic.name,
                    partitions=tuple(
                        WriteTxnMarkersResponsePartition(
                            partition_index=index, error_code=errors[number, topic.name, index]
                        )
                        for index in topic.partition_indexes
                    ),
                )
                for topic in marker.topics
            ),
        )
        for number, marker in enumerate(request.markers)
    )
    return WriteTxnMarkersResponse(markers=markers)
