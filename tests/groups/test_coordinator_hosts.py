"""The hosts of coordinators: loading, failed writes, lost partitions, stopping, and large numbers."""

import errno

import pytest

from headrace.broker.coordinators.host import RESPONSES_PER_TURN
from headrace.model.errors import ErrorCode
from headrace.model.limits import REQUESTS_IN_FLIGHT_MAX
from tests.broker.virtual import VirtualBroker
from tests.groups.wire import SETTINGS, GroupClient, group_broker

NONE = ErrorCode.NONE
ONE_PARTITION = {"offsets.topic.num.partitions": "1"}


def host(broker, index=0):
    return next(each for each in broker.node.broker.groups.topic if each.partition.index == index)


def state(broker):
    """Everything that must be the same after a restart."""
    found = {}
    for each in broker.node.broker.groups.topic:
        for group_id, offsets in each.machine.tables.offsets.items():
            found[group_id, "offsets"] = list(offsets)
        for group in each.machine.tables.classic_groups.values():
            found[group.group_id, "agreement"] = group.recorded
    return found


@pytest.mark.parametrize("end", ["stop", "kill"])
def test_groups_and_offsets_survive(end):
    broker = group_broker()
    client = GroupClient(broker)
    joined = client.join("g")
    client.sync(joined, {joined.member_id: b"mine"})
    for number in range(40):
        assert client.commit({0: number, 1: 2 * number}, group=f"group {number}") == [NONE, NONE]
    assert client.commit({0: 7}, member_id=joined.member_id, generation=1) == [NONE]
    before = state(broker)
    if end == "stop":
        broker.stop()
    else:
        broker.machine.kill()
    broker.boot()
    client = GroupClient(broker)
    broker.run_until(lambda: client.committed(group="group 39") == {0: 39, 1: 78, 2: -1})
    broker.run_until(lambda: all(each.machine is not None for each in broker.node.broker.groups.topic))
    assert state(broker) == before
    assert client.beat(joined) == NONE
    assert client.commit({0: 8}, member_id=joined.member_id, generation=1) == [NONE]


def test_an_answer_waits_for_its_commit():
    broker = group_broker(settings=ONE_PARTITION)
    client, other = GroupClient(broker), GroupClient(broker)
    assert client.alter_configs(2, "__consumer_offsets", {"flush.messages": 1}) == NONE
    broker.hold_syncs()
    waiting = client.send_commit({0: 5})
    reading = other.send_commit({1: 6})
    broker.steps()
    assert not client.has_answer(waiting)
    assert not other.has_answer(reading)
    broker.release_syncs()
    assert client.wait(waiting).topics[0].partitions[0].error_code == NONE
    assert other.wait(reading).topics[0].partitions[0].error_code == NONE


def test_a_commit_that_takes_too_long_is_given_up():
    broker = group_broker(settings={**ONE_PARTITION, "offsets.commit.timeout.ms": "1000"})
    client = GroupClient(broker)
    assert client.alter_configs(2, "__consumer_offsets", {"flush.messages": 1}) == NONE
    broker.hold_syncs()
    waiting = client.send_commit({0: 5})
    broker.pass_time(1_100)
    assert client.wait(waiting).topics[0].partitions[0].error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    broker.release_syncs()


def test_what_could_not_be_written_is_not_known():
    broker = group_broker(settings=ONE_PARTITION)
    client, member = GroupClient(broker), GroupClient(broker)
    assert client.commit({0: 5}) == [NONE]
    joined = member.join("h")
    member.sync(joined, group="h")
    parked = GroupClient(broker)
    waiting = parked.send_join("h")
    broker.steps()
    broker.machine.disk.faults.fail("write_vector", code=errno.ENOSPC, path_contains="__consumer_offsets")
    assert client.commit({0: 6}) == [ErrorCode.COORDINATOR_NOT_AVAILABLE]
    assert parked.wait(waiting).error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    broker.run_until(lambda: host(broker).machine is not None)
    assert client.committed() == {0: 5, 1: -1, 2: -1}
    assert client.commit({0: 7}) == [NONE]
    assert member.beat(joined, group="h") == NONE
    before = state(broker)
    broker.machine.kill()
    broker.boot()
    broker.run_until(lambda: host(broker).machine is not None)
    assert state(broker) == before


def test_while_it_loads_clients_have_to_wait():
    broker = group_broker(settings=ONE_PARTITION)
    client = GroupClient(broker)
    for number in range(30):
        client.commit({0: number}, group=f"group {number}", metadata="x" * 4_000)
    broker.machine.kill()
    broker.boot()
    client = GroupClient(broker)
    answers = []

    def loaded():
        answers.append(client.committed(group="group 29"))
        return answers[-1] == {0: 29, 1: -1, 2: -1}

    broker.machine.spawner.hold()
    assert client.committed() == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    assert client.groups().error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    assert client.commit({0: 9}) == [ErrorCode.COORDINATOR_LOAD_IN_PROGRESS]
    assert client.join("g").error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    broker.machine.spawner.release()
    broker.run_until(loaded)
    assert len(client.groups().groups) == 30


