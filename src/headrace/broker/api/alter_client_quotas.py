"""AlterClientQuotas (49): sets and removes quotas in the metadata log."""

from headrace.broker.api.context import Parked, RequestContext
from headrace.broker.api.support.authorization import stranger_refusal
from headrace.broker.api.support.proposals import park_until_committed
from headrace.broker.cluster.proposal import ProposalFailed
from headrace.core.controller.client_quotas import QuotaAlteration, QuotaChange, QuotaResult
from headrace.model.access import CLUSTER_NAME, AclResourceType, Operation
from headrace.model.errors import ErrorCode
from headrace.wire.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    AlterClientQuotasResponseEntity,
    AlterClientQuotasResponseEntry,
)


def handle(request: AlterClientQuotasRequest, ctx: RequestContext) -> AlterClientQuotasResponse | Parked:
    alterations = [
        QuotaAlteration(
            tuple((each.entity_type, each.entity_name) for each in entry.entity),
            tuple(QuotaChange(op.key, None if op.remove else op.value) for op in entry.ops),
        )
        for entry in request.entries
    ]

    def failed(code: ErrorCode, message: str | None) -> AlterClientQuotasResponse:
        return _response(ctx, tuple(QuotaResult(alteration.entity, code, message) for alteration in alterations))

    if not ctx.authorized(Operation.ALTER_CONFIGS, AclResourceType.CLUSTER, CLUSTER_NAME):
        return failed(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "this principal may not alter configs of the cluster")
    refusal = stranger_refusal(ctx, "quotas are changed")
    if refusal is not None:
        return failed(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, refusal)

    def respond(outcome: tuple[QuotaResult, ...] | ProposalFailed) -> AlterClientQuotasResponse:
        if isinstance(outcome, ProposalFailed):
            return failed(outcome.code, outcome.message)
        return _response(ctx, outcome)

    proposal = ctx.controller.alter_quotas(alterations, validate_only=request.validate_only)
    return park_until_committed(ctx, proposal, respond)


def _response(ctx: RequestContext, results: tuple[QuotaResult, ...]) -> AlterClientQuotasResponse:
    return AlterClientQuotasResponse(
        throttle_time_ms=ctx.throttle_time_ms,
        entries=tuple(
            AlterClientQuotasResponseEntry(
                error_code=result.error,
                error_message=result.message,
                entity=tuple(
                    AlterClientQuotasResponseEntity(entity_type=kind, entity_name=name) for kind, name in result.entity
                ),
            )
            for result in results
        ),
    )
