"""DeleteAcls (31): removes the access rules that filters match."""

from headrace.broker.api.context import Parked, RequestContext
from headrace.broker.api.support.access_rules import NO_AUTHORIZER
from headrace.broker.api.support.proposals import park_until_committed
from headrace.broker.cluster.proposal import ProposalFailed
from headrace.core.access.acls import AccessRule, RuleFilter
from headrace.core.controller.access_rules import DeletedRules
from headrace.model.access import CLUSTER_NAME, AclResourceType, Operation
from headrace.model.errors import ErrorCode
from headrace.wire.messages.delete_acls import (
    DeleteAclsRequest,
    DeleteAclsResponse,
    DeleteAclsResponseFilterResult,
    DeleteAclsResponseMatchingAcl,
)


def handle(request: DeleteAclsRequest, ctx: RequestContext) -> DeleteAclsResponse | Parked:
    def failed(code: ErrorCode, message: str | None) -> DeleteAclsResponse:
        return _response(ctx, (DeletedRules((), code, message),) * len(request.filters))

    if ctx.access.open_to_all:
        return failed(ErrorCode.SECURITY_DISABLED, NO_AUTHORIZER)
    if not ctx.authorized(Operation.ALTER, AclResourceType.CLUSTER, CLUSTER_NAME):
        return failed(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "this principal may not alter the cluster")
    filters = [
        RuleFilter(
            each.resource_type_filter,
            each.resource_name_filter,
            each.pattern_type_filter,
            each.principal_filter,
            each.host_filter,
            each.operation,
            each.permission_type,
        )
        for each in request.filters
    ]

    def respond(outcome: tuple[DeletedRules, ...] | ProposalFailed) -> DeleteAclsResponse:
        if isinstance(outcome, ProposalFailed):
            return failed(outcome.code, outcome.message)
        return _response(ctx, outcome)

    return park_until_committed(ctx, ctx.controller.delete_rules(filters), respond)


def _response(ctx: RequestContext, results: tuple[DeletedRules, ...]) -> DeleteAclsResponse:
    return DeleteAclsResponse(
        throttle_time_ms=ctx.throttle_time_ms,
        filter_results=tuple(
            DeleteAclsResponseFilterResult(
                error_code=result.error,
                error_message=result.message,
                matching_acls=tuple(_matching(rule) for rule in result.rules),
            )
            for result in results
        ),
    )


def _matching(rule: AccessRule) -> DeleteAclsResponseMatchingAcl:
    return DeleteAclsResponseMatchingAcl(
        resource_type=rule.resource_type,
        resource_name=rule.resource_name,
        pattern_type=rule.pattern_type,
        principal=rule.principal,
        host=rule.host,
        operation=rule.operation,
        permission_type=rule.permission,
    )
