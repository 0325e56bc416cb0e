"""A consumer's next commit is recognised by its bytes, and decided, stored and answered as if it had been decoded."""

import errno
from contextlib import contextmanager
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.broker.api import offset_commit_templates
from headrace.broker.api.offset_commit_templates import UNUSED_TEMPLATES_MAX
from headrace.core.groups.commit_batches import OffsetCommitBatch, differing_runs
from headrace.core.groups.records import CommittedOffset, GroupRecords, OffsetRecord
from headrace.model.errors import ErrorCode
from headrace.wire.messages import offset_commit
from headrace.wire.records.builder import BatchBuilder
from headrace.wire.records.header import CRC, HEADER
from tests.groups.test_coordinator_hosts import ONE_PARTITION, host, state
from tests.groups.wire import GroupClient, group_broker

NONE = ErrorCode.NONE
VERSIONS = range(6, 11)
INT64 = st.integers(-(2**63), 2**63 - 1)
INT32 = st.integers(-(2**31), 2**31 - 1)


@pytest.fixture(scope="module")
def broker():
    return group_broker()


@pytest.fixture
def group(request):
    return request.node.name


@contextmanager
def counted(monkeypatch):
    """Return how many commits took the short way."""
    taken = []
    short_way = offset_commit_templates.CommitTemplates.handle_repeat

    def counting(self, *arguments):
        taken.append(short_way(self, *arguments))
        return taken[-1]

    with monkeypatch.context() as patch:
        patch.setattr(offset_commit_templates.CommitTemplates, "handle_repeat", counting)
        yield taken


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("partitions", [(0,), (2, 0, 1)])
@pytest.mark.parametrize("metadata", ["", "note", "größer"])
def test_commits_that_repeat_are_stored_and_answered(broker, group, monkeypatch, version, partitions, metadata):
    client = GroupClient(broker)
    topic = client.topic_id("t") if version >= 10 else "t"
    with counted(monkeypatch) as taken:
        for number in range(6):
            offsets = {partition: 1_000 * number + partition for partition in partitions}
            told = client.commit(offsets, group=group, version=version, topic=topic, metadata=metadata)
            assert told == [NONE] * len(partitions)
            found = client.committed(group=group)
            assert {partition: found[partition] for partition in partitions} == offsets
    assert taken == [False, True, True, True, True]
    machine = broker.node.broker.groups.topic.host_of(group).machine
    for partition in partitions:
        committed = machine.tables.offsets[group].get("t", partition)
        assert (committed.leader_epoch, committed.metadata) == (0, metadata)
    client.close()


def test_what_repeated_commits_wrote_is_read_by_another_coordinator():
    broker = group_broker()
    clients = [GroupClient(broker) for _ in range(5)]
    for number in range(8):
        for place, client in enumerate(clients):
            client.commit({place % 3: number, 1: 2 * number}, group=f"group {place}")
    before = state(broker)
    broker.machine.kill()
    broker.boot()
    broker.run_until(lambda: all(each.machine is not None for each in broker.node.broker.groups.topic))
    assert state(broker) == before


@given(
    group=st.text(min_size=1, max_size=20),
    places=st.lists(
        st.tuples(st.text(min_size=1, max_size=20), INT32, st.text(max_size=200)), min_size=1, max_size=5, unique=True
    ),
    numbers=st.lists(st.tuples(INT64, INT32), min_size=5, max_size=5),
    wall_ms=st.integers(0, 2**62),
)
def test_the_batch_is_the_one_that_its_codec_writes(group, places, numbers, wall_ms):
    numbers = numbers[: len(places)]
    builder = BatchBuilder()
    for (topic, partition, metadata), (offset, epoch) in zip(places, numbers, strict=True):
        committed = CommittedOffset(offset, epoch, metadata, wall_ms)
        builder.append(wall_ms, *GroupRecords().encode(OffsetRecord(group, topic, partition, committed)))
    offsets, epochs = zip(*numbers, strict=True)
    made = OffsetCommitBatch(group, places)
    batch = made.of(offsets, epochs, wall_ms)
    assert batch == builder.build()
    fields, header = HEADER.unpack_from(batch), made.header(len(places), wall_ms)
    assert [a == b for a, b in zip(fields, header, strict=True)] == [at != CRC for at in range(len(header))]


@given(st.binary(max_size=40), st.data())
def test_runs_of_differences(text, data):
    other = data.draw(st.binary(min_size=len(text), max_size=len(text)))
    runs = differing_runs(text, other)
    assert [at for begin, end in runs for at in range(begin, end)] == [
        at for at, (a, b) in enumerate(zip(text, other, strict=True)) if a != b
    ]
    assert all(end < begin for (_, end), (begin, _) in pairwise(runs))


