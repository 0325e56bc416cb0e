"""AddOffsetsToTxn: the offsets of a group become part of a transaction."""

from headrace.wire.schemas.notation import INT16, INT32, INT64, STRING, field, request, response

REQUEST = request(
    25,
    "AddOffsetsToTxn",
    versions="0-4",
    flexible="3+",
    fields=[
        field("transactional_id", STRING),
        field("producer_id", INT64),
        field("producer_epoch", INT16),
        field("group_id", STRING),
    ],
)

RESPONSE = response(
    25,
    "AddOffsetsToTxn",
    versions="0-4",
    flexible="3+",
    fields=[
        field("throttle_time_ms", INT32),
        field("error_code", INT16),
    ],
)
