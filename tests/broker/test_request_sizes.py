"""Sizes of requests: long ones are carried out in slices, and what is too large is refused with an answer."""

from struct import Struct

import pytest

from headrace.broker.api import dispatch
from headrace.broker.api.registry import SERVED
from headrace.model.errors import ErrorCode
from headrace.model.limits import (
    LARGE_FRAME_BEGUN_BYTES,
    LARGE_REQUESTS_AT_ONCE,
    OFFSETS_PER_SLICE,
    REQUEST_ELEMENTS_MAX,
)
from headrace.wire.apis import ApiKey, codec
from headrace.wire.frames import read_response_header, request_frame
from headrace.wire.messages import delete_groups, find_coordinator, offset_commit, offset_fetch, txn_offset_commit
from headrace.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from headrace.wire.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from tests.broker.virtual import VirtualBroker
from tests.transactions.wire import SETTINGS, TransactionClient, transaction_broker

SIZE, HEADER = Struct(">i"), Struct(">hhih")
LIMIT_BYTES = 600_000
PARTITIONS = 300
METADATA = "m" * 3_600


def test_the_assignments_of_a_large_group_are_read():
    request = SyncGroupRequest(
        group_id="large",
        generation_id=1,
        member_id="leader",
        assignments=tuple(
            SyncGroupRequestAssignment(member_id=f"member {number}", assignment=bytes(1024)) for number in range(2000)
        ),
    )
    response = VirtualBroker().client().ask(ApiKey.SYNC_GROUP, 3, request)
    assert response.error_code != 0, "an unknown group gets an error, not a closed connection"


# Commits


def group_broker():
    broker = VirtualBroker(settings=SETTINGS).with_topic("t", partitions=PARTITIONS)
    found_coordinator(broker)
    return broker


def found_coordinator(broker):
    client = broker.client()
    client.ask(ApiKey.FIND_COORDINATOR, 1, find_coordinator.FindCoordinatorRequest(key="g", key_type=0))
    broker.run_until(lambda: committed(client, offset=0, partitions=1)[0][1] == ErrorCode.NONE)


def commit_request(offset, partitions, metadata="", topics=("t",), topic_id=None):
    named = {} if topic_id is None else {"topic_id": topic_id}
    return offset_commit.OffsetCommitRequest(
        group_id="g",
        topics=tuple(
            offset_commit.OffsetCommitRequestTopic(
                name=name,
                **named,
                partitions=tuple(
                    offset_commit.OffsetCommitRequestPartition(
                        partition_index=index, committed_offset=offset + index, committed_metadata=metadata
                    )
                    for index in range(partitions)
                ),
            )
            for name in topics
        ),
    )


def errors_of(response):
    return [(found.partition_index, found.error_code) for topic in response.topics for found in topic.partitions]


def committed(client, offset, partitions, version=7, **options):
    return errors_of(client.ask(ApiKey.OFFSET_COMMIT, version, commit_request(offset, partitions, **options)))


def fetched(client, name="t", version=5):
    request = offset_fetch.OffsetFetchRequest(group_id="g", topics=None)
    return {
        found.partition_index: (found.committed_offset, found.metadata)
        for topic in client.ask(ApiKey.OFFSET_FETCH, version, request).topics
        if topic.name == name
        for found in topic.partitions
    }


@pytest.mark.parametrize("version", range(2, 11))
def test_a_commit_above_one_mebibyte_is_answered_and_kept(version):
    broker = group_broker()
    client = broker.client()
    options = {"topic_id": client.topic_id("t")} if version >= 10 else {}
    found = committed(client, 7, PARTITIONS, version, metadata=METADATA, **options)
    assert found == [(index, ErrorCode.NONE) for index in range(PARTITIONS)]
    assert fetched(client) == {index: (7 + index, METADATA) for index in range(PARTITIONS)}
    assert broker.node.loop.receiver._pool.lent_bytes == 0