COMMITS = st.lists(
    st.tuples(
        st.sampled_from([8, 9]),
        st.sampled_from(["g1", "g2", "g3"]),
        st.sampled_from([("", -1), ("m", 1), ("n", 2), ("", 0)]),
        st.sampled_from(["t", "u"]),
        st.lists(st.sampled_from([0, 1, 2, 7]), min_size=1, max_size=3, unique=True),
        st.sampled_from(["", "a", "b", "x" * 4_096, "x" * 4_097]),
        st.integers(0, 2**40),
        st.integers(1, 3),
    ),
    min_size=1,
    max_size=12,
)


class Pair:
    """Two brokers that are asked the same, one of which never takes the short way."""

    def __init__(self):
        self.brokers = [group_broker(), group_broker()]
        self.clients = [GroupClient(each) for each in self.brokers]

    def commit(self, version, group, member, topic, partitions, metadata, offset):
        found = []
        for short, client in enumerate(self.clients):
            for connection in self.brokers[0].node.loop.connections.all() if not short else ():
                connection.commits = None
            correlation = client.send_commit(
                {partition: offset + partition for partition in partitions},
                group=group,
                member_id=member[0],
                generation=member[1],
                version=version,
                topic=topic,
                metadata=metadata,
            )
            found.append(client.wait(correlation))
        return found

    def states(self):
        return [
            {key: [(t, p, c.offset, c.metadata) for t, p, c in value] for key, value in state(each).items() if value}
            for each in self.brokers
        ]


@pytest.fixture(scope="module")
def pair():
    return Pair()


@settings(max_examples=60, deadline=None)
@given(commits=COMMITS)
def test_any_commits_are_answered_as_if_none_were_a_repeat(pair, commits):
    for version, group, member, topic, partitions, metadata, offset, times in commits:
        for number in range(times):
            slow, short = pair.commit(version, group, member, topic, partitions, metadata, offset + number)
            assert slow == short
    slow, short = pair.states()
    assert slow == short


class TestRefusals:
    def test_a_fenced_member(self, broker, group):
        client = GroupClient(broker)
        client.find(group)
        joined = client.join(group)
        client.sync(joined, {joined.member_id: b""}, group=group)
        mine = {"group": group, "member_id": joined.member_id, "generation": 1}
        for number in range(4):
            assert client.commit({0: number}, **mine) == [NONE]
        other = GroupClient(broker)
        waiting = other.send_join(group)
        while client.beat(joined, group=group) != ErrorCode.REBALANCE_IN_PROGRESS:
            pass  # the two connections have no order among each other
        again = client.join(group, joined.member_id)
        other.wait(waiting)
        assert again.generation_id == 2
        assert client.commit({0: 9}, **mine) == [ErrorCode.ILLEGAL_GENERATION]
        client.leave(joined.member_id, group=group)
        assert client.commit({0: 9}, **mine) == [ErrorCode.UNKNOWN_MEMBER_ID]
        assert client.committed(group=group)[0] == 3

    def test_commits_are_signs_of_life(self, group):
        broker = group_broker()
        client = GroupClient(broker)
        client.find(group)
        joined = client.join(group, session_ms=10_000)
        client.sync(joined, {joined.member_id: b""}, group=group)
        for number in range(8):
            broker.pass_time(6_000)
            told = client.commit({0: number}, group=group, member_id=joined.member_id, generation=1)
            assert told == [NONE]
        broker.pass_time(10_001)
        assert client.commit({0: 9}, group=group, member_id=joined.member_id, generation=1) == [
            ErrorCode.UNKNOWN_MEMBER_ID
        ]

    def test_an_epoch_that_is_over(self, broker, group):
        client, other = GroupClient(broker), GroupClient(broker)
        client.find(group)
        assert client.consumer_beat("me", group=group).member_epoch == 1
        mine = {"group": group, "member_id": "me", "version": 9}
        for number in range(4):
            assert client.commit({0: number}, generation=1, **mine) == [NONE]
        other.consumer_beat("other", group=group)
        assert client.consumer_beat("me", 1, group=group).member_epoch == 2
        assert client.commit({0: 9}, generation=1, **mine) == [ErrorCode.STALE_MEMBER_EPOCH]
        assert client.commit({0: 10}, generation=2, **mine) == [NONE]

    def test_metadata_that_is_too_long(self, broker, group):
        client = GroupClient(broker)
        for number in range(4):
            told = client.commit({0: number}, group=group, metadata="x" * 4_097)
            assert told == [ErrorCode.OFFSET_METADATA_TOO_LARGE]

    def test_a_topic_that_was_deleted(self, group):
        broker = group_broker()
        broker.with_topic("gone", partitions=1)
        client = GroupClient(broker)
        for number in range(4):
            assert client.commit({0: number}, group=group, topic="gone") == [NONE]
        client.delete_topic("gone")
        assert client.commit({0: 4}, group=group, topic="gone") == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
        broker.with_topic("gone", partitions=1)
        for number in range(4):
            assert client.commit({0: number}, group=group, topic="gone") == [NONE]
        assert client.committed((0,), group=group, topic="gone") == {0: 3}

    def test_a_coordinator_that_is_being_loaded(self, group):
        broker = group_broker(settings=ONE_PARTITION)
        client = GroupClient(broker)
        for number in range(4):
            client.commit({0: number}, group=group)
        host(broker)._load()
        assert client.commit({0: 4}, group=group) == [ErrorCode.COORDINATOR_LOAD_IN_PROGRESS]
        broker.run_until(lambda: host(broker).machine is not None)
        assert client.commit({0: 5}, group=group) == [NONE]


