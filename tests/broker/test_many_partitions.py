"""Many partitions that come and go: a few per turn, in order, and none of them blocks another for good."""

from collections import Counter
from itertools import pairwise

import pytest

from headrace.broker.partitions import role_changes
from headrace.broker.partitions.log_opener import PARTITIONS_PER_TURN
from headrace.core.controller.delta import apply_with_delta
from headrace.core.controller.records import ConfigRecord, ResourceKind
from headrace.wire.apis import ApiKey
from headrace.wire.messages import create_topics, delete_topics
from tests.broker.other_brokers import NO_LEADER, THIS, commit, election
from tests.broker.virtual import LONG_MS, VirtualBroker, new_topic


def test_partitions_come_and_go_over_several_turns_and_a_name_can_be_used_again_at_once():
    count = 3 * PARTITIONS_PER_TURN + 7
    broker = VirtualBroker()
    admin, table = broker.client(), broker.node.broker.partitions
    moved = []

    def create():
        request = create_topics.CreateTopicsRequest(topics=(new_topic("many", count),), timeout_ms=LONG_MS)
        return admin.send(ApiKey.CREATE_TOPICS, 7, request)

    def delete():
        topic = delete_topics.DeleteTopicsRequestTopic(name="many")
        request = delete_topics.DeleteTopicsRequest(topics=(topic,), timeout_ms=LONG_MS)
        return admin.send(ApiKey.DELETE_TOPICS, 6, request)

    def moves_until_answered(correlation):
        while not admin.has_answer(correlation):
            before = len(table)
            broker.steps(1)
            moved.append(len(table) - before)

    asked = [create()]
    moves_until_answered(asked[0])
    asked += [delete(), create()]
    moves_until_answered(asked[-1])
    assert max(moved) == PARTITIONS_PER_TURN
    assert min(moved) == -PARTITIONS_PER_TURN
    assert (sum(moved), len(table)) == (count, count)
    assert admin.wait(asked[0]).topics[0].error_code == admin.wait(asked[2]).topics[0].error_code == 0
    assert admin.wait(asked[1]).responses[0].error_code == 0
    assert {admin.produce_error("many", index) for index in (0, count - 1)} == {0}
    assert table.opener.closed_count == 0


def test_a_config_that_changes_while_partitions_come_counts_for_all_of_them():
    broker = VirtualBroker().with_topic("few", partitions=20)
    admin, table = broker.client(), broker.node.broker.partitions
    many = new_topic("many", 2 * PARTITIONS_PER_TURN)
    request = create_topics.CreateTopicsRequest(topics=(many,), timeout_ms=LONG_MS)
    asked, before = admin.send(ApiKey.CREATE_TOPICS, 7, request), len(table)
    broker.run_until(lambda: len(table) > before)
    assert 0 < len(table) - before < PARTITIONS_PER_TURN, "those of the other topic have their share of the turn"
    image = broker.node.broker.image
    changed = ConfigRecord(ResourceKind.TOPIC, "many", "max.message.bytes", "5000")
    table.apply(apply_with_delta(image, [changed]), image)
    assert admin.wait(asked).topics[0].error_code == 0
    assert {partition.config.message_bytes_max for partition in table.by_name[b"many"].replicas.values()} == {5000}


@pytest.mark.slow
def test_many_topics_come_and_go_in_slices_as_well():
    """A thousand deleted at once once took one call inside another for each, which no stack holds."""
    broker = VirtualBroker(settings={"log.segment.delete.delay.ms": "0"})
    client = broker.client()
    topics = tuple(new_topic(f"t{number}", 1) for number in range(1_100))
    created = client.ask(
        ApiKey.CREATE_TOPICS, 7, create_topics.CreateTopicsRequest(topics=topics, timeout_ms=LONG_MS)
    ).topics
    assert {topic.error_code for topic in created} == {0}
    removed = []
    partitions = broker.node.broker.partitions
    original = partitions._delete_folder

    def counted(*arguments, **options):
        removed.append(broker.world.steps)
        return original(*arguments, **options)

    partitions._delete_folder = counted
    doomed = tuple(delete_topics.DeleteTopicsRequestTopic(name=topic.name) for topic in topics)
    answer = client.ask(ApiKey.DELETE_TOPICS, 6, delete_topics.DeleteTopicsRequest(topics=doomed, timeout_ms=LONG_MS))
    assert {topic.error_code for topic in answer.responses} == {0}
    broker.run_until(lambda: len(removed) == len(topics))
    assert max(Counter(removed).values()) <= PARTITIONS_PER_TURN
    assert client.create_topic("t7").error_code == 0


def test_a_folder_that_cannot_be_deleted_delays_nothing_else(monkeypatch):
    broker = VirtualBroker().with_topic("a").with_topic("b")
    partitions = broker.node.broker.partitions
    monkeypatch.setattr(broker.node.loop, "strict", False)

    def fail(*arguments, **options):
        raise ValueError("a fault of ours")

    with monkeypatch.context() as patch:
        patch.setattr(partitions, "_delete_folder", fail)
        client = broker.client()
        client.delete_topic("a")
    assert client.create_topic("c").error_code == 0
    assert client.delete_topic("b") == 0


def test_roles_change_over_several_turns_and_the_newest_counts(monkeypatch):
    monkeypatch.setattr(role_changes, "ROLE_CHANGES_PER_TURN", 10)
    broker = VirtualBroker().with_topic("many", partitions=35).with_topic("gone", partitions=20)
    admin, table = broker.client(), broker.node.broker.partitions
    ready = []

    def leaders():
        return [broker.partition("many", index).serves for index in range(35)]

    def change(leader):
        return [
            election(broker, name, index, leader)
            for name, count in (("gone", 20), ("many", 35))
            for index in range(count)
        ]

    asked = commit(broker.node, *change(NO_LEADER))
    broker.run_until(lambda: not table.by_name[b"gone"].replicas[0].serves)
    table.when_ready(lambda: ready.append(leaders()))
    assert leaders() == [True] * 35
    topic = delete_topics.DeleteTopicsRequestTopic(name="gone")
    admin.send(ApiKey.DELETE_TOPICS, 6, delete_topics.DeleteTopicsRequest(topics=(topic,), timeout_ms=LONG_MS))
    served = [35]
    while served[-1]:
        broker.steps(1)
        served.append(sum(leaders()))
    assert max(before - after for before, after in pairwise(served)) == 10
    broker.run_until(lambda: ready)
    assert ready == [[False] * 35]
    assert asked() == "committed"
    commit(broker.node, *[election(broker, "many", index, NO_LEADER) for index in range(35)])
    commit(broker.node, *[election(broker, "many", index, THIS) for index in range(35)])
    broker.run_until(lambda: all(leaders()))
    assert {admin.produce_error("many", index) for index in (0, 34)} == {0}
