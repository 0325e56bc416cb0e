"""ApiVersions: the APIs and versions that a broker serves. Its response header never becomes flexible (KIP-511)."""

from headrace.wire.schemas.notation import BOOL, INT16, INT32, INT64, STRING, array, field, request, response

REQUEST = request(
    18,
    "ApiVersions",
    versions="0-4",
    flexible="3+",
    fields=[
        field("client_software_name", STRING, "3+"),
        field("client_software_version", STRING, "3+"),
    ],
)

RESPONSE = response(
    18,
    "ApiVersions",
    versions="0-4",
    flexible="3+",
    fields=[
        field("error_code", INT16),
        array(
            "api_keys",
            [
                field("api_key", INT16),
                field("min_version", INT16),
                field("max_version", INT16),
            ],
        ),
        field("throttle_time_ms", INT32, "1+"),
        array(
            "supported_features",
            [
                field("name", STRING),
                field("min_version", INT16),
                field("max_version", INT16),
            ],
            "3+",
            tag=0,
        ),
        field("finalized_features_epoch", INT64, "3+", default=-1, tag=1),
        array(
            "finalized_features",
            [
                field("name", STRING),
                field("max_version_level", INT16),
                field("min_version_level", INT16),
            ],
            "3+",
            tag=2,
        ),
        field("zk_migration_ready", BOOL, "3+", tag=3),
    ],
)