class TestWrites:
    @pytest.fixture
    def written(self):
        broker = group_broker(settings={**ONE_PARTITION, "offsets.commit.timeout.ms": "1000"})
        client = GroupClient(broker)
        for number in range(4):
            assert client.commit({0: number, 1: number}) == [NONE, NONE]
        return broker, client

    def test_the_answer_waits_for_the_commit(self, written):
        broker, client = written
        assert client.alter_configs(2, "__consumer_offsets", {"flush.messages": 1}) == NONE
        client.commit({0: 4, 1: 4})
        broker.hold_syncs()
        waiting = client.send_commit({0: 5, 1: 5})
        broker.steps()
        assert not client.has_answer(waiting)
        broker.release_syncs()
        assert [each.error_code for each in client.wait(waiting).topics[0].partitions] == [NONE, NONE]

    def test_one_that_takes_too_long_is_given_up(self, written):
        broker, client = written
        assert client.alter_configs(2, "__consumer_offsets", {"flush.messages": 1}) == NONE
        client.commit({0: 4, 1: 4})
        broker.hold_syncs()
        waiting = client.send_commit({0: 5, 1: 5})
        broker.steps()
        broker.pass_time(1_100)
        told = [each.error_code for each in client.wait(waiting).topics[0].partitions]
        assert told == [ErrorCode.COORDINATOR_NOT_AVAILABLE] * 2
        broker.release_syncs()

    def test_what_could_not_be_written_is_not_known(self, written):
        broker, client = written
        broker.machine.disk.faults.fail("write_vector", code=errno.ENOSPC, path_contains="__consumer_offsets")
        assert client.commit({0: 9, 1: 9}) == [ErrorCode.COORDINATOR_NOT_AVAILABLE] * 2
        broker.run_until(lambda: host(broker).machine is not None)
        assert client.committed() == {0: 3, 1: 3, 2: -1}
        assert client.commit({0: 10, 1: 10}) == [NONE, NONE]
        before = state(broker)
        broker.machine.kill()
        broker.boot()
        broker.run_until(lambda: host(broker).machine is not None)
        assert state(broker) == before

    def test_a_lost_directory(self, written):
        broker, client = written
        broker.machine.disk.faults.fail("write_vector", code=errno.EIO, path_contains="__consumer_offsets")
        waiting = client.send_commit({0: 9, 1: 9})
        broker.steps()
        if not client.is_closed():
            told = {each.error_code for each in client.wait(waiting).topics[0].partitions}
            assert told == {ErrorCode.COORDINATOR_NOT_AVAILABLE}


def test_one_that_never_repeats_itself_is_not_learned_for_ever(broker, group, monkeypatch):
    learned = []
    original = offset_commit_templates._new_template

    def learn(*arguments):
        learned.append(1)
        return original(*arguments)

    monkeypatch.setattr(offset_commit_templates, "_new_template", learn)
    client = GroupClient(broker)
    for number in range(50):
        assert client.commit({0: 1}, group=f"{group} {number % 7}") == [NONE]
    assert len(learned) <= UNUSED_TEMPLATES_MAX + 1


def test_a_request_that_its_codec_would_write_otherwise_takes_the_long_way(broker, group, monkeypatch):
    """A tagged field that this release does not know, at the end of the request."""
    client = GroupClient(broker)
    original = offset_commit.encode_request
    with monkeypatch.context() as patch:
        patch.setattr(offset_commit, "encode_request", lambda *asked: original(*asked)[:-1] + b"\x01\x63\x01x")
        frames = [client.send_commit({0: number}, group=group) for number in range(4)]
    with counted(monkeypatch) as taken:
        assert [client.wait(each).topics[0].partitions[0].error_code for each in frames] == [NONE] * 4
    assert not any(taken)
    assert client.committed(group=group)[0] == 3
