"""ApiVersions (18): the APIs and versions of this broker, the same before and after authentication."""

import re

from headrace.broker.api.context import RequestContext
from headrace.broker.api.registry import SERVED
from headrace.core.controller.features import SUPPORTED_FEATURES
from headrace.core.controller.image import MetadataImage
from headrace.model.errors import ErrorCode
from headrace.wire.messages.api_versions import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    ApiVersionsResponseApiKey,
    ApiVersionsResponseFinalizedFeature,
    ApiVersionsResponseSupportedFeature,
)

_CLIENT_SOFTWARE = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")
"""The client names and versions that KIP-511 allows."""

_SOFTWARE_FROM = 3


def handle(request: ApiVersionsRequest, ctx: RequestContext) -> ApiVersionsResponse:
    software = (request.client_software_name, request.client_software_version)
    if ctx.version >= _SOFTWARE_FROM:
        if not all(_CLIENT_SOFTWARE.fullmatch(text) for text in software):
            return ApiVersionsResponse(error_code=ErrorCode.INVALID_REQUEST)
        ctx.connection.client_software = software
    return _served(ctx.image, ErrorCode.NONE)


def unsupported(image: MetadataImage) -> ApiVersionsResponse:
    """Build the response to a version that is not supported: the client reads the supported ones from it."""
    return _served(image, ErrorCode.UNSUPPORTED_VERSION)


def _served(image: MetadataImage, error: ErrorCode) -> ApiVersionsResponse:
    return ApiVersionsResponse(
        error_code=error,
        api_keys=tuple(
            ApiVersionsResponseApiKey(api_key=api.key, min_version=api.min_version, max_version=api.max_version)
            for api in SERVED
        ),
        supported_features=tuple(
            ApiVersionsResponseSupportedFeature(
                name=feature.name, min_version=feature.level_min, max_version=feature.level_max
            )
            for feature in SUPPORTED_FEATURES
        ),
        finalized_features_epoch=image.version,
        finalized_features=tuple(
            ApiVersionsResponseFinalizedFeature(name=name, max_version_level=level, min_version_level=level)
            for name, level in image.features.items()
        ),
    )
