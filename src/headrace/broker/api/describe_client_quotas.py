"""DescribeClientQuotas (48): the quotas of the entities that a filter matches (KIP-546)."""

from collections.abc import Sequence

from headrace.broker.api.context import RequestContext
from headrace.core.quotas.filters import EntityFilter, FilterPart, FilterRefused
from headrace.model.access import CLUSTER_NAME, AclResourceType, Operation
from headrace.model.errors import ErrorCode
from headrace.wire.messages.describe_client_quotas import (
    DescribeClientQuotasRequest,
    DescribeClientQuotasRequestComponent,
    DescribeClientQuotasResponse,
    DescribeClientQuotasResponseEntity,
    DescribeClientQuotasResponseEntry,
    DescribeClientQuotasResponseValue,
)


def handle(request: DescribeClientQuotasRequest, ctx: RequestContext) -> DescribeClientQuotasResponse:
    if not ctx.authorized(Operation.DESCRIBE_CONFIGS, AclResourceType.CLUSTER, CLUSTER_NAME):
        return _failed(
            ctx, ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "this principal may not describe configs of the cluster"
        )
    try:
        wanted = EntityFilter.checked(_parts(request.components), is_strict=request.strict)
    except FilterRefused as refusal:
        return _failed(ctx, refusal.code, refusal.message)
    return DescribeClientQuotasResponse(
        throttle_time_ms=ctx.throttle_time_ms,
        error_message=None,
        entries=tuple(
            DescribeClientQuotasResponseEntry(
                entity=tuple(
                    DescribeClientQuotasResponseEntity(entity_type=kind, entity_name=name) for kind, name in entity
                ),
                values=tuple(DescribeClientQuotasResponseValue(key=key, value=limit) for key, limit in quotas.items()),
            )
            for entity, quotas in ctx.image.client_quotas.items()
            if wanted.matches(entity)
        ),
    )


def _parts(components: Sequence[DescribeClientQuotasRequestComponent]) -> list[FilterPart]:
    return [FilterPart(each.entity_type, each.match_type, each.match) for each in components]


def _failed(ctx: RequestContext, code: ErrorCode, message: str) -> DescribeClientQuotasResponse:
    return DescribeClientQuotasResponse(
        throttle_time_ms=ctx.throttle_time_ms, error_code=code, error_message=message, entries=None
    )
