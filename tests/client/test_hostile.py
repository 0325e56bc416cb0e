"""Dead and lying brokers: a clear exception by the deadline, and no thread or socket left behind."""

import gc
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import pytest

from headrace.client import Admin, Consumer, Producer
from headrace.client.blocking.raw import RawFetcher
from headrace.client.config import AdminConfig
from headrace.client.errors import BadResponse, BrokerUnreachable, ClientError, DeadlineExceeded
from headrace.wire.apis import ApiKey
from headrace.wire.messages import metadata
from tests.reserved_ports import reserved_address

from .hostile import HostileServer, ScriptedServer, listen_only, no_name_resolves
from .leftovers import client_descriptors, client_threads
from .patience import retry_until_deadline

pytestmark = [pytest.mark.process, pytest.mark.usefixtures("front")]

DEFAULT_S = AdminConfig().request_timeout_ms / 1000
SHORT_MS = 300
WAIT_MS = 60_000
"""For what does not have to be waited for."""


@contextmanager
def in_time() -> Iterator[None]:
    """The wait that a client was given counts, and not its default."""
    began = time.monotonic()
    yield
    assert time.monotonic() - began < DEFAULT_S


def garbage(connection: socket.socket) -> None:
    connection.sendall(b"SSH-2.0-OpenSSH_9.9\r\n" * 10)
    listen_only(connection)


def huge(connection: socket.socket) -> None:
    connection.sendall(struct.pack(">i", 2**31 - 1))
    listen_only(connection)


def never_ending(connection: socket.socket) -> None:
    connection.sendall(struct.pack(">i", 50_000_000))
    stopped = threading.Event()
    while not stopped.wait(0.01):
        connection.sendall(bytes(10))


def wrong_correlation(connection: socket.socket) -> None:
    connection.recv(1000)
    connection.sendall(struct.pack(">iih", 6, 4711, 0))
    listen_only(connection)


def truncated(connection: socket.socket) -> None:
    connection.recv(1000)
    connection.sendall(struct.pack(">iihi", 10, 0, 0, 500))
    listen_only(connection)


def hangs_up(connection: socket.socket) -> None:
    connection.recv(10)


@pytest.mark.parametrize(
    ("behave", "error"),
    [
        (listen_only, DeadlineExceeded),
        (garbage, BadResponse),
        (huge, BadResponse),
        (never_ending, DeadlineExceeded),
        (wrong_correlation, BadResponse),
        (truncated, BadResponse),
        (hangs_up, BrokerUnreachable),
    ],
)
def test_admin(behave: Callable[[socket.socket], None], error: type[ClientError]) -> None:
    timeout_ms = SHORT_MS if error is DeadlineExceeded else WAIT_MS
    with HostileServer(behave) as server, Admin(server.address, timeout_ms=timeout_ms) as admin, in_time():
        with pytest.raises(error, match=server.address):
            admin.cluster()


def test_no_broker_listens() -> None:
    with Admin(reserved_address()) as admin, in_time():
        with pytest.raises(BrokerUnreachable, match="check that a broker is running there"):
            admin.topics()


def test_a_name_that_does_not_resolve(monkeypatch: pytest.MonkeyPatch) -> None:
    no_name_resolves(monkeypatch)
    with Admin("no-such-host.invalid:9092") as admin:
        with pytest.raises(BrokerUnreachable, match=r"no-such-host\.invalid:9092"):
            admin.topics()


@pytest.mark.parametrize("host", ["a..b", "h" * 70])
def test_a_name_that_cannot_be_one(host: str) -> None:
    with Admin(f"{host}:9092", timeout_ms=WAIT_MS) as admin, in_time():
        with pytest.raises(BrokerUnreachable, match="check that a broker is running there"):
            admin.topics()


