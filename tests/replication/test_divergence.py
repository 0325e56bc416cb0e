"""Logs of followers that differ from their leader's, or lack what the leader has deleted."""

import pytest

from headrace.core.replication.leader import Leader
from tests.replication.trios import LAG_MS, Trio

SESSION_MS = 6_000


@pytest.fixture
def trio():
    return Trio()


def in_sync_with_equal_logs(trio, end):
    return (
        len([number for number in trio.nodes if isinstance(trio.role(number), Leader)]) == 1
        and set(trio.role(trio.leader).isr) == {1, 2, 3}
        and all(trio.replica(number).log.end_offset == end for number in trio.nodes)
        and trio.role(trio.leader).high_watermark == end
        and len({trio.log_bytes(number) for number in trio.nodes}) == 1
    )


def test_a_leader_that_was_cut_off_gives_up_what_no_other_has(trio):
    trio.append(b"kept")
    trio.run_until(lambda: in_sync_with_equal_logs(trio, 1))
    for other in (1, 3):
        trio.peers.cut(trio.nodes[2], trio.nodes[other])
    old = trio.replica(2)
    trio.append(b"lost", b"lost too")
    trio.peers.pass_time(2 * SESSION_MS)
    new = next(number for number in (1, 3) if isinstance(trio.role(number), Leader))
    assert old.role.high_watermark == 1, "nothing is committed by a leader that no follower fetches from"
    assert old.log.end_offset == 3
    trio.append_at(new, b"of the new leader")
    trio.run_until(lambda: trio.role(new).high_watermark == 2)
    trio.peers.heal()
    trio.run_until(lambda: in_sync_with_equal_logs(trio, 2))
    assert b"of the new leader" in trio.log_bytes(2)
    assert b"lost" not in trio.log_bytes(2)
    end = trio.append(b"and on")
    trio.run_until(lambda: in_sync_with_equal_logs(trio, end))


@pytest.mark.parametrize("start", [2, 4], ids=["between batches", "within a batch"])
def test_a_follower_behind_the_leaders_start_begins_again_there(trio, start):
    trio.append(b"a")
    trio.run_until(lambda: in_sync_with_equal_logs(trio, 1))
    trio.peers.cut(trio.nodes[2], trio.nodes[3])
    trio.append(b"b")
    trio.append(b"c", b"d", b"e")
    trio.append(b"f")
    trio.peers.pass_time(2 * LAG_MS)
    trio.run_until(lambda: trio.role(2).high_watermark == 6)
    trio.nodes[2].node.broker.partitions.advance_start(trio.replica(2), start)
    trio.peers.heal()
    trio.run_until(lambda: set(trio.role(2).isr) == {1, 2, 3})
    end = trio.append(b"g")
    trio.run_until(lambda: all(trio.replica(number).log.end_offset == end for number in trio.nodes))
    assert trio.replica(3).log.start_offset == start
    trio.run_until(lambda: all(trio.role(number).high_watermark == end for number in trio.nodes))
    assert trio.log_bytes(3) == trio.log_bytes(2)


def test_a_replica_that_lost_its_log_copies_it_again(trio):
    trio.append(b"a", b"b")
    trio.run_until(lambda: in_sync_with_equal_logs(trio, 2))
    follower = trio.replica(3)
    follower.log.truncation.restart(0).run_inline()
    trio.nodes[3].node.broker.partitions.retake_role(follower)
    end = trio.append(b"c")
    trio.run_until(lambda: in_sync_with_equal_logs(trio, end))
