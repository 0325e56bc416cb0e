"""CreateAcls (30): adds access rules to the metadata log."""

from headrace.broker.api.context import Parked, RequestContext
from headrace.broker.api.support.access_rules import NO_AUTHORIZER
from headrace.broker.api.support.proposals import park_until_committed
from headrace.broker.cluster.proposal import ProposalFailed
from headrace.core.access.acls import AccessRule
from headrace.core.controller.access_rules import RuleResult
from headrace.model.access import CLUSTER_NAME, AclResourceType, Operation
from headrace.model.errors import ErrorCode
from headrace.wire.messages.create_acls import CreateAclsRequest, CreateAclsResponse, CreateAclsResponseResult


def handle(request: CreateAclsRequest, ctx: RequestContext) -> CreateAclsResponse | Parked:
    def failed(code: ErrorCode, message: str | None) -> CreateAclsResponse:
        return _response(ctx, (RuleResult(code, message),) * len(request.creations))

    if ctx.access.open_to_all:
        return failed(ErrorCode.SECURITY_DISABLED, NO_AUTHORIZER)
    if not ctx.authorized(Operation.ALTER, AclResourceType.CLUSTER, CLUSTER_NAME):
        return failed(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "this principal may not alter the cluster")
    rules = [
        AccessRule(
            each.resource_type,
            each.resource_name,
            each.resource_pattern_type,
            each.principal,
            each.host,
            each.operation,
            each.permission_type,
        )
        for each in request.creations
    ]

    def respond(outcome: tuple[RuleResult, ...] | ProposalFailed) -> CreateAclsResponse:
        if isinstance(outcome, ProposalFailed):
            return failed(outcome.code, outcome.message)
        return _response(ctx, outcome)

    return park_until_committed(ctx, ctx.controller.create_rules(rules), respond)


def _response(ctx: RequestContext, results: tuple[RuleResult, ...]) -> CreateAclsResponse:
    return CreateAclsResponse(
        throttle_time_ms=ctx.throttle_time_ms,
        results=tuple(
            CreateAclsResponseResult(error_code=result.error, error_message=result.message) for result in results
        ),
    )
