"""BrokerRegistration: a process becomes a broker of the cluster. Between nodes of Headrace, which add tagged fields."""

from headrace.wire.schemas.notation import (
    BOOL,
    INT16,
    INT32,
    INT64,
    STRING,
    UINT16,
    UUID,
    array,
    field,
    request,
    response,
)

REQUEST = request(
    62,
    "BrokerRegistration",
    versions="0-4",
    flexible="0+",
    fields=[
        field("broker_id", INT32),
        field("cluster_id", STRING),
        field("incarnation_id", UUID),
        array(
            "listeners",
            [
                field("name", STRING),
                field("host", STRING),
                field("port", UINT16),
                field("security_protocol", INT16),
            ],
        ),
        array(
            "features",
            [
                field("name", STRING),
                field("min_supported_version", INT16),
                field("max_supported_version", INT16),
            ],
        ),
        field("rack", STRING, nullable="0+"),
        field("is_migrating_zk_broker", BOOL, "1+"),
        array("log_dirs", UUID, "2+"),
        field("previous_broker_epoch", INT64, "3+", default=-1),
        field("host", STRING, "4+", tag=10_000),
        field("is_controller", BOOL, "4+", tag=10_001),
        field("metadata_directory_id", UUID, "4+", tag=10_002),
        field("boot_id", STRING, "4+", tag=10_003),
        field("closed_cleanly", BOOL, "4+", tag=10_004),
    ],
)

RESPONSE = response(
    62,
    "BrokerRegistration",
    versions="0-4",
    flexible="0+",
    fields=[
        field("throttle_time_ms", INT32),
        field("error_code", INT16),
        field("broker_epoch", INT64, default=-1),
        field("error_message", STRING, "4+", nullable="4+", default=None, tag=10_000),
    ],
)
