"""AddPartitionsToTxn: partitions become part of a transaction; from version 4 batched, for brokers.

Headrace's own fields, which only its brokers send: the offset of the sender's metadata, which names the partitions; the
sender, which leads them; and the boot of its operating system.
"""

from headrace.wire.schemas.notation import BOOL, INT16, INT32, INT64, STRING, array, field, request, response

REQUEST = request(
    24,
    "AddPartitionsToTxn",
    versions="0-5",
    flexible="3+",
    fields=[
        array(
            "transactions",
            [
                field("transactional_id", STRING),
                field("producer_id", INT64),
                field("producer_epoch", INT16),
                field("verify_only", BOOL),
                array(
                    "topics",
                    [
                        field("name", STRING),
                        array("partitions", INT32),
                    ],
                ),
            ],
            "4+",
        ),
        field("v3_and_below_transactional_id", STRING, "0-3"),
        field("v3_and_below_producer_id", INT64, "0-3"),
        field("v3_and_below_producer_epoch", INT16, "0-3"),
        array(
            "v3_and_below_topics",
            [
                field("name", STRING),
                array("partitions", INT32),
            ],
            "0-3",
            named="Topic",
        ),
        field("metadata_offset", INT64, "4+", default=-1, tag=10_000),
        field("leader_id", INT32, "4+", default=-1, tag=10_001),
        field("boot_id", STRING, "4+", tag=10_002),
    ],
)

RESPONSE = response(
    24,
    "AddPartitionsToTxn",
    versions="0-5",
    flexible="3+",
    fields=[
        field("throttle_time_ms", INT32),
        field("error_code", INT16, "4+"),
        array(
            "results_by_transaction",
            [
                field("transactional_id", STRING),
                array(
                    "topic_results",
                    [
                        field("name", STRING),
                        array(
                            "results_by_partition",
                            [
                                field("partition_index", INT32),
                                field("partition_error_code", INT16),
                            ],
                            named="Partition",
                        ),
                    ],
                    named="Topic",
                ),
            ],
            "4+",
            named="Transaction",
        ),
        array(
            "results_by_topic_v3_and_below",
            [
                field("name", STRING),
                array(
                    "results_by_partition",
                    [
                        field("partition_index", INT32),
                        field("partition_error_code", INT16),
                    ],
                    named="Partition",
                ),
            ],
            "0-3",
            named="Topic",
        ),
    ],
)
