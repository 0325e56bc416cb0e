"""CreateDelegationToken: create a token with which clients log in as its owner."""

from headrace.wire.schemas.notation import BYTES, INT16, INT32, INT64, STRING, array, field, request, response

REQUEST = request(
    38,
    "CreateDelegationToken",
    versions="1-3",
    flexible="2+",
    fields=[
        field("owner_principal_type", STRING, "3+", nullable="3+"),
        field("owner_principal_name", STRING, "3+", nullable="3+"),
        array(
            "renewers",
            [
                field("principal_type", STRING),
                field("principal_name", STRING),
            ],
        ),
        field("max_lifetime_ms", INT64),
    ],
)

RESPONSE = response(
    38,
    "CreateDelegationToken",
    versions="1-3",
    flexible="2+",
    fields=[
        field("error_code", INT16),
        field("principal_type", STRING),
        field("principal_name", STRING),
        field("token_requester_principal_type", STRING, "3+"),
        field("token_requester_principal_name", STRING, "3+"),
        field("issue_timestamp_ms", INT64),
        field("expiry_timestamp_ms", INT64),
        field("max_timestamp_ms", INT64),
        field("token_id", STRING),
        field("hmac", BYTES),
        field("throttle_time_ms", INT32),
    ],
)
