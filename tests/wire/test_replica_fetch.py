"""Fetch between brokers, held against the generated codec of the same version."""

from random import Random
from typing import Any

import pytest

from headrace.ports.disk import FileHandle, FileRange
from headrace.wire import replica_fetch
from headrace.wire.errors import ProtocolError
from headrace.wire.messages import fetch as messages
from headrace.wire.replica_fetch import (
    EpochEnd,
    FollowerPosition,
    ReplicaFetchRequest,
    ReplicaFetchResponse,
    ReplicaResult,
)
from tests.wire import samples

VERSION = replica_fetch.VERSION
TOPICS = (bytes(range(16)), bytes(range(1, 17)))
REQUEST = ReplicaFetchRequest(
    replica_id=3,
    broker_epoch=1 << 40,
    wait_ms_max=500,
    bytes_min=1,
    bytes_max=10 << 20,
    session_epoch=7,
    topics=[
        (TOPICS[0], [FollowerPosition(0, 5, 1 << 35, 4, 7, 1 << 20), FollowerPosition(300, 0, 0, -1, 0, 9)]),
        (TOPICS[1], []),
    ],
    forgotten=[(TOPICS[1], [4, 500])],
)
RECORDS = b"records" * 40


def decoded(body: bytes) -> ReplicaFetchRequest:
    return replica_fetch.decode_request(memoryview(body), 0, len(body), VERSION)


def test_a_request_reads_as_the_codec_writes_it() -> None:
    body = replica_fetch.encode_request(REQUEST, VERSION)
    message = messages.decode_request(body, 0, len(body), VERSION)
    assert (message.replica_state.replica_id, message.replica_state.replica_epoch) == (3, 1 << 40)
    assert (message.max_wait_ms, message.min_bytes, message.max_bytes) == (500, 1, 10 << 20)
    assert (message.session_id, message.session_epoch) == (0, 7)
    assert [(each.topic_id, list(each.partitions)) for each in message.forgotten_topics_data] == REQUEST.forgotten
    assert [
        (
            topic.topic_id,
            [
                (
                    each.partition,
                    each.current_leader_epoch,
                    each.fetch_offset,
                    each.last_fetched_epoch,
                    each.log_start_offset,
                    each.partition_max_bytes,
                )
                for each in topic.partitions
            ],
        )
        for topic in message.topics
    ] == [(topic_id, [tuple(position) for position in positions]) for topic_id, positions in REQUEST.topics]
    assert decoded(body) == REQUEST


def response_frame(response: ReplicaFetchResponse) -> bytes:
    parts = replica_fetch.encode_response(77, response)
    return b"".join(RECORDS if not isinstance(part, bytes) else part for part in parts)


def result(**fields: Any) -> ReplicaResult:
    return ReplicaResult(
        **{"partition": 2, "error": 0, "high_watermark": 9, "log_start": 1, "diverging": None, "records": None} | fields
    )


def test_a_response_reads_as_the_codec_writes_it() -> None:
    some = FileRange(FileHandle(5), 100, len(RECORDS))
    sent = ReplicaFetchResponse(
        0,
        [
            (TOPICS[0], [result(records=some), result(partition=3, error=1), result(diverging=EpochEnd(4, 1 << 36))]),
            (TOPICS[1], [result(partition=9, records=some, high_watermark=1 << 40)]),
        ],
    )
    frame = response_frame(sent)
    assert int.from_bytes(frame[:4], "big") == len(frame) - 4
    assert int.from_bytes(frame[4:8], "big") == 77
    message = messages.decode_response(frame, 9, len(frame), VERSION)
    received = replica_fetch.decode_response(memoryview(frame), 9, len(frame), VERSION)
    for topic, (topic_id, results) in zip(message.responses, received.topics, strict=True):
        assert topic.topic_id == topic_id
        for one, other in zip(topic.partitions, results, strict=True):
            assert (one.partition_index, one.error_code, one.high_watermark, one.log_start_offset) == other[:4]
            assert (one.diverging_epoch.epoch, one.diverging_epoch.end_offset) == (other.diverging or (-1, -1))
            assert bytes(one.records or b"") == bytes(other.records or b"")  # type: ignore[arg-type]
    assert [each.records for _, results in received.topics for each in results if each.records] == [RECORDS, RECORDS]


def test_a_response_of_the_codec_is_read() -> None:
    """With every field that another implementation may send, such as the current leader."""
    message = samples.MESSAGES["FetchResponse"]
    for seed in range(30):
        value = samples.sample(message, VERSION, Random(seed))
        body = samples.encode(message, value, VERSION)
        if any(each.aborted_transactions for topic in value.responses for each in topic.partitions):
            with pytest.raises(ProtocolError, match="aborted"):
                replica_fetch.decode_response(body, 0, len(body), VERSION)
            continue
        received = replica_fetch.decode_response(body, 0, len(body), VERSION)
        assert [[each.partition_index for each in topic.partitions] for topic in value.responses] == [
            [each.partition for each in results] for _, results in received.topics
        ]


@pytest.mark.parametrize("size", range(len(replica_fetch.encode_request(REQUEST, VERSION))))
def test_a_request_that_ends_early_is_refused(size: int) -> None:
    body = replica_fetch.encode_request(REQUEST, VERSION)[:size]
    with pytest.raises(ProtocolError):
        decoded(body)


def test_a_response_that_ends_early_is_refused() -> None:
    some = FileRange(FileHandle(5), 100, len(RECORDS))
    frame = response_frame(ReplicaFetchResponse(0, [(TOPICS[0], [result(records=some, diverging=EpochEnd(4, 5))])]))
    for size in range(9, len(frame) - 1):
        with pytest.raises(ProtocolError):
            replica_fetch.decode_response(frame, 9, size, VERSION)


def test_counts_that_the_bytes_cannot_hold_are_refused() -> None:
    body = bytearray(replica_fetch.encode_request(REQUEST, VERSION))
    for count in (b"\xff\xff\xff\xff\x0f", b"\x7f"):
        hostile = bytes(body[:21]) + count + bytes(body[22:])
        with pytest.raises(ProtocolError):
            decoded(hostile)


def test_a_follower_has_to_say_who_it_is() -> None:
    anonymous = messages.FetchRequest(max_wait_ms=1, min_bytes=1, isolation_level=0, topics=(), rack_id="")
    with pytest.raises(ProtocolError, match="does not name the follower"):
        decoded(messages.encode_request(anonymous, VERSION))
