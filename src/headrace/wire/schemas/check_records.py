"""CheckRecords, a request of Headrace: a follower has its leader read records again that it has refused as damaged."""

from headrace.wire.schemas.notation import INT16, INT32, INT64, UUID, field, request, response

REQUEST = request(
    32037,
    "CheckRecords",
    versions="0",
    flexible="0+",
    fields=[
        field("topic_id", UUID),
        field("partition_index", INT32),
        field("leader_epoch", INT32),
        field("offset", INT64),
    ],
)

RESPONSE = response(32037, "CheckRecords", versions="0", flexible="0+", fields=[field("error_code", INT16)])
