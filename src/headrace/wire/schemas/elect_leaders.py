"""ElectLeaders: make the preferred or any live replica leader."""

from headrace.wire.schemas.notation import INT8, INT16, INT32, STRING, array, field, request, response

REQUEST = request(
    43,
    "ElectLeaders",
    versions="0-2",
    flexible="2+",
    fields=[
        field("election_type", INT8, "1+"),
        array(
            "topic_partitions",
            [
                field("topic", STRING),
                array("partitions", INT32),
            ],
            nullable="0+",
            named="Topic",
        ),
        field("timeout_ms", INT32, default=60_000),
    ],
)

RESPONSE = response(
    43,
    "ElectLeaders",
    versions="0-2",
    flexible="2+",
    fields=[
        field("throttle_time_ms", INT32),
        field("error_code", INT16, "1+"),
        array(
            "replica_election_results",
            [
                field("topic", STRING),
                array(
                    "partition_result",
                    [
                        field("partition_id", INT32),
                        field("error_code", INT16),
                        field("error_message", STRING, nullable="0+"),
                    ],
                    named="Partition",
                ),
            ],
            named="Topic",
        ),
    ],
)
