"""DescribeLogDirs: log directories, their replicas and sizes."""

from headrace.wire.schemas.notation import BOOL, INT16, INT32, INT64, STRING, array, field, request, response

REQUEST = request(
    35,
    "DescribeLogDirs",
    versions="0-4",
    flexible="2+",
    fields=[
        array(
            "topics",
            [
                field("topic", STRING),
                array("partitions", INT32),
            ],
            nullable="0+",
        ),
    ],
)

RESPONSE = response(
    35,
    "DescribeLogDirs",
    versions="0-4",
    flexible="2+",
    fields=[
        field("throttle_time_ms", INT32),
        field("error_code", INT16, "3+"),
        array(
            "results",
            [
                field("error_code", INT16),
                field("log_dir", STRING),
                array(
                    "topics",
                    [
                        field("name", STRING),
                        array(
                            "partitions",
                            [
                                field("partition_index", INT32),
                                field("partition_size", INT64),
                                field("offset_lag", INT64),
                                field("is_future_key", BOOL),
                            ],
                        ),
                    ],
                ),
                field("total_bytes", INT64, "4+", default=-1),
                field("usable_bytes", INT64, "4+", default=-1),
            ],
        ),
    ],
)
