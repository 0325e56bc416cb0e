"""Offsets by time, asked for as fast as a connection can: a legal request that takes a helper long to answer."""

import socket
from collections.abc import Iterator

import pytest

from headrace.client import Admin, NewTopic, Producer
from headrace.wire.apis import ApiKey
from headrace.wire.messages.list_offsets import (
    ListOffsetsRequest,
    ListOffsetsRequestPartition,
    ListOffsetsRequestTopic,
)
from headrace.wire.messages.produce import ProduceRequest, ProduceRequestPartition, ProduceRequestTopic
from headrace.wire.records.builder import NewRecord, build_batch
from headrace.wire.records.compression import Compression
from tests.hostile import frames
from tests.hostile.ground import ATTACK_S_MAX, LOOK_S_MAX, Ground
from tests.hostile.pipeline import Pipelines

pytestmark = pytest.mark.process

TOPIC = "timed"
PARTITIONS = 50
RECORDS = 20_000
"""Of the one batch in every partition: all of them are walked to find the last."""
PIPELINED = 30
CONNECTIONS = 40
VERSION = 7


@pytest.fixture(scope="module")
def timed(ground: Ground) -> Iterator[Ground]:
    ground.create_topic(TOPIC, partitions=PARTITIONS)
    records = [NewRecord(frames.NOW_MS + place, None, b"%d" % place) for place in range(RECORDS)]
    batch = bytes(build_batch(records, compression=Compression.GZIP))
    with ground.connect() as connection:
        for partition in range(PARTITIONS):
            data = (ProduceRequestPartition(index=partition, records=batch),)
            topics = (ProduceRequestTopic(name=TOPIC, partition_data=data),)
            request = ProduceRequest(acks=-1, timeout_ms=30_000, topic_data=topics)
            answer = connection.call(ApiKey.PRODUCE, frames.PRODUCE_VERSION, request)
            assert answer.responses[0].partition_responses[0].error_code == 0
    yield ground
    with Admin(ground.broker.bootstrap_servers) as admin:
        admin.delete_topics([TOPIC])


def lookups(correlation_id: int = 1) -> bytes:
    """A request for the last record of every partition, by its time."""
    asked = tuple(
        ListOffsetsRequestPartition(partition_index=index, timestamp=frames.NOW_MS + RECORDS - 1)
        for index in range(PARTITIONS)
    )
    request = ListOffsetsRequest(replica_id=-1, topics=(ListOffsetsRequestTopic(name=TOPIC, partitions=asked),))
    return frames.frame(ApiKey.LIST_OFFSETS, VERSION, request, correlation_id)


def answers_so_far(connection: socket.socket) -> int:
    """Whole frames that have arrived; the socket is not read after this."""
    connection.setblocking(False)
    received = bytearray()
    try:
        while more := connection.recv(1 << 16):
            received += more
    except BlockingIOError:
        pass
    count = 0
    while len(received) >= frames.SIZE.size:
        end = frames.SIZE.size + frames.SIZE.unpack_from(received)[0]
        count += len(received) >= end
        del received[:end]
    return count


def test_syncs_and_new_topics_do_not_wait_for_lookups(timed: Ground) -> None:
    with timed.connect() as attacker:
        attacker.send(b"".join(lookups(number) for number in range(PIPELINED)))
        with Admin(timed.broker.bootstrap_servers, timeout_ms=int(1000 * LOOK_S_MAX)) as admin:
            synced = NewTopic("synced", configs={"flush.messages": "1"})
            assert not admin.create_topics([synced])["synced"].error
            with Producer(bootstrap_servers=timed.broker.bootstrap_servers, acks="all") as producer:
                producer.send("synced", b"value").result(timeout_ms=LOOK_S_MAX * 1000)
            assert answers_so_far(attacker.socket) < PIPELINED, "the lookups were done first"
            admin.delete_topics(["synced"])


def test_lookups_end_with_their_connection(timed: Ground) -> None:
    with timed.connect() as attacker:
        attacker.send(b"".join(lookups(number) for number in range(PIPELINED)))
        timed.wait_until(lambda found: found["headrace_lookups"] > PARTITIONS, "the attack")
    timed.wait_until(lambda found: found["headrace_lookups"] == 0, "the end of its lookups")


def test_forty_connections_that_keep_asking(timed: Ground) -> None:
    """They once filled the queue of the helpers, and that counted as a failed disk."""
    with Pipelines(timed.connect, [lookups()] * CONNECTIONS) as attackers, timed.attacked() as attack_lasts:
        while attack_lasts() or not attackers.has_begun:
            attackers.resume()
    found = timed.metrics()
    assert found["headrace_directories_offline"] == 0
    assert found["headrace_lookups_refused_total"] > 0
    timed.wait_until(lambda found: found["headrace_lookups"] == 0, "the end of their lookups", ATTACK_S_MAX)
    with timed.connect() as asker:
        asker.send(lookups())
        answer = asker.receive_frame()
        assert answer is not None
        assert len(answer) > PARTITIONS * 20
