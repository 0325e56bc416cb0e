"""AddRaftVoter: make a node a voter of the metadata quorum (KIP-853)."""

from headrace.wire.schemas.notation import (
    BOOL,
    INT16,
    INT32,
    STRING,
    UINT16,
    UUID,
    array,
    field,
    request,
    response,
)

REQUEST = request(
    80,
    "AddRaftVoter",
    versions="0-1",
    flexible="0+",
    fields=[
        field("cluster_id", STRING, nullable="0+"),
        field("timeout_ms", INT32),
        field("voter_id", INT32),
        field("voter_directory_id", UUID),
        array(
            "listeners",
            [
                field("name", STRING),
                field("host", STRING),
                field("port", UINT16),
            ],
        ),
        field("ack_when_committed", BOOL, "1+", default=True),
    ],
)

RESPONSE = response(
    80,
    "AddRaftVoter",
    versions="0-1",
    flexible="0+",
    fields=[
        field("throttle_time_ms", INT32),
        field("error_code", INT16),
        field("error_message", STRING, nullable="0+"),
    ],
)
