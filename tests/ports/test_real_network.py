import errno
import os
import selectors
import signal
import socket
import threading
from collections.abc import Callable
from contextlib import closing
from typing import Any

import pytest

from headrace.ports.disk import FileRange
from headrace.ports.network import BROKEN, HANGUP, READABLE, WRITABLE
from headrace.ports.real import network as network_module
from headrace.ports.real.network import RealNetwork
from headrace.ports.real.waiters import EpollWaiter, SelectorWaiter
from tests.reserved_ports import reserved_port

pytestmark = pytest.mark.process

POLL_MS = 60_000

WAITERS: dict[str, Callable[[], Any]] = {
    "epoll": EpollWaiter,
    "selectors": SelectorWaiter,
    "poll": lambda: SelectorWaiter(selectors.PollSelector()),
}


@pytest.fixture(params=sorted(WAITERS))
def network(request):
    network = RealNetwork(waiter=WAITERS[request.param]())
    yield network
    network.close()


@pytest.fixture
def listener(network):
    (listener,) = network.listen("127.0.0.1", 0)
    network.watch(listener.token, READABLE)
    yield listener
    network.forget(listener.token)
    listener.close()


@pytest.fixture
def pair(network, listener):
    """A transport of the network and the plain blocking socket at its other end."""
    client = socket.create_connection(("127.0.0.1", listener.port), timeout=POLL_MS / 1000)
    assert network.poll(POLL_MS) == [(listener.token, READABLE)]
    transport = listener.accept()
    yield transport, client
    network.forget(transport.token)
    transport.close()
    client.close()


def test_accept_and_echo(network, listener, pair):
    transport, client = pair
    assert transport.peer_address == f"127.0.0.1:{client.getsockname()[1]}"
    assert listener.accept() is None
    network.watch(transport.token, READABLE)
    assert network.poll(0) == []
    client.sendall(b"hello")
    assert network.poll(POLL_MS) == [(transport.token, READABLE)]
    buffer = bytearray(16)
    assert transport.recv_into(memoryview(buffer)) == 5
    with pytest.raises(BlockingIOError):
        transport.recv_into(memoryview(buffer))
    assert transport.send(b"to ", network.more) == 3
    assert transport.send_vector([b"you", bytearray(b" too"), memoryview(b"!")]) == 8
    assert client.recv(11, socket.MSG_WAITALL) == b"to you too!"


def test_nagle_is_off_and_nothing_waits(pair):
    transport, _ = pair
    assert not transport._socket.getblocking()
    assert transport._socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_interest_is_changed_and_muted(network, pair):
    transport, client = pair
    client.sendall(b"x")
    network.watch(transport.token, READABLE | WRITABLE)
    assert network.poll(POLL_MS)
    network.watch(transport.token, WRITABLE)
    assert network.poll(POLL_MS) == [(transport.token, WRITABLE)]
    network.watch(transport.token, 0)
    assert network.poll(0) == []
    network.watch(transport.token, READABLE)
    assert network.poll(POLL_MS) == [(transport.token, READABLE)]
    network.forget(transport.token)
    network.forget(transport.token)
    assert network.poll(0) == []


def test_end_of_stream_is_readable_and_zero(network, pair):
    transport, client = pair
    network.watch(transport.token, READABLE)
    client.shutdown(socket.SHUT_WR)
    assert network.poll(POLL_MS) == [(transport.token, READABLE)]
    assert transport.recv_into(memoryview(bytearray(1))) == 0
    transport.send(b"still heard")
    assert client.recv(100) == b"still heard"


def test_a_peer_that_leaves_is_seen_before_what_it_sent_is_read(pair):
    with closing(RealNetwork(waiter=EpollWaiter())) as network:
        transport, client = pair
        client.sendall(b"not read")
        network.watch(transport.token, HANGUP)
        assert network.poll(0) == []
        client.close()
        assert network.poll(POLL_MS) == [(transport.token, BROKEN)]


def test_a_reset_is_seen(network, pair):
    transport, client = pair
    network.watch(transport.token, READABLE)
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    client.close()
    ((token, events),) = network.poll(POLL_MS)
    assert token == transport.token
    assert events & (READABLE | BROKEN)
    with pytest.raises(ConnectionResetError):
        transport.recv_into(memoryview(bytearray(1)))


def test_a_full_socket_says_so_and_becomes_writable_again(network, pair):
    transport, client = pair
    sent = _fill(transport)
    network.watch(transport.token, WRITABLE)
    while network.poll(0):  # the kernel may have moved some of it to the other end meanwhile
        sent += _fill(transport)
    while sent:
        sent -= len(client.recv(1 << 20))
    assert network.poll(POLL_MS) == [(transport.token, WRITABLE)]


