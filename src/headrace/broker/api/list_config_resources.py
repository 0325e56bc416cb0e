"""ListConfigResources (74): the names of all resources that have configs, by type."""

from collections.abc import Iterable

from headrace.broker.api.context import RequestContext
from headrace.broker.api.support.authorization import GROUP_CONFIGS
from headrace.core.controller.records import ResourceKind
from headrace.model.access import CLUSTER_NAME, AclResourceType, Operation
from headrace.model.errors import ErrorCode
from headrace.wire.messages.list_config_resources import (
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
    ListConfigResourcesResponseConfigResource,
)

BROKER_LOGGER = 8
CLIENT_METRICS = 16
_KINDS = (ResourceKind.TOPIC, ResourceKind.BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP_CONFIGS)
_KINDS_FROM = 1
"""Version 0 lists client metrics alone, and there are none."""


def handle(request: ListConfigResourcesRequest, ctx: RequestContext) -> ListConfigResourcesResponse:
    if not ctx.authorized(Operation.DESCRIBE_CONFIGS, AclResourceType.CLUSTER, CLUSTER_NAME):
        return _failed(ctx, ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    kinds = request.resource_types if ctx.version >= _KINDS_FROM else (CLIENT_METRICS,)
    if any(kind not in _KINDS for kind in kinds):
        return _failed(ctx, ErrorCode.UNSUPPORTED_VERSION)
    return ListConfigResourcesResponse(
        throttle_time_ms=ctx.throttle_time_ms,
        config_resources=tuple(
            ListConfigResourcesResponseConfigResource(resource_name=name, resource_type=kind)
            for kind in dict.fromkeys(kinds or _KINDS)
            for name in _names(ctx, kind)
        ),
    )


def _names(ctx: RequestContext, kind: int) -> Iterable[str]:
    if kind == ResourceKind.TOPIC:
        return ctx.image.topics
    if kind in (ResourceKind.BROKER, BROKER_LOGGER):
        return (str(node_id) for node_id in ctx.image.brokers)
    return ()


def _failed(ctx: RequestContext, error: ErrorCode) -> ListConfigResourcesResponse:
    return ListConfigResourcesResponse(throttle_time_ms=ctx.throttle_time_ms, error_code=error)
