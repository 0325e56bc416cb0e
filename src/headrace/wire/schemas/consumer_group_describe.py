"""ConsumerGroupDescribe: state, members and assignments of groups of KIP-848."""

from headrace.wire.schemas.notation import (
    BOOL,
    INT8,
    INT16,
    INT32,
    STRING,
    UUID,
    array,
    field,
    request,
    response,
    struct,
)

_ASSIGNMENT = [
    array(
        "topic_partitions",
        [
            field("topic_id", UUID),
            field("topic_name", STRING),
            array("partitions", INT32),
        ],
        named="TopicPartitions",
    ),
]

REQUEST = request(
    69,
    "ConsumerGroupDescribe",
    versions="0-1",
    flexible="0+",
    fields=[
        array("group_ids", STRING),
        field("include_authorized_operations", BOOL),
    ],
)

RESPONSE = response(
    69,
    "ConsumerGroupDescribe",
    versions="0-1",
    flexible="0+",
    fields=[
        field("throttle_time_ms", INT32),
        array(
            "groups",
            [
                field("error_code", INT16),
                field("error_message", STRING, nullable="0+", default=None),
                field("group_id", STRING),
                field("group_state", STRING),
                field("group_epoch", INT32),
                field("assignment_epoch", INT32),
                field("assignor_name", STRING),
                array(
                    "members",
                    [
                        field("member_id", STRING),
                        field("instance_id", STRING, nullable="0+", default=None),
                        field("rack_id", STRING, nullable="0+", default=None),
                        field("member_epoch", INT32),
                        field("client_id", STRING),
                        field("client_host", STRING),
                        array("subscribed_topic_names", STRING),
                        field("subscribed_topic_regex", STRING, nullable="0+", default=None),
                        struct("assignment", _ASSIGNMENT),
                        struct("target_assignment", _ASSIGNMENT, named="Assignment"),
                        field("member_type", INT8, "1+", default=-1),
                    ],
                ),
                field("authorized_operations", INT32, default=-2_147_483_648),
            ],
        ),
    ],
)
