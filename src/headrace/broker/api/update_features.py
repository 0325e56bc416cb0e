"""UpdateFeatures (57): raises or lowers finalised features, all of a request or none (KIP-584)."""

from collections.abc import Sequence

from headrace.broker.api.context import Parked, RequestContext
from headrace.broker.api.support.authorization import cluster_refusal
from headrace.broker.api.support.proposals import park_until_committed
from headrace.broker.cluster.proposal import ProposalFailed
from headrace.core.controller.features import FeatureResult, FeatureUpdate, FeatureUpgrade
from headrace.model.errors import ErrorCode
from headrace.wire.messages.update_features import (
    UpdateFeaturesRequest,
    UpdateFeaturesRequestFeatureUpdate,
    UpdateFeaturesResponse,
    UpdateFeaturesResponseResult,
)

_UPGRADE_TYPES_FROM = 1


def handle(request: UpdateFeaturesRequest, ctx: RequestContext) -> UpdateFeaturesResponse | Parked:
    refusal = cluster_refusal(ctx, "features are changed")
    if refusal is not None:
        return _failed(ctx, ErrorCode.CLUSTER_AUTHORIZATION_FAILED, refusal)
    updates = [
        FeatureUpdate(update.feature, update.max_version_level, _upgrade_type(update, ctx.version))
        for update in request.feature_updates
    ]

    def respond(outcome: tuple[FeatureResult, ...] | ProposalFailed) -> UpdateFeaturesResponse:
        if isinstance(outcome, ProposalFailed):
            return _failed(ctx, outcome.code, outcome.message)
        return _response(ctx, outcome)

    proposal = ctx.controller.update_features(updates, validate_only=request.validate_only)
    return park_until_committed(ctx, proposal, respond, timeout_ms=request.timeout_ms)


def _upgrade_type(update: UpdateFeaturesRequestFeatureUpdate, version: int) -> int:
    if version >= _UPGRADE_TYPES_FROM:
        return update.upgrade_type
    return FeatureUpgrade.SAFE_DOWNGRADE if update.allow_downgrade else FeatureUpgrade.UPGRADE


def _response(ctx: RequestContext, results: Sequence[FeatureResult]) -> UpdateFeaturesResponse:
    """Give the first error to the whole request, which is not executed then; older versions list every result."""
    first = next((result for result in results if result.error), None)
    return UpdateFeaturesResponse(
        throttle_time_ms=ctx.throttle_time_ms,
        error_code=ErrorCode.NONE if first is None else first.error,
        error_message=None if first is None else first.message,
        results=tuple(
            UpdateFeaturesResponseResult(feature=result.name, error_code=result.error, error_message=result.message)
            for result in results
        ),
    )


def _failed(ctx: RequestContext, code: ErrorCode, message: str) -> UpdateFeaturesResponse:
    return UpdateFeaturesResponse(throttle_time_ms=ctx.throttle_time_ms, error_code=code, error_message=message)
