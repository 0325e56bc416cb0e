"""Headers and frames, against kafka-python's and by hand."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.wire.apis import APIS, ApiKey
from headrace.wire.errors import ProtocolError
from headrace.wire.frames import (
    SIZE_BYTES,
    read_request_header,
    read_response_header,
    request_frame,
    response_frame,
    response_header,
)
from headrace.wire.schemas.notation import Message
from tests.wire import kafka_python_oracle, samples

REQUESTS = [
    pytest.param(message, id=name)
    for name, message in samples.MESSAGES.items()
    if message.kind == "Request" and name in kafka_python_oracle.CLASSES
]


@pytest.mark.parametrize("message", REQUESTS)
def test_request_frames_are_those_of_kafka_python(message: Message) -> None:
    cls = kafka_python_oracle.CLASSES[message.name]
    for version in samples.versions_of(message):
        theirs = cls(version=version)
        theirs.with_header(correlation_id=77, client_id="größe")
        frame = theirs.encode(header=True, framed=True)
        assert request_frame(message.api_key, version, 77, "größe", theirs.encode()) == frame
        header = read_request_header(frame, SIZE_BYTES, len(frame))
        assert header[:4] == (message.api_key, version, 77, "größe")
        assert frame[header.body_position :] == theirs.encode()


@given(correlation_id=st.integers(-(2**31), 2**31 - 1), body=st.binary(max_size=20), key=st.sampled_from(sorted(APIS)))
def test_response_frames_are_read_again(correlation_id: int, body: bytes, key: int) -> None:
    for version in range(APIS[key].version_min, APIS[key].version_max + 1):
        frame = response_frame(key, version, correlation_id, body)
        assert frame[SIZE_BYTES:] == response_header(correlation_id, key, version) + body
        assert int.from_bytes(frame[:SIZE_BYTES]) == len(frame) - SIZE_BYTES
        found, position = read_response_header(frame, SIZE_BYTES, len(frame), api_key=key, api_version=version)
        assert (found, frame[position:]) == (correlation_id, body)


def test_the_response_header_of_api_versions_is_never_flexible() -> None:
    for version in range(5):
        assert response_header(1, ApiKey.API_VERSIONS, version) == b"\0\0\0\1"
    assert response_header(1, ApiKey.METADATA, 8) == b"\0\0\0\1"
    assert response_header(1, ApiKey.METADATA, 9) == b"\0\0\0\1\0"


def test_a_client_without_a_name() -> None:
    frame = request_frame(ApiKey.METADATA, 12, 5, None, b"body")
    assert read_request_header(frame, SIZE_BYTES, len(frame)).client_id is None


def test_unknown_tags_of_a_header_are_skipped() -> None:
    frame = request_frame(ApiKey.METADATA, 12, 5, "c", b"")
    with_tag = frame[:-1] + b"\x01\x64\x02ab" + b"body"
    header = read_request_header(with_tag, SIZE_BYTES, len(with_tag))
    assert with_tag[header.body_position :] == b"body"
    found = read_response_header(b"\0\0\0\x09\x01\x64\x01a!", 0, 9, api_key=ApiKey.METADATA, api_version=12)
    assert found == (9, 8)


def test_an_unknown_request_still_says_what_it_is() -> None:
    frame = request_frame(9_999, 3, 42, "c", b"")
    assert read_request_header(frame, SIZE_BYTES, len(frame))[:3] == (9_999, 3, 42)


def test_headers_cut_anywhere_are_refused() -> None:
    frame = request_frame(ApiKey.METADATA, 12, 5, "client", b"")
    for end in range(SIZE_BYTES, len(frame)):
        with pytest.raises(ProtocolError):
            read_request_header(frame, SIZE_BYTES, end)
    response = response_frame(ApiKey.METADATA, 12, 5, b"")
    for end in range(SIZE_BYTES, len(response)):
        with pytest.raises(ProtocolError):
            read_response_header(response, SIZE_BYTES, end, api_key=ApiKey.METADATA, api_version=12)


@given(noise=st.binary(max_size=40))
def test_noise_is_refused_or_harmless(noise: bytes) -> None:
    for read in (
        lambda: read_request_header(memoryview(noise), 0, len(noise)),
        lambda: read_response_header(noise, 0, len(noise), api_key=ApiKey.FETCH, api_version=12),
    ):
        try:
            read()
        except ProtocolError:
            pass
