"""IncrementalAlterConfigs (44): sets, deletes, appends to and subtracts from single configs."""

from headrace.broker.api.context import Parked, RequestContext
from headrace.broker.api.support.config_changes import by_access, results
from headrace.broker.api.support.proposals import park_until_committed
from headrace.broker.cluster.proposal import ProposalFailed
from headrace.core.controller.commands import AlterableConfig, ConfigAlteration, ConfigResult
from headrace.wire.messages.incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
    IncrementalAlterConfigsResponseResource,
)


def handle(request: IncrementalAlterConfigsRequest, ctx: RequestContext) -> Parked:
    allowed, refused = by_access(ctx, request.resources)
    asked = [
        ConfigAlteration(
            resource_kind=resource.resource_type,
            resource_name=resource.resource_name,
            changes=[
                AlterableConfig(config.name, config.config_operation, config.value) for config in resource.configs
            ],
        )
        for resource in allowed
    ]
    proposal = ctx.controller.alter_configs(asked, validate_only=request.validate_only)

    def respond(outcome: tuple[ConfigResult, ...] | ProposalFailed) -> IncrementalAlterConfigsResponse:
        return IncrementalAlterConfigsResponse(
            throttle_time_ms=ctx.throttle_time_ms,
            responses=tuple(
                IncrementalAlterConfigsResponseResource(
                    error_code=result.error,
                    error_message=result.message,
                    resource_type=result.resource_kind,
                    resource_name=result.resource_name,
                )
                for result in (*results(outcome, asked), *refused)
            ),
        )

    return park_until_committed(ctx, proposal, respond)
