"""Three virtual brokers replicate one partition."""

import pytest

from headrace.core.controller.delta import apply_with_delta
from headrace.core.controller.records import ConfigRecord, PartitionChangeRecord, ResourceKind
from headrace.core.replication.leader import Leader
from headrace.model.ids import NodeId
from tests.replication.trios import LAG_MS, TOPIC, Trio


@pytest.fixture
def trio():
    return Trio()


def committed_everywhere(trio, end):
    return all(trio.role(number).high_watermark == end for number in trio.nodes)


def test_followers_copy_what_the_leader_appends_and_learn_what_is_committed(trio):
    assert trio.leader == 2
    assert sorted(trio.followers) == [1, 3]
    trio.append(b"a", b"b")
    end = trio.append(b"c")
    assert trio.role(2).high_watermark == 0, "nothing is committed before the followers have it"
    trio.run_until(lambda: committed_everywhere(trio, end))
    assert trio.log_bytes(1) == trio.log_bytes(2) == trio.log_bytes(3) != b""


def test_a_silent_follower_leaves_the_in_sync_set_and_joins_it_again(trio):
    two, three = trio.nodes[2], trio.nodes[3]
    trio.append(b"a")
    trio.run_until(lambda: committed_everywhere(trio, 1))
    trio.peers.cut(two, three)
    end = trio.append(b"b")
    trio.peers.pass_time(2 * LAG_MS)
    trio.run_until(lambda: set(trio.role(2).isr) == {1, 2})
    trio.run_until(lambda: trio.role(2).high_watermark == end)
    assert trio.replica(3).log.end_offset == 1
    trio.peers.heal()
    trio.run_until(lambda: set(trio.role(2).isr) == {1, 2, 3})
    trio.run_until(lambda: committed_everywhere(trio, end))
    assert trio.log_bytes(3) == trio.log_bytes(2)


def test_with_too_few_in_sync_replicas_nothing_is_committed_until_they_return():
    trio = Trio(configs=(("min.insync.replicas", "3"),))
    trio.append(b"a")
    trio.run_until(lambda: committed_everywhere(trio, 1))
    trio.peers.cut(trio.nodes[2], trio.nodes[3])
    trio.append(b"b")
    trio.peers.pass_time(2 * LAG_MS)
    trio.run_until(lambda: set(trio.role(2).isr) == {1, 2})
    assert not trio.role(2).acks_all_allowed
    trio.peers.pass_time(LAG_MS)
    assert trio.role(2).high_watermark == 1
    trio.peers.heal()
    trio.run_until(lambda: committed_everywhere(trio, 2))


def test_a_raised_minimum_counts_before_an_in_sync_set_that_is_committed_with_it():
    trio = Trio(configs=(("min.insync.replicas", "1"),))
    trio.append(b"a")
    trio.run_until(lambda: committed_everywhere(trio, 1))
    trio.peers.cut(trio.nodes[2], trio.nodes[1])
    trio.peers.cut(trio.nodes[2], trio.nodes[3])
    trio.append(b"b")
    trio.run_until(lambda: trio.replica(2).log.end_offset == 2)
    partitions, image = trio.nodes[2].node.broker.partitions, trio.nodes[2].node.broker.image.copy()
    records = (
        ConfigRecord(ResourceKind.TOPIC, TOPIC, "min.insync.replicas", "2"),
        PartitionChangeRecord(trio.replica(2).topic_id, 0, isr=(NodeId(2),), elr=(NodeId(1), NodeId(3))),
    )
    partitions.apply(apply_with_delta(image, records), image)
    assert trio.role(2).isr == (2,)
    assert trio.role(2).high_watermark == 1, "brokers 1 and 3 are eligible leaders, and lack the second record"


def test_with_syncs_before_acknowledgement_a_follower_claims_only_what_is_on_disk():
    trio = Trio(configs=(("flush.messages", "1"),))
    end = trio.append(b"a")
    trio.run_until(lambda: committed_everywhere(trio, end))
    assert all(trio.replica(number).log.synced_offset == end for number in trio.nodes)


def test_records_deleted_at_the_leader_are_deleted_at_followers(trio):
    trio.append(b"a", b"b")
    trio.append(b"c")
    trio.run_until(lambda: committed_everywhere(trio, 3))
    leader = trio.nodes[2].node.broker.partitions
    assert leader.advance_start(trio.replica(2), 2)
    trio.append(b"d")
    trio.run_until(lambda: all(trio.replica(number).log.start_offset == 2 for number in trio.nodes))


def test_the_metrics_show_what_lacks_replicas(trio):
    def under_replicated():
        families = {family.name: list(family.samples) for family in trio.nodes[2].node.broker.replication.families()}
        return families["headrace_under_replicated_partitions"][0][1]

    trio.append(b"a")
    trio.run_until(lambda: committed_everywhere(trio, 1))
    assert under_replicated() == 0
    trio.peers.cut(trio.nodes[2], trio.nodes[1])
    trio.peers.cut(trio.nodes[2], trio.nodes[3])
    assert isinstance(trio.role(2), Leader)
    assert trio.nodes[3].node.metrics.records_replicated == 1
