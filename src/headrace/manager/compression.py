"""Compression of responses by zstd or gzip, for clients that accept it. Streams are sent as they are."""

import zlib
from collections.abc import Iterable

from headrace.manager.asgi import Message, Send
from headrace.manager.limits import COMPRESSED_BYTES_MAX, COMPRESSED_BYTES_MIN

LEVEL = 1
GZIP_WINDOW = 31
"""Of zlib: the format of gzip, and 32 KiB."""

COMPRESSIBLE = (
    b"application/json",
    b"application/problem+json",
    b"text/html",
    b"text/css",
    b"text/javascript",
    b"text/plain",
)
Headers = list[tuple[bytes, bytes]]


def accepted_encoding(header: bytes) -> bytes:
    """Return zstd or gzip, whichever a header Accept-Encoding allows first in this order; nothing if neither."""
    allowed = set()
    for part in header.lower().split(b","):
        name, *parameters = (each.strip() for each in part.split(b";"))
        if not any(each.replace(b" ", b"").rstrip(b"0").rstrip(b".") in (b"q=", b"q=0") for each in parameters):
            allowed.add(name)
    return next((name for name in (b"zstd", b"gzip") if name in allowed), b"")


class CompressedResponse:
    """Takes the messages of a response; the start waits for the body, if the body may be compressed."""

    def __init__(self, send: Send, encoding: bytes) -> None:
        self._send = send
        self._encoding = encoding
        self._start: Message | None = None

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            if _value(message["headers"], b"content-type").split(b";")[0] in COMPRESSIBLE:
                self._start = message
                return
        elif self._start is not None:
            start, self._start = self._start, None
            body = message.get("body", b"")
            start["headers"].append((b"vary", b"accept-encoding"))
            if not message.get("more_body") and COMPRESSED_BYTES_MIN <= len(body) <= COMPRESSED_BYTES_MAX:
                message["body"] = body = compressed(body, self._encoding)
                start["headers"] = self._encoded_headers(start["headers"], len(body))
            await self._send(start)
        await self._send(message)

    def _encoded_headers(self, headers: Iterable[tuple[bytes, bytes]], length: int) -> Headers:
        kept = [
            (name, b"W/" + value if name == b"etag" and not value.startswith(b"W/") else value)
            for name, value in headers
            if name != b"content-length"
        ]
        return [*kept, (b"content-length", str(length).encode()), (b"content-encoding", self._encoding)]


def compressed(body: bytes, encoding: bytes) -> bytes:
    if encoding == b"zstd":
        import cramjam  # only for the first such response

        return bytes(cramjam.zstd.compress(body, level=LEVEL))
    compressor = zlib.compressobj(LEVEL, zlib.DEFLATED, GZIP_WINDOW)
    return compressor.compress(body) + compressor.flush()


def _value(headers: Iterable[tuple[bytes, bytes]], wanted: bytes) -> bytes:
    return next((value for name, value in headers if name == wanted), b"")
