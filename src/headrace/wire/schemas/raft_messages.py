"""RaftMessages, a request of Headrace: messages of the metadata quorum. It has no response; Raft sends its own."""

from headrace.wire.schemas.notation import BYTES, array, request, response

REQUEST = request(
    32021,
    "RaftMessages",
    versions="0",
    flexible="0+",
    fields=[array("messages", BYTES)],
)

RESPONSE = response(32021, "RaftMessages", versions="0", flexible="0+", fields=[])
