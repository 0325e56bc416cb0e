"""AllocateProducerIds: the next block of producer ids for the clients of one broker."""

from headrace.wire.schemas.notation import INT16, INT32, INT64, field, request, response

REQUEST = request(
    67,
    "AllocateProducerIds",
    versions="0",
    flexible="0+",
    fields=[
        field("broker_id", INT32),
        field("broker_epoch", INT64, default=-1),
    ],
)

RESPONSE = response(
    67,
    "AllocateProducerIds",
    versions="0",
    flexible="0+",
    fields=[
        field("throttle_time_ms", INT32),
        field("error_code", INT16),
        field("producer_id_start", INT64),
        field("producer_id_len", INT32),
    ],
)
