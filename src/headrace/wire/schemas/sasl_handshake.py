"""SaslHandshake: agree on a SASL mechanism. Never flexible."""

from headrace.wire.schemas.notation import INT16, STRING, array, field, request, response

REQUEST = request(
    17,
    "SaslHandshake",
    versions="0-1",
    flexible="none",
    fields=[
        field("mechanism", STRING),
    ],
)

RESPONSE = response(
    17,
    "SaslHandshake",
    versions="0-1",
    flexible="none",
    fields=[
        field("error_code", INT16),
        array("mechanisms", STRING),
    ],
)
