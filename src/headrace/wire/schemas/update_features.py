"""UpdateFeatures: raise or lower finalized features of the cluster."""

from headrace.wire.schemas.notation import BOOL, INT8, INT16, INT32, STRING, array, field, request, response

REQUEST = request(
    57,
    "UpdateFeatures",
    versions="0-2",
    flexible="0+",
    fields=[
        field("timeout_ms", INT32, default=60_000),
        array(
            "feature_updates",
            [
                field("feature", STRING),
                field("max_version_level", INT16),
                field("allow_downgrade", BOOL, "0"),
                field("upgrade_type", INT8, "1+", default=1),
            ],
        ),
        field("validate_only", BOOL, "1+"),
    ],
)

RESPONSE = response(
    57,
    "UpdateFeatures",
    versions="0-2",
    flexible="0+",
    fields=[
        field("throttle_time_ms", INT32),
        field("error_code", INT16),
        field("error_message", STRING, nullable="0+"),
        array(
            "results",
            [
                field("feature", STRING),
                field("error_code", INT16),
                field("error_message", STRING, nullable="0+"),
            ],
            "0-1",
        ),
    ],
)
