"""DescribeCluster (60): the brokers of this listener, the controller and the cluster's id; fenced ones on request."""

from headrace.broker.api.context import RequestContext
from headrace.broker.api.support.authorization import cluster_operations
from headrace.core.controller.broker_image import BrokerImage
from headrace.model.errors import ErrorCode
from headrace.wire.messages.describe_cluster import (
    DescribeClusterRequest,
    DescribeClusterResponse,
    DescribeClusterResponseBroker,
)
from headrace.wire.metadata import NO_AUTHORIZED_OPERATIONS

BROKERS = 1
CONTROLLERS = 2


def handle(request: DescribeClusterRequest, ctx: RequestContext) -> DescribeClusterResponse:
    if request.endpoint_type != BROKERS:
        return _wrong_endpoint_type(request, ctx)
    operations = NO_AUTHORIZED_OPERATIONS
    if request.include_cluster_authorized_operations:
        operations = cluster_operations(ctx)
    return DescribeClusterResponse(
        throttle_time_ms=ctx.throttle_time_ms,
        cluster_id=ctx.cluster_id,
        controller_id=ctx.node_id,  # as in Metadata
        brokers=tuple(
            _described(broker, ctx.listener_name)
            for broker in ctx.image.brokers.values()
            if ctx.listener_name in broker.endpoints and (request.include_fenced_brokers or not broker.fenced)
        ),
        cluster_authorized_operations=operations,
    )


def _described(broker: BrokerImage, listener_name: str) -> DescribeClusterResponseBroker:
    endpoint = broker.endpoints[listener_name]
    return DescribeClusterResponseBroker(
        broker_id=broker.node_id,
        host=endpoint.host,
        port=endpoint.port,
        rack=broker.rack,
        is_fenced=broker.fenced,
    )


def _wrong_endpoint_type(request: DescribeClusterRequest, ctx: RequestContext) -> DescribeClusterResponse:
    if request.endpoint_type == CONTROLLERS:
        error, message = ErrorCode.MISMATCHED_ENDPOINT_TYPE, "this is a broker's listener: ask for brokers (1)"
    else:
        error, message = ErrorCode.UNSUPPORTED_ENDPOINT_TYPE, f"endpoint type {request.endpoint_type} is unknown"
    return DescribeClusterResponse(throttle_time_ms=ctx.throttle_time_ms, error_code=error, error_message=message)
