"""A follower names its positions once: later fetches have those that changed."""

import pytest

from headrace.broker.replication import fetcher
from headrace.broker.replication.follower_session import FollowerSession
from headrace.broker.replication.served_fetches import ServedFetches
from headrace.client.core.frame_receiver import SPARE_BYTES_MAX, Incoming
from headrace.core.controller.commands import CreatableTopic, TopicToDelete
from headrace.model.errors import ErrorCode
from headrace.model.ids import NodeId
from headrace.model.limits import REPLICA_FETCH_BYTES_MAX, REPLICA_FETCH_PARTITIONS_MAX
from headrace.wire.records.builder import NewRecord, build_batch
from tests.replication.trios import LAG_MS, Trio

PARTITIONS = 20


@pytest.fixture
def named(monkeypatch):
    """The numbers of positions that the fetches of this test name."""
    counts = []
    begin = ServedFetches.begin

    def counting(self, connection, request, correlation_id):
        counts.append(sum(len(positions) for _, positions in request.topics))
        begin(self, connection, request, correlation_id)

    monkeypatch.setattr(ServedFetches, "begin", counting)
    return counts


@pytest.fixture
def trio():
    trio = Trio()
    new = CreatableTopic(name="many", assignments=[(index, [NodeId(2), NodeId(1), NodeId(3)]) for index in range(20)])
    trio.controller.create_topics([new])
    trio.run_until(lambda: all(len(replicas(trio, number)) == PARTITIONS for number in trio.nodes))
    trio.run_until(lambda: all(session_sizes(trio, 2).get(number) == PARTITIONS + 1 for number in (1, 3)))
    return trio


def replicas(trio, number):
    local = trio.nodes[number].node.broker.partitions.by_name.get(b"many")
    return {} if local is None else local.replicas


def sessions(trio, leader):
    return trio.nodes[leader].node.broker.served_fetches._sessions


def session_sizes(trio, leader):
    return {session.follower: len(session._positions) for session in sessions(trio, leader).values()}


def append(trio, index):
    batch = bytearray(build_batch([NewRecord(timestamp=0, key=None, value=b"v")]))
    return replicas(trio, 2)[index].append_own(batch, 0)


def is_committed_everywhere(trio, index, end):
    return all(replicas(trio, number)[index].role.high_watermark == end for number in trio.nodes)


def test_fetches_name_only_what_has_changed(trio, named):
    trio.peers.pass_time(2 * LAG_MS)
    assert named
    assert set(named) == {0}, "nothing was appended"
    end = append(trio, 7)
    trio.run_until(lambda: is_committed_everywhere(trio, 7, end))
    assert sum(named) == 2, "each of two followers said once that it has the record"


def test_idle_partitions_stay_in_sync_without_being_named(trio):
    trio.peers.pass_time(5 * LAG_MS)
    ends = {index: append(trio, index) for index in range(PARTITIONS)}
    trio.peers.pass_time(LAG_MS)
    assert all(replica.role.isr == (2, 1, 3) for replica in replicas(trio, 2).values())
    assert all(is_committed_everywhere(trio, index, end) for index, end in ends.items())


def test_a_follower_joins_the_in_sync_set_at_a_position_that_it_does_not_name_again(trio, monkeypatch):
    append(trio, 3)
    role = replicas(trio, 2)[3].role
    trio.run_until(lambda: is_committed_everywhere(trio, 3, 1))
    trio.peers.cut(trio.nodes[2], trio.nodes[3])
    trio.peers.pass_time(3 * LAG_MS)
    append(trio, 3)
    trio.peers.pass_time(3 * LAG_MS)
    assert role.isr == (2, 1)
    may_join = FollowerSession._noting
    monkeypatch.setattr(
        FollowerSession,
        "_noting",
        lambda self, request: lambda **fields: may_join(self, request)(**fields)._replace(may_join=False),
    )
    trio.peers.heal()
    trio.run_until(lambda: replicas(trio, 3)[3].log.end_offset == 2)
    trio.peers.pass_time(LAG_MS)
    assert role.isr == (2, 1), "it has everything, but may not join yet"
    monkeypatch.undo()
    trio.run_until(lambda: set(role.isr) == {1, 2, 3})


