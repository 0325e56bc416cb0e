"""A follower with more partitions of one leader than fit into a fetch."""

import pytest

from headrace.broker.replication import fetcher
from headrace.core.controller.commands import CreatableTopic
from headrace.model.ids import NodeId
from headrace.wire.records.builder import NewRecord, build_batch
from tests.replication.trios import LAG_MS, Trio

PARTITIONS = 7


@pytest.fixture
def trio(monkeypatch):
    monkeypatch.setattr(fetcher, "REPLICA_FETCH_PARTITIONS_MAX", 3)
    trio = Trio()
    everywhere = [NodeId(2), NodeId(1), NodeId(3)]
    new = CreatableTopic(name="many", assignments=[(index, everywhere) for index in range(PARTITIONS)])
    trio.controller.create_topics([new])
    trio.run_until(lambda: all(len(replicas(trio, number)) == PARTITIONS for number in trio.nodes))
    return trio


def replicas(trio, number):
    local = trio.nodes[number].node.broker.partitions.by_name.get(b"many")
    return {} if local is None else local.replicas


def append(trio, index):
    return replicas(trio, 2)[index].append_own(
        bytearray(build_batch([NewRecord(timestamp=0, key=None, value=b"v")])), 0
    )


def is_committed_everywhere(trio, index, end):
    return all(replicas(trio, number)[index].role.high_watermark == end for number in trio.nodes)


def test_every_partition_has_its_turn_although_others_are_idle(trio):
    trio.peers.pass_time(3 * LAG_MS)
    for replica in replicas(trio, 2).values():
        assert replica.role.isr == (2, 1, 3), "an idle partition stays in sync"
    for index in range(PARTITIONS):
        end = append(trio, index)
        trio.run_until(lambda index=index, end=end: is_committed_everywhere(trio, index, end))


def test_busy_partitions_leave_turns_to_the_others(trio):
    for _ in range(20):
        ends = [append(trio, index) for index in range(PARTITIONS)]
        trio.peers.pass_time(50)
    trio.run_until(lambda: all(is_committed_everywhere(trio, index, end) for index, end in enumerate(ends)))
