"""ListMetadataChanges, a request of Headrace: what changed in the cluster's metadata after a version of it.

The broker delays the response until something changes. Versions are offsets of the metadata log, so all brokers have
the same ones.
"""

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
    32041,
    "ListMetadataChanges",
    versions="0",
    flexible="0+",
    fields=[
        field("after_version", INT64, default=-1),
        field("wait_ms", INT32),
    ],
)

RESPONSE = response(
    32041,
    "ListMetadataChanges",
    versions="0",
    flexible="0+",
    fields=[
        field("throttle_time_ms", INT32),
        field("error_code", INT16),
        field("error_message", STRING, nullable="0+", default=None),
        field("version", INT64, default=-1),
        field("is_complete", BOOL),
        array(
            "topics",
            [
                field("name", STRING),
                field("topic_id", UUID),
                field("change", INT8),
                field("partition_count", INT32),
            ],
        ),
        array(
            "partitions",
            [
                field("topic", STRING),
                field("partition_index", INT32),
                field("leader_id", INT32),
                field("leader_epoch", INT32),
                array("replicas", INT32),
                array("isr", INT32),
            ],
        ),
        array(
            "configs",
            [
                field("resource_type", INT8),
                field("resource_name", STRING),
            ],
        ),
        array(
            "brokers",
            [
                field("broker_id", INT32),
                field("is_fenced", BOOL),
                field("is_stopping", BOOL),
            ],
            nullable="0+",
            default=None,
        ),
    ],
)
