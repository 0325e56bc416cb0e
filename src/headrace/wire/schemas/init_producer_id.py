"""InitProducerId: a producer id and epoch for idempotent and transactional producers.

Version 6 belongs to two-phase commits (KIP-939). Kafka 4.3 marks it as unstable, and the broker does not serve it.
"""

from headrace.wire.schemas.notation import BOOL, INT16, INT32, INT64, STRING, field, request, response

REQUEST = request(
    22,
    "InitProducerId",
    versions="0-6",
    flexible="2+",
    fields=[
        field("transactional_id", STRING, nullable="0+"),
        field("transaction_timeout_ms", INT32),
        field("producer_id", INT64, "3+", default=-1),
        field("producer_epoch", INT16, "3+", default=-1),
        field("enable2_pc", BOOL, "6+"),
        field("keep_prepared_txn", BOOL, "6+"),
    ],
)

RESPONSE = response(
    22,
    "InitProducerId",
    versions="0-6",
    flexible="2+",
    fields=[
        field("throttle_time_ms", INT32),
        field("error_code", INT16),
        field("producer_id", INT64, default=-1),
        field("producer_epoch", INT16),
        field("ongoing_txn_producer_id", INT64, "6+", default=-1),
        field("ongoing_txn_producer_epoch", INT16, "6+", default=-1),
    ],
)
