"""Where the kernel matters: a node on real sockets, with epoll and sendfile, and with neither."""

import selectors
import socket
import struct
from typing import Any

import pytest

from headrace.ports.bundle import Ports
from headrace.ports.real.clock import RealClock
from headrace.ports.real.disk import RealDisk
from headrace.ports.real.entropy import RealEntropy
from headrace.ports.real.network import RealNetwork
from headrace.ports.real.spawner import ThreadSpawner
from headrace.ports.real.waiters import SelectorWaiter
from headrace.testing import EmbeddedBroker
from headrace.wire import frames
from headrace.wire.apis import ApiKey, codec
from headrace.wire.messages import metadata
from headrace.wire.records.builder import NewRecord, build_batch
from tests.broker.sockets import SocketClient, connect
from tests.broker.virtual import fetch_request, produce_request, values_of

pytestmark = pytest.mark.process


def portable_ports():
    """As on a system without epoll and sendfile; select would not do in a process with more than 1,024 open files."""
    network = RealNetwork(waiter=SelectorWaiter(selectors.PollSelector()), use_sendfile=False)
    return Ports(RealClock(), RealDisk(), network, RealEntropy(), ThreadSpawner(network.wake))


@pytest.fixture(scope="module", params=["epoll", "selectors"])
def broker(request):
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "selectors":
            patch.setattr("headrace.testing.embedded.real_ports", portable_ports)
        with EmbeddedBroker(config={"log.segment.bytes": str(4 << 20)}) as broker:
            broker.create_topic("t", partitions=4, configs={"max.message.bytes": "10000000"})
            yield broker


@pytest.fixture
def client(broker):
    client = SocketClient(broker.bootstrap_servers)
    yield client
    client.close()


def test_small_and_large_records_there_and_back(broker, client):
    sizes = (0, 1, 100, 16_000, 20_000, 150_000, 1_000_000, 5_000_000, 10)
    values = [bytes([65 + place]) * size for place, size in enumerate(sizes)]
    offsets = [client.produce("t", value) for value in values]
    assert offsets == list(range(offsets[0], offsets[0] + len(sizes)))
    read: list[Any] = []
    offset = offsets[0]
    while len(read) < len(values):
        got = client.fetch("t", offset, bytes_max=50_000_000, partition_bytes=50_000_000)
        read += got
        offset += len(got)
    assert read == values


def test_pipelined_requests_of_many_sizes(broker, client):
    first = client.produce("t", b"first", partition=1)
    asked = []
    for place in range(300):
        content = bytes(build_batch([NewRecord(1_700_000_000_000, None, bytes(place * 37 % 3_000))]))
        asked.append(client.send(ApiKey.PRODUCE, 9, produce_request([("t", [(1, content)])])))
    answers = [client.receive(each).responses[0].partition_responses[0] for each in asked]
    assert [answer.base_offset for answer in answers] == list(range(first + 1, first + 301))


def test_a_long_poll_is_woken_by_another_connection(broker, client):
    other = SocketClient(broker.bootstrap_servers)
    asked = client.send(ApiKey.FETCH, 12, fetch_request([("t", 2, 0)], wait_ms=20_000))
    other.produce("t", b"news", partition=2)
    answer = client.receive(asked).responses[0].partitions[0]
    assert values_of(answer.records) == [b"news"]
    other.close()


def test_a_reader_that_takes_its_time_gets_every_byte(broker, client):
    value = bytes(range(256)) * 12_000
    offset = client.produce("t", value, partition=3)
    slow = SocketClient(broker.bootstrap_servers)
    asked = [
        slow.send(ApiKey.FETCH, 12, fetch_request([("t", 3, offset)], bytes_max=10**7, partition_bytes=10**7))
        for _ in range(6)
    ]
    assert client.produce("t", b"others go on", partition=3) > offset
    for each in asked:
        assert values_of(slow.receive(each).responses[0].partitions[0].records)[0] == value
    slow.close()


def test_an_answer_comes_though_the_client_has_said_its_last_word(broker):
    client = SocketClient(broker.bootstrap_servers)
    asked = client.send(ApiKey.METADATA, 12, metadata.MetadataRequest(topics=None))
    client.socket.shutdown(socket.SHUT_WR)
    assert [topic.name for topic in client.receive(asked).topics] == ["t"]
    assert client.socket.recv(1) == b"", "and then the connection ends"
    client.close()


def test_connections_reset_in_the_middle_of_frames_harm_no_other(broker, client):
    body = codec(ApiKey.METADATA).encode_request(metadata.MetadataRequest(topics=None), 12)
    frame = frames.request_frame(ApiKey.METADATA, 12, 1, "rude", body)
    for cut in (0, 2, 4, 9, len(frame) - 1, len(frame)):
        rude = connect(broker.bootstrap_servers)
        rude.sendall(frame * 3 + frame[:cut])
        rude.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        rude.close()
    large = connect(broker.bootstrap_servers)
    large.sendall(struct.pack(">i", 50_000_000) + bytes(3_000_000))
    large.close()
    assert client.produce("t", b"fine") >= 0


def test_many_connections_at_once(broker):
    clients = [SocketClient(broker.bootstrap_servers) for _ in range(120)]
    asked = [client.send(ApiKey.METADATA, 12, metadata.MetadataRequest(topics=None)) for client in clients]
    for client, each in zip(clients, asked, strict=True):
        assert client.receive(each).brokers
        client.close()


def test_both_address_families_of_localhost():
    with EmbeddedBroker(config={"listeners": "PLAINTEXT://localhost:0"}) as broker:
        port = broker.bootstrap_servers.rsplit(":", 1)[1]
        addresses = ["127.0.0.1"]
        if socket.has_ipv6:
            try:
                socket.create_connection(("::1", int(port)), 5).close()
                addresses.append("[::1]")
            except OSError:
                pass  # this machine has no IPv6 loopback
        for address in addresses:
            client = SocketClient(f"{address}:{port}")
            assert client.ask(ApiKey.METADATA, 12, metadata.MetadataRequest(topics=None)).brokers
            client.close()


def test_a_restart_in_the_same_folder_keeps_everything(tmp_path):
    values = [b"%d" % place for place in range(50)]
    for round_ in range(3):
        with EmbeddedBroker(data_dir=str(tmp_path)) as broker:
            if round_ == 0:
                broker.create_topic("t")
            client = SocketClient(broker.bootstrap_servers)
            for value in values[round_ * 10 : round_ * 10 + 10]:
                client.produce("t", value)
            read: list[Any] = []
            while len(read) < (round_ + 1) * 10:
                read += client.fetch("t", len(read))
            assert read == values[: (round_ + 1) * 10]
            client.close()
