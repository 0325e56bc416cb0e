"""Produce and Fetch as the broker reads and writes them, held against the generated codecs."""

import itertools
from random import Random
from types import ModuleType
from typing import Any

import pytest

from headrace.ports.disk import FileHandle, FileRange
from headrace.wire import fetch, produce
from headrace.wire.current_leaders import CurrentLeader, LeaderEndpoint
from headrace.wire.errors import ProtocolError
from headrace.wire.frames import response_frame
from headrace.wire.messages import fetch as fetch_messages
from headrace.wire.messages import produce as produce_messages
from tests.wire import samples

PRODUCE_VERSIONS = range(14)
FETCH_VERSIONS = range(4, 19)
SAMPLES = 12
HOSTILE = (b"\x7f\xff\xff\xff", b"\xff\xff\xff\xff", b"\xff\xff\xff\xff\x0f", b"\x80\x80\x80\x80\x10")
INVALID_RECORD = 87
NOT_LEADER = 6
ENDPOINTS = [LeaderEndpoint(2, "b.example", 9092, "rack b"), LeaderEndpoint(300, "h" * 200, 19_092, None)]


def request_body(name: str, version: int, seed: int) -> tuple[Any, bytes]:
    message = samples.MESSAGES[f"{name}Request"]
    value = samples.sample(message, version, Random(seed))
    return value, samples.encode(message, value, version)


@pytest.mark.parametrize("version", PRODUCE_VERSIONS)
def test_a_produce_request_is_scanned_as_the_codec_reads_it(version: int) -> None:
    for seed in range(SAMPLES):
        value, body = request_body("Produce", version, seed)
        view = memoryview(body)
        transactional_id, acks, timeout_ms, topics = produce.scan_request(view, 0, len(body), version)
        assert (transactional_id.decode() if transactional_id is not None else None) == value.transactional_id
        assert (acks, timeout_ms) == (value.acks, value.timeout_ms)
        scanned = [
            (key, [(index, None if start < 0 else bytes(view[start:end])) for index, start, end in spans])
            for key, spans in topics
        ]
        assert scanned == [
            (
                topic.topic_id if version >= produce.TOPIC_IDS_FROM else topic.name.encode(),
                [(data.index, None if data.records is None else bytes(data.records)) for data in topic.partition_data],
            )
            for topic in value.topic_data
        ]


@pytest.mark.parametrize("version", FETCH_VERSIONS)
def test_a_fetch_request_is_scanned_as_the_codec_reads_it(version: int) -> None:
    for seed in range(SAMPLES):
        value, body = request_body("Fetch", version, seed)
        scanned = fetch.scan_request(memoryview(body), 0, len(body), version)
        by_id = version >= fetch.TOPIC_IDS_FROM
        assert scanned.replica_id == (value.replica_id if version < 15 else -1)
        assert (scanned.wait_ms_max, scanned.bytes_min) == (value.max_wait_ms, value.min_bytes)
        assert (scanned.bytes_max, scanned.isolation_level) == (value.max_bytes, value.isolation_level)
        assert (scanned.session_id, scanned.session_epoch) == (value.session_id, value.session_epoch)
        assert scanned.rack == (value.rack_id.encode() if version >= 11 else b"")
        assert scanned.topics == [
            (
                topic.topic_id if by_id else topic.topic.encode(),
                [
                    (wanted.partition, wanted.fetch_offset, wanted.current_leader_epoch, wanted.partition_max_bytes)
                    for wanted in topic.partitions
                ],
            )
            for topic in value.topics
        ]
        assert scanned.forgotten == [
            (topic.topic_id if by_id else topic.topic.encode(), list(topic.partitions))
            for topic in value.forgotten_topics_data
        ]


@pytest.mark.parametrize(
    ("name", "module", "version"),
    [("Produce", produce, version) for version in PRODUCE_VERSIONS]
    + [("Fetch", fetch, version) for version in FETCH_VERSIONS],
)
def test_damaged_requests_are_refused_or_harmless(name: str, module: ModuleType, version: int) -> None:
    _, body = max((request_body(name, version, seed) for seed in range(SAMPLES)), key=lambda pair: len(pair[1]))
    for end in range(len(body)):
        with pytest.raises(ProtocolError):
            module.scan_request(memoryview(body), 0, end, version)
    for position in range(len(body)):
        for hostile in HOSTILE:
            damaged = body[:position] + hostile + body[position + len(hostile) :]
            try:
                module.scan_request(memoryview(damaged), 0, len(damaged), version)
            except ProtocolError:
                continue