@pytest.mark.parametrize("version", range(6))
def test_a_commit_of_a_transaction_above_one_mebibyte_is_answered_and_kept(version):
    broker = transaction_broker().with_topic("many", partitions=PARTITIONS)
    found_coordinator(broker)
    producer = TransactionClient(broker).initialized()
    broker.run_until(lambda: producer.add_offsets("g") == ErrorCode.NONE)
    request = txn_offset_commit.TxnOffsetCommitRequest(
        **producer.identity(),
        group_id="g",
        topics=(
            txn_offset_commit.TxnOffsetCommitRequestTopic(
                name="many",
                partitions=tuple(
                    txn_offset_commit.TxnOffsetCommitRequestPartition(
                        partition_index=index, committed_offset=index, committed_metadata=METADATA
                    )
                    for index in range(PARTITIONS)
                ),
            ),
        ),
    )
    found = errors_of(producer.ask(ApiKey.TXN_OFFSET_COMMIT, version, request))
    assert found == [(index, ErrorCode.NONE) for index in range(PARTITIONS)]
    assert producer.commit() == ErrorCode.NONE
    broker.run_until(lambda: len(fetched(producer, "many")) == PARTITIONS)


def test_a_commit_is_cut_between_topics_and_within_them():
    client = group_broker().client()
    topics = ("t", "unknown", "t", *(f"unknown-{number}" for number in range(60)))
    found = committed(client, 9, OFFSETS_PER_SLICE + 7, topics=topics, metadata="x" * 150)
    known = [(index, ErrorCode.NONE) for index in range(OFFSETS_PER_SLICE + 7)]
    unknown = [(index, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION) for index in range(OFFSETS_PER_SLICE + 7)]
    assert found == known + unknown + known + 60 * unknown


def test_requests_behind_a_long_one_are_handled_after_it():
    broker = group_broker()
    client = broker.client()
    long = client.send(ApiKey.OFFSET_COMMIT, 7, commit_request(100, PARTITIONS, METADATA))
    short = client.send(ApiKey.OFFSET_COMMIT, 7, commit_request(5_000, 3))
    client.wait(short)
    assert client.wait(long).topics
    found = fetched(client)
    assert [found[index][0] for index in range(4)] == [5_000, 5_001, 5_002, 103]


def test_more_long_requests_than_are_carried_out_at_once():
    broker = group_broker()
    clients = [broker.client() for _ in range(2 * LARGE_REQUESTS_AT_ONCE + 1)]
    asked = [client.send(ApiKey.OFFSET_COMMIT, 7, commit_request(1, PARTITIONS, METADATA)) for client in clients]
    broker.steps(20)
    clients[0].connection.reset()
    clients[-1].connection.close()
    for client, correlation in list(zip(clients, asked, strict=True))[1:-1]:
        assert len(errors_of(client.wait(correlation))) == PARTITIONS
    broker.steps()
    assert broker.node.loop.receiver._pool.lent_bytes == 0


