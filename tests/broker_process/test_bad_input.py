"""Bytes no stock client sends: the error Kafka gives, or a closed connection, and no other client is harmed."""

import random
import time
from collections.abc import Iterator
from struct import pack

import psutil
import pytest

from headrace.client import Admin, NewTopic
from headrace.model.errors import ErrorCode
from headrace.wire.apis import APIS, ApiKey, codec
from headrace.wire.frames import request_frame
from headrace.wire.messages.api_versions import ApiVersionsRequest
from headrace.wire.messages.delete_topics import DeleteTopicsRequest
from headrace.wire.messages.fetch import FetchRequest, FetchRequestPartition, FetchRequestTopic
from headrace.wire.messages.incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsRequestConfig,
    IncrementalAlterConfigsRequestResource,
)
from headrace.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from headrace.wire.messages.produce import ProduceRequest, ProduceRequestPartition, ProduceRequestTopic
from headrace.wire.records.builder import NewRecord, build_batch
from headrace.wire.records.compression import Compression
from headrace.wire.records.header import CRC_AT, MAGIC_AT
from tests.broker_process.broker_process import BrokerProcess
from tests.broker_process.raw_connection import RawConnection

pytestmark = pytest.mark.process

PRODUCE_VERSION = 9
FETCH_VERSION = 11
METADATA_VERSION = 9
HOSTILE_FRAMES = 400
HOSTILE_SEED = 11
MEMORY_GROWTH_BYTES_MAX = 150 << 20
LONG_WAIT_MS = 600_000
"""Longer than a test waits for an answer."""

TOPIC_RESOURCE = 2
ALL_TOPIC_OPERATIONS = 0b1101_1111_1000
NOW_MS = int(time.time() * 1000)
RECORDS = [NewRecord(NOW_MS, b"key", b"value %d" % number) for number in range(3)]


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    settings = {"socket.request.max.bytes": str(10 << 20), "auto.create.topics.enable": "false"}
    with BrokerProcess(tmp_path_factory.mktemp("bad-input"), settings=settings) as broker:
        yield broker
        broker.stop()


@pytest.fixture
def topic(broker: BrokerProcess, request: pytest.FixtureRequest) -> str:
    name = "".join(letter if letter.isalnum() else "-" for letter in request.node.name)
    with Admin(broker.bootstrap_servers) as admin:
        assert not admin.create_topics([NewTopic(name)])[name].error
    return name


@pytest.fixture
def connection(broker: BrokerProcess) -> Iterator[RawConnection]:
    with RawConnection(broker.bootstrap_servers) as connection:
        yield connection


@pytest.fixture
def bystander(broker: BrokerProcess) -> Iterator[RawConnection]:
    """Was there before the harm, and is asked afterwards."""
    with RawConnection(broker.bootstrap_servers) as bystander:
        _ask(bystander)
        yield bystander
        _ask(bystander)


def _ask(connection: RawConnection) -> None:
    assert connection.call(ApiKey.METADATA, METADATA_VERSION, MetadataRequest(topics=None)).brokers


def _produce(topic: str, batch: bytes | None, *, acks: int = -1) -> ProduceRequest:
    data = ProduceRequestTopic(name=topic, partition_data=(ProduceRequestPartition(index=0, records=batch),))
    return ProduceRequest(acks=acks, timeout_ms=5000, topic_data=(data,))


def _produced(connection: RawConnection, topic: str, batch: bytes | None, version: int = PRODUCE_VERSION) -> tuple:
    answer = connection.call(ApiKey.PRODUCE, version, _produce(topic, batch))
    (partition,) = answer.responses[0].partition_responses
    return ErrorCode(partition.error_code), partition.base_offset


def _fetch(topic: str, *, wait_ms: int) -> FetchRequest:
    partition = FetchRequestPartition(partition=0, partition_max_bytes=1 << 20)
    return FetchRequest(
        max_wait_ms=wait_ms, min_bytes=1, topics=(FetchRequestTopic(topic=topic, partitions=(partition,)),)
    )


def _changed(batch: bytearray, position: int, value: int) -> bytes:
    batch[position] = value
    return bytes(batch)


# Frames


