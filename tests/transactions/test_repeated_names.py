"""A request of a few bytes that names one thing a thousand times is answered once: an answer is no larger than what is
known, and no other client waits for it."""

import pytest

from headrace.broker.api import consumer_group_describe as describing_consumers
from headrace.broker.api import describe_groups as describing_groups
from headrace.broker.api import describe_producers as describing
from headrace.broker.api import describe_transactions as describing_transactions
from headrace.broker.api import find_coordinator as finding
from headrace.broker.api import offset_fetch as fetching_offsets
from headrace.model.errors import ErrorCode
from headrace.wire.apis import ApiKey
from headrace.wire.messages import (
    consumer_group_describe,
    describe_groups,
    describe_producers,
    offset_fetch,
)
from tests.groups.wire import GroupClient, group_broker
from tests.transactions.wire import TransactionClient, known, transaction_broker

TIMES = 1_000
NONE = ErrorCode.NONE


@pytest.fixture(scope="module")
def broker():
    broker = transaction_broker()
    GroupClient(broker).find("g")
    return broker


@pytest.fixture(scope="module")
def writers(broker):
    """Many that have written to t-0."""
    writers = [TransactionClient(broker, f"writer-{number}") for number in range(30)]
    for writer in writers:
        assert writer.init() is NONE
        assert writer.write(b"v") is NONE
    return writers


def ask_producers(client, *topics):
    request = describe_producers.DescribeProducersRequest(
        topics=tuple(
            describe_producers.DescribeProducersRequestTopic(name=name, partition_indexes=indexes)
            for name, indexes in topics
        )
    )
    return client.ask(ApiKey.DESCRIBE_PRODUCERS, 0, request).topics


def test_the_producers_of_a_partition(broker, writers):
    topics = ask_producers(TransactionClient(broker), ("t", (0,) * TIMES), ("t", (0, 1)), ("nowhere", (0, 0)))
    assert [topic.name for topic in topics] == ["t", "nowhere"]
    assert [partition.partition_index for partition in topics[0].partitions] == [0, 1]
    found = {producer.producer_id for producer in topics[0].partitions[0].active_producers}
    assert found == {writer.producer_id for writer in writers}
    assert [each.error_code for each in topics[1].partitions] == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]


@pytest.mark.parametrize("per_slice", [1, 7, 30, 31])
def test_many_producers_are_described_over_several_turns(broker, writers, monkeypatch, per_slice):
    client = TransactionClient(broker)
    wanted = (("t", (0, 1, 2, 9)), ("nowhere", (0,)))
    at_once = ask_producers(client, *wanted)
    monkeypatch.setattr(describing, "PRODUCERS_PER_SLICE", per_slice)
    assert ask_producers(client, *wanted) == at_once
    assert len(at_once[0].partitions[0].active_producers) == len(writers)


def test_one_who_asked_for_producers_and_left(broker, writers, monkeypatch):
    monkeypatch.setattr(describing, "PRODUCERS_PER_SLICE", 1)
    client = TransactionClient(broker)
    topic = describe_producers.DescribeProducersRequestTopic(name="t", partition_indexes=(0,))
    client.send(ApiKey.DESCRIBE_PRODUCERS, 0, describe_producers.DescribeProducersRequest(topics=(topic,)))
    broker.steps(5)
    client.close()
    broker.steps()
    assert broker.metrics.handler_failures == 0


def test_transactional_ids(broker, writers):
    client = TransactionClient(broker)
    first, second = writers[0].transactional_id, writers[1].transactional_id
    described = client.describe(*(first,) * TIMES, second, first)
    assert [each.transactional_id for each in described] == [first, second]


def test_groups(broker):
    client = GroupClient(broker)
    assert client.commit({0: 5}) == [NONE]
    request = describe_groups.DescribeGroupsRequest(groups=("g",) * TIMES)
    assert len(client.ask(ApiKey.DESCRIBE_GROUPS, 5, request).groups) == 1
    client.consumer_beat("member", group="consumers")
    consumers = consumer_group_describe.ConsumerGroupDescribeRequest(group_ids=("consumers",) * TIMES)
    assert len(client.ask(ApiKey.CONSUMER_GROUP_DESCRIBE, 1, consumers).groups) == 1


