"""DescribeTopicPartitions: topics and their partitions, page by page."""

from headrace.wire.schemas.notation import BOOL, INT16, INT32, STRING, UUID, array, field, request, response, struct

REQUEST = request(
    75,
    "DescribeTopicPartitions",
    versions="0",
    flexible="0+",
    fields=[
        array(
            "topics",
            [
                field("name", STRING),
            ],
        ),
        field("response_partition_limit", INT32, default=2000),
        struct(
            "cursor",
            [
                field("topic_name", STRING),
                field("partition_index", INT32),
            ],
            nullable="0+",
            default=None,
        ),
    ],
)

RESPONSE = response(
    75,
    "DescribeTopicPartitions",
    versions="0",
    flexible="0+",
    fields=[
        field("throttle_time_ms", INT32),
        array(
            "topics",
            [
                field("error_code", INT16),
                field("name", STRING, nullable="0+"),
                field("topic_id", UUID),
                field("is_internal", BOOL),
                array(
                    "partitions",
                    [
                        field("error_code", INT16),
                        field("partition_index", INT32),
                        field("leader_id", INT32),
                        field("leader_epoch", INT32, default=-1),
                        array("replica_nodes", INT32),
                        array("isr_nodes", INT32),
                        array("eligible_leader_replicas", INT32, nullable="0+", default=None),
                        array("last_known_elr", INT32, nullable="0+", default=None),
                        array("offline_replicas", INT32),
                    ],
                ),
                field("topic_authorized_operations", INT32, default=-2_147_483_648),
            ],
        ),
        struct(
            "next_cursor",
            [
                field("topic_name", STRING),
                field("partition_index", INT32),
            ],
            nullable="0+",
            default=None,
        ),
    ],
)
