"""Requests to groups from clients that are wrong, late or too many: each gets Kafka's code, and nothing is lost."""

import pytest

from headrace.core.coordination.machine import Now
from headrace.core.groups.assignors import ITEMS_PER_STEP
from headrace.core.groups.commands import ConsumerHeartbeat
from headrace.core.groups.consumer_group import ConsumerGroupState, MemberState
from headrace.core.groups.consumer_records import (
    CurrentAssignment,
    CurrentRecord,
    EpochRecord,
    MemberRecord,
    MemberSubscription,
    TargetEpochRecord,
    TargetRecord,
)
from headrace.core.groups.coordinator import GroupCoordinator
from headrace.core.groups.settings import (
    ASSIGNMENT_PAUSE_MS,
    GROUP_BYTES_MAX,
    SLICE_PAUSE_MS,
    SUBSCRIBED_TOPICS_MAX,
    TARGETS_PER_STEP,
    GroupCoordinatorSettings,
)
from headrace.model.errors import ErrorCode
from headrace.model.limits import REQUESTS_IN_FLIGHT_MAX
from headrace.wire.apis import ApiKey
from headrace.wire.messages import offset_fetch
from tests.groups.harness import Catalog
from tests.groups.wire import GroupClient, group_broker

NONE = ErrorCode.NONE
MEMBERS = 2_000
GROUPS = 10_000
LINKS = -(-MEMBERS // REQUESTS_IN_FLIGHT_MAX)
ONE_PARTITION = {"offsets.topic.num.partitions": "1"}


@pytest.fixture(scope="module")
def broker():
    return group_broker()


@pytest.fixture
def client(broker):
    return GroupClient(broker)


@pytest.fixture
def group(request, client):
    name = request.node.name
    client.find(name)
    return name


class Said:
    """Identity that a client believes it has."""

    def __init__(self, member_id, generation_id):
        self.member_id, self.generation_id = member_id, generation_id


@pytest.fixture
def joined(client, group):
    joined = client.join(group)
    assert client.sync(joined, {joined.member_id: b"mine"}, group=group).error_code == NONE
    assert client.commit({0: 1}, group=group, member_id=joined.member_id, generation=1) == [NONE]
    return joined


class TestClassicMembers:
    @pytest.mark.parametrize(
        ("member_id", "generation", "error"),
        [
            ("unknown", 1, ErrorCode.UNKNOWN_MEMBER_ID),
            ("", 1, ErrorCode.UNKNOWN_MEMBER_ID),
            ("me", 0, ErrorCode.ILLEGAL_GENERATION),
            ("me", 2, ErrorCode.ILLEGAL_GENERATION),
            ("me", -1, ErrorCode.ILLEGAL_GENERATION),
            ("me", 2**31 - 1, ErrorCode.ILLEGAL_GENERATION),
        ],
    )
    def test_wrong_members_and_generations(self, client, group, joined, member_id, generation, error):
        said = Said(joined.member_id if member_id == "me" else member_id, generation)
        assert client.beat(said, group=group) == error
        assert client.sync(said, group=group).error_code == error
        assert client.commit({0: 9}, group=group, member_id=said.member_id, generation=generation) == [error]
        assert client.committed(group=group) == {0: 1, 1: -1, 2: -1}
        assert client.beat(joined, group=group) == NONE

    def test_one_that_is_not_there_cannot_leave(self, client, group, joined):
        left = client.leave("unknown", joined.member_id, group=group)
        assert [each.error_code for each in left.members] == [ErrorCode.UNKNOWN_MEMBER_ID, NONE]
        assert client.leave(joined.member_id, group=group, version=2).error_code == ErrorCode.UNKNOWN_MEMBER_ID

    def test_groups_that_are_not_there(self, client):
        assert client.beat(Said("me", 1), group="missing") == ErrorCode.UNKNOWN_MEMBER_ID
        assert client.sync(Said("me", 1), group="missing").error_code == ErrorCode.UNKNOWN_MEMBER_ID
        assert client.commit({0: 1}, group="missing", member_id="me", generation=1) == [ErrorCode.ILLEGAL_GENERATION]
        assert client.commit({0: 1}, group="missing", member_id="me", generation=1, version=9) == [
            ErrorCode.GROUP_ID_NOT_FOUND
        ]
        assert client.leave("me", group="missing").members[0].error_code == ErrorCode.UNKNOWN_MEMBER_ID

    def test_it_may_commit_what_it_was_not_given_but_not_what_is_not_there(self, client, group, joined):
        """Kafka's broker does not look into assignments of the classic protocol."""
        me = {"group": group, "member_id": joined.member_id, "generation": 1}
        assert client.commit({2: 5, 3: 5, -1: 5}, **me) == [NONE, *[ErrorCode.UNKNOWN_TOPIC_OR_PARTITION] * 2]
        assert client.commit({0: 5}, topic="nope", **me) == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
        assert client.committed(group=group) == {0: 1, 1: -1, 2: 5}

    def test_giant_metadata(self, client, group, joined):
        other = GroupClient(client._broker)
        giant = (("range", bytes(GROUP_BYTES_MAX)),)
        assert other.join(group, protocols=giant).error_code == ErrorCode.GROUP_MAX_SIZE_REACHED
        many = tuple((f"protocol {number}", b"") for number in range(101))
        assert other.join(group, protocols=many).error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        assert client.commit({0: 5}, group=group, member_id=joined.member_id, generation=1, metadata="x" * 4_097) == [
            ErrorCode.OFFSET_METADATA_TOO_LARGE
        ]
        assert client.beat(joined, group=group) == NONE, "the group has not noticed"

    def test_one_that_joins_and_never_syncs_is_out(self):
        broker = group_broker()
        client, silent = GroupClient(broker), GroupClient(broker)
        first = client.join("g")
        client.sync(first)
        waiting = silent.send_join("g")
        broker.steps()
        again = client.join("g", first.member_id)
        silent.wait(waiting)
        pending = client.send_sync(again, {again.member_id: b"mine"})
        client.wait(pending)
        for _ in range(8):
            broker.pass_time(8_000)
            error = client.beat(again)
        assert error == ErrorCode.REBALANCE_IN_PROGRESS, "its rebalance timeout of a minute is over"
        last = client.join("g", again.member_id)
        assert [each.member_id for each in last.members] == [again.member_id]


class TestConsumerMembers:
    @pytest.fixture
    def member(self, client, group):
        beat = client.consumer_beat("me", group=group)
        assert client.commit({0: 1}, group=group, member_id="me", generation=beat.member_epoch, version=9) == [NONE]
        return beat

    @pytest.mark.parametrize(
        ("member_id", "epoch", "beat", "commit"),
        [
            ("unknown", 1, ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.UNKNOWN_MEMBER_ID),
            ("me", 2, ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.STALE_MEMBER_EPOCH),
            ("me", 2**31 - 1, ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.STALE_MEMBER_EPOCH),
            ("me", -3, ErrorCode.INVALID_REQUEST, ErrorCode.STALE_MEMBER_EPOCH),
        ],
    )
    def test_wrong_members_and_epochs(self, client, group, member, member_id, epoch, beat, commit):
        assert client.consumer_beat(member_id, epoch, group=group).error_code == beat
        asked = {"group": group, "member_id": member_id, "generation": epoch, "version": 9}
        assert client.commit({0: 9}, **asked) == [commit]
        assert self.fetched_as(client, group, member_id, epoch) == commit
        assert client.committed(group=group) == {0: 1, 1: -1, 2: -1}
        assert client.consumer_beat("me", 1, group=group).error_code == NONE

    def fetched_as(self, client, group, member_id, epoch):
        asked = offset_fetch.OffsetFetchRequestGroup(
            group_id=group, member_id=member_id, member_epoch=epoch, topics=None
        )
        return client.ask(ApiKey.OFFSET_FETCH, 9, offset_fetch.OffsetFetchRequest(groups=(asked,))).groups[0].error_code

    def test_old_requests_cannot_be_a_members(self, client, group, member):
        asked = {"group": group, "member_id": "me", "generation": member.member_epoch}
        assert client.commit({0: 9}, version=8, **asked) == [ErrorCode.UNSUPPORTED_VERSION]

    def test_groups_that_are_not_there(self, client):
        assert client.consumer_beat("me", 1, group="missing").error_code == ErrorCode.GROUP_ID_NOT_FOUND
        assert client.consumer_beat("me", -1, group="missing").error_code == ErrorCode.GROUP_ID_NOT_FOUND
        assert client.describe_consumers("missing")[0].error_code == ErrorCode.GROUP_ID_NOT_FOUND

    def test_giant_subscriptions(self, client, group):
        topics = tuple(f"t{number}" for number in range(SUBSCRIBED_TOPICS_MAX + 1))
        assert client.consumer_beat("me", group=group, subscribed_topic_names=topics).error_code == (
            ErrorCode.INVALID_REQUEST
        )
        regex = "(" * 300 + ")" * 300
        assert client.consumer_beat("me", group=group, subscribed_topic_regex=regex).error_code == (
            ErrorCode.INVALID_REGULAR_EXPRESSION
        )
        assert client.consumer_beat("me", group=group, subscribed_topic_names=topics[1:]).error_code == NONE


def test_a_classic_group_of_many_members():
    broker = group_broker(settings={**ONE_PARTITION, "group.initial.rebalance.delay.ms": "3000"})
    links = [GroupClient(broker) for _ in range(LINKS)]
    waiting = [(links[number % LINKS], links[number % LINKS].send_join("g")) for number in range(MEMBERS)]
    host = next(iter(broker.node.broker.groups.topic))
    broker.run_until(
        lambda: (
            "g" in host.machine.tables.classic_groups
            and len(host.machine.tables.classic_groups["g"].members) == MEMBERS
        )
    )
    broker.pass_time(6_100)
    joined = [client.wait(correlation) for client, correlation in waiting]
    assert {(each.error_code, each.generation_id) for each in joined} == {(NONE, 1)}
    leader = next(each for each in joined if each.members)
    assert len(leader.members) == MEMBERS
    answer = links[0].sync(leader, {each.member_id: each.member_id.encode() for each in joined})
    assert answer.assignment == leader.member_id.encode()
    assert links[0].sync(joined[-1]).assignment == joined[-1].member_id.encode()
    assert {links[0].beat(each) for each in joined[::100]} == {NONE}
    broker.restart()
    client = GroupClient(broker)
    broker.run_until(lambda: all(host.machine is not None for host in broker.node.broker.groups.topic))
    assert len(client.describe("g")[0].members) == MEMBERS
    assert client.beat(joined[7]) == NONE


def test_a_group_of_many_members_whose_broker_assigns():
    """It is there already, as the log tells; one more joins, one leaves, and the rest is settled by its heartbeats."""
    machine = GroupCoordinator(GroupCoordinatorSettings(), Catalog(t=MEMBERS))
    parts = [(b"t".ljust(16, b"\0"), number) for number in range(MEMBERS)]
    for number, part in enumerate(parts):
        subscription = MemberSubscription(None, None, "client", "/host", ("t",), None, 60_000, None)
        machine.apply(MemberRecord("g", f"{number}", subscription))
        machine.apply(TargetRecord("g", f"{number}", (part,)))
        machine.apply(CurrentRecord("g", f"{number}", CurrentAssignment(5, 4, MemberState.STABLE, (part,), ())))
    machine.apply(EpochRecord("g", 5))
    machine.apply(TargetEpochRecord("g", 5))
    machine.loaded(Now(0.0, 0))

    def beat(member_id, epoch, owned, topics=None):
        command = ConsumerHeartbeat(
            group="g",
            member_id=member_id,
            epoch=epoch,
            instance_id=None,
            rack_id=None,
            rebalance_timeout_ms=60_000 if topics else -1,
            topics=topics,
            regex=None,
            assignor=None,
            owned=owned,
            client_id="client",
            client_host="/host",
        )
        return machine.consumer_heartbeat(command, object(), Now(0.0, 0)).responses[-1].response

    assert beat("late", 0, (), ("t",)).epoch == 5, "who joins waits for the next target"
    assert beat("7", -1, None).error is NONE
    assert machine.tables.consumer_groups["g"].epoch == 7
    now_ms, written = 0.0, []
    while machine.tables.consumer_groups["g"].target_epoch < 7:
        now_ms = max(now_ms + SLICE_PAUSE_MS, ASSIGNMENT_PAUSE_MS)
        written.append(len(machine.expire(Now(now_ms, 0)).records))
    assert max(written) <= TARGETS_PER_STEP + 1
    assert len(written) >= 4 * MEMBERS // ITEMS_PER_STEP
    epochs = {beat(f"{number}", 5, (parts[number],)).epoch for number in range(MEMBERS) if number != 7}
    assert epochs == {7}
    assert beat("late", 5, ()).assignment == (parts[7],)
    assert len(machine.tables.consumer_groups["g"].owners) == MEMBERS
    assert machine.tables.consumer_groups["g"].state is ConsumerGroupState.STABLE


@pytest.mark.slow
def test_many_groups():
    broker = group_broker()
    client = GroupClient(broker)
    names = [f"group {number}" for number in range(GROUPS)]
    waiting = [client.send_commit({0: number}, group=name) for number, name in enumerate(names)]
    broker.steps()
    for correlation in waiting:
        assert client.wait(correlation).topics[0].partitions[0].error_code == NONE
    assert len(client.groups().groups) == GROUPS
    broker.restart()
    client = GroupClient(broker)
    broker.run_until(lambda: all(host.machine is not None for host in broker.node.broker.groups.topic))
    assert client.committed(group=names[-1]) == {0: GROUPS - 1, 1: -1, 2: -1}
    assert client.delete(*names[:100]) == [NONE] * 100
    assert len(client.groups().groups) == GROUPS - 100
