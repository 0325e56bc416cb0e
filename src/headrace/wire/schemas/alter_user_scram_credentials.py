"""AlterUserScramCredentials: add, change and remove SCRAM credentials."""

from headrace.wire.schemas.notation import BYTES, INT8, INT16, INT32, STRING, array, field, request, response

REQUEST = request(
    51,
    "AlterUserScramCredentials",
    versions="0",
    flexible="0+",
    fields=[
        array(
            "deletions",
            [
                field("name", STRING),
                field("mechanism", INT8),
            ],
        ),
        array(
            "upsertions",
            [
                field("name", STRING),
                field("mechanism", INT8),
                field("iterations", INT32),
                field("salt", BYTES),
                field("salted_password", BYTES),
            ],
        ),
    ],
)

RESPONSE = response(
    51,
    "AlterUserScramCredentials",
    versions="0",
    flexible="0+",
    fields=[
        field("throttle_time_ms", INT32),
        array(
            "results",
            [
                field("user", STRING),
                field("error_code", INT16),
                field("error_message", STRING, nullable="0+"),
            ],
        ),
    ],
)
