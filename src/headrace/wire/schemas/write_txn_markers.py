"""WriteTxnMarkers: the transaction coordinator informs partition leaders of a transaction's outcome.

Headrace's own fields, which only its brokers send: `sync` asks for the marker to be on the disk before the response;
`metadata_offset` is the offset of the metadata by which the coordinator has chosen the leaders.
"""

from headrace.wire.schemas.notation import BOOL, INT8, INT16, INT32, INT64, STRING, array, field, request, response

REQUEST = request(
    27,
    "WriteTxnMarkers",
    versions="0-2",
    flexible="1+",
    fields=[
        array(
            "markers",
            [
                field("producer_id", INT64),
                field("producer_epoch", INT16),
                field("transaction_result", BOOL),
                array(
                    "topics",
                    [
                        field("name", STRING),
                        array("partition_indexes", INT32),
                    ],
                ),
                field("coordinator_epoch", INT32),
                field("transaction_version", INT8, "2+"),
                field("sync", BOOL, "2+", tag=10_000),
            ],
        ),
        field("metadata_offset", INT64, "2+", default=-1, tag=10_000),
    ],
)

RESPONSE = response(
    27,
    "WriteTxnMarkers",
    versions="0-2",
    flexible="1+",
    fields=[
        array(
            "markers",
            [
                field("producer_id", INT64),
                array(
                    "topics",
                    [
                        field("name", STRING),
                        array(
                            "partitions",
                            [
                                field("partition_index", INT32),
                                field("error_code", INT16),
                            ],
                        ),
                    ],
                ),
            ],
        ),
    ],
)
