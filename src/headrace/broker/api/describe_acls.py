"""DescribeAcls (29): the access rules that a filter matches."""

from headrace.broker.api.context import RequestContext
from headrace.broker.api.support.access_rules import NO_AUTHORIZER
from headrace.core.access.acls import AccessRule, RuleFilter
from headrace.core.controller.access_rules import check_filter
from headrace.core.controller.commands import Refused
from headrace.model.access import CLUSTER_NAME, AclResourceType, Operation
from headrace.model.errors import ErrorCode
from headrace.wire.messages.describe_acls import (
    DescribeAclsRequest,
    DescribeAclsResponse,
    DescribeAclsResponseAcl,
    DescribeAclsResponseResource,
)


def handle(request: DescribeAclsRequest, ctx: RequestContext) -> DescribeAclsResponse:
    if ctx.access.open_to_all:
        return _failed(ctx, ErrorCode.SECURITY_DISABLED, NO_AUTHORIZER)
    if not ctx.authorized(Operation.DESCRIBE, AclResourceType.CLUSTER, CLUSTER_NAME):
        return _failed(ctx, ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "this principal may not describe the cluster")
    wanted = RuleFilter(
        request.resource_type_filter,
        request.resource_name_filter,
        request.pattern_type_filter,
        request.principal_filter,
        request.host_filter,
        request.operation,
        request.permission_type,
    )
    try:
        check_filter(wanted)
    except Refused as refusal:
        return _failed(ctx, refusal.code, refusal.message)
    found: dict[tuple[int, str, int], list[AccessRule]] = {}
    for rule in ctx.image.access_rules.values():
        if wanted.matches(rule):
            found.setdefault(rule[:3], []).append(rule)
    return DescribeAclsResponse(
        throttle_time_ms=ctx.throttle_time_ms,
        resources=tuple(
            DescribeAclsResponseResource(
                resource_type=resource_type,
                resource_name=name,
                pattern_type=pattern_type,
                acls=tuple(
                    DescribeAclsResponseAcl(
                        principal=rule.principal,
                        host=rule.host,
                        operation=rule.operation,
                        permission_type=rule.permission,
                    )
                    for rule in rules
                ),
            )
            for (resource_type, name, pattern_type), rules in sorted(found.items())
        ),
    )


def _failed(ctx: RequestContext, code: ErrorCode, message: str) -> DescribeAclsResponse:
    return DescribeAclsResponse(throttle_time_ms=ctx.throttle_time_ms, error_code=code, error_message=message)
