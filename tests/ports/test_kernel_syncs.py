"""Syncs by the kernel's asynchronous I/O end as those by threads do, and go to threads where it cannot."""

import errno
import os
from functools import partial
from typing import Any

import pytest

from headrace.ports.disk import DataSync
from headrace.ports.real.disk import RealDisk
from headrace.ports.real.kernel_syncs import _EVENT, IN_FLIGHT_MAX, KernelSyncs
from headrace.ports.real.network import RealNetwork
from headrace.ports.real.spawner import ThreadSpawner


def _is_there():
    try:
        KernelSyncs().close()
    except OSError:
        return False
    return True


pytestmark = pytest.mark.skipif(not _is_there(), reason="needs Linux's asynchronous I/O (io_setup), which is not here")


class Watched(RealDisk):
    """A disk of its own kind, such as one with faults: its syncs must be its own."""

    synced = 0

    def data_sync(self, file):
        self.synced += 1


@pytest.fixture
def network():
    network = RealNetwork()
    yield network
    network.close()


@pytest.fixture
def spawner(network):
    spawner = ThreadSpawner(network.wake, wake_on=network.wake_on)
    yield spawner
    spawner.close()


@pytest.fixture
def file(tmp_path):
    file = os.open(tmp_path / "synced", os.O_RDWR | os.O_CREAT)
    os.write(file, b"content")
    yield file
    os.close(file)


def run(spawner, network, disk, files, failed=None):
    ends = []
    failed = [] if failed is None else failed
    for file in files:
        spawner.submit(
            DataSync(disk, file, partial(failed.append, file)), lambda result, error: ends.append((result, error))
        )
    assert ends == [], "an end is an event of a later turn"
    while len(ends) < len(files):
        network.poll(-1)
        spawner.run_completions()
    assert spawner.in_flight() == 0
    return ends


def test_it_ends_on_the_loop_without_a_thread(spawner, network, file):
    assert run(spawner, network, RealDisk(), [file]) == [(None, None)]
    assert not any(line.threads for line in spawner._lines)


def test_more_than_the_kernel_is_given_go_to_threads(spawner, network, file):
    count = 2 * IN_FLIGHT_MAX + 1
    assert run(spawner, network, RealDisk(), [file] * count) == [(None, None)] * count
    assert run(spawner, network, RealDisk(), [file]) == [(None, None)]


def test_what_cannot_be_synced_is_an_error_of_its_own(spawner, network, file):
    reader, writer = os.pipe()
    os.close(writer)
    failed: list[Any] = []
    try:
        ends = run(spawner, network, RealDisk(), [file, reader, file], failed)
    finally:
        os.close(reader)
    errors = [error for _result, error in ends if error is not None]
    assert [error.errno for error in errors] == [errno.EINVAL]
    assert failed == [reader]


def test_another_disk_syncs_by_itself(spawner, network, file):
    disk = Watched()
    assert run(spawner, network, disk, [file]) == [(None, None)]
    assert disk.synced == 1


def test_a_failed_sync_is_an_oserror(file, monkeypatch):
    syncs = KernelSyncs()
    take = syncs._take

    def take_failed(*arguments):
        count = take(*arguments)
        if count:
            slot, block, _result, second = _EVENT.unpack_from(syncs._events)
            _EVENT.pack_into(syncs._events, 0, slot, block, -errno.EIO, second)
        return count

    monkeypatch.setattr(syncs, "_take", take_failed)
    failed = []
    assert syncs.begin(file, lambda: failed.append(file), print)
    while not (ended := syncs.ended()):
        pass
    assert failed == [file], "the reader of the completion reports it before any other hears of it"
    ((completed, result, error),) = ended
    assert completed is print
    assert result is None
    assert isinstance(error, OSError)
    assert error.errno == errno.EIO
    syncs.close()


def test_close_waits_for_what_is_under_way(file):
    syncs = KernelSyncs()
    for _ in range(IN_FLIGHT_MAX):
        assert syncs.begin(file, pytest.fail, lambda result, error: pytest.fail("no callback runs after the close"))
    assert not syncs.begin(file, pytest.fail, print)
    syncs.close()
    assert len(syncs) == 0
