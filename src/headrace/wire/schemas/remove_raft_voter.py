"""RemoveRaftVoter: make a voter of the metadata quorum an observer (KIP-853)."""

from headrace.wire.schemas.notation import INT16, INT32, STRING, UUID, field, request, response

REQUEST = request(
    81,
    "RemoveRaftVoter",
    versions="0",
    flexible="0+",
    fields=[
        field("cluster_id", STRING, nullable="0+"),
        field("voter_id", INT32),
        field("voter_directory_id", UUID),
    ],
)

RESPONSE = response(
    81,
    "RemoveRaftVoter",
    versions="0",
    flexible="0+",
    fields=[
        field("throttle_time_ms", INT32),
        field("error_code", INT16),
        field("error_message", STRING, nullable="0+"),
    ],
)
