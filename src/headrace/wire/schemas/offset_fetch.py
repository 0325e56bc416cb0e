"""OffsetFetch: the committed offsets of a group; from version 8 for several groups at once."""

from headrace.wire.schemas.notation import BOOL, INT16, INT32, INT64, STRING, UUID, array, field, request, response

REQUEST = request(
    9,
    "OffsetFetch",
    versions="0-10",
    flexible="6+",
    fields=[
        field("group_id", STRING, "0-7"),
        array(
            "topics",
            [
                field("name", STRING),
                array("partition_indexes", INT32),
            ],
            "0-7",
            nullable="2+",
        ),
        array(
            "groups",
            [
                field("group_id", STRING),
                field("member_id", STRING, "9+", nullable="0+", default=None),
                field("member_epoch", INT32, "9+", default=-1),
                array(
                    "topics",
                    [
                        field("name", STRING, "8-9"),
                        field("topic_id", UUID, "10+"),
                        array("partition_indexes", INT32),
                    ],
                    nullable="0+",
                    named="GroupTopic",
                ),
            ],
            "8+",
        ),
        field("require_stable", BOOL, "7+"),
    ],
)

RESPONSE = response(
    9,
    "OffsetFetch",
    versions="0-10",
    flexible="6+",
    fields=[
        field("throttle_time_ms", INT32, "3+"),
        array(
            "topics",
            [
                field("name", STRING),
                array(
                    "partitions",
                    [
                        field("partition_index", INT32),
                        field("committed_offset", INT64),
                        field("committed_leader_epoch", INT32, "5+", default=-1),
                        field("metadata", STRING, nullable="0+"),
                        field("error_code", INT16),
                    ],
                ),
            ],
            "0-7",
        ),
        field("error_code", INT16, "2-7"),
        array(
            "groups",
            [
                field("group_id", STRING),
                array(
                    "topics",
                    [
                        field("name", STRING, "8-9"),
                        field("topic_id", UUID, "10+"),
                        array(
                            "partitions",
                            [
                                field("partition_index", INT32),
                                field("committed_offset", INT64),
                                field("committed_leader_epoch", INT32, default=-1),
                                field("metadata", STRING, nullable="0+"),
                                field("error_code", INT16),
                            ],
                            named="GroupPartition",
                        ),
                    ],
                    named="GroupTopic",
                ),
                field("error_code", INT16),
            ],
            "8+",
        ),
    ],
)
