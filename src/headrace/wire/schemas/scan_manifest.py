"""ScanManifest, Headrace's own: the segment files of partitions, leased to a client that reads them itself."""

from headrace.wire.schemas.notation import (
    BOOL,
    INT8,
    INT16,
    INT32,
    INT64,
    STRING,
    UUID,
    array,
    field,
    request,
    response,
)

REQUEST = request(
    32010,
    "ScanManifest",
    versions="0",
    flexible="0+",
    fields=[
        field("lease_id", UUID),
        field("lease_ms", INT32),
        field("isolation_level", INT8),
        array(
            "topics",
            [
                field("name", STRING),
                array(
                    "partitions",
                    [
                        field("partition_index", INT32),
                        field("from_offset", INT64, default=-1),
                    ],
                ),
            ],
        ),
    ],
)

RESPONSE = response(
    32010,
    "ScanManifest",
    versions="0",
    flexible="0+",
    fields=[
        field("throttle_time_ms", INT32),
        field("error_code", INT16),
        field("error_message", STRING, nullable="0+", default=None),
        field("cluster_id", STRING),
        field("node_id", INT32),
        field("lease_id", UUID),
        field("lease_ms", INT32),
        array(
            "directories",
            [
                field("directory_id", UUID),
                field("path", STRING),
            ],
        ),
        array(
            "topics",
            [
                field("name", STRING),
                field("topic_id", UUID),
                array(
                    "partitions",
                    [
                        field("partition_index", INT32),
                        field("error_code", INT16),
                        field("error_message", STRING, nullable="0+", default=None),
                        field("directory_id", UUID),
                        field("folder", STRING),
                        field("leader_epoch", INT32, default=-1),
                        field("start_offset", INT64, default=-1),
                        field("end_offset", INT64, default=-1),
                        field("high_watermark", INT64, default=-1),
                        field("last_stable_offset", INT64, default=-1),
                        array(
                            "leader_epochs",
                            [
                                field("epoch", INT32),
                                field("start_offset", INT64),
                            ],
                        ),
                        array(
                            "segments",
                            [
                                field("base_offset", INT64),
                                field("end_offset", INT64),
                                field("file_name", STRING),
                                field("size_bytes", INT64),
                                field("max_timestamp", INT64, default=-1),
                                field("is_closed", BOOL),
                            ],
                        ),
                        array(
                            "aborted_transactions",
                            [
                                field("producer_id", INT64),
                                field("first_offset", INT64),
                                field("last_offset", INT64),
                            ],
                        ),
                        field("next_offset", INT64, default=-1),
                    ],
                ),
            ],
        ),
    ],
)
