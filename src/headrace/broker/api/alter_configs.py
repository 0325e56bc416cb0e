"""AlterConfigs (33): replaces all configs of a resource; those that are not listed return to their default."""

from headrace.broker.api.context import Parked, RequestContext
from headrace.broker.api.support.config_changes import by_access, results
from headrace.broker.api.support.proposals import park_until_committed
from headrace.broker.cluster.proposal import ProposalFailed
from headrace.core.controller.commands import ConfigReplacement, ConfigResult
from headrace.wire.messages.alter_configs import (
    AlterConfigsRequest,
    AlterConfigsResponse,
    AlterConfigsResponseResource,
)


def handle(request: AlterConfigsRequest, ctx: RequestContext) -> Parked:
    allowed, refused = by_access(ctx, request.resources)
    asked = [
        ConfigReplacement(
            resource_kind=resource.resource_type,
            resource_name=resource.resource_name,
            configs=[(config.name, config.value) for config in resource.configs],
        )
        for resource in allowed
    ]
    proposal = ctx.controller.replace_configs(asked, validate_only=request.validate_only)

    def respond(outcome: tuple[ConfigResult, ...] | ProposalFailed) -> AlterConfigsResponse:
        return AlterConfigsResponse(
            throttle_time_ms=ctx.throttle_time_ms,
            responses=tuple(
                AlterConfigsResponseResource(
                    error_code=result.error,
                    error_message=result.message,
                    resource_type=result.resource_kind,
                    resource_name=result.resource_name,
                )
                for result in (*results(outcome, asked), *refused)
            ),
        )

    return park_until_committed(ctx, proposal, respond)
