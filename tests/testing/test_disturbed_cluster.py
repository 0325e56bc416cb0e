"""Clusters with a seed: the order of their faults, the proxies between their brokers, and what clients see."""

import socket
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pytest

from headrace import Admin, Producer
from headrace.ports.disk import FileHandle
from headrace.testing import EmbeddedCluster
from headrace.testing.fault_schedule import FaultKind, PlannedFault, planned_faults
from headrace.testing.link_proxies import LinkProxies
from headrace.testing.slow_disk import SlowDisk, write_delay
from headrace.wire.apis import ApiKey
from headrace.wire.frames import request_frame
from headrace.wire.messages.authenticate_peer import (
    AuthenticatePeerRequest,
    AuthenticatePeerRequestHello,
    encode_request,
)
from tests.cluster_process.replicated_load import values_of
from tests.process_groups import wait_until
from tests.reserved_ports import reserved_port

NODES = (1, 2, 3)
HOST = "127.0.0.1"
WAIT_S_MAX = 120
SILENCE_S = 0.2
"""Time in which nothing may come through a link that is cut."""
DELAY_MS = 30
SEED = 2932
"""A cut, a kill and a slow disk, and short ones."""
FAULTS = 3


# --- the order of the faults -----------------------------------------------------------------------------------------


def first_faults(seed: int, count: int = 60) -> list[PlannedFault]:
    return list(islice(planned_faults(seed, NODES), count))


def test_a_seed_fixes_the_faults() -> None:
    assert first_faults(7) == first_faults(7)
    assert first_faults(7) != first_faults(8)


def test_every_kind_and_every_broker_has_its_turn() -> None:
    faults = first_faults(7)
    assert {fault.kind for fault in faults} == set(FaultKind)
    assert {fault.node_id for fault in faults} == set(NODES)
    assert all((fault.delay_ms > 0) == (fault.kind is FaultKind.SLOW_DISK) for fault in faults)


def test_a_cluster_without_a_seed_cannot_be_disturbed() -> None:
    with pytest.raises(ValueError, match="needs a seed"), EmbeddedCluster().disturbed():
        pass


# --- links -----------------------------------------------------------------------------------------------------------


def hello_of(node_id: int) -> bytes:
    message = AuthenticatePeerRequest(hello=AuthenticatePeerRequestHello(node_id=node_id))
    return request_frame(ApiKey.AUTHENTICATE_PEER, 0, 1, None, encode_request(message, 0))


class Link:
    """A connection from broker 1 through the proxy of broker 2, which the test plays too."""

    def __init__(self, proxies: LinkProxies, *, introduction: bytes) -> None:
        self._listener = socket.create_server((HOST, 0))
        port = reserved_port()
        proxies.accept(2, HOST, port=port, target_port=self._listener.getsockname()[1])
        self.address = (HOST, port)
        self.caller = socket.create_connection(self.address, WAIT_S_MAX)
        self.target, _address = self._listener.accept()
        for each in (self.caller, self.target):
            each.settimeout(WAIT_S_MAX)
        self.caller.sendall(introduction)
        assert received(self.target, len(introduction)) == introduction

    def close(self) -> None:
        for each in (self._listener, self.caller, self.target):
            each.close()


def received(each: socket.socket, size: int) -> bytes:
    found = b""
    while len(found) < size:
        part = each.recv(size - len(found))
        assert part, "the connection was closed"
        found += part
    return found


def is_silent(each: socket.socket) -> bool:
    each.settimeout(SILENCE_S)
    try:
        each.recv(1)
    except TimeoutError:
        return True
    finally:
        each.settimeout(WAIT_S_MAX)
    return False


@pytest.fixture
def proxies() -> Iterator[LinkProxies]:
    proxies = LinkProxies()
    yield proxies
    proxies.close()


@pytest.fixture
def link(proxies: LinkProxies) -> Iterator[Link]:
    link = Link(proxies, introduction=hello_of(1))
    yield link
    link.close()


def test_bytes_pass_in_both_directions(link: Link) -> None:
    large = bytes(range(256)) * 4_000
    link.caller.sendall(b"to 2")
    assert received(link.target, 4) == b"to 2"
    link.target.settimeout(WAIT_S_MAX)
    link.target.sendall(large[:100_000])
    assert received(link.caller, 100_000) == large[:100_000]


