"""ListPartitionReassignments: partitions that are moving."""

from headrace.wire.schemas.notation import INT16, INT32, STRING, array, field, request, response

REQUEST = request(
    46,
    "ListPartitionReassignments",
    versions="0",
    flexible="0+",
    fields=[
        field("timeout_ms", INT32, default=60_000),
        array(
            "topics",
            [
                field("name", STRING),
                array("partition_indexes", INT32),
            ],
            nullable="0+",
            default=None,
        ),
    ],
)

RESPONSE = response(
    46,
    "ListPartitionReassignments",
    versions="0",
    flexible="0+",
    fields=[
        field("throttle_time_ms", INT32),
        field("error_code", INT16),
        field("error_message", STRING, nullable="0+"),
        array(
            "topics",
            [
                field("name", STRING),
                array(
                    "partitions",
                    [
                        field("partition_index", INT32),
                        array("replicas", INT32),
                        array("adding_replicas", INT32),
                        array("removing_replicas", INT32),
                    ],
                ),
            ],
        ),
    ],
)
