"""Documents of the operator's identity provider: a file, or a response over HTTP. Redirects are not followed."""

import ssl
import time
from collections.abc import Mapping
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from urllib.parse import unquote, urlsplit

from headrace.ports.network import DocumentSource

_CHUNK_BYTES = 64 << 10


def fetch(source: DocumentSource) -> bytes:
    """Return a document; raise OSError with the reason."""
    parts = urlsplit(source.url)
    if parts.scheme == "file":
        with open(unquote(parts.path), "rb") as file:
            content = file.read(source.bytes_max + 1)
        if len(content) > source.bytes_max:
            raise OSError(f"{parts.path} has more than {source.bytes_max} bytes")
        return content
    context = ssl.create_default_context(cafile=source.authorities) if parts.scheme == "https" else None
    return http_exchange(source.url, context, bytes_max=source.bytes_max, seconds_max=source.ms_max / 1_000)


def http_exchange(
    url: str,
    context: ssl.SSLContext | None,
    *,
    bytes_max: int,
    seconds_max: float,
    body: bytes | None = None,
    headers: Mapping[str, str] | None = None,
) -> bytes:
    """Return the content of a response with the status 200, to a POST if there is a body; raise OSError otherwise."""
    parts = urlsplit(url)
    assert parts.hostname is not None
    until = time.monotonic() + seconds_max
    connection: HTTPConnection
    if parts.scheme == "https":
        connection = HTTPSConnection(parts.hostname, parts.port, timeout=seconds_max, context=context)
    else:
        connection = HTTPConnection(parts.hostname, parts.port, timeout=seconds_max)
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    method = "GET" if body is None else "POST"
    try:
        connection.request(method, target, body, {"accept": "application/json", **(headers or {})})
        response = connection.getresponse()
        content = _read(response, bytes_max, until)
    except HTTPException as error:
        raise OSError(f"{parts.path} did not answer as HTTP requires ({type(error).__name__})") from error
    except OSError as error:
        raise OSError(f"it does not answer ({error})") from error
    finally:
        connection.close()
    if response.status != 200:
        raise OSError(f"{parts.path} answered with status {response.status}")
    if len(content) > bytes_max:
        raise OSError(f"{parts.path} answered with more than {bytes_max} bytes")
    return content


def _read(response: HTTPResponse, bytes_max: int, until: float) -> bytes:
    content = b""
    while len(content) <= bytes_max and (part := response.read1(_CHUNK_BYTES)):
        if time.monotonic() > until:
            raise OSError("its response is too slow")
        content += part
    return content
