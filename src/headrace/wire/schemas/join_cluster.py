"""JoinCluster, a request of Headrace: a node with an invitation asks for the cluster id and the cluster key."""

from headrace.wire.schemas.notation import BYTES, INT16, STRING, UUID, field, request, response

REQUEST = request(
    32024,
    "JoinCluster",
    versions="0",
    flexible="0+",
    fields=[
        field("invitation_id", UUID),
        field("nonce", BYTES),
        field("proof", BYTES),
    ],
)

RESPONSE = response(
    32024,
    "JoinCluster",
    versions="0",
    flexible="0+",
    fields=[
        field("error_code", INT16),
        field("error_message", STRING, nullable="0+", default=None),
        field("sealed", BYTES),
    ],
)
