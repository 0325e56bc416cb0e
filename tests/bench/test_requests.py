"""Encoded requests, and the places in them that a replay changes."""

from headrace.bench.links import CLIENT_ID
from headrace.bench.requests import FETCH_VERSION, PRODUCE_VERSION, fetch_frames, metadata_frames, produce_frames
from headrace.bench.topics import ProducerIdentity
from headrace.wire.frames import read_request_header
from headrace.wire.messages import fetch, produce
from headrace.wire.produce import encode_response
from headrace.wire.records.header import CRC, HEADER, PRODUCER_ID, RECORD_COUNT, checksum

IDENTITIES = [ProducerIdentity(7, 0), ProducerIdentity(8, 0), ProducerIdentity(9, 0)]


def test_each_connection_is_a_producer_of_one_partition() -> None:
    frames = produce_frames("orders", IDENTITIES, partitions=2, records=3, record_bytes=50, acks=-1)
    assert len(frames.content) == 3 * frames.frame_bytes
    for place, identity in enumerate(IDENTITIES):
        frame = frames.content[place * frames.frame_bytes : (place + 1) * frames.frame_bytes]
        header = read_request_header(frame, 4, len(frame))
        assert header.client_id == CLIENT_ID
        request = produce.decode_request(frame, header.body_position, len(frame), PRODUCE_VERSION)
        (partition,) = request.topic_data[0].partition_data
        assert (request.acks, partition.index) == (-1, place % 2)
        batch = frame[frames.batch_at : frames.batch_at + frames.batch_bytes]
        assert bytes(partition.records or b"") == batch
        fields = HEADER.unpack_from(batch)
        assert (fields[PRODUCER_ID], fields[RECORD_COUNT]) == (identity.producer_id, 3)
        assert fields[CRC] == checksum(batch)


def test_the_error_stands_where_an_answer_has_it() -> None:
    frames = produce_frames("orders", IDENTITIES[:1], partitions=1, records=1, record_bytes=1, acks=1)
    _, errors_at = encode_response(PRODUCE_VERSION, 0, [(b"orders", [(0, 0, 0, 0, 0)])], 0)
    assert errors_at == [frames.error_at]


def test_the_offset_of_a_fetch_can_be_put_in_place() -> None:
    frames = fetch_frames("orders", [0, 3], bytes_max=1000, wait_ms_max=5)
    second = bytearray(frames.content[frames.frame_bytes :])
    second[frames.offset_at : frames.offset_at + 8] = (42).to_bytes(8, "big")
    header = read_request_header(second, 4, len(second))
    request = fetch.decode_request(bytes(second), header.body_position, len(second), FETCH_VERSION)
    (partition,) = request.topics[0].partitions
    assert (partition.partition, partition.fetch_offset) == (3, 42)


def test_metadata_has_no_batch_to_renew() -> None:
    frames = metadata_frames(2)
    assert (len(frames.content), frames.batch_at, frames.error_at) == (2 * frames.frame_bytes, 0, 0)
