"""Several machines on one virtual network: each directed link has its own delay, losses, resets and cuts."""

import errno

import pytest

from headrace.ports.network import BROKEN, READABLE, WRITABLE
from headrace.sim.world import RunTooLong, World

pytestmark = pytest.mark.usefixtures("virtual_world_only")
PORT = 9092


class Pair:
    """Two machines: `one` listens, `two` calls it."""

    def __init__(self, seed=1, **links):
        self.world = World(seed)
        self.one, self.two = self.world.machine("one"), self.world.machine("two")
        self.there = self.world.fabric.links.between("two", "one")
        self.back = self.world.fabric.links.between("one", "two")
        for link in (self.there, self.back):
            for habit, value in links.items():
                setattr(link, habit, value)
        self.listen()

    def listen(self):
        (self.listener,) = self.one.network.listen("one", PORT)

    def call(self):
        self.caller = self.two.network.connect("one", PORT)
        self.two.network.watch(self.caller.token, READABLE | WRITABLE)

    def connect(self):
        self.call()
        self.run_until(lambda: self.caller_events() & WRITABLE)
        self.answerer = self.listener.accept()
        self.one.network.watch(self.answerer.token, READABLE)

    def run_until(self, reached):
        """Return the virtual time that it took."""
        before_ms = self.world.time.now_ms
        self.world.run_until(reached, limit_steps=20_000)
        return self.world.time.now_ms - before_ms

    def caller_events(self):
        return dict(self.two.network.poll(0)).get(self.caller.token, 0)

    def answerer_events(self):
        return dict(self.one.network.poll(0)).get(self.answerer.token, 0)

    def send_until_read(self, content):
        for byte in content:
            self.caller.send(bytes([byte]))
        received = bytearray()

        def read():
            if self.answerer_events() & READABLE:
                received.extend(receive(self.answerer))
            return len(received) >= len(content)

        duration_ms = self.run_until(read)
        assert received == content
        return duration_ms


def receive(transport):
    buffer = bytearray(1 << 16)
    return bytes(buffer[: transport.recv_into(memoryview(buffer))])


def test_a_delayed_link_takes_its_time_and_keeps_the_order():
    quick, slow = Pair(), Pair(delay_ms_max=2_000)
    durations_ms = []
    for pair in (quick, slow):
        pair.connect()
        durations_ms.append(pair.send_until_read(bytes(range(30))))
    assert durations_ms[0] < 500 < durations_ms[1] <= 2_100


def test_connections_overtake_one_another_on_a_delayed_link():
    orders = set()
    for seed in range(10):
        pair = Pair(seed, delay_ms_max=500)
        pair.connect()
        early = pair.answerer
        pair.caller.send(b"x")
        pair.connect()
        late = pair.answerer
        pair.caller.send(b"y")
        pair.run_until(lambda pair=pair: pair.one.network.poll(0))
        orders.add(pair.one.network.poll(0)[0][0] == early.token)
        assert early.token != late.token
    assert orders == {True, False}


def test_a_lost_packet_delays_what_is_behind_it():
    pair = Pair()
    pair.connect()
    pair.there.lost_one_in = 1
    assert pair.send_until_read(b"lost and found") >= 200
    assert pair.world.trace.met["packet lost"] == len(b"lost and found")


def test_a_cut_holds_one_direction_back():
    pair = Pair()
    pair.connect()
    pair.there.is_cut = True
    pair.caller.send(b"held back")
    pair.answerer.send(b"!")
    pair.run_until(lambda: pair.caller_events() & READABLE)
    assert receive(pair.caller) == b"!"
    with pytest.raises(RunTooLong):
        pair.world.run_until(lambda: pair.answerer_events() & READABLE, limit_steps=200)
    pair.world.fabric.links.heal()
    pair.run_until(lambda: pair.answerer_events() & READABLE)


