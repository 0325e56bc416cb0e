import os
import pathlib
import subprocess
import sys

import pytest

from headrace.ports.network import READABLE
from headrace.sim.clock import VirtualClock, VirtualTime
from headrace.sim.entropy import SeededEntropy
from headrace.sim.trace import Trace
from headrace.sim.world import RunTooLong, World

ROOT = pathlib.Path(__file__).parents[2]
HOST, PORT = "node", 9092
SEEDS = range(8)


class EchoNode:
    """A small node on the five ports: it logs what it receives, and answers after the sync."""

    def __init__(self, machine):
        self._disk = machine.disk
        self._network = machine.network
        self._spawner = machine.spawner
        self._file = self._open_log()
        self._end = self._disk.size(self._file)
        self._transports = {}
        (self._listener,) = self._network.listen(HOST, PORT)
        self._network.watch(self._listener.token, READABLE)

    def _open_log(self):
        file = self._disk.open("echo.log", create=True)
        self._disk.sync_directory("")
        return file

    def turn(self, timeout_ms=0.0):
        for token, _ in self._network.poll(timeout_ms):
            if token == self._listener.token:
                transport = self._listener.accept()
                self._transports[transport.token] = transport
                self._network.watch(transport.token, READABLE)
            else:
                self._receive(self._transports[token])
        self._spawner.run_completions()

    def _receive(self, transport):
        buffer = bytearray(64)
        length = transport.recv_into(memoryview(buffer))
        self._disk.write_vector(self._file, [buffer[:length]], self._end)
        self._end += length
        answer = b"%d;" % self._end
        self._spawner.submit(
            lambda: self._disk.data_sync(self._file), lambda result, error: send_all(transport, answer)
        )


def send_all(transport, answer):
    while answer:
        answer = answer[transport.send(answer) :]


def acked(client):
    return max((int(end) for end in bytes(client.receive()).split(b";")[:-1]), default=0)


def scenario(seed):
    """Echo through a power cut: what was answered is on the disk. The trace hash and what survived."""
    world = World(seed)
    machine = world.machine()
    machine.boot(EchoNode)
    client = world.connect(HOST, PORT)
    for number in range(20):
        client.send(b"message %d " % number)
    world.run_until(lambda: acked(client) > 100)
    end = acked(client)
    machine.cut_power()
    assert client.is_closed()
    survived = machine.disk.file_size("echo.log")
    assert survived >= end
    sent = b"".join(b"message %d " % number for number in range(20))
    file = machine.disk.open("echo.log")
    assert machine.disk.read(file, end, 0) == sent[:end]
    machine.disk.close(file)
    machine.boot(EchoNode)
    client = world.connect(HOST, PORT)
    client.send(b"again")
    world.run_until(lambda: acked(client) >= survived + 5)
    return world.trace.hash, survived


@pytest.mark.usefixtures("virtual_world_only")
def test_the_same_seed_gives_the_same_trace_and_another_seed_another():
    hashes = {seed: scenario(seed) for seed in SEEDS}
    assert hashes == {seed: scenario(seed) for seed in SEEDS}
    assert len(set(hashes.values())) == len(SEEDS)


@pytest.mark.slow
def test_the_trace_does_not_depend_on_the_hash_seed_of_the_interpreter():
    script = "from tests.sim.test_world import scenario; print(*scenario(3))"
    for hash_seed in ("1", "2"):
        answer = subprocess.run(
            [sys.executable, "-c", script],
            capture_output=True,
            text=True,
            check=True,
            cwd=ROOT,
            env=os.environ | {"PYTHONHASHSEED": hash_seed},
        )
        assert answer.stdout.split() == [str(part) for part in scenario(3)]


@pytest.mark.usefixtures("virtual_world_only")
def test_a_run_that_does_not_arrive_says_its_seed_and_its_last_events():
    world = World(0x5EED)
    world.machine().boot(EchoNode)
    with pytest.raises(RunTooLong) as failure:
        world.run_until(lambda: False, limit_steps=10)
    assert "seed 24301" in str(failure.value)
    assert "machine node boot 1" in str(failure.value)
    assert world.steps == 10


def test_clocks_have_offsets_of_their_own_and_only_the_wall_clock_jumps():
    time = VirtualTime()
    one = VirtualClock(time)
    other = VirtualClock(time, monotonic_start_ms=500.0, wall_start_ms=1_000)
    time.advance(12.5)
    assert (one.monotonic_ms(), other.monotonic_ms()) == (12.5, 512.5)
    assert other.wall_ms() == 1_012
    other.jump_wall(-3_600_000)
    assert other.wall_ms() == 1_012 - 3_600_000
    assert other.monotonic_ms() == 512.5
    with pytest.raises(AssertionError):
        time.advance(-1)


def test_branches_of_entropy_do_not_disturb_one_another():
    entropy = SeededEntropy(7)
    before = entropy.branch("disk").random_bytes(8)
    entropy.below(10)
    entropy.branch("network").below(10)
    assert entropy.branch("disk").random_bytes(8) == before
    assert entropy.branch("network").random_bytes(8) != before
    assert not any(entropy.one_in(0) for _ in range(10))
    assert all(entropy.one_in(1) for _ in range(10))


def test_the_trace_is_a_chain():
    one, other = Trace(), Trace()
    for line in ("a", "b"):
        one.record(line)
    for line in ("b", "a"):
        other.record(line)
    assert one.hash != other.hash
    assert one.events == 2
    assert list(one.tail) == ["a", "b"]
