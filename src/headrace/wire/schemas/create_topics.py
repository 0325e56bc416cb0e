"""CreateTopics: names, partition counts and configs in, one error code per topic out."""

from headrace.wire.schemas.notation import BOOL, INT8, INT16, INT32, STRING, UUID, array, field, request, response

REQUEST = request(
    19,
    "CreateTopics",
    versions="0-7",
    flexible="5+",
    fields=[
        array(
            "topics",
            [
                field("name", STRING),
                field("num_partitions", INT32),
                field("replication_factor", INT16),
                array(
                    "assignments",
                    [
                        field("partition_index", INT32),
                        array("broker_ids", INT32),
                    ],
                ),
                array(
                    "configs",
                    [
                        field("name", STRING),
                        field("value", STRING, nullable="0+"),
                    ],
                ),
            ],
        ),
        field("timeout_ms", INT32, default=60_000),
        field("validate_only", BOOL, "1+"),
    ],
)

RESPONSE = response(
    19,
    "CreateTopics",
    versions="0-7",
    flexible="5+",
    fields=[
        field("throttle_time_ms", INT32, "2+"),
        array(
            "topics",
            [
                field("name", STRING),
                field("topic_id", UUID, "7+"),
                field("error_code", INT16),
                field("error_message", STRING, "1+", nullable="0+"),
                field("topic_config_error_code", INT16, "5+", tag=0),
                field("num_partitions", INT32, "5+", default=-1),
                field("replication_factor", INT16, "5+", default=-1),
                array(
                    "configs",
                    [
                        field("name", STRING),
                        field("value", STRING, nullable="0+"),
                        field("read_only", BOOL),
                        field("config_source", INT8, default=-1),
                        field("is_sensitive", BOOL),
                    ],
                    "5+",
                    nullable="0+",
                ),
            ],
        ),
    ],
)
