"""ReadIndex, a request of Headrace: a broker asks the active controller how far its metadata must be for a read."""

from headrace.wire.schemas.notation import INT16, INT64, field, request, response

REQUEST = request(32027, "ReadIndex", versions="0", flexible="0+", fields=[])

RESPONSE = response(
    32027,
    "ReadIndex",
    versions="0",
    flexible="0+",
    fields=[
        field("error_code", INT16),
        field("metadata_offset", INT64),
    ],
)
