import errno

import pytest

from headrace.ports.disk import FileRange
from headrace.ports.network import BROKEN, READABLE, WRITABLE
from headrace.sim.streams import WINDOW_BYTES_MAX
from headrace.sim.world import World

pytestmark = pytest.mark.usefixtures("virtual_world_only")
HOST = "node"
DELIVERIES_MAX = 2_000


class Wire:
    """A connected pair: the machine's transport and the test's client."""

    def __init__(self, seed=1):
        self.world = World(seed)
        self.machine = self.world.machine()
        self.network = self.machine.network
        (self.listener,) = self.network.listen(HOST, 0)
        self.network.watch(self.listener.token, READABLE)
        self.client = self.world.connect(HOST, self.listener.port)
        assert self.network.poll(0) == [(self.listener.token, READABLE)]
        self.transport = self.listener.accept()
        self.network.watch(self.transport.token, READABLE)

    def deliver_all(self):
        for _ in range(DELIVERIES_MAX):
            if not self.world.fabric.is_moving():
                return
            self.world.fabric.deliver()
        raise AssertionError("bytes are still under way")

    def recv(self, length=1 << 20):
        buffer = bytearray(length)
        count = self.transport.recv_into(memoryview(buffer))
        return bytes(buffer[:count])


def test_bytes_arrive_in_order_in_drawn_slices():
    sent = bytes(range(256)) * 40
    counts = set()
    for seed in range(20):
        wire = Wire(seed)
        wire.client.send(sent)
        received, slices = bytearray(), 0
        while len(received) < len(sent):
            wire.world.fabric.deliver()
            if wire.network.poll(0):
                received += wire.recv()
                slices += 1
        assert received == sent
        counts.add(slices)
    assert len(counts) > 3
    assert min(counts) == 1


def test_the_client_receives_what_the_node_sends_however_short_the_sends_are():
    wire = Wire()
    wire.transport.send(b"", wire.network.more)
    sent = b"0123456789" * 500
    rest, sends = sent, 0
    while rest:
        rest = rest[wire.transport.send(rest[:100]) :]
        sends += 1
    assert wire.transport.send_vector([b"!", memoryview(b"?")]) in (1, 2)
    wire.deliver_all()
    assert wire.client.receive()[: len(sent)] == sent
    assert sends > 50


def test_a_slice_of_the_virtual_disk_is_sent():
    wire = Wire()
    disk = wire.machine.disk
    file = disk.open("log", create=True)
    disk.write_vector(file, [b"0123456789"], 0)
    position = 2
    while position < 9:
        position += wire.transport.send_range(FileRange(file, position, 9 - position))
    wire.deliver_all()
    assert wire.client.receive() == b"2345678"


def test_nothing_to_read_and_a_full_window_would_block():
    wire = Wire()
    with pytest.raises(BlockingIOError):
        wire.recv()
    sent = 0
    while sent < WINDOW_BYTES_MAX:
        sent += wire.transport.send(bytes(1 << 20))
    with pytest.raises(BlockingIOError):
        wire.transport.send(b"x")
    wire.network.watch(wire.transport.token, WRITABLE)
    assert wire.network.poll(0) == []
    wire.deliver_all()
    assert len(wire.client.receive()) == WINDOW_BYTES_MAX
    assert wire.network.poll(0) == [(wire.transport.token, WRITABLE)]


def test_interest_zero_mutes():
    wire = Wire()
    wire.client.send(b"x")
    wire.deliver_all()
    wire.network.watch(wire.transport.token, 0)
    assert wire.network.poll(0) == []
    wire.network.watch(wire.transport.token, READABLE | WRITABLE)
    assert wire.network.poll(0) == [(wire.transport.token, READABLE | WRITABLE)]


def test_a_stalled_direction_holds_its_bytes():
    wire = Wire()
    wire.client.stall(sending=True)
    wire.client.send(b"late")
    wire.deliver_all()
    assert wire.network.poll(0) == []
    wire.client.stall()
    wire.deliver_all()
    assert wire.recv() == b"late"


