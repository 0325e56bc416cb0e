"""DescribeTransactions: state and partitions of transactions."""

from headrace.wire.schemas.notation import INT16, INT32, INT64, STRING, array, field, request, response

REQUEST = request(
    65,
    "DescribeTransactions",
    versions="0",
    flexible="0+",
    fields=[
        array("transactional_ids", STRING),
    ],
)

RESPONSE = response(
    65,
    "DescribeTransactions",
    versions="0",
    flexible="0+",
    fields=[
        field("throttle_time_ms", INT32),
        array(
            "transaction_states",
            [
                field("error_code", INT16),
                field("transactional_id", STRING),
                field("transaction_state", STRING),
                field("transaction_timeout_ms", INT32),
                field("transaction_start_time_ms", INT64),
                field("producer_id", INT64),
                field("producer_epoch", INT16),
                array(
                    "topics",
                    [
                        field("topic", STRING),
                        array("partitions", INT32),
                    ],
                ),
            ],
        ),
    ],
)
