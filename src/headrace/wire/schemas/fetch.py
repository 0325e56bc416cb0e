"""Fetch: positions in, record batches out; from version 7 inside a session (KIP-227).

Versions below 4 are not served: their responses carry only record formats older than v2.
"""

from headrace.wire.schemas.notation import (
    INT8,
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
    1,
    "Fetch",
    versions="4-18",
    flexible="12+",
    fields=[
        field("cluster_id", STRING, "12+", nullable="0+", default=None, tag=0),
        field("replica_id", INT32, "0-14", default=-1),
        struct(
            "replica_state",
            [
                field("replica_id", INT32, default=-1),
                field("replica_epoch", INT64, default=-1),
            ],
            "15+",
            tag=1,
        ),
        field("max_wait_ms", INT32),
        field("min_bytes", INT32),
        field("max_bytes", INT32, default=2_147_483_647),
        field("isolation_level", INT8),
        field("session_id", INT32, "7+"),
        field("session_epoch", INT32, "7+", default=-1),
        array(
            "topics",
            [
                field("topic", STRING, "0-12"),
                field("topic_id", UUID, "13+"),
                array(
                    "partitions",
                    [
                        field("partition", INT32),
                        field("current_leader_epoch", INT32, "9+", default=-1),
                        field("fetch_offset", INT64),
                        field("last_fetched_epoch", INT32, "12+", default=-1),
                        field("log_start_offset", INT64, "5+", default=-1),
                        field("partition_max_bytes", INT32),
                        field("replica_directory_id", UUID, "17+", tag=0),
                        field("high_watermark", INT64, "18+", default=9_223_372_036_854_775_807, tag=1),
                    ],
                ),
            ],
        ),
        array(
            "forgotten_topics_data",
            [
                field("topic", STRING, "7-12"),
                field("topic_id", UUID, "13+"),
                array("partitions", INT32),
            ],
            "7+",
            named="ForgottenTopic",
        ),
        field("rack_id", STRING, "11+"),
    ],
)

RESPONSE = response(
    1,
    "Fetch",
    versions="4-18",
    flexible="12+",
    fields=[
        field("throttle_time_ms", INT32),
        field("error_code", INT16, "7+"),
        field("session_id", INT32, "7+"),
        array(
            "responses",
            [
                field("topic", STRING, "0-12"),
                field("topic_id", UUID, "13+"),
                array(
                    "partitions",
                    [
                        field("partition_index", INT32),
                        field("error_code", INT16),
                        field("high_watermark", INT64),
                        field("last_stable_offset", INT64, default=-1),
                        field("log_start_offset", INT64, "5+", default=-1),
                        struct(
                            "diverging_epoch",
                            [
                                field("epoch", INT32, default=-1),
                                field("end_offset", INT64, default=-1),
                            ],
                            "12+",
                            tag=0,
                        ),
                        struct(
                            "current_leader",
                            [
                                field("leader_id", INT32, default=-1),
                                field("leader_epoch", INT32, default=-1),
                            ],
                            "12+",
                            tag=1,
                        ),
                        struct(
                            "snapshot_id",
                            [
                                field("end_offset", INT64, default=-1),
                                field("epoch", INT32, default=-1),
                            ],
                            "12+",
                            tag=2,
                        ),
                        array(
                            "aborted_transactions",
                            [
                                field("producer_id", INT64),
                                field("first_offset", INT64),
                            ],
                            nullable="0+",
                        ),
                        field("preferred_read_replica", INT32, "11+", default=-1),
                        field("records", RECORDS, nullable="0+"),
                    ],
                ),
            ],
            named="Topic",
        ),
        array(
            "node_endpoints",
            [
                field("node_id", INT32),
                field("host", STRING),
                field("port", INT32),
                field("rack", STRING, nullable="0+", default=None),
            ],
            "16+",
            tag=0,
        ),
    ],
)
