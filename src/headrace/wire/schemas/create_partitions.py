"""CreatePartitions: raise the partition count of topics."""

from headrace.wire.schemas.notation import BOOL, INT16, INT32, STRING, array, field, request, response

REQUEST = request(
    37,
    "CreatePartitions",
    versions="0-3",
    flexible="2+",
    fields=[
        array(
            "topics",
            [
                field("name", STRING),
                field("count", INT32),
                array(
                    "assignments",
                    [
                        array("broker_ids", INT32),
                    ],
                    nullable="0+",
                ),
            ],
        ),
        field("timeout_ms", INT32),
        field("validate_only", BOOL),
    ],
)

RESPONSE = response(
    37,
    "CreatePartitions",
    versions="0-3",
    flexible="2+",
    fields=[
        field("throttle_time_ms", INT32),
        array(
            "results",
            [
                field("name", STRING),
                field("error_code", INT16),
                field("error_message", STRING, nullable="0+", default=None),
            ],
        ),
    ],
)
