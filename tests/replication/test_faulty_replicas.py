"""Replicas on running brokers that cannot be used: others lead, and what is damaged or missing is copied again."""

from errno import EIO

import pytest

from headrace.core.controller.commands import CreatableTopic
from headrace.core.replication.leader import Leader
from headrace.model.ids import NodeId
from headrace.sim.disk import CAPACITY_BYTES
from headrace.wire.records.builder import NewRecord, build_batch
from tests.replication.trios import LAG_MS, TOPIC, Trio


def filled(**options):
    """Three replicas with four committed batches."""
    trio = Trio(**options)
    for value in (b"a", b"b", b"c", b"d"):
        end = trio.append(value * 100)
    trio.run_until(lambda: committed_everywhere(trio, end))
    return trio


def committed_everywhere(trio, end):
    return all(trio.has(number) and trio.role(number).high_watermark == end for number in trio.nodes)


def image_state(trio):
    return trio.controller.image.topics[TOPIC].partitions[0]


def check_whole(trio):
    """Everything is on all replicas, in sync, and can be continued."""
    trio.run_until(lambda: set(image_state(trio).isr) == {1, 2, 3})
    end = trio.append(b"e")
    trio.run_until(lambda: committed_everywhere(trio, end))
    assert trio.log_bytes(1) == trio.log_bytes(2) == trio.log_bytes(3)


def test_leaders_leave_a_directory_that_failed():
    trio = Trio(settings={"log.dirs": "data,more"})
    assignment = [(0, [NodeId(2), NodeId(1), NodeId(3)])]
    trio.controller.create_topics([CreatableTopic(name="u", assignments=assignment)])

    def of(number):
        local = trio.nodes[number].node.broker.partitions.by_name.get(b"u")
        return local.replicas.get(0) if local is not None else None

    trio.run_until(lambda: all(map(of, trio.nodes)))
    assert of(2).log.path == "more/u-0"
    trio.nodes[2].machine.disk.faults.fail("write_vector", code=EIO, path_contains="more/u-0", times=1)
    of(2).append_own(bytearray(batch(b"x")), 0)
    trio.run_until(lambda: of(2).offline)
    trio.run_until(lambda: isinstance(of(1).role, Leader))
    assert trio.controller.image.topics["u"].partitions[0].isr == (1, 3)
    assert image_state(trio).leader == 2, "the other directory is sound"
    end = of(1).append_own(bytearray(batch(b"y")), 0)
    trio.run_until(lambda: of(3).role.high_watermark == end)


def batch(value):
    return build_batch([NewRecord(timestamp=0, key=None, value=value)])


def test_a_leader_whose_disk_is_full_hands_over_and_returns_to_the_set_when_there_is_space():
    trio = filled(settings={"headrace.disk.free.min.bytes": str(1 << 20)})
    disk = trio.nodes[2].machine.disk
    disk.capacity_bytes += (1 << 20) - 1 - disk.free_bytes("")
    trio.run_until(lambda: trio.replica(2).space.full)
    trio.run_until(lambda: isinstance(trio.role(1), Leader))
    assert image_state(trio).isr == (1, 3)
    end = trio.append_at(1, b"e")
    trio.run_until(lambda: trio.role(1).high_watermark == end)
    assert trio.replica(2).log.end_offset == 4
    disk.capacity_bytes = CAPACITY_BYTES
    check_whole(trio)


def test_a_follower_whose_disk_is_full_does_not_hold_acknowledgements_up():
    trio = filled(settings={"headrace.disk.free.min.bytes": str(1 << 20), "replica.lag.time.max.ms": "3600000"})
    disk = trio.nodes[3].machine.disk
    disk.capacity_bytes += (1 << 20) - 1 - disk.free_bytes("")
    trio.run_until(lambda: trio.replica(3).space.full)
    end = trio.append(b"e")
    trio.run_until(lambda: trio.role(2).high_watermark == end)
    assert image_state(trio).isr == (2, 1)
    disk.capacity_bytes = CAPACITY_BYTES
    check_whole(trio)


def flip(trio, number, offset):
    """Flip a bit in the batch at this offset on the disk of one broker; return the positions of the batch."""
    log = trio.replica(number).log
    part = log.read(offset, 1, log.end_offset, True)
    trio.nodes[number].machine.disk._find(log.active.log.path).content[part.position + 80] ^= 1
    return part.position, part.position + part.length


@pytest.mark.parametrize("number", [2, 3])
def test_a_replica_with_damage_is_copied_again_where_the_damage_begins(number):
    trio = filled()
    log = trio.replica(number).log
    was_whole = trio.log_bytes(1)
    damaged = flip(trio, number, 1)
    assert trio.log_bytes(number) != trio.log_bytes(1)
    trio.nodes[number].node.broker.partitions.mark_damaged(trio.replica(number), log.active, (damaged,))
    trio.run_until(lambda: not trio.replica(number).is_damaged)
    assert image_state(trio).leader == (1 if number == 2 else 2)
    assert trio.nodes[number].said("is cut where the damage begins")
    check_whole(trio)
    assert trio.log_bytes(number).startswith(was_whole)


