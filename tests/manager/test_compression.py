"""Compressed responses: the choice of the encoding, what stays as it is, and the headers."""

import asyncio
import zlib
from typing import Any

import cramjam
import pytest

from headrace.manager.compression import CompressedResponse, accepted_encoding, compressed
from headrace.manager.limits import COMPRESSED_BYTES_MAX, COMPRESSED_BYTES_MIN
from tests.manager.manager_process import ManagerProcess

BODY = b'{"name": "orders"}' * 200


@pytest.mark.parametrize(
    ("header", "chosen"),
    [
        (b"", b""),
        (b"br, deflate", b""),
        (b"gzip, deflate, br", b"gzip"),
        (b"gzip;q=1.0, zstd;q=0.5", b"zstd"),
        (b"GZIP, zstd;q=0", b"gzip"),
        (b"gzip; q=0.000", b""),
        (b"gzip;q=0.001", b"gzip"),
        (b";;,,;q=;", b""),
    ],
)
def test_the_encoding_is_one_that_the_client_accepts(header: bytes, chosen: bytes) -> None:
    assert accepted_encoding(header) == chosen


def test_both_encodings_can_be_undone() -> None:
    assert zlib.decompress(compressed(BODY, b"gzip"), 31) == BODY
    assert bytes(cramjam.zstd.decompress(compressed(BODY, b"zstd"))) == BODY


def sent(*bodies: bytes, media_type: bytes = b"application/json") -> tuple[dict[bytes, bytes], bytes]:
    """Return headers and body of a response that was sent in these parts."""
    found: list[Any] = []

    async def keep(message: Any) -> None:
        found.append(message)

    async def send() -> None:
        response = CompressedResponse(keep, b"gzip")
        length = str(sum(map(len, bodies))).encode()
        headers = [(b"content-type", media_type), (b"content-length", length), (b"etag", b'"1"')]
        await response.send({"type": "http.response.start", "status": 200, "headers": headers})
        for number, body in enumerate(bodies, 1):
            await response.send({"type": "http.response.body", "body": body, "more_body": number < len(bodies)})

    asyncio.run(send())
    return dict(found[0]["headers"]), b"".join(message["body"] for message in found[1:])


def test_a_compressed_response_has_the_headers_of_one() -> None:
    headers, body = sent(BODY)
    assert zlib.decompress(body, 31) == BODY
    assert headers[b"content-encoding"] == b"gzip"
    assert int(headers[b"content-length"]) == len(body)
    assert headers[b"etag"] == b'W/"1"'
    assert headers[b"vary"] == b"accept-encoding"


def test_small_huge_and_streamed_responses_and_images_stay_as_they_are() -> None:
    for parts, media_type in (
        ([b"x" * (COMPRESSED_BYTES_MIN - 1)], b"application/json"),
        ([b"x" * (COMPRESSED_BYTES_MAX + 1)], b"application/json"),
        ([BODY, BODY], b"application/json"),
        ([BODY], b"text/event-stream"),
        ([BODY], b"image/svg+xml"),
    ):
        headers, body = sent(*parts, media_type=media_type)
        assert body == b"".join(parts)
        assert b"content-encoding" not in headers
        assert headers[b"etag"] == b'"1"'


@pytest.mark.process
def test_a_list_comes_compressed_and_is_known_again(manager: ManagerProcess) -> None:
    path = "/v1/openapi.json"
    plain = manager.http.get(path, headers={"accept-encoding": "identity"})
    for encoding in ("gzip", "zstd"):
        with manager.http.stream("GET", path, headers={"accept-encoding": encoding}) as response:
            raw = b"".join(response.iter_raw())
            assert response.headers["content-encoding"] == encoding
        assert len(raw) < len(plain.content) / 3
    topics = manager.http.get("/v1/topics", headers={"accept-encoding": "gzip"})
    again = manager.http.get("/v1/topics", headers={"if-none-match": topics.headers["etag"], "accept-encoding": "gzip"})
    assert again.status_code == 304
