"""Real processes on real disks that are full, failing, read-only, or met with too few file descriptors."""

import errno
import os
import resource
import subprocess
import sys
import time
from typing import Any

import pytest

from headrace.model.errors import ErrorCode as E
from tests.disks.processes import EndedAtStart, FaultyBroker
from tests.disks.producers import (
    Checker,
    Connection,
    Ledger,
    Producer,
    create_topic,
    delete_topic,
    fetch_once,
    produce_once,
    read_from,
)
from tests.reserved_ports import reserved_port
from tests.small_disks import small_file_system

pytestmark = [pytest.mark.process, pytest.mark.record_integrity]

TMPFS_BYTES = 24 << 20
FREE_MIN_BYTES = 2 << 20
OPEN_FILES_MAX = 96
WAIT_S_MAX = 60.0


def wait_for(reached, what):
    deadline = time.monotonic() + WAIT_S_MAX
    while not reached():
        assert time.monotonic() < deadline, what
        time.sleep(0.02)


def test_a_full_file_system_refuses_records_and_heals(tmp_path):
    with small_file_system(tmp_path, TMPFS_BYTES):
        settings = {"headrace.disk.free.min.bytes": str(FREE_MIN_BYTES), "headrace.preallocate.bytes": "0"}
        with FaultyBroker(tmp_path / "data", port=reserved_port(), settings=settings) as broker:
            broker.start()
            ledger = Ledger()
            with Connection(broker.address) as connection:
                assert create_topic(connection, "t", segment_bytes=1 << 20) == 0
                assert create_topic(connection, "ballast", segment_bytes=1 << 20) == 0
            writer = Producer(broker.address, ledger, "a", (("t", 0),), pace_s=0.003)
            ballast = Producer(broker.address, ledger, "b", (("ballast", 0),))
            (tmp_path / "foreign").write_bytes(bytes(8 << 20))  # someone else has a part of it
            for one in (writer, ballast):
                one.start()
            wait_for(lambda: writer.refused > 3, "nothing is refused on a full file system")
            with Connection(broker.address) as connection:
                assert len(read_from(connection, "t", 0, 0)) == len(ledger.acked["t", 0]), "reads go on"
                assert create_topic(connection, "new") == E.KAFKA_STORAGE_ERROR
                doctor = [sys.executable, "-m", "headrace", "doctor", "--bootstrap", broker.address, "--json"]
                told = subprocess.run([*doctor, "--data-dir", str(tmp_path)], capture_output=True, text=True)
                assert told.returncode == 1
                assert "records are refused" in told.stdout
                ballast._abandoned = True
                assert delete_topic(connection, "ballast") == 0, "deletions go on"
            os.unlink(tmp_path / "foreign")
            acked = len(ledger)
            wait_for(lambda: len(ledger) > acked + 20, "it does not heal")
            writer.stop(WAIT_S_MAX)
            broker.kill()
            broker.start()
            with Connection(broker.address) as connection:
                Checker(ledger).check(connection, "t", 0)
            assert "log directory is full" in broker.complaints()


def test_losing_the_metadata_directory_ends_the_process_with_status_1(tmp_path):
    with FaultyBroker(tmp_path / "data", port=reserved_port()) as broker:
        broker.start({"point": "sync metadata-log", "number": 2, "error": errno.EIO})
        with Connection(broker.address) as connection:
            assert create_topic(connection, "first") == 0
            connection.send_quietly(lambda: create_topic(connection, "second"))
        assert broker.wait() == 1
        assert "restore the directory from a copy" in broker.complaints()
        broker.start()
        with Connection(broker.address) as connection:
            assert fetch_once(connection, "first", 0, 0).error_code == 0


def test_an_unwritable_folder_is_reported_at_once(tmp_path):
    folder = tmp_path / "data"
    folder.write_text("a file where the folder should be")
    with (
        FaultyBroker(folder, port=reserved_port()) as broker,
        pytest.raises(EndedAtStart, match=r"FileExistsError|NotADir"),
    ):
        broker.start()
    command = [sys.executable, "-m", "headrace", "broker", "--data-dir", str(folder), "--listen", "127.0.0.1:0"]
    told = subprocess.run(command, capture_output=True, text=True)
    assert told.returncode == 1
    assert str(folder) in told.stderr
    assert "Traceback" not in told.stderr


def _creates(address, topic):
    try:
        with Connection(address) as connection:
            return create_topic(connection, topic) in (0, E.TOPIC_ALREADY_EXISTS)
    except OSError:
        return False


def test_few_file_descriptors_slow_down_but_break_nothing(tmp_path):
    def limit():
        resource.setrlimit(resource.RLIMIT_NOFILE, (OPEN_FILES_MAX, OPEN_FILES_MAX))

    with FaultyBroker(tmp_path / "data", port=reserved_port()) as broker:
        broker.start(before_exec=limit)
        ledger = Ledger()
        targets = tuple(("many", number) for number in range(40))
        with Connection(broker.address) as connection:
            assert create_topic(connection, "many", len(targets), segment_bytes=16_384) == 0
        writers = [Producer(broker.address, ledger, name, targets) for name in ("a", "b")]
        for writer in writers:
            writer.start()
        wait_for(lambda: len(ledger) > 200, "nothing is written")
        crowd: list[Any] = []
        while len(crowd) < OPEN_FILES_MAX + 20:  # the listener's backlog takes those that are not accepted
            crowd.append(Connection(broker.address))
        acked = len(ledger)
        wait_for(lambda: len(ledger) > acked + 200, "who was connected before is not served any more")
        for one in crowd:
            one.close()
        wait_for(lambda: _creates(broker.address, "afterwards"), "no connection is accepted after the crowd has left")
        for writer in writers:
            writer.stop(WAIT_S_MAX)
        assert "log directory failed" not in broker.complaints()
        broker.kill()
        broker.start()
        checker = Checker(ledger)
        with Connection(broker.address) as connection:
            for topic, partition in targets:
                checker.check(connection, topic, partition)


@pytest.mark.parametrize("end", ["stop", "kill"])
def test_a_broker_with_more_partitions_than_descriptors_starts_again(tmp_path, end):
    """Every partition has a record, so that each has files to look at; after a kill each has a flush to do as well."""

    def limit():
        resource.setrlimit(resource.RLIMIT_NOFILE, (OPEN_FILES_MAX, OPEN_FILES_MAX))

    count = 2 * OPEN_FILES_MAX
    with FaultyBroker(tmp_path / "data", port=reserved_port()) as broker:
        broker.start(before_exec=limit)
        with Connection(broker.address) as connection:
            assert create_topic(connection, "many", count) == 0
            for partition in range(count):
                assert produce_once(connection, "many", partition, b"%d" % partition) == 0
        getattr(broker, end)()
        broker.start(before_exec=limit)
        with Connection(broker.address) as connection:
            for partition in range(count):
                assert [value for _, value in read_from(connection, "many", partition, 0)] == [b"%d" % partition]
                assert produce_once(connection, "many", partition, b"again") == 0
        assert len(os.listdir(f"/proc/{broker.process.pid}/fd")) < OPEN_FILES_MAX
        complaints = broker.complaints()
        assert "log directory failed" not in complaints
        assert "stays closed" not in complaints
        assert "too little" not in complaints