def test_all_offsets_of_a_group(broker):
    client = GroupClient(broker)
    assert client.commit({0: 5, 1: 6}) == [NONE, NONE]
    one = offset_fetch.OffsetFetchRequestGroupTopic(name="t", partition_indexes=(1,))
    entire = [offset_fetch.OffsetFetchRequestGroup(group_id="g", topics=None, member_epoch=-1)] * TIMES
    named = offset_fetch.OffsetFetchRequestGroup(group_id="g", topics=(one,))
    answer = client.ask(ApiKey.OFFSET_FETCH, 9, offset_fetch.OffsetFetchRequest(groups=(named, *entire, named)))
    told = [[each.committed_offset for each in group.topics[0].partitions] for group in answer.groups]
    assert told == [[6], [5, 6], [6]]


TOO_MANY = ErrorCode.INVALID_REQUEST
MESSAGE = "only the first 2 are answered: use several requests"


def test_groups_beyond_the_limit_get_an_error(broker, monkeypatch):
    monkeypatch.setattr(describing_groups, "DESCRIBE_GROUPS_MAX", 2)
    monkeypatch.setattr(describing_consumers, "DESCRIBE_GROUPS_MAX", 2)
    client = GroupClient(broker)
    names = tuple(f"group-{number}" for number in range(250))  # more than one turn takes
    for answers in (client.describe(*names), client.describe_consumers(*names)):
        assert [each.group_id for each in answers] == list(names)
        assert {each.error_code for each in answers[:2]} == {ErrorCode.GROUP_ID_NOT_FOUND}
        assert {(each.error_code, each.error_message) for each in answers[2:]} == {(TOO_MANY, MESSAGE)}
    assert [each.error_code for each in client.describe(*names[:3], version=5)] == [NONE, NONE, TOO_MANY]


def test_groups_beyond_the_limit_of_an_offset_fetch_get_an_error(broker, monkeypatch):
    monkeypatch.setattr(fetching_offsets, "OFFSET_FETCH_GROUPS_MAX", 2)
    groups = tuple(
        offset_fetch.OffsetFetchRequestGroup(group_id=name, topics=None, member_epoch=-1) for name in ("a", "b", "c")
    )
    answer = GroupClient(broker).ask(ApiKey.OFFSET_FETCH, 9, offset_fetch.OffsetFetchRequest(groups=groups))
    assert [(each.group_id, each.error_code) for each in answer.groups] == [("a", NONE), ("b", NONE), ("c", TOO_MANY)]


def test_transactional_ids_beyond_the_limit_get_an_error(broker, writers, monkeypatch):
    monkeypatch.setattr(describing_transactions, "DESCRIBE_TRANSACTIONS_IDS_MAX", 2)
    names = [writer.transactional_id for writer in writers[:3]]
    described = TransactionClient(broker).describe(*names)
    assert [each.transactional_id for each in described] == names
    assert [each.error_code for each in described] == [NONE, NONE, TOO_MANY]


def test_keys_beyond_the_limit_of_a_find_coordinator_get_an_error(broker, monkeypatch):
    monkeypatch.setattr(finding, "FIND_COORDINATOR_KEYS_MAX", 2)
    keys = tuple(f"key-{number}" for number in range(250))  # more than one turn takes
    found = TransactionClient(broker).find(*keys).coordinators
    assert [each.key for each in found] == list(keys)
    assert [each.error_code for each in found] == [NONE, NONE] + [TOO_MANY] * 248
    assert {each.error_message for each in found[2:]} == {MESSAGE}


def test_a_find_coordinator_of_many_keys_that_creates_the_topic(monkeypatch):
    broker = group_broker()
    monkeypatch.setattr(finding, "FIND_COORDINATOR_KEYS_MAX", 240)
    keys = tuple(f"key-{number}" for number in range(250))
    found = GroupClient(broker).find(*keys).coordinators
    assert [each.key for each in found] == list(keys)
    assert [each.error_code for each in found] == [NONE] * 240 + [TOO_MANY] * 10


def test_a_consumer_group_is_no_classic_group(broker):
    client = GroupClient(broker)
    client.consumer_beat("member", group="consumers")
    (described,) = client.describe("consumers")
    assert described.error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert described.error_message == "group consumers is not a classic group or does not exist"


@pytest.mark.parametrize("topic", ["__consumer_offsets", "__transaction_state"])
def test_a_client_adds_no_internal_topic_to_its_transaction(broker, topic):
    """As in Kafka: the group's partition comes by AddOffsetsToTxn, and the other one has no transactions at all."""
    client = TransactionClient(broker, f"internal-{topic}")
    assert client.init() is NONE
    assert client.add(0, topic=topic) == [ErrorCode.TOPIC_AUTHORIZATION_FAILED]
    assert known(broker, client.transactional_id).state == "Empty"
    assert client.add_offsets() is NONE