def test_half_close_is_the_end_after_the_last_byte_and_answers_still_arrive():
    wire = Wire()
    wire.client.send(b"last words")
    wire.client.finish()
    wire.deliver_all()
    assert wire.recv(4) == b"last"
    assert wire.recv() == b" words"
    assert wire.network.poll(0) == [(wire.transport.token, READABLE)]
    assert wire.recv() == b""
    wire.transport.send(b"!")
    wire.network.forget(wire.transport.token)
    wire.transport.close()
    assert not wire.client.is_closed()
    wire.deliver_all()
    assert wire.client.receive() == b"!"
    assert wire.client.is_closed()


def test_a_client_that_closes_is_read_to_the_end_but_takes_no_answer():
    wire = Wire()
    wire.client.send(b"fire and forget")
    wire.client.close()
    wire.deliver_all()
    assert wire.network.poll(0) == [(wire.transport.token, READABLE)]
    assert wire.recv() == b"fire and forget"
    assert wire.recv() == b""
    with pytest.raises(BrokenPipeError):
        wire.transport.send(b"x")


def test_a_reset_drops_what_was_under_way():
    wire = Wire()
    wire.client.send(b"never seen")
    wire.client.reset()
    wire.network.watch(wire.transport.token, 0)
    assert wire.network.poll(0) == [(wire.transport.token, BROKEN)]
    with pytest.raises(ConnectionResetError):
        wire.recv()
    with pytest.raises(BrokenPipeError):
        wire.transport.send(b"x")


def test_a_closed_transport_is_a_bad_handle_and_must_be_forgotten_first():
    wire = Wire()
    with pytest.raises(AssertionError):
        wire.transport.close()
    wire = Wire()
    wire.network.forget(wire.transport.token)
    wire.transport.close()
    wire.transport.close()
    with pytest.raises(OSError) as failure:
        wire.transport.send(b"x")
    assert failure.value.errno == errno.EBADF
    with pytest.raises(OSError):
        wire.network.watch(wire.transport.token, READABLE)
    with pytest.raises(BrokenPipeError):
        wire.client.send(b"x")


def test_listeners():
    wire = Wire()
    with pytest.raises(OSError) as failure:
        wire.network.listen(HOST, wire.listener.port)
    assert failure.value.errno == errno.EADDRINUSE
    assert wire.listener.accept() is None
    waiting = wire.world.connect(HOST, wire.listener.port)
    wire.network.fail_accepts(errno.EMFILE)
    with pytest.raises(OSError) as failure:
        wire.listener.accept()
    assert failure.value.errno == errno.EMFILE
    wire.network.forget(wire.listener.token)
    wire.listener.close()
    assert waiting.is_closed()
    with pytest.raises(ConnectionRefusedError):
        wire.world.connect(HOST, wire.listener.port)


def test_two_machines_talk():
    world = World(5)
    one, two = world.machine("one"), world.machine("two")
    (listener,) = one.network.listen("one", 9092)
    caller = two.network.connect("one", 9092)
    two.network.watch(caller.token, WRITABLE)
    assert two.network.poll(0) == [(caller.token, WRITABLE)]
    answerer = listener.accept()
    caller.send(b"x")
    while world.fabric.is_moving():
        world.fabric.deliver()
    buffer = bytearray(1)
    assert answerer.recv_into(memoryview(buffer)) == 1
    assert buffer == b"x"


def test_a_killed_process_resets_its_connections_and_frees_its_ports():
    wire = Wire()
    waiting = wire.world.connect(HOST, wire.listener.port)
    wire.machine.kill()
    assert wire.client.is_closed()
    assert waiting.is_closed()
    assert wire.machine.network is not wire.network
    wire.machine.network.listen(HOST, wire.listener.port)


def test_ready_connections_come_in_drawn_order():
    orders = set()
    for seed in range(20):
        wire = Wire(seed)
        wire.network.watch(wire.transport.token, WRITABLE)
        wire.world.connect(HOST, wire.listener.port)
        orders.add(tuple(token for token, _ in wire.network.poll(0)))
    assert len(orders) == 2
