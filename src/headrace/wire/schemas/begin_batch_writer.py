"""BeginBatchWriter, a request of Headrace: a task borrows a producer identity for one batch of an owner."""

from headrace.wire.schemas.notation import BOOL, INT16, INT32, INT64, STRING, field, request, response

REQUEST = request(
    32000,
    "BeginBatchWriter",
    versions="0",
    flexible="0+",
    fields=[
        field("owner", STRING),
        field("run", STRING),
        field("batch_id", INT64),
        field("task_attempt_id", INT64),
        field("timeout_ms", INT32),
    ],
)

RESPONSE = response(
    32000,
    "BeginBatchWriter",
    versions="0",
    flexible="0+",
    fields=[
        field("throttle_time_ms", INT32),
        field("error_code", INT16),
        field("error_message", STRING, nullable="0+", default=None),
        field("already_committed", BOOL),
        field("transactional_id", STRING, nullable="0+", default=None),
        field("producer_id", INT64, default=-1),
        field("producer_epoch", INT16, default=-1),
        field("timeout_ms", INT32),
    ],
)
