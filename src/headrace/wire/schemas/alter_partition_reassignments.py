"""AlterPartitionReassignments: move partitions to other replicas, or stop moving them."""

from headrace.wire.schemas.notation import BOOL, INT16, INT32, STRING, array, field, request, response

REQUEST = request(
    45,
    "AlterPartitionReassignments",
    versions="0-1",
    flexible="0+",
    fields=[
        field("timeout_ms", INT32, default=60_000),
        field("allow_replication_factor_change", BOOL, "1+", default=True),
        array(
            "topics",
            [
                field("name", STRING),
                array(
                    "partitions",
                    [
                        field("partition_index", INT32),
                        array("replicas", INT32, nullable="0+", default=None),
                    ],
                ),
            ],
        ),
    ],
)

RESPONSE = response(
    45,
    "AlterPartitionReassignments",
    versions="0-1",
    flexible="0+",
    fields=[
        field("throttle_time_ms", INT32),
        field("allow_replication_factor_change", BOOL, "1+", default=True),
        field("error_code", INT16),
        field("error_message", STRING, nullable="0+"),
        array(
            "responses",
            [
                field("name", STRING),
                array(
                    "partitions",
                    [
                        field("partition_index", INT32),
                        field("error_code", INT16),
                        field("error_message", STRING, nullable="0+"),
                    ],
                ),
            ],
            named="Topic",
        ),
    ],
)
