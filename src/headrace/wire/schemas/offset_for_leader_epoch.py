"""OffsetForLeaderEpoch: the end offset of a leader epoch, so that a replica knows where it diverged."""

from headrace.wire.schemas.notation import INT16, INT32, INT64, STRING, array, field, request, response

REQUEST = request(
    23,
    "OffsetForLeaderEpoch",
    versions="0-4",
    flexible="4+",
    fields=[
        field("replica_id", INT32, "3+", default=-2),
        array(
            "topics",
            [
                field("topic", STRING),
                array(
                    "partitions",
                    [
                        field("partition", INT32),
                        field("current_leader_epoch", INT32, "2+", default=-1),
                        field("leader_epoch", INT32),
                    ],
                ),
            ],
        ),
    ],
)

RESPONSE = response(
    23,
    "OffsetForLeaderEpoch",
    versions="0-4",
    flexible="4+",
    fields=[
        field("throttle_time_ms", INT32, "2+"),
        array(
            "topics",
            [
                field("topic", STRING),
                array(
                    "partitions",
                    [
                        field("error_code", INT16),
                        field("partition", INT32),
                        field("leader_epoch", INT32, "1+", default=-1),
                        field("end_offset", INT64, default=-1),
                    ],
                ),
            ],
        ),
    ],
)
