"""DescribeQuorum: leader, voters and observers of the metadata quorum."""

from headrace.wire.schemas.notation import INT16, INT32, INT64, STRING, UINT16, UUID, array, field, request, response

REQUEST = request(
    55,
    "DescribeQuorum",
    versions="0-2",
    flexible="0+",
    fields=[
        array(
            "topics",
            [
                field("topic_name", STRING),
                array(
                    "partitions",
                    [
                        field("partition_index", INT32),
                    ],
                ),
            ],
        ),
    ],
)

RESPONSE = response(
    55,
    "DescribeQuorum",
    versions="0-2",
    flexible="0+",
    fields=[
        field("error_code", INT16),
        field("error_message", STRING, "2+", nullable="0+"),
        array(
            "topics",
            [
                field("topic_name", STRING),
                array(
                    "partitions",
                    [
                        field("partition_index", INT32),
                        field("error_code", INT16),
                        field("error_message", STRING, "2+", nullable="0+"),
                        field("leader_id", INT32),
                        field("leader_epoch", INT32),
                        field("high_watermark", INT64),
                        array(
                            "current_voters",
                            [
                                field("replica_id", INT32),
                                field("replica_directory_id", UUID, "2+"),
                                field("log_end_offset", INT64),
                                field("last_fetch_timestamp", INT64, "1+", default=-1),
                                field("last_caught_up_timestamp", INT64, "1+", default=-1),
                            ],
                            named="Replica",
                        ),
                        array(
                            "observers",
                            [
                                field("replica_id", INT32),
                                field("replica_directory_id", UUID, "2+"),
                                field("log_end_offset", INT64),
                                field("last_fetch_timestamp", INT64, "1+", default=-1),
                                field("last_caught_up_timestamp", INT64, "1+", default=-1),
                            ],
                            named="Replica",
                        ),
                    ],
                ),
            ],
        ),
        array(
            "nodes",
            [
                field("node_id", INT32),
                array(
                    "listeners",
                    [
                        field("name", STRING),
                        field("host", STRING),
                        field("port", UINT16),
                    ],
                ),
            ],
            "2+",
        ),
    ],
)
