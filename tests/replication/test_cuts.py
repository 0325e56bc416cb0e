"""A follower's log is cut by a helper while its broker runs, and then copied from the leader again."""

from collections.abc import Iterator
from errno import EIO, ENOSPC

import pytest

from headrace.core.controller.commands import TopicToDelete
from headrace.core.replication.role import RestartAt, TruncateTo
from headrace.model.ids import Offset
from tests.replication.trios import TOPIC, Trio


@pytest.fixture
def trio():
    """Three replicas with four batches, all of them committed."""
    trio = Trio()
    for value in (b"a", b"b", b"c", b"d"):
        end = trio.append(value * 100)
    trio.run_until(lambda: all(trio.role(number).high_watermark == end for number in trio.nodes))
    return trio


def cut(trio, effect, number=3):
    """Cut the log of a follower that cannot fetch meanwhile; return the ends at which it was seen."""
    replica = trio.replica(number)
    replica.role.is_truncating = True
    trio.nodes[number].node.broker.replication._logs.cut(replica, effect)
    return replica


def check_copied_again(trio, number=3):
    end = trio.append(b"e")
    trio.run_until(lambda: trio.role(number).high_watermark == end)
    assert trio.log_bytes(number) == trio.log_bytes(2)
    assert not trio.replica(number).being_cut
    assert not trio.replica(number).log.is_truncating


@pytest.mark.parametrize(
    "effect", [TruncateTo(Offset(1)), TruncateTo(Offset(0)), RestartAt(Offset(2)), RestartAt(Offset(0))]
)
def test_a_log_that_was_cut_is_copied_again(trio, effect):
    replica = cut(trio, effect)
    assert replica.log.end_offset == 4, "the loop does not wait for the disk"
    trio.run_until(lambda: not replica.being_cut)
    assert replica.log.start_offset == (effect.offset if isinstance(effect, RestartAt) else 0)
    if replica.log.start_offset:
        trio.run_until(lambda: replica.log.end_offset == 4)
    else:
        check_copied_again(trio)


def test_a_cut_waits_for_helpers_and_readers(trio):
    replica = trio.replica(3)
    log = replica.log
    file = log.files.handle(log.active.log)
    log.files.pin(file)
    cut(trio, TruncateTo(Offset(1)))
    trio.peers.pass_time(1000)
    assert replica.being_cut
    assert log.end_offset == 4
    log.files.unpin(file)
    trio.run_until(lambda: not replica.being_cut)
    check_copied_again(trio)


def test_a_cut_without_disk_space_is_continued_later(trio):
    trio.nodes[3].machine.disk.faults.fail("open", code=ENOSPC, path_contains="headrace-truncation", times=2)
    replica = cut(trio, TruncateTo(Offset(1)))
    trio.run_until(lambda: replica.log.is_truncating and not replica.log.has_work)
    assert not replica.offline
    trio.peers.pass_time(5000)
    check_copied_again(trio)


def test_a_cut_on_a_failing_disk_takes_the_directory_offline(trio):
    trio.nodes[3].machine.disk.faults.fail("data_sync", code=EIO, path_contains=".log")
    replica = cut(trio, TruncateTo(Offset(1)))
    trio.run_until(lambda: replica.offline)
    assert trio.replica(2).log.end_offset == 4


def test_a_log_that_cannot_be_opened_after_a_cut_is_left_alone(trio):
    disk = trio.nodes[3].machine.disk
    replica = trio.replica(3)
    mark = disk.open(f"{replica.log.path}/.headrace-truncation", create=True)
    disk.write_vector(mark, [b"not a mark"], 0)
    cut(trio, TruncateTo(Offset(1)))
    trio.run_until(lambda: replica.log.failed)
    end = trio.append(b"e")
    trio.peers.pass_time(3000)
    assert replica.being_cut
    assert trio.nodes[3].node.metrics.handler_failures == 0
    trio.run_until(lambda: trio.role(2).high_watermark == end)


def test_a_topic_is_deleted_while_a_log_is_cut(trio):
    partitions = trio.nodes[3].node.broker.partitions
    replica = trio.replica(3)
    file = replica.log.files.handle(replica.log.active.log)
    replica.log.files.pin(file)
    cut(trio, TruncateTo(Offset(1)))
    later: list[Iterator[None]] = []
    partitions.opener.in_slices = later.append
    trio.controller.delete_topics([TopicToDelete(name=TOPIC)])
    trio.run_until(lambda: later)
    replica.log.files.unpin(file)
    trio.run_until(lambda: not replica.being_cut)
    assert replica.log.end_offset == 1
    assert not replica.offline, "the deletion is to wait for its turn"
    assert trio.nodes[3].node.metrics.handler_failures == 0
    (steps,) = later
    assert len(list(steps)) == 1
    assert replica.offline


def test_a_log_that_is_cut_begins_no_segment_for_compaction(trio):
    trio.nodes[3].machine.disk.faults.fail("open", code=ENOSPC, path_contains="headrace-truncation", times=2)
    replica = cut(trio, TruncateTo(Offset(1)))
    trio.run_until(lambda: replica.log.is_truncating and not replica.log.has_work)
    compactor = trio.nodes[3].node.compactor
    compactor._requested[replica] = replica.log.end_offset
    assert not compactor._is_ready(replica)
    assert replica.log.bases == [0]
    trio.peers.pass_time(5000)
    check_copied_again(trio)
