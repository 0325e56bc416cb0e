"""ConsumerGroupHeartbeat: a member of a KIP-848 group stays alive, joins or leaves."""

from headrace.wire.schemas.notation import INT16, INT32, STRING, UUID, array, field, request, response, struct

_TOPIC_PARTITIONS = [field("topic_id", UUID), array("partitions", INT32)]

REQUEST = request(
    68,
    "ConsumerGroupHeartbeat",
    versions="0-1",
    flexible="0+",
    fields=[
        field("group_id", STRING),
        field("member_id", STRING),
        field("member_epoch", INT32),
        field("instance_id", STRING, nullable="0+", default=None),
        field("rack_id", STRING, nullable="0+", default=None),
        field("rebalance_timeout_ms", INT32, default=-1),
        array("subscribed_topic_names", STRING, nullable="0+", default=None),
        field("subscribed_topic_regex", STRING, "1+", nullable="0+", default=None),
        field("server_assignor", STRING, nullable="0+", default=None),
        array("topic_partitions", _TOPIC_PARTITIONS, nullable="0+", default=None, named="TopicPartitions"),
    ],
)

RESPONSE = response(
    68,
    "ConsumerGroupHeartbeat",
    versions="0-1",
    flexible="0+",
    fields=[
        field("throttle_time_ms", INT32),
        field("error_code", INT16),
        field("error_message", STRING, nullable="0+", default=None),
        field("member_id", STRING, nullable="0+", default=None),
        field("member_epoch", INT32),
        field("heartbeat_interval_ms", INT32),
        struct(
            "assignment",
            [array("topic_partitions", _TOPIC_PARTITIONS, named="TopicPartitions")],
            nullable="0+",
            default=None,
        ),
    ],
)