def test_a_long_commit_that_is_damaged_closes_its_connection():
    broker = group_broker()
    body = bytearray(codec(ApiKey.OFFSET_COMMIT).encode_request(commit_request(1, PARTITIONS, METADATA), 7))
    body[700_000:700_004] = b"\xff" * 4
    body[len(body) // 2 :] = b"\x7f" * (len(body) - len(body) // 2)
    client = broker.client()
    client.send_bytes(request_frame(ApiKey.OFFSET_COMMIT, 7, 1, "c", bytes(body)))
    client.wait_closed()
    broker.steps()
    assert broker.metrics.protocol_errors == 1
    assert broker.node.loop.receiver._pool.lent_bytes == 0


# Others


def test_another_request_above_one_mebibyte_is_read_in_steps():
    names = tuple(f"group-{number:09d}-" + "x" * 200 for number in range(6_000))
    response = (
        VirtualBroker().client().ask(ApiKey.DELETE_GROUPS, 1, delete_groups.DeleteGroupsRequest(groups_names=names))
    )
    assert [found.group_id for found in response.results] == list(names)


def test_a_request_of_too_many_elements_closes_the_connection():
    names = tuple(f"g{number}" for number in range(REQUEST_ELEMENTS_MAX + 1))
    broker = VirtualBroker()
    client = broker.client()
    client.send(ApiKey.DELETE_GROUPS, 1, delete_groups.DeleteGroupsRequest(groups_names=names))
    client.wait_closed()
    assert any(str(REQUEST_ELEMENTS_MAX) in line for line in broker.log_lines)


def test_a_request_of_very_many_names_closes_the_connection():
    names = tuple(MetadataRequestTopic(name=f"topic-{number:09d}") for number in range(100_001))
    client = VirtualBroker().client()
    client.send(ApiKey.METADATA, 1, MetadataRequest(topics=names))
    client.wait_closed()


# Too large


@pytest.fixture
def limited(monkeypatch):
    """A smaller limit: 16 MiB take long in the virtual world."""
    monkeypatch.setattr(dispatch, "REQUEST_BYTES_MAX", LIMIT_BYTES)


def refused(client, key, version, body, size=LIMIT_BYTES + 1):
    """The response to a request of which only the beginning is a request."""
    frame = request_frame(key, version, 77, "c", body)[SIZE.size :]
    client.send_bytes(SIZE.pack(size) + frame)
    client.send_bytes(bytes(size - len(frame)))
    broker = client._broker

    def answered():
        received = client.connection.receive()
        return len(received) > 4 and len(received) == 4 + SIZE.unpack_from(received)[0]

    broker.run_until(lambda: answered() or client.is_closed())
    assert answered()
    received = bytes(client.connection.receive())
    (length,) = SIZE.unpack_from(received)
    correlation, position = read_response_header(received[4:], 0, length, api_key=key, api_version=version)
    assert correlation == 77
    client.connection.received.clear()
    return codec(key).decode_response(received[4:], position, length, version)


@pytest.mark.parametrize("version", range(11))
def test_a_commit_that_is_too_large_is_refused_by_its_first_partition(version, limited):
    broker = VirtualBroker().with_topic("t")
    client = broker.client()
    options = {"topic_id": client.topic_id("t")} if version >= 10 else {}
    body = codec(ApiKey.OFFSET_COMMIT).encode_request(commit_request(1, 3, **options), version)
    response = refused(client, ApiKey.OFFSET_COMMIT, version, body)
    assert errors_of(response) == [(0, ErrorCode.INVALID_REQUEST)]
    assert response.topics[0].name == ("" if version >= 10 else "t")
    assert any(str(LIMIT_BYTES) in line for line in broker.log_lines)
    assert client.produce_error("t") == ErrorCode.NONE, "the rest of the request was read past"
    assert broker.node.loop.receiver._pool.returns == 0, "no buffer was given to it"


ANSWERED = [api for api in SERVED if api.key not in (ApiKey.PRODUCE, ApiKey.JOIN_GROUP, ApiKey.SYNC_GROUP)]


@pytest.mark.parametrize("api", ANSWERED, ids=lambda api: api.key.name)
def test_whatever_is_too_large_is_answered_or_closed(api, limited):
    broker = VirtualBroker()
    client = broker.client()
    for version in {api.min_version, api.max_version}:
        client = broker.client()
        header = HEADER.pack(api.key, version, 5, -1) + b"\0"
        size = LIMIT_BYTES + 1
        client.send_bytes(SIZE.pack(size) + header)
        client.send_bytes(bytes(size - len(header)))
        broker.run_until(lambda client=client: bool(client.connection.receive()) or client.is_closed())
        client.close()
    assert broker.metrics.handler_failures == 0


def test_the_message_names_the_limit(limited):
    client = VirtualBroker().client()
    response = refused(client, ApiKey.DESCRIBE_CLUSTER, 1, bytes(LARGE_FRAME_BEGUN_BYTES))
    assert response.error_code == ErrorCode.INVALID_REQUEST
    assert str(LIMIT_BYTES) in response.error_message


def test_a_produce_request_may_be_larger(limited):
    patient = VirtualBroker().client()
    patient.send_bytes(SIZE.pack(LIMIT_BYTES + 1) + HEADER.pack(ApiKey.PRODUCE, 9, 1, -1) + bytes(20_000))
    patient._broker.steps()
    assert not patient.is_closed()