def test_a_link_is_cut_in_one_direction_and_loses_nothing(proxies: LinkProxies, link: Link) -> None:
    proxies.cut([(1, 2)])
    link.caller.sendall(b"late")
    link.target.sendall(b"back")
    assert received(link.caller, 4) == b"back"
    assert is_silent(link.target)
    proxies.cut([])
    assert received(link.target, 4) == b"late"


def test_other_links_and_callers_that_are_no_brokers_are_not_cut(proxies: LinkProxies, link: Link) -> None:
    proxies.refuse(2)
    garbage = b"GET / HTTP/1.1\r\n\r\n"
    other = Link(proxies, introduction=garbage)
    proxies.cut([(3, 2), (2, 3)])
    link.caller.sendall(b"a")
    other.caller.sendall(b"b")
    assert (received(link.target, 1), received(other.target, 1)) == (b"a", b"b")
    other.close()


def test_an_end_passes_a_cut_link_only_when_it_is_restored(proxies: LinkProxies, link: Link) -> None:
    proxies.cut([(1, 2), (2, 1)])
    link.caller.sendall(b"last")
    link.caller.close()
    assert is_silent(link.target)
    proxies.cut([])
    assert received(link.target, 4) == b"last"
    assert link.target.recv(1) == b""


def test_a_broker_that_is_gone_is_refused(proxies: LinkProxies, link: Link) -> None:
    proxies.refuse(2)
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(link.address, WAIT_S_MAX)


# --- the disk --------------------------------------------------------------------------------------------------------


def test_a_slow_disk_delays_writes_and_syncs_while_it_is_slow(tmp_path: Path) -> None:
    delay_file = str(tmp_path / "delay")
    disk = SlowDisk(delay_file)
    with (tmp_path / "content").open("wb") as file:
        handle = FileHandle(file.fileno())
        assert disk.write_vector(handle, [b"no delay yet"], 0) == 12
        write_delay(delay_file, DELAY_MS)
        began = time.monotonic()
        disk.write_vector(handle, [b"slow"], 0)
        disk.data_sync(handle)
        assert time.monotonic() - began >= 2 * DELAY_MS / 1_000
        write_delay(delay_file, 0)
        assert Path(delay_file).read_bytes() == b""


# --- a cluster -------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def cluster() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster(brokers=3, seed=SEED) as running:
        yield running


@pytest.mark.process
@pytest.mark.parametrize("kind", [FaultKind.CUT, FaultKind.ONE_WAY_CUT])
def test_a_leader_that_is_cut_off_is_replaced_and_returns(cluster: EmbeddedCluster, kind: FaultKind) -> None:
    topic = cluster.create_topic(cluster.unused_topic_name("cut"), replicas=3)
    victim = cluster.leader(topic, 0)
    fault = PlannedFault(kind, victim, after_s=0, duration_s=0)
    cluster.begin_fault(fault)
    wait_until(lambda: others_lead(cluster, topic, victim), "the leader is not replaced", WAIT_S_MAX)
    cluster.end_fault(fault)
    wait_until(lambda: victim in cluster.in_sync(topic, 0), "it does not return", WAIT_S_MAX)


def others_lead(cluster: EmbeddedCluster, topic: str, victim: int) -> bool:
    """Ask a broker that is not cut off: the other one may not know better."""
    other = next(node_id for node_id in cluster.node_ids if node_id != victim)
    with Admin(cluster.address(other)) as admin:
        (described,) = admin.topics([topic])
    return described.partitions[0].leader not in (victim, -1)


@pytest.mark.process
@pytest.mark.record_integrity
def test_acknowledged_records_survive_the_faults_of_a_seed(cluster: EmbeddedCluster) -> None:
    topic = cluster.create_topic(
        cluster.unused_topic_name("disturbed"), replicas=3, configs={"min.insync.replicas": "2"}
    )
    count = 0
    with Producer(cluster.bootstrap_servers) as producer, cluster.disturbed():
        while len(cluster.inflicted) < FAULTS:
            producer.send(topic, b"%d" % count, partition=0).result(timeout_ms=WAIT_S_MAX * 1_000)
            count += 1
    assert cluster.inflicted == first_faults(SEED, FAULTS)
    assert set(cluster.in_sync(topic, 0)) == set(NODES)
    found = [int(value) for value in values_of(cluster.bootstrap_servers, topic, 0)]
    assert found == list(range(count))