def _fill(transport):
    sent = 0
    while True:
        try:
            sent += transport.send(bytes(1 << 20))
        except BlockingIOError:
            return sent


@pytest.mark.parametrize("use_sendfile", [True, False])
def test_slices_of_a_file_are_sent(tmp_path, use_sendfile):
    content = os.urandom(700_000)
    (tmp_path / "segment").write_bytes(content)
    file = os.open(tmp_path / "segment", os.O_RDONLY)
    network = RealNetwork(use_sendfile=use_sendfile)
    (listener,) = network.listen("127.0.0.1", 0)
    network.watch(listener.token, READABLE)
    client = socket.create_connection(("127.0.0.1", listener.port), timeout=POLL_MS / 1000)
    assert network.poll(POLL_MS) == [(listener.token, READABLE)]
    transport = listener.accept()
    received = bytearray()
    position, end = 1_000, 650_000
    while position < end or len(received) < end - 1_000:
        try:
            position += transport.send_range(FileRange(file, position, end - position)) if position < end else 0
        except BlockingIOError:
            pass
        received += client.recv(1 << 20)
    assert received == content[1_000:650_000]
    transport.close()
    with pytest.raises(OSError) as failure:
        transport.send_range(FileRange(file, 0, 1))
    assert failure.value.errno == errno.EBADF
    client.close()
    listener.close()
    network.close()
    os.close(file)


def test_connect_is_begun_and_stands_when_writable(network, listener):
    transport = network.connect("127.0.0.1", listener.port)
    assert transport.peer_address == f"127.0.0.1:{listener.port}"
    network.watch(transport.token, WRITABLE)
    seen: dict[Any, Any] = {}
    while len(seen) < 2:
        seen.update(network.poll(POLL_MS))
    assert seen == {listener.token: READABLE, transport.token: WRITABLE}
    accepted = listener.accept()
    transport.send(b"hi")
    network.watch(accepted.token, READABLE)
    network.forget(transport.token)
    assert network.poll(POLL_MS) == [(accepted.token, READABLE)]
    network.forget(accepted.token)
    accepted.close()
    transport.close()


def test_a_refused_connection_is_an_event_and_then_an_error(network):
    try:
        transport = network.connect("127.0.0.1", reserved_port())
    except ConnectionRefusedError:
        return
    network.watch(transport.token, WRITABLE)
    ((token, events),) = network.poll(POLL_MS)
    assert token == transport.token
    assert events & (WRITABLE | BROKEN)
    with pytest.raises(ConnectionRefusedError):
        transport.send(b"x")
    network.forget(transport.token)
    transport.close()


def test_wake_ends_a_wait_from_another_thread(network):
    waker = threading.Thread(target=network.wake)
    waker.start()
    assert network.poll(-1) == []
    waker.join()
    assert network.poll(0) == []


@pytest.mark.parametrize("waiting", [False, True], ids=["before the wait", "within it"])
def test_any_number_of_wakes_is_one(network, waiting):
    network._waiting = waiting
    for _ in range(20_000):
        network.wake()
    assert network.poll(-1) == []
    with pytest.raises(BlockingIOError):
        network._wake_reader.recv(1)
    assert not network._woken


def test_no_wake_is_lost_wherever_it_falls(network):
    given, taken = 0, 0

    def give():
        nonlocal given
        while given < 2_000:
            if taken == given:
                given += 1
                network.wake()

    giver = threading.Thread(target=give)
    giver.start()
    while taken < 2_000:
        if given == taken:
            network.poll(-1)
        taken = given
    giver.join()


def test_a_descriptor_that_only_wakes(network):
    reader, writer = os.pipe()
    try:
        os.set_blocking(reader, False)
        network.wake_on(reader)
        os.write(writer, b"x")
        assert network.poll(-1) == []
        with pytest.raises(BlockingIOError):
            os.read(reader, 1)
    finally:
        network.forget(reader)
        os.close(reader)
        os.close(writer)


def test_wake_after_close_is_harmless():
    network = RealNetwork()
    network.close()
    network.wake()
    network.close()


def test_a_signal_does_not_break_the_wait(network):
    seen = []

    def on_signal(number, frame):
        seen.append(number)
        network.wake()

    previous = signal.signal(signal.SIGUSR1, on_signal)
    try:
        sender = threading.Thread(target=os.kill, args=(os.getpid(), signal.SIGUSR1))
        sender.start()
        assert network.poll(-1) == []
        sender.join()
        assert seen == [signal.SIGUSR1]
    finally:
        signal.signal(signal.SIGUSR1, previous)


