"""DescribeBatches, a request of Headrace: the newest run of an owner, its last committed batch and its pool."""

from headrace.wire.schemas.notation import INT16, INT32, INT64, STRING, array, field, request, response

REQUEST = request(
    32003,
    "DescribeBatches",
    versions="0",
    flexible="0+",
    fields=[
        field("owner", STRING),
    ],
)

RESPONSE = response(
    32003,
    "DescribeBatches",
    versions="0",
    flexible="0+",
    fields=[
        field("throttle_time_ms", INT32),
        field("error_code", INT16),
        field("error_message", STRING, nullable="0+", default=None),
        field("run", STRING),
        field("committed_batch_id", INT64, default=-1),
        field("committed_run", STRING),
        field("updated_at_ms", INT64, default=-1),
        array(
            "writers",
            [
                field("transactional_id", STRING),
                field("producer_id", INT64),
                field("producer_epoch", INT16),
                field("state", STRING),
                field("run", STRING),
                field("batch_id", INT64, default=-1),
                field("task_attempt_id", INT64, default=-1),
            ],
        ),
    ],
)
