"""The primitives by themselves: round trips, borders, and values that cannot be carried."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.wire.errors import ProtocolError
from headrace.wire.messages import api_versions, create_topics, delete_topics, metadata, produce
from headrace.wire.primitives import readers, writers
from headrace.wire.primitives.layouts import STRING_BYTES_MAX

INT32S = st.integers(-(2**31), 2**31 - 1)
INT64S = st.integers(-(2**63), 2**63 - 1)


@given(value=st.integers(0, 2**32 - 1))
def test_unsigned_varints(value: int) -> None:
    encoded = writers.unsigned_varint(value)
    assert len(encoded) == max(1, -(-value.bit_length() // 7))
    assert readers.read_unsigned_varint(b"?" + encoded + b"?", 1) == (value, 1 + len(encoded))


@given(small=INT32S, large=INT64S)
def test_zigzag_varints(small: int, large: int) -> None:
    assert readers.read_varint(writers.varint(small), 0) == (small, len(writers.varint(small)))
    assert readers.read_varlong(writers.varlong(large), 0) == (large, len(writers.varlong(large)))


@pytest.mark.parametrize(
    ("value", "encoded"), [(0, "00"), (-1, "01"), (1, "02"), (63, "7e"), (-64, "7f"), (64, "8001"), (300, "d804")]
)
def test_zigzag_borders(value: int, encoded: str) -> None:
    assert writers.varint(value).hex() == writers.varlong(value).hex() == encoded


@pytest.mark.parametrize("encoded", ["", "80", "8080808080", "ffffffff10", "ffffffffff01"])
def test_varints_that_are_cut_or_too_long(encoded: str) -> None:
    with pytest.raises(ProtocolError):
        readers.read_unsigned_varint(bytes.fromhex(encoded), 0)


@pytest.mark.parametrize("encoded", ["ff" * 9, "ff" * 9 + "02", "ff" * 11])
def test_varlongs_that_are_cut_or_too_long(encoded: str) -> None:
    with pytest.raises(ProtocolError):
        readers.read_varlong(bytes.fromhex(encoded), 0)


def test_numbers_that_do_not_fit_a_varint() -> None:
    for write, value in (
        (writers.unsigned_varint, -1),
        (writers.unsigned_varint, 2**32),
        (writers.varint, 2**31),
        (writers.varlong, -(2**63) - 1),
    ):
        with pytest.raises(ProtocolError, match="fit"):
            write(value)


@given(text=st.text(max_size=300))
def test_strings(text: str) -> None:
    for form in ("", "nullable_", "compact_", "compact_nullable_"):
        parts: list[bytes] = []
        getattr(writers, f"write_{form}string")(parts.append, text)
        body = b"".join(parts)
        assert getattr(readers, f"read_{form}string")(body, 0) == (text, len(body))
        assert getattr(readers, f"read_{form}string")(memoryview(body), 0) == (text, len(body))


def test_strings_have_a_limit_in_both_forms() -> None:
    for form in ("", "compact_"):
        parts: list[bytes] = []
        getattr(writers, f"write_{form}string")(parts.append, "x" * STRING_BYTES_MAX)
        with pytest.raises(ProtocolError, match="limit"):
            getattr(writers, f"write_{form}string")(parts.append, "x" * (STRING_BYTES_MAX + 1))
    with pytest.raises(ProtocolError):
        readers.read_compact_string(writers.unsigned_varint(STRING_BYTES_MAX + 2) + bytes(STRING_BYTES_MAX + 1), 0)


@pytest.mark.parametrize("body", [b"\0\2\xff\xfe", b"\0\1\xc3"])
def test_text_that_is_not_utf_8(body: bytes) -> None:
    with pytest.raises(ProtocolError):
        readers.read_string(body, 0)
    with pytest.raises(ProtocolError):
        readers.read_compact_string(bytes((body[1] + 1,)) + body[2:], 0)


def test_null_where_a_value_is_required() -> None:
    for name, body in (
        ("read_string", b"\xff\xff"),
        ("read_compact_string", b"\0"),
        ("read_bytes", b"\xff\xff\xff\xff"),
        ("read_compact_bytes", b"\0"),
    ):
        with pytest.raises(ProtocolError):
            getattr(readers, name)(body, 0)
    for body, version in ((b"\xff\xff\xff\xff", 0), (b"\xff\xff\xff\xff\0", 4)):
        with pytest.raises(ProtocolError):
            create_topics.decode_request(body, 0, len(body), version)


def test_records_stay_a_view_of_the_frame() -> None:
    request = produce.ProduceRequest(
        acks=1,
        topic_data=(
            produce.ProduceRequestTopic(
                name="t", partition_data=(produce.ProduceRequestPartition(index=0, records=b"batch"),)
            ),
        ),
    )
    for version in range(produce.MAX_VERSION + 1):
        frame = bytearray(b"....") + produce.encode_request(request, version)
        read = produce.decode_request(frame, 4, len(frame), version)
        records = read.topic_data[0].partition_data[0].records
        assert isinstance(records, memoryview)
        assert records == b"batch"
        frame[frame.index(b"batch")] = ord("B")
        assert records == b"Batch"


@pytest.mark.parametrize(
    ("encode", "message", "version"),
    [
        pytest.param(
            delete_topics.encode_request,
            delete_topics.DeleteTopicsRequest(timeout_ms=2**31),
            1,
            id="a number out of range",
        ),
        pytest.param(
            metadata.encode_response,
            metadata.MetadataResponse(topics=(metadata.MetadataResponseTopic(topic_id=b"short"),)),
            12,
            id="an id that is not 16 bytes",
        ),
        pytest.param(
            metadata.encode_response,
            metadata.MetadataResponse(topics=(metadata.MetadataResponseTopic(name=None),)),
            11,
            id="null before the version that allows it",
        ),
        pytest.param(
            metadata.encode_request, metadata.MetadataRequest(topics=None), 0, id="a null array before its version"
        ),
        pytest.param(
            api_versions.encode_request,
            api_versions.ApiVersionsRequest(client_software_name="\ud800"),
            3,
            id="text that has no UTF-8",
        ),
    ],
)
def test_messages_that_cannot_be_written(encode: object, message: object, version: int) -> None:
    assert callable(encode)
    with pytest.raises(ProtocolError):
        encode(message, version)
