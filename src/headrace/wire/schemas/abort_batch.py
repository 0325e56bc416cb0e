"""AbortBatch, a request of Headrace: abort the open writers of a run for a batch."""

from headrace.wire.schemas.notation import BOOL, INT16, INT32, INT64, STRING, field, request, response

REQUEST = request(
    32002,
    "AbortBatch",
    versions="0",
    flexible="0+",
    fields=[
        field("owner", STRING),
        field("run", STRING),
        field("batch_id", INT64),
    ],
)

RESPONSE = response(
    32002,
    "AbortBatch",
    versions="0",
    flexible="0+",
    fields=[
        field("throttle_time_ms", INT32),
        field("error_code", INT16),
        field("error_message", STRING, nullable="0+", default=None),
        field("already_committed", BOOL),
        field("aborted_writers", INT32),
    ],
)
