"""EndTxn: commit or abort a transaction."""

from headrace.wire.schemas.notation import BOOL, INT16, INT32, INT64, STRING, field, request, response

REQUEST = request(
    26,
    "EndTxn",
    versions="0-5",
    flexible="3+",
    fields=[
        field("transactional_id", STRING),
        field("producer_id", INT64),
        field("producer_epoch", INT16),
        field("committed", BOOL),
    ],
)

RESPONSE = response(
    26,
    "EndTxn",
    versions="0-5",
    flexible="3+",
    fields=[
        field("throttle_time_ms", INT32),
        field("error_code", INT16),
        field("producer_id", INT64, "5+", default=-1),
        field("producer_epoch", INT16, "5+", default=-1),
    ],
)