@pytest.mark.parametrize(("host", "port"), [("127.0.0.1", 2**20), ("127.0.0.1", -1), ("x" * 100, 9092)])
def test_brokers_at_addresses_that_cannot_be(host: str, port: int) -> None:
    """The address of a leader that a broker made up is one that is not reached, and no other trouble."""

    def describe(_request: object) -> metadata.MetadataResponse:
        partition = metadata.MetadataResponsePartition(partition_index=0, leader_id=1, leader_epoch=1)
        topic = metadata.MetadataResponseTopic(name="t", topic_id=bytes(range(16)), partitions=(partition,))
        leader = metadata.MetadataResponseBroker(node_id=1, host=host, port=port)
        return metadata.MetadataResponse(brokers=(leader,), topics=(topic,))

    def read(request_timeout_ms: float) -> None:
        options = {"bootstrap_servers": server.address, "request_timeout_ms": request_timeout_ms}
        with (
            Consumer("t", **options) as consumer,
            pytest.raises(BrokerUnreachable, match="check that a broker is running there"),
        ):
            consumer.poll(timeout_ms=request_timeout_ms + WAIT_MS)

    with ScriptedServer({ApiKey.METADATA, ApiKey.LIST_OFFSETS, ApiKey.FETCH}, describe) as server:
        retry_until_deadline(read)


def test_a_consumer_says_that_no_broker_is_there() -> None:
    with Consumer("t", bootstrap_servers=reserved_address()) as consumer, in_time():
        with pytest.raises(BrokerUnreachable):
            next(consumer)


def test_a_consumer_of_a_silent_broker_waits_no_longer_than_asked() -> None:
    with HostileServer(listen_only) as server, Consumer("t", bootstrap_servers=server.address) as consumer:
        with in_time():
            assert consumer.poll(timeout_ms=100) == []


def test_a_producer_gives_up_on_a_silent_broker() -> None:
    with HostileServer(listen_only) as server:
        with Producer(server.address, max_block_ms=200, request_timeout_ms=100) as producer, in_time():
            with pytest.raises(DeadlineExceeded, match="the metadata of topic 't' is not known"):
                producer.send("t", b"v")


def use_admin(servers: str) -> None:
    with Admin(servers, timeout_ms=100) as admin:
        admin.cluster()


def use_producer(servers: str) -> None:
    with Producer(servers, max_block_ms=100, request_timeout_ms=100) as producer:
        producer.send("t", b"v")


def use_transactions(servers: str) -> None:
    with Producer(servers, max_block_ms=100, request_timeout_ms=100, transactional_id="t") as producer:
        producer.transaction()


def use_consumer(servers: str) -> None:
    with Consumer("t", bootstrap_servers=servers, request_timeout_ms=100) as consumer:
        consumer.poll(timeout_ms=100)


def use_member(servers: str) -> None:
    with Consumer("t", bootstrap_servers=servers, group_id="g", request_timeout_ms=100) as consumer:
        consumer.poll(timeout_ms=100)


def use_fetcher(servers: str) -> None:
    with RawFetcher(servers, request_timeout_ms=100) as fetcher:
        list(fetcher.fetch({("t", 0): (0, 1)}, timeout_ms=100))


@pytest.fixture(scope="module")
def without_strangers() -> None:
    """Stock clients that other tests have left to the collector open sockets in the background until it comes."""
    gc.collect()


@pytest.mark.usefixtures("without_strangers")
@pytest.mark.parametrize(
    "use",
    [use_admin, use_producer, use_transactions, use_consumer, use_member, use_fetcher],
    ids=lambda use: use.__name__,
)
@pytest.mark.parametrize(
    "behave", [listen_only, garbage, wrong_correlation, hangs_up], ids=lambda behave: behave.__name__
)
def test_no_thread_and_no_socket_is_left(use: Callable[[str], None], behave: Callable[[socket.socket], None]) -> None:
    """Every caller that the broker fails gets an error or nothing, by the deadline, and all is closed."""
    threads, descriptors = client_threads(), client_descriptors()
    with HostileServer(behave) as server, in_time():
        with suppress(ClientError):
            use(server.address)
    assert client_threads() - threads == set()
    assert client_descriptors() - descriptors == set()


def test_nothing_is_left_behind() -> None:
    before = client_threads()
    with HostileServer(listen_only) as server:
        producer = Producer(server.address, max_block_ms=50)
        with pytest.raises(DeadlineExceeded):
            producer.send("t", b"v")
        producer.close()
        producer.close()
    assert client_threads() - before == set()
