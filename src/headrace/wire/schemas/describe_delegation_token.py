"""DescribeDelegationToken: list tokens by their owners."""

from headrace.wire.schemas.notation import BYTES, INT16, INT32, INT64, STRING, array, field, request, response

REQUEST = request(
    41,
    "DescribeDelegationToken",
    versions="1-3",
    flexible="2+",
    fields=[
        array(
            "owners",
            [
                field("principal_type", STRING),
                field("principal_name", STRING),
            ],
            nullable="1+",
        ),
    ],
)

RESPONSE = response(
    41,
    "DescribeDelegationToken",
    versions="1-3",
    flexible="2+",
    fields=[
        field("error_code", INT16),
        array(
            "tokens",
            [
                field("principal_type", STRING),
                field("principal_name", STRING),
                field("token_requester_principal_type", STRING, "3+"),
                field("token_requester_principal_name", STRING, "3+"),
                field("issue_timestamp", INT64),
                field("expiry_timestamp", INT64),
                field("max_timestamp", INT64),
                field("token_id", STRING),
                field("hmac", BYTES),
                array(
                    "renewers",
                    [
                        field("principal_type", STRING),
                        field("principal_name", STRING),
                    ],
                ),
            ],
        ),
        field("throttle_time_ms", INT32),
    ],
)
