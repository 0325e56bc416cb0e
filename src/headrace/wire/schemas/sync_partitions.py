"""SyncPartitions, a request of Headrace: the leaders of partitions sync what they have written, for a batch commit."""

from headrace.wire.schemas.notation import INT16, INT32, INT64, STRING, array, field, request, response

REQUEST = request(
    32023,
    "SyncPartitions",
    versions="0",
    flexible="0+",
    fields=[
        field("metadata_offset", INT64),
        array(
            "topics",
            [
                field("name", STRING),
                array("partition_indexes", INT32),
            ],
        ),
    ],
)

RESPONSE = response(
    32023,
    "SyncPartitions",
    versions="0",
    flexible="0+",
    fields=[
        field("boot_id", STRING),
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
)
