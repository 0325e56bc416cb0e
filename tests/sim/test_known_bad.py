"""The simulator tested: nodes with a known fault put in, each of which it must catch within a few seeds."""

import pytest

from headrace.core.replication.leader import Leader
from headrace.log.partition_log import PartitionLog
from headrace.log.walk import BatchWalk
from headrace.sim.disk import VirtualDisk
from headrace.wire.errors import CorruptBatch
from headrace.wire.records.header import CRC
from tests.sim.test_virtual_node import cut_off_anywhere, power_cuts

pytestmark = pytest.mark.usefixtures("virtual_world_only")
SEEDS_MAX = 40
CAUGHT = (AssertionError, CorruptBatch)
"""A broken promise, or a batch served that is not whole."""


def forget_to_sync_contents(patch):
    sync = VirtualDisk.data_sync

    def only_metadata(disk, file):
        if "synced-" not in disk._opened(file).path:
            sync(disk, file)

    patch.setattr(VirtualDisk, "data_sync", only_metadata)


def forget_to_sync_names(patch):
    patch.setattr(VirtualDisk, "sync_directory", lambda disk, path: None)


def acknowledge_before_the_sync(patch):
    begin = Leader.__init__
    patch.setattr(
        Leader, "__init__", lambda leader, **options: begin(leader, **(options | {"flush_before_commit": False}))
    )


def believe_torn_batches(patch):
    patch.setattr(BatchWalk, "_checksum", lambda walk, fields: fields[CRC])


def forget_producers_at_a_start(patch):
    opened = PartitionLog.open

    def open_and_forget(*arguments, **options):
        log = opened(*arguments, **options)
        log.producers.clear()
        return log

    patch.setattr(PartitionLog, "open", open_and_forget)


FAULTS = {
    forget_to_sync_contents: power_cuts,
    forget_to_sync_names: power_cuts,
    acknowledge_before_the_sync: power_cuts,
    believe_torn_batches: power_cuts,
    forget_producers_at_a_start: cut_off_anywhere,
}


@pytest.mark.parametrize("put_in", FAULTS, ids=lambda put_in: put_in.__name__)
def test_a_known_fault_is_caught(put_in, monkeypatch):
    put_in(monkeypatch)
    for seed in range(SEEDS_MAX):
        try:
            FAULTS[put_in](seed)
        except CAUGHT:
            return
    pytest.fail(f"{SEEDS_MAX} seeds did not notice")
