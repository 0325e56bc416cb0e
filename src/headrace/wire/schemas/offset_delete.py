"""OffsetDelete: forget committed offsets of a group. Never flexible."""

from headrace.wire.schemas.notation import INT16, INT32, STRING, array, field, request, response

REQUEST = request(
    47,
    "OffsetDelete",
    versions="0",
    flexible="none",
    fields=[
        field("group_id", STRING),
        array(
            "topics",
            [
                field("name", STRING),
                array(
                    "partitions",
                    [
                        field("partition_index", INT32),
                    ],
                ),
            ],
        ),
    ],
)

RESPONSE = response(
    47,
    "OffsetDelete",
    versions="0",
    flexible="none",
    fields=[
        field("error_code", INT16),
        field("throttle_time_ms", INT32),
        array(
            "topics",
            [
                field("name", STRING),
                array(
                    "partitions",
                    [
                        field("partition_index", INT32),
                        field("error_code", INT16),
                    ],
                ),
            ],
        ),
    ],
)
