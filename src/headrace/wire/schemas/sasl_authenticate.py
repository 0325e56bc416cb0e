"""SaslAuthenticate: one step of a SASL exchange."""

from headrace.wire.schemas.notation import BYTES, INT16, INT64, STRING, field, request, response

REQUEST = request(
    36,
    "SaslAuthenticate",
    versions="0-2",
    flexible="2+",
    fields=[
        field("auth_bytes", BYTES),
    ],
)

RESPONSE = response(
    36,
    "SaslAuthenticate",
    versions="0-2",
    flexible="2+",
    fields=[
        field("error_code", INT16),
        field("error_message", STRING, nullable="0+"),
        field("auth_bytes", BYTES),
        field("session_lifetime_ms", INT64, "1+"),
    ],
)
