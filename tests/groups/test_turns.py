"""Many groups and many members: what one turn does of it, counted."""

from collections import Counter
from typing import Any

import pytest

from headrace.broker.api.response_writer import ResponseWriter
from headrace.broker.api.support import coordinators
from headrace.broker.coordinators.host import CoordinatorHost
from headrace.core.groups.assignors import ITEMS_PER_STEP
from headrace.core.groups.classic_responses import ClassicResponses
from headrace.core.groups.settings import MEMBER_RESPONSES_PER_TURN
from headrace.model.errors import ErrorCode
from headrace.model.limits import REQUESTS_IN_FLIGHT_MAX
from headrace.wire.apis import ApiKey
from headrace.wire.codec import Encoding
from headrace.wire.messages import create_topics, offset_fetch
from tests.broker.virtual import new_topic
from tests.groups.wire import GroupClient, group_broker

NONE = ErrorCode.NONE
GROUPS = 450
NAMES = [f"group {number}" for number in range(GROUPS)]


@pytest.fixture(scope="module")
def broker():
    broker = group_broker()
    client = GroupClient(broker)
    for number, name in enumerate(NAMES):
        client.send_commit({0: number}, group=name)
    broker.steps()
    client.close()
    return broker


class TurnsOf:
    """Number of calls in each turn."""

    def __init__(self, broker, monkeypatch, owner, name):
        self.by_turn: Counter[Any] = Counter()
        original = getattr(owner, name)

        def counted(*arguments, **options):
            self.by_turn[broker.world.steps] += 1
            return original(*arguments, **options)

        monkeypatch.setattr(owner, name, counted)

    @property
    def most(self):
        return max(self.by_turn.values())

    @property
    def turns(self):
        return len(self.by_turn)


def test_all_groups_listed(broker, monkeypatch):
    steps = TurnsOf(broker, monkeypatch, Encoding, "step")
    questions = TurnsOf(broker, monkeypatch, CoordinatorHost, "propose")
    client = GroupClient(broker)
    assert {each.group_id for each in client.groups().groups} == set(NAMES)
    assert (steps.most, steps.turns) == (1, 5), "a hundred are written in a turn"
    assert questions.most == 1


def test_many_described_at_once(broker, monkeypatch):
    questions = TurnsOf(broker, monkeypatch, CoordinatorHost, "propose")
    client = GroupClient(broker)
    found = client.describe(*NAMES, "unknown")
    assert [each.group_id for each in found] == [*NAMES, "unknown"]
    assert found[-1].error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert questions.most == coordinators.ASKED_PER_TURN
    assert questions.turns == 5
    assert [each.error_code for each in client.describe_consumers(*NAMES)] == [ErrorCode.GROUP_ID_NOT_FOUND] * GROUPS
    assert questions.most == coordinators.ASKED_PER_TURN


def test_offsets_of_many_groups(broker, monkeypatch):
    questions = TurnsOf(broker, monkeypatch, CoordinatorHost, "propose")
    client = GroupClient(broker)
    request = offset_fetch.OffsetFetchRequest(
        groups=tuple(offset_fetch.OffsetFetchRequestGroup(group_id=name, topics=None) for name in (*NAMES, ""))
    )
    found = client.ask(ApiKey.OFFSET_FETCH, 8, request).groups
    assert [each.topics[0].partitions[0].committed_offset for each in found[:-1]] == list(range(GROUPS))
    assert found[-1].error_code == ErrorCode.INVALID_GROUP_ID
    assert questions.most == coordinators.ASKED_PER_TURN


def test_one_that_asks_for_much_and_leaves(broker, monkeypatch):
    """Nothing is written for it any more, and its place is free."""
    steps = TurnsOf(broker, monkeypatch, ResponseWriter, "_encode_more")
    parked = broker.metrics.parked_requests
    client = GroupClient(broker)
    client.send_find(*NAMES)
    broker.run_until(lambda: steps.turns)
    client.close()
    broker.steps()
    assert steps.turns <= 5
    assert broker.metrics.parked_requests == parked


