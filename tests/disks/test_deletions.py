"""Deleted topics stay deleted, whatever happens to the power."""

import errno

import pytest

from tests.disks.virtual_disks import DiskBroker


def folders(broker):
    return broker.disk.list_directory("data")


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("recreated", [False, True], ids=["deleted", "created again"])
def test_a_deleted_topic_does_not_return_as_a_stray_after_a_power_cut(seed, recreated):
    """The delay before files are removed is longer than the broker lives."""
    broker = DiskBroker(seed=seed).with_topic("t", partitions=3, file_delete_delay_ms=600_000)
    client = broker.client()
    for partition in range(3):
        assert client.produce_error("t", partition) == 0
    assert client.delete_topic("t") == 0
    if recreated:
        assert client.create_topic("t", partitions=3).error_code == 0
    broker.machine.cut_power()
    broker.boot()
    assert not [name for name in folders(broker) if name.endswith("-stray")]
    assert not broker.events("belongs to no topic")
    assert len([name for name in folders(broker) if name.startswith("t-") and "delete" not in name]) == 3 * recreated


def test_a_deletion_is_answered_although_its_names_cannot_be_synced_for_now():
    broker = DiskBroker().with_topic("t").with_topic("other")
    broker.disk.faults.fail("sync_directory", code=errno.EMFILE, path_contains="data", times=3)
    client = broker.client()
    assert client.delete_topic("t") == 0
    assert len(broker.directories) == 1
    assert client.produce_error("other") == 0
