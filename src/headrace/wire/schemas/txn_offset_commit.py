"""TxnOffsetCommit: committed offsets of a group, valid when the transaction commits."""

from headrace.wire.schemas.notation import INT16, INT32, INT64, STRING, array, field, request, response

REQUEST = request(
    28,
    "TxnOffsetCommit",
    versions="0-5",
    flexible="3+",
    fields=[
        field("transactional_id", STRING),
        field("group_id", STRING),
        field("producer_id", INT64),
        field("producer_epoch", INT16),
        field("generation_id", INT32, "3+", default=-1),
        field("member_id", STRING, "3+"),
        field("group_instance_id", STRING, "3+", nullable="0+", default=None),
        array(
            "topics",
            [
                field("name", STRING),
                array(
                    "partitions",
                    [
                        field("partition_index", INT32),
                        field("committed_offset", INT64),
                        field("committed_leader_epoch", INT32, "2+", default=-1),
                        field("committed_metadata", STRING, nullable="0+"),
                    ],
                ),
            ],
        ),
    ],
)

RESPONSE = response(
    28,
    "TxnOffsetCommit",
    versions="0-5",
    flexible="3+",
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
                    ],
                ),
            ],
        ),
    ],
)
