"""OffsetCommit: commit the offsets of a group."""

from headrace.wire.schemas.notation import INT16, INT32, INT64, STRING, UUID, array, field, request, response

REQUEST = request(
    8,
    "OffsetCommit",
    versions="0-10",
    flexible="8+",
    fields=[
        field("group_id", STRING),
        field("generation_id_or_member_epoch", INT32, "1+", default=-1),
        field("member_id", STRING, "1+"),
        field("group_instance_id", STRING, "7+", nullable="0+", default=None),
        field("retention_time_ms", INT64, "2-4", default=-1),
        array(
            "topics",
            [
                field("name", STRING, "0-9"),
                field("topic_id", UUID, "10+"),
                array(
                    "partitions",
                    [
                        field("partition_index", INT32),
                        field("committed_offset", INT64),
                        field("committed_leader_epoch", INT32, "6+", default=-1),
                        field("commit_timestamp", INT64, "1", default=-1),
                        field("committed_metadata", STRING, nullable="0+"),
                    ],
                ),
            ],
        ),
    ],
)

RESPONSE = response(
    8,
    "OffsetCommit",
    versions="0-10",
    flexible="8+",
    fields=[
        field("throttle_time_ms", INT32, "3+"),
        array(
            "topics",
            [
                field("name", STRING, "0-9"),
                field("topic_id", UUID, "10+"),
                array(
                    "partitions",
                    [
                        field("partition_index", INT32),
                        field("error_code", INT16),
                    ],
                ),
            ],
        ),
    ],
)