def test_the_end_of_a_process_is_not_seen_across_a_cut():
    pair = Pair()
    pair.connect()
    pair.back.is_cut = True
    pair.one.kill()
    pair.world.run_until(lambda: pair.world.steps > 200)
    assert not pair.caller_events() & (READABLE | BROKEN)
    pair.caller.send(b"x")
    assert not pair.caller_events() & (READABLE | BROKEN)
    pair.world.fabric.links.heal()
    assert pair.caller_events() & READABLE
    assert receive(pair.caller) == b""
    pair.world.step()
    with pytest.raises(BrokenPipeError):
        pair.caller.send(b"x")


def test_resets_end_a_connection_at_both_sides():
    pair = Pair()
    pair.connect()
    pair.there.reset_one_in = 1
    pair.caller.send(b"x")
    pair.run_until(lambda: pair.caller_events() & BROKEN)
    assert pair.answerer_events() & BROKEN
    with pytest.raises(ConnectionResetError):
        receive(pair.caller)


def test_a_machine_without_the_process_refuses_and_one_without_power_says_nothing():
    pair = Pair(delay_ms_max=20)
    pair.one.kill()
    pair.call()
    assert not pair.caller_events()
    with pytest.raises(BlockingIOError):
        pair.caller.send(b"x")
    pair.run_until(lambda: pair.caller_events() & BROKEN)
    with pytest.raises(ConnectionRefusedError):
        receive(pair.caller)
    pair.one.cut_power()
    pair.call()
    pair.world.step_ms_max = 50
    duration_ms = pair.run_until(lambda: pair.caller_events() & BROKEN)
    assert duration_ms > 30_000
    with pytest.raises(OSError) as failure:
        receive(pair.caller)
    assert failure.value.errno == errno.ETIMEDOUT


def test_a_call_to_a_machine_that_boots_meanwhile_gets_through():
    pair = Pair()
    pair.one.cut_power()
    pair.call()
    pair.world.run_until(lambda: pair.world.steps > 100)
    assert not pair.caller_events()
    pair.world.fabric.set_power("one", is_on=True)
    pair.listen()
    assert pair.run_until(lambda: pair.caller_events()) <= 3_000
    assert pair.caller_events() == WRITABLE


@pytest.mark.parametrize("links", [{}, {"delay_ms_max": 20}])
def test_a_power_cut_is_noticed_when_the_machine_is_back_and_is_sent_something(links):
    pair = Pair(**links)
    pair.connect()
    pair.caller.send(b"x")
    pair.run_until(lambda: pair.answerer_events())
    pair.one.cut_power()
    pair.caller.send(b"anyone there?")
    pair.world.run_until(lambda: pair.world.steps > 300)
    assert pair.caller_events() == WRITABLE
    pair.world.fabric.set_power("one", is_on=True)
    pair.run_until(lambda: pair.caller_events() & BROKEN)


def test_an_unknown_name_has_no_address():
    pair = Pair()
    with pytest.raises(OSError, match="three has no address"):
        pair.two.network.connect("three", PORT)


def test_clocks_of_machines_drift_apart():
    world = World(1)
    one, two = world.machine("one"), world.machine("two")
    world.time.advance(1_000)
    one.clock.drift_monotonic(1.01)
    two.clock.drift_monotonic(0.99)
    world.time.advance(100_000)
    assert one.clock.monotonic_ms() == pytest.approx(102_000)
    assert two.clock.monotonic_ms() == pytest.approx(100_000)


def test_machines_take_their_turns_in_drawn_order():
    turns = []

    class Recorder:
        def __init__(self, machine):
            self._name = machine.name

        def turn(self, timeout_ms=0.0):
            turns.append(self._name)

    world = World(1)
    for name in "abc":
        world.machine(name).boot(Recorder)
    for _ in range(20):
        world.step()
    assert {turns[start] for start in range(0, len(turns), 3)} == set("abc")
    assert sorted(turns) == sorted("abc" * 20)