def test_a_partition_that_its_broker_begins_to_lead_between_the_fetch_and_the_end_of_the_turn(monkeypatch):
    """The position did not count, so the follower has to say it again, and what is appended later must be sent."""
    located = FollowerSession._replica
    refused = set()

    def late(self, key, position):
        if position.noted_ms and (self.follower, key) not in refused:
            refused.add((self.follower, key))
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        return located(self, key, position)

    monkeypatch.setattr(FollowerSession, "_replica", late)
    trio = Trio()
    trio.run_until(lambda: session_sizes(trio, 2) == {1: 1, 3: 1} and len(refused) == 2)
    end = trio.append(b"a")
    trio.peers.pass_time(LAG_MS / 2)
    assert trio.role(2).high_watermark == end


def test_a_leader_that_does_not_know_the_session_has_it_begun_again(trio, named):
    for session in tuple(sessions(trio, 2).values()):
        session.next_epoch += 1
    end = append(trio, 0)
    trio.run_until(lambda: is_committed_everywhere(trio, 0, end))
    assert named.count(PARTITIONS + 1) == 2


def test_partitions_of_a_deleted_topic_leave_the_session(trio):
    trio.controller.delete_topics([TopicToDelete(name="many")])
    trio.run_until(lambda: session_sizes(trio, 2) == {1: 1, 3: 1})
    end = trio.append(b"of the topic that is left")
    trio.run_until(lambda: all(trio.role(number).high_watermark == end for number in trio.nodes))


def test_a_session_replaces_that_of_a_connection_that_was_lost(trio):
    def is_waited_for():
        return len(replicas(trio, 2)[0]._waiters.end_waiters)

    (before,) = [session for session in sessions(trio, 2).values() if session.follower == 3]
    trio.peers.cut(trio.nodes[2], trio.nodes[3])
    trio.peers.pass_time(20_000)
    trio.peers.heal()
    trio.run_until(lambda: before not in sessions(trio, 2).values() and 3 in session_sizes(trio, 2))
    assert session_sizes(trio, 2) == {1: PARTITIONS + 1, 3: PARTITIONS + 1}
    assert is_waited_for() == 2


def test_positions_beyond_the_limit_of_a_fetch_follow_at_once(monkeypatch):
    monkeypatch.setattr(fetcher, "REPLICA_FETCH_PARTITIONS_MAX", 3)
    trio = Trio()
    new = CreatableTopic(name="many", assignments=[(index, [NodeId(2), NodeId(1), NodeId(3)]) for index in range(20)])
    trio.controller.create_topics([new])
    trio.run_until(lambda: all(session_sizes(trio, 2).get(number) == PARTITIONS + 1 for number in (1, 3)))
    ends = {index: append(trio, index) for index in range(PARTITIONS)}
    trio.run_until(lambda: all(is_committed_everywhere(trio, index, end) for index, end in ends.items()))


def test_a_follower_reuses_the_buffer_of_the_largest_response():
    head_bytes_max = REPLICA_FETCH_PARTITIONS_MAX * 200
    assert REPLICA_FETCH_BYTES_MAX + head_bytes_max <= SPARE_BYTES_MAX
    incoming = Incoming("leader", REPLICA_FETCH_BYTES_MAX * 2)
    buffers = set()
    for _ in range(3):
        frames = incoming.take(REPLICA_FETCH_BYTES_MAX.to_bytes(4, "big") + bytes(100))
        while not frames:
            frames = incoming.filled(len(incoming.room()))
        buffers.add(id(frames[0].obj))
        del frames
    assert len(buffers) == 1
