"""Produce: record batches in, one base offset per partition out."""

from headrace.wire.schemas.notation import (
    INT16,
    INT32,
    INT64,
    RECORDS,
    STRING,
    UUID,
    array,
    field,
    request,
    response,
    struct,
)

REQUEST = request(
    0,
    "Produce",
    versions="0-13",
    flexible="9+",
    fields=[
        field("transactional_id", STRING, "3+", nullable="0+", default=None),
        field("acks", INT16),
        field("timeout_ms", INT32),
        array(
            "topic_data",
            [
                field("name", STRING, "0-12"),
                field("topic_id", UUID, "13+"),
                array(
                    "partition_data",
                    [
                        field("index", INT32),
                        field("records", RECORDS, nullable="0+"),
                    ],
                    named="Partition",
                ),
            ],
            named="Topic",
        ),
    ],
)

RESPONSE = response(
    0,
    "Produce",
    versions="0-13",
    flexible="9+",
    fields=[
        array(
            "responses",
            [
                field("name", STRING, "0-12"),
                field("topic_id", UUID, "13+"),
                array(
                    "partition_responses",
                    [
                        field("index", INT32),
                        field("error_code", INT16),
                        field("base_offset", INT64),
                        field("log_append_time_ms", INT64, "2+", default=-1),
                        field("log_start_offset", INT64, "5+", default=-1),
                        array(
                            "record_errors",
                            [
                                field("batch_index", INT32),
                                field("batch_index_error_message", STRING, nullable="0+", default=None),
                            ],
                            "8+",
                        ),
                        field("error_message", STRING, "8+", nullable="0+", default=None),
                        struct(
                            "current_leader",
                            [
                                field("leader_id", INT32, default=-1),
                                field("leader_epoch", INT32, default=-1),
                            ],
                            "10+",
                            tag=0,
                        ),
                    ],
                    named="Partition",
                ),
            ],
            named="Topic",
        ),
        field("throttle_time_ms", INT32, "1+"),
        array(
            "node_endpoints",
            [
                field("node_id", INT32),
                field("host", STRING),
                field("port", INT32),
                field("rack", STRING, nullable="0+", default=None),
            ],
            "10+",
            tag=0,
        ),
    ],
)
