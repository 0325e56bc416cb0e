"""ListOffsets: a timestamp, or a special value such as latest, in; an offset out."""

from headrace.wire.schemas.notation import INT8, INT16, INT32, INT64, STRING, array, field, request, response

REQUEST = request(
    2,
    "ListOffsets",
    versions="0-11",
    flexible="6+",
    fields=[
        field("replica_id", INT32),
        field("isolation_level", INT8, "2+"),
        array(
            "topics",
            [
                field("name", STRING),
                array(
                    "partitions",
                    [
                        field("partition_index", INT32),
                        field("current_leader_epoch", INT32, "4+", default=-1),
                        field("timestamp", INT64),
                        field("max_num_offsets", INT32, "0", default=1),
                    ],
                ),
            ],
        ),
        field("timeout_ms", INT32, "10+"),
    ],
)

RESPONSE = response(
    2,
    "ListOffsets",
    versions="0-11",
    flexible="6+",
    fields=[
        field("throttle_time_ms", INT32, "2+"),
        array(
            "topics",
            [
                field("name", STRING),
                array(
                    "partitions",
                    [
                        field("partition_index", INT32),
                        field("error_code", INT16),
                        array("old_style_offsets", INT64, "0"),
                        field("timestamp", INT64, "1+", default=-1),
                        field("offset", INT64, "1+", default=-1),
                        field("leader_epoch", INT32, "4+", default=-1),
                    ],
                ),
            ],
        ),
    ],
)
