"""DeleteRecords: move the log start offset of partitions up."""

from headrace.wire.schemas.notation import INT16, INT32, INT64, STRING, array, field, request, response

REQUEST = request(
    21,
    "DeleteRecords",
    versions="0-2",
    flexible="2+",
    fields=[
        array(
            "topics",
            [
                field("name", STRING),
                array(
                    "partitions",
                    [
                        field("partition_index", INT32),
                        field("offset", INT64),
                    ],
                ),
            ],
        ),
        field("timeout_ms", INT32),
    ],
)

RESPONSE = response(
    21,
    "DeleteRecords",
    versions="0-2",
    flexible="2+",
    fields=[
        field("throttle_time_ms", INT32),
        array(
            "topics",
            [
                field("name", STRING),
                array(
                    "partitions",
                    [
                        field("partition_index", INT32),
                        field("low_watermark", INT64),
                        field("error_code", INT16),
                    ],
                ),
            ],
        ),
    ],
)
