"""A log directory that fails or vanishes: offline at once, never tried again as if clean, and nothing else with it."""

import errno

import pytest

from headrace.log.errors import WrongDirectory
from headrace.model.errors import ErrorCode as E
from headrace.sim.faults import DiskFaults
from headrace.wire.apis import ApiKey
from headrace.wire.messages import describe_log_dirs
from tests.disks.virtual_disks import DiskBroker

TWO = {"log.dirs": "meta,extra", "log.flush.offset.checkpoint.interval.ms": "1000"}


def two_directories(**configs):
    """A broker with a topic of one partition in each directory: the broker, and where they are."""
    broker = DiskBroker(settings=TWO).with_topic("t", partitions=2, **configs)
    homes = [broker.partition("t", index).log.path.split("/")[0] for index in (0, 1)]
    assert sorted(homes) == ["extra", "meta"]
    return broker, homes.index("extra"), homes.index("meta")


def log_dirs(client):
    request = describe_log_dirs.DescribeLogDirsRequest(topics=None)
    return {one.log_dir: one.error_code for one in client.ask(ApiKey.DESCRIBE_LOG_DIRS, 4, request).results}


def fill(client, topic, partition, *, count=12, size=300):
    """Rolls segments, so that every kind of call is made."""
    return [client.produce_error(topic, partition, client.batch(bytes(size))) for _ in range(count)]


@pytest.mark.parametrize("code", [errno.EIO, errno.EROFS])
@pytest.mark.parametrize("operation", ["write_vector", "data_sync", "rename", "sync_directory", "truncate", "open"])
def test_any_failed_call_takes_its_directory_offline_and_nothing_else(operation, code):
    broker, lost, kept = two_directories(segment_bytes=1000, flush_messages=1)
    client = broker.client()
    assert client.produce_error("t", lost, client.batch(b"before")) == 0
    broker.disk.faults.fail(operation, code=code, path_contains="extra", times=1)
    fill(client, "t", lost)
    broker.pass_time(2_000)
    assert [directory.path for directory in broker.directories] == ["meta"]
    touched = []
    broker.disk.on_operation = lambda name, path: touched.append(path)
    assert client.produce_error("t", lost) == E.KAFKA_STORAGE_ERROR
    assert client.fetch("t", lost).error_code == E.KAFKA_STORAGE_ERROR
    assert client.metadata("t").topics[0].partitions[lost].leader_id == -1
    assert client.produce_error("t", kept, client.batch(b"on")) == 0
    assert client.values("t", kept) == [b"on"]
    assert log_dirs(client) == {"meta": 0, "extra": E.KAFKA_STORAGE_ERROR}
    broker.pass_time(2_000)
    assert not [path for path in touched if path.startswith("extra")], "it is not touched again"
    broker.disk.on_operation = None
    assert len(broker.events("log directory failed")) == 1
    assert not broker.node.failed
    broker.machine.kill()  # the disk is repaired, the node started again
    broker.boot()
    broker.pass_time(100)  # what is found is synced before it is shown
    client = broker.client()
    assert client.values("t", lost)[:1] == [b"before"]
    assert client.produce_error("t", lost) == 0


@pytest.mark.parametrize("code", [errno.EIO, errno.EACCES])
def test_a_topic_whose_folder_cannot_be_made_is_answered_with_a_storage_error(code):
    broker, _, _ = two_directories()
    client = broker.client()
    broker.disk.faults.fail("make_directory", code=code, path_contains="extra/new", times=1)
    created = client.create_topic("new", partitions=2)
    assert created.error_code == E.KAFKA_STORAGE_ERROR
    assert "1 of the 2 partitions of new could not be created" in created.error_message
    assert [directory.path for directory in broker.directories] == ["meta"]
    assert sorted(client.produce_error("new", index) for index in (0, 1)) == [0, E.KAFKA_STORAGE_ERROR]
    assert client.create_topic("other", partitions=2).error_code == 0, "what is left serves on"


