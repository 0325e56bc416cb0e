"""A Produce request recognised by its bytes: the compiled reader gives what the plain one gives, whatever the bytes."""

import sys
from functools import partial

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from headrace.wire.apis import ApiKey, codec
from headrace.wire.frames import request_frame
from headrace.wire.messages import produce
from headrace.wire.records.builder import NewRecord, build_batch
from headrace.wire.records.header import HEADER
from headrace.wire.repeats import SHAPE_AT, read_repeat_plainly
from tests.wire.compiled_module import compiled_module, needs_compiler
from tests.wire.records.forged import with_header

pytestmark = needs_compiler

SHAPE = object()
HEADER_NAMES = (
    "BASE_OFFSET",
    "LENGTH",
    "LEADER_EPOCH",
    "MAGIC",
    "ATTRIBUTES",
    "LAST_OFFSET_DELTA",
    "BASE_TIMESTAMP",
    "MAX_TIMESTAMP",
    "PRODUCER_ID",
    "PRODUCER_EPOCH",
    "BASE_SEQUENCE",
    "RECORD_COUNT",
)
FRONT_BYTES = 7
"""Of other bytes in the buffer before the request, and behind it."""


def request(version, batch):
    """The frame of a request with one batch, and how many of its bytes are before the length of that."""
    partition = produce.ProduceRequestPartition(index=3, records=batch)
    topic = {"topic_id": b"i" * 16} if version >= 13 else {"name": "topic"}
    message = produce.ProduceRequest(
        acks=1, timeout_ms=1000, topic_data=(produce.ProduceRequestTopic(**topic, partition_data=(partition,)),)
    )
    body = codec(ApiKey.PRODUCE).encode_request(message, version)
    frame = request_frame(ApiKey.PRODUCE, version, 77, "client", body)
    length = 4 if version < 9 else 1 if len(batch) < 127 else 2 if len(batch) < 16383 else 3
    return frame, frame.index(batch) - length - 4


def read_by_both(frame, shape_bytes, *, cut=0):
    """Return what both readers give for the request in the middle of a buffer; `cut`: bytes of its end not received."""
    buffer = memoryview(bytearray(b"\xff" * FRONT_BYTES + frame + b"\xff" * FRONT_BYTES))
    shapes = {bytes(frame[4 + SHAPE_AT : 4 + shape_bytes]): SHAPE}
    end = FRONT_BYTES + len(frame) - cut
    readers = (partial(read_repeat_plainly, walks_records=True), compiled_module().read_repeat)
    plain, quick = (read(buffer, FRONT_BYTES, end, shapes, shape_bytes) for read in readers)
    assert plain == quick
    return quick


def batch_of(*sizes, **fields):
    return bytes(build_batch([NewRecord(1, None, b"v" * size) for size in sizes], **fields))


@pytest.mark.parametrize("version", range(3, 14))
@pytest.mark.parametrize("size", [0, 58, 59, 60, 400, 16_310, 16_320, 90_000])
def test_a_good_request_is_read(version, size):
    batch = batch_of(size, producer_id=5, producer_epoch=1, base_sequence=9)
    frame, shape_bytes = request(version, batch)
    at = FRONT_BYTES + frame.index(batch)
    expected = (SHAPE, version, 77, at, at + len(batch), HEADER.unpack_from(batch), FRONT_BYTES + len(frame))
    assert read_by_both(frame, shape_bytes) == expected
    assert read_by_both(frame, shape_bytes, cut=1) is None


@pytest.mark.parametrize("version", [8, 9])
def test_every_byte_of_a_request_changed(version):
    frame, shape_bytes = request(version, batch_of(70, producer_id=5, producer_epoch=1, base_sequence=9))
    for place in range(len(frame)):
        for change in (1, 0x80, 0xFF):
            broken = bytearray(frame)
            broken[place] ^= change
            read_by_both(broken, shape_bytes)


@given(
    version=st.sampled_from([3, 8, 9, 12]),
    fields=st.dictionaries(
        st.sampled_from(HEADER_NAMES),
        st.integers(-3, 70),
    ),
    cut=st.integers(0, 400),
    shape_more=st.integers(-40, 40),
)
@example(version=9, fields={"RECORD_COUNT": -1, "LAST_OFFSET_DELTA": -2}, cut=0, shape_more=0)
def test_headers_and_lengths_of_all_kinds(version, fields, cut, shape_more):
    frame, shape_bytes = request(version, bytes(with_header(batch_of(1, 2), **fields)))
    read_by_both(frame, shape_bytes + shape_more, cut=cut)


@given(st.binary(max_size=200), st.integers(8, 60))
def test_any_bytes(content, shape_bytes):
    read_by_both(len(content).to_bytes(4, "big") + content, shape_bytes)


def test_what_is_not_within_the_buffer_is_not_read():
    frame, shape_bytes = request(9, batch_of(1))
    shapes = {bytes(frame[4 + SHAPE_AT : 4 + shape_bytes]): SHAPE}
    for position, end in ((-1, len(frame)), (0, len(frame) + 1), (len(frame) + 1, len(frame))):
        with pytest.raises(IndexError):
            compiled_module().read_repeat(memoryview(bytearray(frame)), position, end, shapes, shape_bytes)
    assert compiled_module().read_repeat(memoryview(bytearray(frame)), 0, len(frame), shapes, sys.maxsize) is None
    with pytest.raises(TypeError):
        compiled_module().read_repeat(memoryview(bytearray(frame)), 0, len(frame), [], shape_bytes)