def test_a_timeout_ends_the_wait(network):
    assert network.poll(2.5) == []


def test_accept_when_files_run_out_is_the_callers_error(network, listener, monkeypatch):
    class Failing:
        def __init__(self, code):
            self.code = code

        def accept(self):
            raise OSError(self.code, os.strerror(self.code))

        def close(self):
            pass

    real = listener._socket
    for code in (errno.EMFILE, errno.ENFILE):
        listener._socket = Failing(code)
        with pytest.raises(OSError) as failure:
            listener.accept()
        assert failure.value.errno == code
    for code in (errno.ECONNABORTED, errno.EPROTO, errno.EAGAIN):
        listener._socket = Failing(code)
        assert listener.accept() is None
    listener._socket = real


def _has_ipv6():
    try:
        with socket.socket(socket.AF_INET6) as probe:
            probe.bind(("::1", 0))
    except OSError:
        return False
    return True


def test_localhost_listens_on_both_families_on_one_port():
    network = RealNetwork()
    listeners = network.listen("localhost", 0)
    assert [listener.host for listener in listeners] == (["127.0.0.1", "::1"] if _has_ipv6() else ["127.0.0.1"])
    assert len({listener.port for listener in listeners}) == 1
    for listener in listeners:
        with socket.create_connection((listener.host, listener.port), timeout=POLL_MS / 1000) as client:
            network.watch(listener.token, READABLE)
            assert network.poll(POLL_MS) == [(listener.token, READABLE)]
            network.forget(listener.token)
            transport = listener.accept()
            client.sendall(b"x")
            host, port = client.getsockname()[:2]
            assert transport.peer_address in (f"{host}:{port}", f"[{host}]:{port}")
            transport.close()
    for listener in listeners:
        listener.close()
    network.close()


def test_a_missing_family_is_left_out(monkeypatch):
    bound = network_module._bound

    def without_ipv6(family, address, port):
        if family == socket.AF_INET6:
            raise OSError(errno.EADDRNOTAVAIL, "no IPv6 here")
        return bound(family, address, port)

    monkeypatch.setattr(network_module, "_bound", without_ipv6)
    network = RealNetwork()
    (listener,) = network.listen("localhost", 0)
    assert listener.host == "127.0.0.1"
    listener.close()
    with pytest.raises(OSError) as failure:
        network.listen("::1", 0)
    assert failure.value.errno == errno.EADDRNOTAVAIL
    network.close()


def test_a_port_taken_in_the_second_family_is_drawn_again(monkeypatch):
    bound = network_module._bound
    clashes = [2]

    def clashing(family, address, port):
        if family == socket.AF_INET6 and clashes[0]:
            clashes[0] -= 1
            raise OSError(errno.EADDRINUSE, "taken")
        return bound(socket.AF_INET, "127.0.0.1" if family == socket.AF_INET else "127.0.0.2", port)

    monkeypatch.setattr(network_module, "_bound", clashing)
    network = RealNetwork()
    listeners = network.listen("localhost", 0)
    assert len({listener.port for listener in listeners}) == 1
    assert clashes == [0]
    for listener in listeners:
        listener.close()
    clashes[0] = 1
    with pytest.raises(OSError) as failure:
        network.listen("localhost", listeners[0].port)
    assert failure.value.errno == errno.EADDRINUSE
    clashes[0] = network_module.SHARED_PORT_ATTEMPTS_MAX
    with pytest.raises(OSError):
        network.listen("localhost", 0)
    network.close()


def test_a_taken_port_is_refused(listener, network):
    with pytest.raises(OSError) as failure:
        network.listen("127.0.0.1", listener.port)
    assert failure.value.errno == errno.EADDRINUSE


def test_an_unknown_host_is_refused(network, monkeypatch):
    def unknown(*arguments, **options):
        raise socket.gaierror(socket.EAI_NONAME, "unknown")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    with pytest.raises(OSError):
        network.listen("no-such-host.invalid", 0)
    with pytest.raises(OSError):
        network.connect("no-such-host.invalid", 9092)


def test_an_empty_host_is_every_address():
    network = RealNetwork()
    listeners = network.listen("", 0)
    assert "0.0.0.0" in [listener.host for listener in listeners]
    for listener in listeners:
        listener.close()
    network.close()


def test_names_are_resolved_to_addresses(network):
    assert network.resolve("127.0.0.1") == ["127.0.0.1"]
    assert network.resolve("::1") == ["::1"]
    assert network.resolve("localhost")[0] == "127.0.0.1"
    with pytest.raises(OSError, match="not a valid host name"):
        network.resolve("a" * 300)
