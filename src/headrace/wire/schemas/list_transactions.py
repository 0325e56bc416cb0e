"""ListTransactions: transactions this broker coordinates."""

from headrace.wire.schemas.notation import INT16, INT32, INT64, STRING, array, field, request, response

REQUEST = request(
    66,
    "ListTransactions",
    versions="0-2",
    flexible="0+",
    fields=[
        array("state_filters", STRING),
        array("producer_id_filters", INT64),
        field("duration_filter", INT64, "1+", default=-1),
        field("transactional_id_pattern", STRING, "2+", nullable="0+", default=None),
    ],
)

RESPONSE = response(
    66,
    "ListTransactions",
    versions="0-2",
    flexible="0+",
    fields=[
        field("throttle_time_ms", INT32),
        field("error_code", INT16),
        array("unknown_state_filters", STRING),
        array(
            "transaction_states",
            [
                field("transactional_id", STRING),
                field("producer_id", INT64),
                field("transaction_state", STRING),
            ],
        ),
    ],
)
