"""Too few file descriptors: shares for files and connections, a limit that yields, and a listener that rests."""

import errno
from itertools import pairwise

import pytest

from headrace.broker.descriptors import UNLIMITED, shares
from headrace.broker.logs import NodeLogger
from headrace.broker.net.acceptor import ACCEPT_PAUSE_MS
from headrace.broker.partitions.flushes import FLUSHES_AT_ONCE_MAX
from headrace.log.open_files import PRESSED_FILES_MIN, OpenFile, OpenFiles
from headrace.model.errors import ErrorCode as E
from headrace.sim.clock import VirtualClock, VirtualTime
from headrace.sim.network import VirtualListener
from tests.disks.virtual_disks import DiskBroker
from tests.log.world import virtual_disk


def test_log_files_and_connections_have_their_shares():
    assert shares(UNLIMITED, open_files_max=4096, connections_max=1 << 31) == (4096, 1 << 31)
    assert shares(1024, open_files_max=4096, connections_max=1 << 31) == (492, 492)
    assert shares(100_000, open_files_max=4096, connections_max=1 << 31) == (4096, 95_864)
    assert shares(20, open_files_max=4096, connections_max=1 << 31) == (8, 8)
    assert shares(100_000, open_files_max=4096, connections_max=50) == (4096, 50)


def test_open_files_are_closed_when_the_process_has_no_descriptor_left_and_come_back():
    disk = virtual_disk()
    files = OpenFiles(disk, 100)
    held = []
    for number in range(80):
        disk.close(disk.open(f"f{number}", create=True))
        held.append(OpenFile(f"f{number}"))
        files.handle(held[-1])
    disk.faults.fail("open", code=errno.EMFILE)
    late = OpenFile("f0")
    with pytest.raises(OSError, match="open files"):
        files.handle(late)
    files.close_idle()
    files.close_idle()
    assert PRESSED_FILES_MIN <= len(files) <= 70
    for _ in range(20):
        for file in held:
            files.handle(file)
        files.close_idle()
    assert len(files) == 80, "the limit is the old one again"
    files.close_all()


def test_a_log_that_cannot_be_written_does_not_stop_the_broker():
    def full(_text):
        raise OSError(errno.ENOSPC, "no space left on device")

    NodeLogger(clock=VirtualClock(VirtualTime()), write=full).error("log directory is full", directory="data")


def test_a_listener_without_a_descriptor_for_the_next_connection_rests_and_continues(monkeypatch):
    broker = DiskBroker().with_topic("t")
    known = broker.client()
    assert known.produce_error("t") == 0
    accept, refusals = VirtualListener.accept, []

    def no_descriptor(listener):
        refusals.append(broker.machine.clock.monotonic_ms())
        raise OSError(errno.EMFILE, "too many open files")

    monkeypatch.setattr(VirtualListener, "accept", no_descriptor)
    late = broker.client()
    waiting = late.send_produce("t")
    assert known.produce_error("t") == 0, "who is connected is served"
    broker.steps(100)
    assert len(refusals) > 1
    assert all(later - earlier >= ACCEPT_PAUSE_MS for earlier, later in pairwise(refusals))
    monkeypatch.setattr(VirtualListener, "accept", accept)
    assert late.wait(waiting).responses[0].partition_responses[0].error_code == 0


@pytest.mark.parametrize("code", [errno.EMFILE, errno.ENFILE])
@pytest.mark.parametrize("operation", ["open", "sync_directory"])
def test_calls_without_a_descriptor_fail_no_directory(operation, code):
    broker = DiskBroker(settings={"headrace.open.files.max": "16"})
    broker.with_topic("t", partitions=8, segment_bytes=1500, flush_messages=1)
    client = broker.client()
    refused = 0
    for turn in range(30):
        if turn % 3 == 0:
            broker.disk.faults.fail(operation, code=code, path_contains="t-", times=2)
        for partition in range(8):
            error = client.produce_error("t", partition, client.batch(bytes(500)), timeout_ms=300)
            assert error in (0, E.KAFKA_STORAGE_ERROR, E.REQUEST_TIMED_OUT)
            refused += error != 0
        broker.steps(5)
    assert refused or operation == "sync_directory"
    broker.disk.faults.heal()
    broker.pass_time(2_000)
    assert len(broker.directories) == 1
    assert not broker.space().full
    assert [client.produce_error("t", partition) for partition in range(8)] == [0] * 8
    assert not broker.events("log directory failed")


def test_a_read_without_a_descriptor_is_an_error_of_its_partition_and_passes():
    broker = DiskBroker(settings={"headrace.open.files.max": "16"}).with_topic("t", segment_bytes=1500)
    client = broker.client()
    for number in range(10):
        assert client.produce_error("t", 0, client.batch(b"%d" % number + bytes(500))) == 0
    broker.node._files.open_files_max = 0
    broker.pass_time(2_000)
    broker.pass_time(2_000)
    broker.disk.faults.fail("open", code=errno.EMFILE, path_contains=".log")
    answers = [client.fetch("t").error_code for _ in range(2)]
    assert answers[-1] == 0
    assert set(answers) <= {0, E.KAFKA_STORAGE_ERROR}
    assert len(client.read_all("t")) == 10


def test_a_node_that_cannot_start_ends_and_says_why():
    broker = DiskBroker()
    broker.stop()
    broker.disk.make_directory("data/of-none-0")
    broker.disk.faults.fail("rename", code=errno.EMFILE, path_contains="of-none")
    broker.machine.boot(broker._start)
    broker.node.loop.strict = False
    broker.run_until(lambda: broker.node.failed)
    assert not broker.node.ready
    assert broker.events("broker cannot start")


def test_flushes_take_turns_while_too_many_files_are_open():
    broker = DiskBroker(settings={"headrace.open.files.max": "16"}).with_topic("t", partitions=60)
    client = broker.client()
    for partition in range(60):
        assert client.produce_error("t", partition) == 0
    broker.hold_syncs()
    for partition in range(60):
        broker.node.broker.partitions.flush(broker.partition("t", partition))
    pinned = sum(bool(file.pins) for file in broker.node._files._open.values())
    assert pinned <= 16 + 3 * FLUSHES_AT_ONCE_MAX
    broker.release_syncs()
    broker.run_until(lambda: all(broker.partition("t", number).log.recovery_point == 1 for number in range(60)))
    broker.steps(20)
    assert len(broker.node._files) <= broker.node._files.far_above


def test_a_start_opens_no_more_files_than_it_may():
    broker = DiskBroker(settings={"headrace.open.files.max": "16"}).with_topic("t", partitions=60)
    client = broker.client()
    for partition in range(60):
        assert client.produce_error("t", partition) == 0
    opened = []
    broker.machine.kill()
    broker.disk.on_operation = lambda *_: opened.append(len(broker.disk._open))
    broker.boot()
    broker.disk.on_operation = None
    assert max(opened) <= 16 + 3 * FLUSHES_AT_ONCE_MAX + 16
    client = broker.client()
    assert [client.values("t", partition) for partition in range(60)] == [[b"v"]] * 60