@pytest.mark.parametrize(
    "frame",
    [
        pytest.param(pack(">i", -1), id="a negative size"),
        pytest.param(pack(">i", 0), id="no size"),
        pytest.param(pack(">i", (10 << 20) + 1), id="above the largest request"),
        pytest.param(pack(">i", 2_000_000_000) + b"GET / HTTP/1.1\r\n", id="a huge size"),
        pytest.param(request_frame(ApiKey.METADATA, 1, 1, "x", pack(">i", 2_000_000_000)), id="a huge count"),
        pytest.param(request_frame(ApiKey.METADATA, 9, 1, "x", b"\xff\xff\xff\xff\x0f"), id="a huge compact count"),
        pytest.param(request_frame(ApiKey.CREATE_TOPICS, 2, 1, "x", b"\x00"), id="half a count"),
        pytest.param(request_frame(ApiKey.METADATA, 99, 1, "x", b""), id="an unknown version"),
        pytest.param(request_frame(12345, 0, 1, "x", b""), id="an unknown API"),
        pytest.param(request_frame(4, 0, 1, "x", b"\x00" * 30), id="an API between brokers of old"),
        pytest.param(pack(">ihhih", 10, ApiKey.METADATA, 1, 1, 30_000), id="a client id that is not there"),
        pytest.param(b"GET / HTTP/1.1\r\nHost: broker\r\n\r\n", id="HTTP"),
        pytest.param(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", id="TLS"),
    ],
)
def test_a_frame_that_cannot_be_understood_closes_its_connection_only(
    connection: RawConnection, bystander: RawConnection, frame: bytes
) -> None:
    connection.send(frame)
    assert connection.is_closed_by_broker()


def test_an_unknown_version_of_api_versions_is_answered_in_version_0(connection: RawConnection) -> None:
    """With the keys, so that any client can choose (KIP-511)."""
    connection.send(request_frame(ApiKey.API_VERSIONS, 77, 5, "future", b"\x00" * 9))
    frame = connection.receive_frame()
    assert frame is not None
    answer = codec(ApiKey.API_VERSIONS).decode_response(frame, 4, len(frame), 0)
    assert answer.error_code == ErrorCode.UNSUPPORTED_VERSION
    ranges = {api.api_key: (api.min_version, api.max_version) for api in answer.api_keys}
    assert ranges[ApiKey.API_VERSIONS][1] >= 3
    assert ranges[ApiKey.PRODUCE][0] == 0
    _ask(connection)


def test_api_versions_advertises_what_old_clients_look_for(connection: RawConnection) -> None:
    answer = connection.call(ApiKey.API_VERSIONS, 0, ApiVersionsRequest())
    ranges = {api.api_key: (api.min_version, api.max_version) for api in answer.api_keys}
    assert ranges[ApiKey.PRODUCE][0] == 0  # else librdkafka before its fix stops compressing
    assert ranges[ApiKey.FIND_COORDINATOR][0] == 0  # else librdkafka does not use LZ4
    assert ranges[ApiKey.PRODUCE][1] >= 9
    assert ranges[ApiKey.FETCH][0] <= 4
    assert ranges[ApiKey.FETCH][1] >= 12


def test_hostile_frames_cost_neither_the_broker_nor_its_memory(broker: BrokerProcess, bystander: RawConnection) -> None:
    source = random.Random(HOSTILE_SEED)
    memory = psutil.Process(broker.process.pid).memory_info
    before = memory().rss
    for _ in range(HOSTILE_FRAMES):
        key = source.choice(list(APIS)) if source.random() < 0.9 else source.randrange(-10, 200)
        version = source.randrange(0, 20)
        body = source.randbytes(source.randrange(0, 120))
        with RawConnection(broker.bootstrap_servers) as hostile:
            hostile.send(request_frame(key, version, 1, "hostile", body))
            hostile.socket.settimeout(0.01)
            try:
                hostile.socket.recv(1 << 16)
            except (TimeoutError, ConnectionResetError):
                continue
    assert broker.process.poll() is None, f"seed {HOSTILE_SEED}: the broker is gone"
    assert memory().rss - before < MEMORY_GROWTH_BYTES_MAX
    assert "failed inside the broker" not in broker.complaints(), f"seed {HOSTILE_SEED}: {broker.complaints()[-2000:]}"


# Record batches


def test_a_good_batch_is_taken(connection: RawConnection, topic: str) -> None:
    assert _produced(connection, topic, build_batch(RECORDS)) == (ErrorCode.NONE, 0)
    assert _produced(connection, topic, build_batch(RECORDS)) == (ErrorCode.NONE, 3)


BAD_BATCHES = {
    "a wrong checksum": (_changed(build_batch(RECORDS), CRC_AT, 0x55), ErrorCode.CORRUPT_MESSAGE),
    "a changed value": (_changed(build_batch(RECORDS), -2, 0xFF), ErrorCode.CORRUPT_MESSAGE),
    "a cut batch": (bytes(build_batch(RECORDS))[:-5], ErrorCode.CORRUPT_MESSAGE),
    "half a header": (bytes(build_batch(RECORDS))[:40], ErrorCode.CORRUPT_MESSAGE),
    "two batches": (bytes(build_batch(RECORDS)) * 2, ErrorCode.INVALID_RECORD),
    "an old format": (_changed(build_batch(RECORDS), MAGIC_AT, 1), ErrorCode.INVALID_RECORD),
    "a control batch": (bytes(build_batch(RECORDS, control=True)), ErrorCode.INVALID_RECORD),
    "offsets of its own": (bytes(build_batch(RECORDS, base_offset=7)), ErrorCode.INVALID_RECORD),
    "no records": (b"", ErrorCode.INVALID_RECORD),
    "null records": (None, ErrorCode.INVALID_RECORD),
}


@pytest.mark.parametrize("name", BAD_BATCHES)
def test_a_bad_batch_is_refused_by_its_code(
    connection: RawConnection, bystander: RawConnection, topic: str, name: str
) -> None:
    batch, expected = BAD_BATCHES[name]
    assert _produced(connection, topic, batch) == (expected, -1)
    assert _produced(connection, topic, build_batch(RECORDS)) == (ErrorCode.NONE, 0)


def test_zstd_needs_version_7(connection: RawConnection, topic: str) -> None:
    batch = bytes(build_batch(RECORDS, compression=Compression.ZSTD))
    assert _produced(connection, topic, batch, version=6)[0] is ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    assert _produced(connection, topic, batch, version=7) == (ErrorCode.NONE, 0)


def test_acks_that_do_not_exist(connection: RawConnection, topic: str) -> None:
    request = _produce(topic, bytes(build_batch(RECORDS)), acks=3)
    (partition,) = connection.call(ApiKey.PRODUCE, PRODUCE_VERSION, request).responses[0].partition_responses
    assert partition.error_code == ErrorCode.INVALID_REQUIRED_ACKS


def test_an_error_without_acks_closes_the_connection(
    connection: RawConnection, bystander: RawConnection, topic: str
) -> None:
    connection.send_request(ApiKey.PRODUCE, PRODUCE_VERSION, _produce(topic, b"no batch", acks=0))
    assert connection.is_closed_by_broker()


def test_sequences_of_an_idempotent_producer(connection: RawConnection, topic: str) -> None:
    def send(sequence: int, epoch: int = 0) -> tuple:
        batch = build_batch(RECORDS, producer_id=4_000_000, producer_epoch=epoch, base_sequence=sequence)
        return _produced(connection, topic, bytes(batch))

    assert send(0) == (ErrorCode.NONE, 0)
    assert send(3) == (ErrorCode.NONE, 3)
    assert send(0) == (ErrorCode.NONE, 0), "a repeated batch answers its first offset"
    assert send(3) == (ErrorCode.NONE, 3)
    assert send(9)[0] is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert send(6) == (ErrorCode.NONE, 6)
    assert send(0, epoch=1) == (ErrorCode.NONE, 9)
    assert send(9)[0] is ErrorCode.INVALID_PRODUCER_EPOCH


# Order and deletion


def test_answers_come_in_the_order_of_the_requests(connection: RawConnection, topic: str) -> None:
    began = time.monotonic()
    connection.send_request(ApiKey.FETCH, FETCH_VERSION, _fetch(topic, wait_ms=700))
    connection.send_request(ApiKey.METADATA, METADATA_VERSION, MetadataRequest(topics=None))
    order = []
    for _ in range(2):
        frame = connection.receive_frame()
        assert frame is not None
        order.append(int.from_bytes(frame[:4], "big"))
    assert order == [1, 2]
    assert time.monotonic() - began > 0.5


def test_a_parked_fetch_learns_that_its_topic_is_deleted(broker: BrokerProcess, topic: str) -> None:
    with RawConnection(broker.bootstrap_servers) as waiting, RawConnection(broker.bootstrap_servers) as other:
        waiting.send_request(ApiKey.FETCH, FETCH_VERSION, _fetch(topic, wait_ms=LONG_WAIT_MS))
        other.call(ApiKey.FETCH, FETCH_VERSION, _fetch(topic, wait_ms=0))
        other.call(ApiKey.DELETE_TOPICS, 1, DeleteTopicsRequest(topic_names=(topic,), timeout_ms=5000))
        answer = waiting.receive(ApiKey.FETCH, FETCH_VERSION)
        assert ErrorCode(answer.responses[0].partitions[0].error_code) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_no_client_may_claim_to_be_a_follower(connection: RawConnection, topic: str) -> None:
    partition = FetchRequestPartition(partition=0, partition_max_bytes=1 << 20)
    topics = (FetchRequestTopic(topic=topic, partitions=(partition,)),)
    answer = connection.call(ApiKey.FETCH, FETCH_VERSION, FetchRequest(replica_id=1, topics=topics))
    assert answer.error_code or answer.responses[0].partitions[0].error_code


@pytest.mark.parametrize("version", [8, 10, 12])
def test_operations_are_described_for_missing_topics_too(connection: RawConnection, version: int) -> None:
    """As Kafka does; kafka-python 2.x fails on the value that stands for "not asked"."""
    topics = (MetadataRequestTopic(name="nowhere"), MetadataRequestTopic(name="not legal"))
    request = MetadataRequest(topics=topics, allow_auto_topic_creation=False, include_topic_authorized_operations=True)
    answer = connection.call(ApiKey.METADATA, version, request)
    assert [topic.topic_authorized_operations for topic in answer.topics] == [ALL_TOPIC_OPERATIONS] * 2


def test_a_topic_asked_for_twice_is_described_once(connection: RawConnection, topic: str) -> None:
    request = MetadataRequest(topics=(MetadataRequestTopic(name=topic), MetadataRequestTopic(name=topic)))
    assert [found.name for found in connection.call(ApiKey.METADATA, METADATA_VERSION, request).topics] == [topic]


@pytest.mark.parametrize(
    ("name", "expected"),
    [("not legal", ErrorCode.INVALID_TOPIC_EXCEPTION), ("nowhere", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)],
)
def test_configs_of_a_topic_that_cannot_be(connection: RawConnection, name: str, expected: ErrorCode) -> None:
    configs = (IncrementalAlterConfigsRequestConfig(name="retention.ms", config_operation=0, value="1"),)
    resource = IncrementalAlterConfigsRequestResource(resource_type=TOPIC_RESOURCE, resource_name=name, configs=configs)
    answer = connection.call(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, IncrementalAlterConfigsRequest(resources=(resource,)))
    assert [ErrorCode(result.error_code) for result in answer.responses] == [expected]


@pytest.mark.parametrize("version", [1, 4, 9, 12])
def test_names_that_are_illegal_or_unknown_in_metadata(connection: RawConnection, version: int) -> None:
    names = ("not here", "nowhere", "x" * 250)
    topics = tuple(MetadataRequestTopic(name=name) for name in names)
    request = MetadataRequest(topics=topics, allow_auto_topic_creation=True)
    answer = connection.call(ApiKey.METADATA, version, request)
    codes = {topic.name: ErrorCode(topic.error_code) for topic in answer.topics}
    assert codes == {
        names[0]: ErrorCode.INVALID_TOPIC_EXCEPTION,
        names[1]: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        names[2]: ErrorCode.INVALID_TOPIC_EXCEPTION,
    }
