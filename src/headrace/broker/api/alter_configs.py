"""AlterConfigs (33): all configs of a resource at once; what is not listed goes back to its default."""

from headrace.broker.api.authorizing import config_access_error
from headrace.broker.api.committing import park_until_committed
from headrace.broker.api.context import Parked, RequestContext
from headrace.broker.cluster.proposal import ProposalFailed
from headrace.core.controller.commands import ConfigReplacement, ConfigResult
from headrace.model.access import Operation
from headrace.model.errors import ErrorCode
from headrace.wire.messages.alter_configs import (
    AlterConfigsRequest,
    AlterConfigsResponse,
    AlterConfigsResponseResource,
)


def handle(request: AlterConfigsRequest, ctx: RequestContext) -> Parked:
    asked: list[ConfigReplacement] = []
    refused: list[ConfigResult] = []
    for resource in request.resources:
        key = (resource.resource_type, resource.resource_name)
        error = config_access_error(ctx, Operation.ALTER_CONFIGS, key)
        if error is not ErrorCode.NONE:
            refused.append(ConfigResult(*key, error))
            continue
        asked.append(
            ConfigReplacement(
                resource_kind=resource.resource_type,
                resource_name=resource.resource_name,
                configs=[(config.name, config.value) for config in resource.configs],
            )
        )
    proposal = ctx.broker.controller.replace_configs(asked, validate_only=request.validate_only)

    def respond(outcome: tuple[ConfigResult, ...] | ProposalFailed) -> AlterConfigsResponse:
        if isinstance(outcome, ProposalFailed):
            failure = outcome
            outcome = tuple(
                ConfigResult(each.resource_kind, each.resource_name, failure.code, failure.message) for each in asked
            )
        return AlterConfigsResponse(
            throttle_time_ms=ctx.throttle_time_ms,
            responses=tuple(
                AlterConfigsResponseResource(
                    error_code=result.error,
                    error_message=result.message,
                    resource_type=result.resource_kind,
                    resource_name=result.resource_name,
                )
                for result in (*outcome, *refused)
            ),
        )

    return park_until_committed(ctx, proposal, respond)