def test_many_deleted_at_once():
    broker = group_broker()
    client = GroupClient(broker)
    for name in NAMES:
        client.send_commit({0: 1}, group=name)
    broker.steps()
    asked = {name: client.committed(group=name)[0] for name in NAMES[:3]}
    assert asked == dict.fromkeys(NAMES[:3], 1)
    assert client.delete(*NAMES, "unknown") == [NONE] * GROUPS + [ErrorCode.GROUP_ID_NOT_FOUND]
    assert client.groups().groups == ()


def fail(*_arguments):
    raise ValueError("a fault of ours")


def test_an_answer_that_cannot_be_written_closes_its_connection(broker, monkeypatch):
    monkeypatch.setattr(Encoding, "step", fail)
    monkeypatch.setattr(broker.node.loop, "strict", False)
    failures = broker.metrics.handler_failures
    client = GroupClient(broker)
    client.send_find(*NAMES)
    client.wait_closed()
    assert broker.metrics.handler_failures == failures + 1


def test_so_does_a_short_one_of_a_later_turn(broker, monkeypatch):
    monkeypatch.setattr(create_topics, "begin_response", fail)
    monkeypatch.setattr(broker.node.loop, "strict", False)
    failures = broker.metrics.handler_failures
    client = GroupClient(broker)
    request = create_topics.CreateTopicsRequest(topics=(new_topic("new"),), timeout_ms=1_000)
    client.send(ApiKey.CREATE_TOPICS, 7, request)
    client.wait_closed()
    assert broker.metrics.handler_failures == failures + 1


@pytest.mark.slow
def test_a_large_group_is_assigned_step_by_step(monkeypatch):
    """Joins do not assign: one after another they would cost the square of their number."""
    broker = group_broker(settings={"offsets.topic.num.partitions": "1"})
    assert GroupClient(broker).create_topic("large", partitions=2 * ITEMS_PER_STEP + 10).error_code == NONE
    client = GroupClient(broker)
    beats = {}
    for number in range(5):
        member_id = f"member-{number}"
        beats[member_id] = client.consumer_beat(member_id, subscribed_topic_names=("large",))
        assert beats[member_id].error_code == NONE
    host = next(iter(broker.node.broker.groups.topic))
    group = host.machine.tables.consumer_groups["g"]
    assert (group.epoch, group.target_epoch) == (5, 1), "the first one is assigned at once"
    steps = TurnsOf(broker, monkeypatch, type(host.machine._consumer), "continue_assignment")
    broker.pass_time(150)
    broker.run_until(lambda: group.target_epoch == 5)
    assert steps.most == 1
    assert steps.turns >= 5
    assert sorted(len(parts) for parts in group.targets.values()) == [202] * 5


def test_members_of_a_large_classic_group_are_answered_over_several_turns(monkeypatch):
    broker = group_broker(
        settings={"offsets.topic.num.partitions": "1", "group.initial.rebalance.delay.ms": "3000"},
    )
    members = 2 * MEMBER_RESPONSES_PER_TURN + 50
    clients = [GroupClient(broker) for _ in range(-(-members // REQUESTS_IN_FLIGHT_MAX))]
    told = TurnsOf(broker, monkeypatch, ClassicResponses, "join_result")
    assigned = TurnsOf(broker, monkeypatch, ClassicResponses, "sync_result")
    waiting = [(each, each.send_join("g")) for number in range(members) for each in (clients[number % len(clients)],)]
    broker.steps()
    broker.pass_time(6_100)
    joined = [client.wait(correlation) for client, correlation in waiting]
    assert {(each.error_code, each.generation_id) for each in joined} == {(NONE, 1)}
    assert (told.most, told.turns) == (MEMBER_RESPONSES_PER_TURN, 3)
    leader = next(place for place, each in enumerate(joined) if each.members)
    syncing = [
        (client, client.send_sync(each)) for (client, _), each in zip(waiting, joined, strict=True) if not each.members
    ]
    broker.steps()
    shares = {each.member_id: each.member_id.encode() for each in joined}
    syncing.append((waiting[leader][0], waiting[leader][0].send_sync(joined[leader], shares)))
    got = [client.wait(correlation) for client, correlation in syncing]
    assert {each.assignment for each in got} == set(shares.values())
    assert (assigned.most, assigned.turns) == (MEMBER_RESPONSES_PER_TURN, 3)
