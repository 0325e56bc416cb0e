"""JSON responses, encoded by msgspec, with an ETag where the request reads."""

from hashlib import blake2b
from typing import Any

import msgspec
from fastapi import Request, Response

ETAG_BYTES = 12
JSON = "application/json"
_encoder = msgspec.json.Encoder(enc_hook=str)


def as_json(value: object) -> bytes:
    return _encoder.encode(value)


def respond(request: Request, value: object, *, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """Return the value as JSON; 304 without a body if the client has the same already (If-None-Match)."""
    content = _encoder.encode(value)
    if request.method not in ("GET", "HEAD"):
        return Response(content, status, headers, JSON)
    etag = f'"{blake2b(content, digest_size=ETAG_BYTES).hexdigest()}"'
    tagged = {**(headers or {}), "etag": etag, "cache-control": "no-cache"}
    known = [each.strip().removeprefix("W/") for each in request.headers.get("if-none-match", "").split(",")]
    if etag in known or known == ["*"]:
        return Response(None, 304, tagged)
    return Response(content, status, tagged, JSON)


PROBLEM_SCHEMA: dict[str, Any] = {
    "type": "object",
    "description": "RFC 9457: what happened, and what to do next.",
    "required": ["type", "title", "status", "detail", "request_id"],
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string", "description": "What happened, and what to do next."},
        "request_id": {"type": "string", "description": "The id of the request, as in X-Request-Id and the logs."},
        "error": {"type": "string", "description": "The name of Kafka's error behind it."},
    },
}
"""The schema of every response that is not a success."""
