"""Group coordinators that move with their partitions of the offsets topic."""

import pytest

from headrace.broker.coordinators.topic import partition_for
from headrace.model.errors import ErrorCode as E
from tests.broker.other_brokers import NO_LEADER, OTHER, THIS, commit_and_wait, elect, registration
from tests.groups.wire import GroupClient, group_broker

OFFSETS = "__consumer_offsets"
PARTITION = partition_for("g", 3)
ELSEWHERE = next(name for name in map(str, range(100)) if partition_for(name, 3) != PARTITION)


@pytest.fixture
def broker():
    broker = group_broker()
    commit_and_wait(broker, registration())
    return broker


@pytest.fixture
def client(broker):
    return GroupClient(broker)


def test_members_learn_that_the_coordinator_has_moved(broker, client):
    joined = client.join("g")
    client.sync(joined, {joined.member_id: b"mine"})
    assert client.commit({0: 7}, member_id=joined.member_id, generation=1) == [E.NONE]
    elect(broker, OFFSETS, PARTITION, OTHER)
    assert client.beat(joined) == E.NOT_COORDINATOR
    assert client.commit({0: 8}, member_id=joined.member_id, generation=1) == [E.NOT_COORDINATOR]
    assert client.committed() == E.NOT_COORDINATOR
    assert client.join("g", joined.member_id).error_code == E.NOT_COORDINATOR
    assert client.commit({0: 1}, group=ELSEWHERE) == [E.NONE], "the other coordinators stay"


def test_a_coordinator_that_comes_back_has_its_groups_and_offsets(broker, client):
    joined = client.join("g")
    client.sync(joined, {joined.member_id: b"mine"})
    assert client.commit({0: 7}, member_id=joined.member_id, generation=1) == [E.NONE]
    elect(broker, OFFSETS, PARTITION, OTHER)
    elect(broker, OFFSETS, PARTITION, THIS)
    broker.run_until(lambda: client.committed() != E.COORDINATOR_LOAD_IN_PROGRESS)
    assert client.committed() == {0: 7, 1: -1, 2: -1}
    assert client.beat(joined) == E.NONE
    assert client.commit({0: 8}, member_id=joined.member_id, generation=1) == [E.NONE]


def test_a_member_that_waits_for_others_is_answered_at_once(broker, client):
    first = client.join("g")
    client.sync(first, {first.member_id: b"mine"})
    second = GroupClient(broker)
    waiting = second.send_join("g")
    broker.steps()
    assert not second.has_answer(waiting)
    elect(broker, OFFSETS, PARTITION, OTHER)
    assert second.wait(waiting).error_code == E.NOT_COORDINATOR


@pytest.mark.parametrize("repeats", [0, 3], ids=["first", "repeated"])
def test_a_commit_that_waits_is_answered_at_once(broker, client, repeats):
    assert client.alter_configs(2, OFFSETS, {"flush.messages": 1}) == E.NONE
    for _ in range(repeats):
        assert client.commit({0: 1}) == [E.NONE]
    broker.hold_syncs()
    waiting = client.send_commit({0: 5})
    broker.steps()
    assert not client.has_answer(waiting)
    elect(broker, OFFSETS, PARTITION, OTHER)
    assert client.wait(waiting).topics[0].partitions[0].error_code == E.NOT_COORDINATOR


def test_find_coordinator_names_the_broker_that_leads_the_partition(broker, client):
    elect(broker, OFFSETS, PARTITION, OTHER)
    here, there = client.find(ELSEWHERE, "g").coordinators
    assert [(each.error_code, each.node_id, each.host) for each in (here, there)] == [
        (E.NONE, THIS, "node"),
        (E.NONE, OTHER, "other"),
    ]
    elect(broker, OFFSETS, PARTITION, NO_LEADER)
    (found,) = client.find("g").coordinators
    assert found.error_code == E.COORDINATOR_NOT_AVAILABLE
