"""Deleted topics stay deleted, whatever happens to the power."""

import errno

import pytest

from headrace.wire.apis import ApiKey
from headrace.wire.messages import create_topics
from tests.broker.virtual import LONG_MS, new_topic
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
    assert not broker.events("belongs to no partition")
    assert len([name for name in folders(broker) if name.startswith("t-") and "delete" not in name]) == 3 * recreated


def test_a_deletion_is_answered_although_its_names_cannot_be_synced_for_now():
    broker = DiskBroker().with_topic("t").with_topic("other")
    broker.disk.faults.fail("sync_directory", code=errno.EMFILE, path_contains="data", times=3)
    client = broker.client()
    assert client.delete_topic("t") == 0
    assert len(broker.directories) == 1
    assert client.produce_error("other") == 0


@pytest.mark.parametrize("seed", range(4))
def test_the_last_work_of_a_deleted_topic_leaves_nothing_in_its_successor(seed):
    """A flush under way writes small files by their path, and the next topic of that name has the same path."""
    broker = DiskBroker(seed=seed).with_topic("t", segment_bytes=1_000)
    client = broker.client()
    broker.hold_syncs()
    for number in range(10):
        content = client.batch(bytes(300), producer_id=7, producer_epoch=0, base_sequence=number)
        assert client.produce_error("t", content=content) == 0
    assert client.delete_topic("t") == 0
    created = client.send(
        ApiKey.CREATE_TOPICS, 7, create_topics.CreateTopicsRequest(topics=(new_topic("t"),), timeout_ms=LONG_MS)
    )
    broker.steps()
    broker.release_syncs()
    assert client.wait(created).topics[0].error_code == 0
    broker.steps(200)
    left = {name for name in broker.disk.list_directory("data/t-0") if name.endswith((".snapshot", "-checkpoint"))}
    assert left == set()
    assert client.produce_error("t", content=client.batch(b"new")) == 0
    broker.machine.kill()
    broker.boot()
    assert broker.client().values("t") == [b"new"]