@pytest.mark.parametrize("version", PRODUCE_VERSIONS)
def test_a_produce_response_is_encoded_as_the_codec_writes_it(version: int) -> None:
    random = Random(version)
    for topic_count in (0, 1, 3, 130):
        topics = [
            (
                random.randbytes(16) if version >= produce.TOPIC_IDS_FROM else f"topic-{number}".encode(),
                [
                    (index, random.choice((0, 3, INVALID_RECORD)), random.getrandbits(40), -1, random.getrandbits(20))
                    for index in range(random.randrange(4))
                ],
            )
            for number in range(topic_count)
        ]
        count = sum(len(answers) for _, answers in topics)
        refused = {number: sorted(random.sample(range(300), random.randrange(200))) for number in range(0, count, 3)}
        leaders = {number: CurrentLeader(2, random.getrandbits(20)) for number in range(1, count, 3)}
        endpoints = ENDPOINTS if leaders else []
        frame, errors_at = produce.encode_response(version, 77, topics, 5, refused, leaders, endpoints)
        assert frame == response_frame(0, version, 77, _produce_body(version, topics, 5, refused, leaders, endpoints))
        answers = [answer for _, answers in topics for answer in answers]
        assert [int.from_bytes(frame[at : at + 2], "big") for at in errors_at] == [answer[1] for answer in answers]


def _produce_body(
    version: int,
    topics: list[tuple[bytes, list[produce.PartitionResult]]],
    throttle_ms: int,
    refused: dict[int, list[int]],
    leaders: dict[int, CurrentLeader],
    endpoints: list[LeaderEndpoint],
) -> bytes:
    by_id = version >= produce.TOPIC_IDS_FROM
    numbers = itertools.count()
    current_leader = produce_messages.ProduceResponseCurrentLeader
    record_error = produce_messages.ProduceResponseRecordError
    response = produce_messages.ProduceResponse(
        throttle_time_ms=throttle_ms,
        responses=tuple(
            produce_messages.ProduceResponseTopic(
                name="" if by_id else key.decode(),
                topic_id=key if by_id else bytes(16),
                partition_responses=tuple(
                    produce_messages.ProduceResponsePartition(
                        index=index,
                        error_code=error,
                        base_offset=base_offset,
                        log_append_time_ms=append_time,
                        log_start_offset=log_start,
                        record_errors=tuple(record_error(batch_index=place) for place in blamed),
                        error_message=produce.REFUSED_RECORDS.decode() if blamed else None,
                        current_leader=current_leader(**leaders.get(number, CurrentLeader(-1, -1))._asdict()),
                    )
                    for index, error, base_offset, append_time, log_start in answers
                    for number in [next(numbers)]
                    for blamed in [refused.get(number, [])]
                ),
            )
            for key, answers in topics
        ),
        node_endpoints=tuple(
            produce_messages.ProduceResponseNodeEndpoint(**endpoint._asdict()) for endpoint in endpoints
        ),
    )
    return produce_messages.encode_response(response, version)


@pytest.mark.parametrize("version", PRODUCE_VERSIONS)
def test_an_answer_can_be_mended_into_an_error(version: int) -> None:
    key = bytes(16) if version >= produce.TOPIC_IDS_FROM else b"t"
    good = [(key, [(0, 0, 10, -1, 3), (1, 0, 20, -1, 4)])]
    bad = [(key, [(0, 0, 10, -1, 3), (1, 56, -1, -1, 4)])]
    frame, errors_at = produce.encode_response(version, 1, good, 0)
    assert produce.with_error(frame, errors_at[1], 56) == produce.encode_response(version, 1, bad, 0)[0]
    assert frame == produce.encode_response(version, 1, good, 0)[0], "the sealed answer itself is left alone"


@pytest.mark.parametrize("version", FETCH_VERSIONS)
def test_a_fetch_response_is_encoded_as_the_codec_writes_it(version: int) -> None:
    file = bytes(range(256)) * 4
    random = Random(version)
    for topic_count in (0, 1, 2, 130):
        topics = []
        for number in range(topic_count):
            key = random.randbytes(16) if version >= fetch.TOPIC_IDS_FROM else f"topic-{number}".encode()
            topics.append((key, [_partition_data(random, index) for index in range(random.randrange(4))]))
        parts = fetch.encode_response(
            version,
            99,
            throttle_time_ms=7,
            error=0,
            session_id=1234 if version >= 7 else 0,
            topics=topics,
            endpoints=ENDPOINTS if topics else [],
        )
        sent = b"".join(
            part if isinstance(part, bytes) else file[part.position : part.position + part.length] for part in parts
        )
        assert sent == response_frame(1, version, 99, _fetch_body(version, topics, file))


