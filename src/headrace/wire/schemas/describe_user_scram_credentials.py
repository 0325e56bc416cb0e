"""DescribeUserScramCredentials: the SCRAM mechanisms of users, never the secrets."""

from headrace.wire.schemas.notation import INT8, INT16, INT32, STRING, array, field, request, response

REQUEST = request(
    50,
    "DescribeUserScramCredentials",
    versions="0",
    flexible="0+",
    fields=[
        array(
            "users",
            [
                field("name", STRING),
            ],
            nullable="0+",
        ),
    ],
)

RESPONSE = response(
    50,
    "DescribeUserScramCredentials",
    versions="0",
    flexible="0+",
    fields=[
        field("throttle_time_ms", INT32),
        field("error_code", INT16),
        field("error_message", STRING, nullable="0+"),
        array(
            "results",
            [
                field("user", STRING),
                field("error_code", INT16),
                field("error_message", STRING, nullable="0+"),
                array(
                    "credential_infos",
                    [
                        field("mechanism", INT8),
                        field("iterations", INT32),
                    ],
                ),
            ],
        ),
    ],
)
