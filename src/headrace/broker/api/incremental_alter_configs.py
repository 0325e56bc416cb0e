"""IncrementalAlterConfigs (44): set, delete, append to and subtract from single configs."""

from headrace.broker.api.authorizing import config_access_error
from headrace.broker.api.committing import park_until_committed
from headrace.broker.api.context import Parked, RequestContext
from headrace.broker.cluster.proposal import ProposalFailed
from headrace.core.controller.commands import ConfigAlteration, ConfigChange, ConfigResult
from headrace.model.access import Operation
from headrace.model.errors import ErrorCode
from headrace.wire.messages.incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
    IncrementalAlterConfigsResponseResource,
)


def handle(request: IncrementalAlterConfigsRequest, ctx: RequestContext) -> Parked:
    asked: list[ConfigAlteration] = []
    refused: list[ConfigResult] = []
    for resource in request.resources:
        key = (resource.resource_type, resource.resource_name)
        error = config_access_error(ctx, Operation.ALTER_CONFIGS, key)
        if error is not ErrorCode.NONE:
            refused.append(ConfigResult(*key, error))
            continue
        asked.append(
            ConfigAlteration(
                resource_kind=resource.resource_type,
                resource_name=resource.resource_name,
                changes=[
                    ConfigChange(config.name, config.config_operation, config.value) for config in resource.configs
                ],
            )
        )
    proposal = ctx.broker.controller.alter_configs(asked, validate_only=request.validate_only)

    def respond(outcome: tuple[ConfigResult, ...] | ProposalFailed) -> IncrementalAlterConfigsResponse:
        if isinstance(outcome, ProposalFailed):
            failure = outcome
            outcome = tuple(
                ConfigResult(each.resource_kind, each.resource_name, failure.code, failure.message) for each in asked
            )
        return IncrementalAlterConfigsResponse(
            throttle_time_ms=ctx.throttle_time_ms,
            responses=tuple(
                IncrementalAlterConfigsResponseResource(
                    error_code=result.error,
                    error_message=result.message,
                    resource_type=result.resource_kind,
                    resource_name=result.resource_name,
                )
                for result in (*outcome, *refused)
            ),
        )

    return park_until_committed(ctx, proposal, respond)