def test_a_coordinator_is_named_when_it_can_be_asked():
    """A second client asks while the partitions of the new topic are being made (librdkafka's test 0061)."""
    broker = VirtualBroker(settings=SETTINGS).with_topic("t", partitions=3)
    first, second = GroupClient(broker), GroupClient(broker)
    broker.machine.spawner.hold(name_contains="open_logs")
    asked = [(first, first.send_find("g"))]
    broker.run_until(broker.node.broker.groups.topic.exists)
    asked.append((second, second.send_find("g")))
    broker.steps()
    assert not any(client.has_answer(question) for client, question in asked)
    broker.machine.spawner.release()
    for client, question in asked:
        assert client.wait(question).coordinators[0].error_code == NONE
    broker.run_until(lambda: second.committed() != ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    assert second.committed() == {0: -1, 1: -1, 2: -1}


def test_strange_records_are_passed_over():
    broker = group_broker(settings=ONE_PARTITION)
    client = GroupClient(broker)
    client.commit({0: 5})
    partition = broker.partition("__consumer_offsets")
    for key in (b"\x00\x01nonsense", b"\x00\x63later", b""):
        partition.append_own(bytearray(client.batch(b"value", key=key)), client.now())
    broker.steps()
    client.commit({1: 6})
    broker.restart()
    client = GroupClient(broker)
    broker.run_until(lambda: client.committed() == {0: 5, 1: 6, 2: -1})


def test_a_lost_topic_loses_its_groups_and_can_be_made_again():
    broker = group_broker(settings=ONE_PARTITION)
    client, parked = GroupClient(broker), GroupClient(broker)
    client.commit({0: 5})
    joined = client.join("h")
    client.sync(joined, group="h")
    waiting = parked.send_join("h")
    broker.steps()
    assert client.delete_topic("__consumer_offsets") == NONE
    assert parked.wait(waiting).error_code == ErrorCode.NOT_COORDINATOR
    assert client.committed() == ErrorCode.NOT_COORDINATOR
    client.find("g")
    assert client.committed() == {0: -1, 1: -1, 2: -1}


def test_a_node_that_stops_does_not_wait_for_members():
    broker = group_broker()
    client, parked = GroupClient(broker), GroupClient(broker)
    client.sync(client.join("g"))
    waiting = parked.send_join("g")
    broker.steps()
    node = broker.node
    node.begin_stop()
    broker.run_until(lambda: node.drained)
    assert parked.wait(waiting).error_code == ErrorCode.NOT_COORDINATOR


def test_a_large_group_is_answered_some_members_a_turn():
    members = 2 * RESPONSES_PER_TURN + 10
    broker = group_broker(settings={**ONE_PARTITION, "group.initial.rebalance.delay.ms": "3000"})
    clients = [GroupClient(broker) for _ in range(-(-members // REQUESTS_IN_FLIGHT_MAX))]
    waiting = [(each, each.send_join("g")) for number in range(members) for each in (clients[number % len(clients)],)]
    broker.steps()
    broker.pass_time(6_100)
    joined = [client.wait(correlation) for client, correlation in waiting]
    assert {(each.error_code, each.generation_id) for each in joined} == {(NONE, 1)}
    leader = next(each for each in joined if each.members)
    assert len(leader.members) == members
    answer = clients[0].sync(leader, {each.member_id: each.member_id.encode() for each in joined})
    assert answer.assignment == leader.member_id.encode()
    assert len(clients[0].describe("g")[0].members) == members
    broker.restart()
    broker.run_until(lambda: host(broker).machine is not None)
    assert len(GroupClient(broker).describe("g")[0].members) == members


def test_many_groups_are_listed_and_deleted():
    broker = group_broker()
    client = GroupClient(broker)
    names = [f"group {number}" for number in range(700)]
    for name in names:
        client.send_commit({0: 1}, group=name)
    broker.steps()
    assert {each.group_id for each in client.groups().groups} == set(names)
    assert client.delete(*names) == [NONE] * len(names)
    assert client.groups().groups == ()


def test_lag_is_counted():
    broker = group_broker(settings=ONE_PARTITION)
    client = GroupClient(broker)
    for _ in range(5):
        client.produce("t")
    client.commit({0: 2, 1: 0})
    lines = "".join(str(line) for line in broker.node.metrics.render((broker.node._families(),)))
    assert 'headrace_group_lag{group="g",topic="t",partition="0"} 3' in lines
    assert 'headrace_group_lag{group="g",topic="t",partition="1"} 0' in lines
    assert 'headrace_groups{state="Empty"} 1' in lines
