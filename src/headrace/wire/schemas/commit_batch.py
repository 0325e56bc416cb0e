"""CommitBatch, a request of Headrace: commit the rows of the named writers of a batch, all of them or none."""

from headrace.wire.schemas.notation import BOOL, INT16, INT32, INT64, STRING, array, field, request, response

REQUEST = request(
    32001,
    "CommitBatch",
    versions="0-1",
    flexible="0+",
    fields=[
        field("owner", STRING),
        field("run", STRING),
        field("batch_id", INT64),
        array(
            "writers",
            [
                field("transactional_id", STRING),
                field("producer_id", INT64),
                field("producer_epoch", INT16),
            ],
        ),
        field("write_id", STRING, "1+"),
    ],
)

RESPONSE = response(
    32001,
    "CommitBatch",
    versions="0-1",
    flexible="0+",
    fields=[
        field("throttle_time_ms", INT32),
        field("error_code", INT16),
        field("error_message", STRING, nullable="0+", default=None),
        field("already_committed", BOOL),
    ],
)