def test_a_replica_with_a_gap_between_two_segments_is_copied_again_from_there():
    trio = filled(configs=(("segment.bytes", "200"),))
    log = trio.replica(3).log
    segment = log.segments[1]
    trio.nodes[3].node.broker.partitions.mark_damaged(trio.replica(3), segment, ((segment.size, segment.size),))
    trio.run_until(lambda: not trio.replica(3).is_damaged)
    check_whole(trio)


def test_a_damaged_follower_fetches_nothing_before_it_is_cut():
    trio = filled()
    trio.peers.cut(trio.nodes[1], trio.nodes[3])  # the controller gets no report
    log = trio.replica(3).log
    trio.nodes[3].node.broker.partitions.mark_damaged(trio.replica(3), log.active, ((0, 10),))
    trio.append(b"e")
    trio.peers.pass_time(100)
    trio.run_until(lambda: trio.replica(1).log.end_offset == 5)
    before = log.end_offset
    trio.append(b"f")
    trio.run_until(lambda: trio.replica(1).log.end_offset == 6)
    assert log.end_offset == before
    trio.peers.heal()
    check_whole(trio)


def restart(trio, *numbers, without_folder=(), without_end=()):
    for number in numbers:
        trio.nodes[number].machine.kill()
    for number in without_end:
        content = trio.nodes[number].machine.disk._find(f"data/{TOPIC}-0/{0:020d}.log").content
        del content[content.index(b"d" * 100) :]
    for number in without_folder:
        remove_folder(trio.nodes[number].machine.disk, f"data/{TOPIC}-0")
    for number in numbers:
        trio.nodes[number].boot()
    trio.run_until(lambda: all(each.node.ready for each in trio.nodes.values()))


def remove_folder(disk, folder):
    for name in disk.list_directory(folder):
        disk.unlink(f"{folder}/{name}")
    disk.remove_directory(folder)
    disk.sync_directory("data")


@pytest.mark.parametrize("number", [2, 3])
def test_a_replica_whose_folder_was_removed_is_copied_again(number):
    trio = filled()
    restart(trio, number, without_folder=(number,))
    trio.run_until(lambda: trio.has(number) and trio.replica(number).log.end_offset == 4)
    check_whole(trio)


@pytest.mark.parametrize("number", [1, 2, 3])
def test_when_all_are_killed_and_one_folder_is_removed_nothing_is_lost(number):
    trio = filled()
    before = trio.log_bytes(1)
    restart(trio, 1, 2, 3, without_folder=(number,))
    trio.controller = trio.nodes[1].node.broker.controller
    trio.run_until(lambda: set(image_state(trio).isr) == {1, 2, 3})
    trio.run_until(lambda: all(trio.has(each) and trio.log_bytes(each) == before for each in trio.nodes))
    check_whole(trio)


@pytest.mark.parametrize("number", [2, 3])
def test_when_all_are_killed_and_one_log_lost_its_end_nothing_is_lost(number):
    trio = filled()
    before = trio.log_bytes(1)
    trio.peers.pass_time(6_000)  # high watermarks are written to disk
    trio.run_until(lambda: not trio.nodes[number].machine.spawner.waiting_names())
    restart(trio, 1, 2, 3, without_end=(number,))
    trio.controller = trio.nodes[1].node.broker.controller
    trio.run_until(lambda: set(image_state(trio).isr) == {1, 2, 3})
    assert trio.nodes[number].said("committed records are missing at the end of a log")
    trio.run_until(lambda: all(trio.has(each) and trio.log_bytes(each) == before for each in trio.nodes))
    check_whole(trio)
    assert not any(trio.replica(each).is_damaged for each in trio.nodes)


def test_when_all_are_killed_before_the_folders_exist_the_partition_begins_empty():
    trio = Trio()
    restart(trio, 1, 2, 3, without_folder=(1, 2, 3))
    trio.controller = trio.nodes[1].node.broker.controller
    trio.run_until(lambda: set(image_state(trio).isr) == {1, 2, 3} and all(map(trio.has, trio.nodes)))
    check_whole(trio)


def test_a_leader_whose_followers_find_damage_in_what_it_sends_hands_over():
    trio = filled()
    trio.peers.cut(trio.nodes[2], trio.nodes[3])
    end = trio.append(b"e" * 100)
    trio.peers.pass_time(3 * LAG_MS)
    trio.run_until(lambda: trio.role(2).high_watermark == end)
    assert set(trio.role(2).isr) == {1, 2}
    flip(trio, 2, end - 1)
    trio.peers.heal()
    trio.run_until(lambda: isinstance(trio.role(1), Leader))
    assert trio.nodes[2].said("a follower has found damage in this leader's log")
    check_whole(trio)


def test_damage_on_the_way_from_a_sound_leader_changes_nothing():
    trio = filled()
    before = image_state(trio)
    partitions = trio.nodes[2].node.broker.partitions
    for offset in (0, 3, 4, 9):
        partitions.check_records(trio.replica(2), offset)
        trio.peers.steps()
    assert not trio.replica(2).is_damaged
    assert image_state(trio) == before