def test_a_topic_created_again_while_a_directory_was_offline_is_found_at_the_next_start():
    broker, lost, _ = two_directories(flush_messages=1)
    client = broker.client()
    assert client.produce_error("t", lost, client.batch(b"old")) == 0
    broker.disk.faults.fail("data_sync", path_contains="extra")
    client.produce_error("t", lost)
    assert [directory.path for directory in broker.directories] == ["meta"]
    client.delete_topic("t")
    broker.with_topic("t", partitions=2)
    assert client.produce_error("t", lost, client.batch(b"new")) == 0
    broker.machine.kill()
    broker.boot()
    assert broker.client().values("t", lost) == [b"new"]


@pytest.mark.parametrize("what", ["recovery-point-offset-checkpoint", "__cluster_metadata-0", "t-"])
def test_a_node_without_its_metadata_directory_stops_and_says_what_to_do(what):
    broker, _, kept = two_directories(flush_messages=1)
    client = broker.client()
    broker.disk.faults.fail("data_sync", path_contains=f"meta/{what}")
    client.send_produce("t", kept)
    broker.steps()
    client.send_produce("t", kept)
    for _ in range(3):
        if not broker.node.failed:
            client.alter_configs(2, "t", {"retention.ms": 5_000_000})
            broker.pass_time(1_100)
    assert broker.node.failed
    (line,) = broker.events("the broker stops")
    assert "restore the directory from a copy" in line


def test_a_directory_that_vanishes_goes_offline_without_a_write_to_it():
    broker, lost, kept = two_directories()
    client = broker.client()
    broker.disk.rename("extra", "unplugged")
    broker.pass_time(1_100)
    broker.run_until(lambda: len(broker.directories) == 1)
    assert client.produce_error("t", lost) == E.KAFKA_STORAGE_ERROR
    assert client.produce_error("t", kept) == 0
    assert broker.events("has vanished")


def test_a_missing_directory_is_not_taken_for_a_new_one():
    broker, lost, kept = two_directories()
    client = broker.client()
    assert client.produce_error("t", lost, client.batch(b"kept safe")) == 0
    broker.stop()
    broker.disk.rename("extra", "unmounted")
    broker.disk.make_directory("extra")  # what is left of a disk that is not mounted
    broker.boot()
    client = broker.client()
    assert broker.events("a log directory is missing")
    assert client.produce_error("t", lost) == E.KAFKA_STORAGE_ERROR
    assert client.fetch("t", lost).error_code == E.KAFKA_STORAGE_ERROR
    assert client.produce_error("t", kept) == 0
    assert client.create_topic("new", partitions=2).error_code == 0
    assert log_dirs(client) == {"meta": 0, "extra": E.KAFKA_STORAGE_ERROR}
    assert broker.disk.list_directory("extra") == []
    broker.stop()
    broker.disk.remove_directory("extra")
    broker.disk.rename("unmounted", "extra")
    broker.boot()
    client = broker.client()
    assert client.values("t", lost) == [b"kept safe"]
    assert log_dirs(client) == {"meta": 0, "extra": 0}


def test_directories_may_change_places_and_new_ones_may_come():
    settings = {**TWO, "log.dirs": "meta,one,two"}
    broker = DiskBroker(settings=settings).with_topic("t", partitions=3)
    client = broker.client()
    for index in range(3):
        assert client.produce_error("t", index, client.batch(b"%d" % index)) == 0
    broker.stop()
    broker.disk.rename("one", "other")
    broker.disk.rename("two", "one")
    broker.disk.rename("other", "two")
    broker.settings["log.dirs"] = "meta,one,two,three"
    broker.boot()
    client = broker.client()
    assert [client.values("t", index) for index in range(3)] == [[b"0"], [b"1"], [b"2"]]
    assert len(broker.directories) == 4


def test_a_directory_taken_out_of_the_config_is_given_up():
    broker, lost, _ = two_directories()
    broker.stop()
    broker.settings["log.dirs"] = "meta"
    broker.boot()
    assert broker.client().produce("t", lost).base_offset == 0


