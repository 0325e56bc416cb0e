"""Metadata: the brokers, the topics and the leaders of their partitions."""

from headrace.wire.schemas.notation import BOOL, INT16, INT32, STRING, UUID, array, field, request, response

REQUEST = request(
    3,
    "Metadata",
    versions="0-13",
    flexible="9+",
    fields=[
        array(
            "topics",
            [
                field("topic_id", UUID, "10+"),
                field("name", STRING, nullable="10+"),
            ],
            nullable="1+",
        ),
        field("allow_auto_topic_creation", BOOL, "4+", default=True),
        field("include_cluster_authorized_operations", BOOL, "8-10"),
        field("include_topic_authorized_operations", BOOL, "8+"),
    ],
)

RESPONSE = response(
    3,
    "Metadata",
    versions="0-13",
    flexible="9+",
    fields=[
        field("throttle_time_ms", INT32, "3+"),
        array(
            "brokers",
            [
                field("node_id", INT32),
                field("host", STRING),
                field("port", INT32),
                field("rack", STRING, "1+", nullable="0+", default=None),
            ],
        ),
        field("cluster_id", STRING, "2+", nullable="0+", default=None),
        field("controller_id", INT32, "1+", default=-1),
        array(
            "topics",
            [
                field("error_code", INT16),
                field("name", STRING, nullable="12+"),
                field("topic_id", UUID, "10+"),
                field("is_internal", BOOL, "1+"),
                array(
                    "partitions",
                    [
                        field("error_code", INT16),
                        field("partition_index", INT32),
                        field("leader_id", INT32),
                        field("leader_epoch", INT32, "7+", default=-1),
                        array("replica_nodes", INT32),
                        array("isr_nodes", INT32),
                        array("offline_replicas", INT32, "5+"),
                    ],
                ),
                field("topic_authorized_operations", INT32, "8+", default=-2_147_483_648),
            ],
        ),
        field("cluster_authorized_operations", INT32, "8-10", default=-2_147_483_648),
        field("error_code", INT16, "13+"),
    ],
)
