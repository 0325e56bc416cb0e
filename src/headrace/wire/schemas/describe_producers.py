"""DescribeProducers: producers that are active in partitions."""

from headrace.wire.schemas.notation import INT16, INT32, INT64, STRING, array, field, request, response

REQUEST = request(
    61,
    "DescribeProducers",
    versions="0",
    flexible="0+",
    fields=[
        array(
            "topics",
            [
                field("name", STRING),
                array("partition_indexes", INT32),
            ],
        ),
    ],
)

RESPONSE = response(
    61,
    "DescribeProducers",
    versions="0",
    flexible="0+",
    fields=[
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
                        field("error_message", STRING, nullable="0+", default=None),
                        array(
                            "active_producers",
                            [
                                field("producer_id", INT64),
                                field("producer_epoch", INT32),
                                field("last_sequence", INT32, default=-1),
                                field("last_timestamp", INT64, default=-1),
                                field("coordinator_epoch", INT32),
                                field("current_txn_start_offset", INT64, default=-1),
                            ],
                        ),
                    ],
                ),
            ],
        ),
    ],
)
