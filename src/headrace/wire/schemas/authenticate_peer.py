"""AuthenticatePeer, a request of Headrace: two nodes prove to each other that they belong to the same cluster.

It is sent twice on a new connection: first with the hello, which is answered by the challenge, then with the proof.
"""

from headrace.wire.schemas.notation import BYTES, INT16, INT32, STRING, UUID, field, request, response, struct

_NODE = [
    field("nonce", BYTES),
    field("node_id", INT32),
    field("directory_id", UUID),
    field("cluster_id", STRING),
    field("host", STRING),
    field("port", INT32),
    field("min_version", INT16),
    field("max_version", INT16),
]

REQUEST = request(
    32020,
    "AuthenticatePeer",
    versions="0",
    flexible="0+",
    fields=[
        struct("hello", _NODE, nullable="0+", default=None),
        field("proof", BYTES),
    ],
)

RESPONSE = response(
    32020,
    "AuthenticatePeer",
    versions="0",
    flexible="0+",
    fields=[
        field("error_code", INT16),
        field("error_message", STRING, nullable="0+", default=None),
        struct("challenge", _NODE, nullable="0+", default=None),
        field("proof", BYTES),
    ],
)