@pytest.mark.parametrize("code", [errno.EACCES, errno.EROFS, errno.EIO])
def test_a_directory_that_cannot_be_opened_at_the_start_costs_its_own_partitions(code):
    broker, lost, kept = two_directories()
    broker.stop()
    broker.disk.faults.fail("open", code=code, path_contains="extra/", times=10)
    broker.boot()
    client = broker.client()
    assert client.produce_error("t", kept) == 0
    assert client.produce_error("t", lost) == E.KAFKA_STORAGE_ERROR
    broker.disk.faults.heal()
    broker.restart()
    assert broker.client().produce_error("t", lost) == 0


def test_a_metadata_directory_that_cannot_be_opened_refuses_the_start():
    broker, *_ = two_directories()
    broker.stop()
    broker.disk.faults.fail("open", code=errno.EACCES, path_contains="meta/", times=10)
    with pytest.raises(PermissionError):
        broker.boot()


def test_a_directory_of_another_node_refuses_the_start():
    broker, *_ = two_directories()
    broker.stop()
    broker.settings["node.id"] = "9"
    with pytest.raises(WrongDirectory, match=r"node\.id"):
        broker.boot()


def test_a_failing_disk_while_folders_are_looked_through_at_the_start():
    broker, lost, kept = two_directories()
    broker.stop()
    listing = DiskFaults.raise_planned

    def fail_late(faults, operation, path):
        if operation == "list_directory" and path == f"extra/t-{lost}":
            raise OSError(errno.EIO, "bad sector", path)
        listing(faults, operation, path)

    DiskFaults.raise_planned = fail_late  # type: ignore[method-assign]
    try:
        broker.boot()
    finally:
        DiskFaults.raise_planned = listing  # type: ignore[method-assign]
    client = broker.client()
    assert client.produce_error("t", lost) == E.KAFKA_STORAGE_ERROR
    assert client.produce_error("t", kept) == 0


def test_offline_directories_do_not_prevent_a_clean_stop_of_the_rest():
    broker, lost, kept = two_directories()
    client = broker.client()
    broker.disk.faults.fail("write_vector", path_contains=f"extra/t-{lost}")
    assert client.produce_error("t", lost) == E.KAFKA_STORAGE_ERROR
    assert client.produce_error("t", kept) == 0
    broker.stop()
    assert broker.disk.exists("meta/.kafka_cleanshutdown")
    assert not broker.disk.exists("extra/.kafka_cleanshutdown")


def test_a_stop_that_cannot_write_leaves_no_mark_of_a_clean_one():
    broker, lost, _ = two_directories()
    client = broker.client()
    assert client.produce_error("t", lost, client.batch(b"a")) == 0
    broker.disk.faults.fail("rename", code=errno.ENOSPC, path_contains=f"extra/t-{lost}", times=100)
    broker.stop()
    assert broker.events("not closed cleanly")
    assert not broker.disk.exists("extra/.kafka_cleanshutdown")
    assert broker.disk.exists("meta/.kafka_cleanshutdown")
    broker.disk.faults.heal()
    broker.boot()
    assert broker.client().values("t", lost) == [b"a"]


def test_a_stop_that_cannot_write_metadata_closes_everything_else():
    broker, lost, kept = two_directories()
    client = broker.client()
    for partition in (lost, kept):
        assert client.produce_error("t", partition, client.batch(b"a")) == 0
    broker.disk.faults.fail("rename", code=errno.ENOSPC, path_contains="__cluster_metadata-0", times=100)
    broker.stop()
    assert broker.events("the metadata log was not closed cleanly")
    assert broker.disk.exists("extra/.kafka_cleanshutdown")
    assert not broker.disk.exists("meta/.kafka_cleanshutdown")
    broker.disk.faults.heal()
    broker.boot()
    assert [broker.client().values("t", partition) for partition in (lost, kept)] == [[b"a"], [b"a"]]


def test_a_deleted_topic_leaves_a_failed_directory_alone():
    broker, lost, kept = two_directories()
    client = broker.client()
    broker.disk.faults.fail("write_vector", path_contains=f"extra/t-{lost}")
    assert client.produce_error("t", lost) == E.KAFKA_STORAGE_ERROR
    assert client.delete_topic("t") == 0
    assert f"t-{lost}" in broker.disk.list_directory("extra")
    assert f"t-{kept}" not in broker.disk.list_directory("meta")