@pytest.mark.parametrize("per_slice", [1, 2, 7])
def test_a_fetch_response_in_slices_is_the_same(per_slice: int) -> None:
    random = Random(per_slice)
    topics = [
        (f"topic-{number}".encode(), [_partition_data(random, index) for index in range(5)]) for number in range(4)
    ]
    head = {"throttle_time_ms": 7, "error": 0, "session_id": 1234, "topics": topics, "endpoints": ENDPOINTS}
    for version in (12, 16):
        *slices, parts = fetch.encode_in_slices(version, 99, **head, partitions_per_slice=per_slice)
        assert slices == [None] * (20 // per_slice)
        assert parts == fetch.encode_response(version, 99, **head)


def _partition_data(random: Random, index: int) -> fetch.PartitionData:
    records = random.choice(
        (None, b"inline", FileRange(FileHandle(9), random.randrange(100), 1 + random.randrange(800)))
    )
    aborted = random.choice((None, (), ((7, 100), (8, 200))))
    error = random.choice((0, 1, NOT_LEADER))
    leader = CurrentLeader(2, random.getrandbits(20)) if error == NOT_LEADER else None
    return fetch.PartitionData(
        index,
        error,
        random.getrandbits(40),
        random.getrandbits(40),
        3,
        aborted,
        records,
        leader,
        random.choice((-1, 3)),
    )


def _fetch_body(version: int, topics: list[tuple[bytes, list[fetch.PartitionData]]], file: bytes) -> bytes:
    by_id = version >= fetch.TOPIC_IDS_FROM
    response = fetch_messages.FetchResponse(
        throttle_time_ms=7,
        session_id=1234 if version >= 7 else 0,
        responses=tuple(
            fetch_messages.FetchResponseTopic(
                topic="" if by_id else key.decode(),
                topic_id=key if by_id else bytes(16),
                partitions=tuple(_fetch_partition(version, data, file) for data in partitions),
            )
            for key, partitions in topics
        ),
        node_endpoints=tuple(
            fetch_messages.FetchResponseNodeEndpoint(**endpoint._asdict()) for endpoint in (ENDPOINTS if topics else ())
        ),
    )
    return fetch_messages.encode_response(response, version)


def _fetch_partition(version: int, data: fetch.PartitionData, file: bytes) -> fetch_messages.FetchResponsePartition:
    records = data.records
    leader = data.current_leader if version >= fetch.CURRENT_LEADER_FROM else None
    if isinstance(records, FileRange):
        records = file[records.position : records.position + records.length]
    return fetch_messages.FetchResponsePartition(
        partition_index=data.partition,
        error_code=data.error,
        high_watermark=data.high_watermark,
        last_stable_offset=data.last_stable_offset,
        log_start_offset=data.log_start_offset,
        aborted_transactions=None
        if data.aborted is None
        else tuple(
            fetch_messages.FetchResponseAbortedTransaction(producer_id=producer_id, first_offset=offset)
            for producer_id, offset in data.aborted
        ),
        records=b"" if records is None else records,  # type: ignore[arg-type]
        preferred_read_replica=data.preferred_read_replica if version >= fetch.RACKS_FROM else -1,
        current_leader=fetch_messages.FetchResponseCurrentLeader(**(leader or CurrentLeader(-1, -1))._asdict()),
    )


@pytest.mark.parametrize("version", FETCH_VERSIONS)
def test_a_fetch_request_read_in_slices_is_the_same_request(version: int) -> None:
    for seed in range(SAMPLES):
        _, body = request_body("Fetch", version, seed)
        whole = fetch.scan_request(memoryview(body), 0, len(body), version)
        counted = sum(1 + len(wanted) for _, wanted in whole.topics)
        *pauses, last = fetch.scan_in_slices(memoryview(body), 0, len(body), version, partitions_per_slice=2)
        assert last == whole
        assert set(pauses) <= {None}
        assert len(pauses) == counted // 2 + len(whole.forgotten) // 2
