"""Fetch sessions (KIP-227): a consumer names only what changed, and the answer holds only what changed."""

from dataclasses import replace

import pytest

from headrace.broker.partitions.fetch_sessions import EPOCH_MAX, EVICTABLE_AFTER_MS, FetchSession, FetchSessions
from headrace.model.errors import ErrorCode
from headrace.model.limits import FETCH_PARTITIONS_MAX
from headrace.sim.clock import VirtualClock, VirtualTime
from headrace.sim.entropy import SeededEntropy
from headrace.wire.apis import ApiKey
from headrace.wire.messages import fetch
from tests.broker.virtual import LONG_MS, VirtualBroker, values_of

E = ErrorCode


@pytest.fixture
def broker():
    return VirtualBroker().with_topic("t", partitions=4)


class Consumer:
    """Speaks one session on one connection."""

    def __init__(self, broker, *, version=12, topic="t", by_id=False):
        self.client = broker.client()
        self.version, self.topic, self.by_id = version, topic, by_id
        self.session_id, self.epoch = 0, 0

    def fetch(self, wanted=(), *, forget=(), **options):
        """Fetch `wanted`, which are (partition, offset), and return {partition: answer}."""
        response = self.ask(wanted, forget=forget, **options)
        assert response.error_code == 0
        self.session_id = response.session_id
        self.epoch += 1
        return {answer.partition_index: answer for topic in response.responses for answer in topic.partitions}

    def ask(self, wanted=(), *, forget=(), **options):
        options = {"session_id": self.session_id, "session_epoch": self.epoch, "by_id": self.by_id, **options}
        asked = self.client.send_fetch(
            *[(self.topic, partition, offset) for partition, offset in wanted],
            version=self.version,
            forget=[(self.topic, partition) for partition in forget],
            **options,
        )
        return self.client.wait(asked)


def everything():
    return [(partition, 0) for partition in range(4)]


def test_a_session_is_created_and_then_only_changes_are_sent(broker):
    consumer, writer = Consumer(broker), broker.client()
    assert set(consumer.fetch(everything())) == {0, 1, 2, 3}, "the first answer tells all"
    assert consumer.session_id > 0
    assert consumer.fetch() == {}
    writer.produce("t", 2, writer.batch(b"new"))
    told = consumer.fetch()
    assert set(told) == {2}
    assert values_of(told[2].records) == [b"new"]
    assert set(consumer.fetch([(2, 1)])) == set(), "the offset was moved, and nothing is new"


def test_records_are_sent_again_until_the_offset_moves(broker):
    consumer, writer = Consumer(broker), broker.client()
    consumer.fetch(everything())
    writer.produce("t", 1)
    for _ in range(3):
        assert set(consumer.fetch()) == {1}


def test_partitions_can_be_added_changed_and_forgotten(broker):
    consumer, writer = Consumer(broker), broker.client()
    consumer.fetch([(0, 0)])
    for partition in range(4):
        writer.produce("t", partition)
    assert set(consumer.fetch()) == {0}
    assert set(consumer.fetch([(1, 0), (3, 0)])) == {0, 1, 3}
    assert set(consumer.fetch(forget=[0, 3])) == {1}
    assert set(consumer.fetch(forget=[1])) == set()
    assert set(consumer.fetch([(2, 0)], forget=[2])) == set(), "forgotten after it was named"


def test_a_long_poll_in_a_session_is_woken(broker):
    consumer, writer = Consumer(broker), broker.client()
    consumer.fetch(everything())
    asked = consumer.client.send_fetch(version=12, session_id=consumer.session_id, session_epoch=1, wait_ms=LONG_MS)
    broker.steps()
    assert broker.metrics.parked_fetches == 1
    writer.produce("t", 3, writer.batch(b"woken"))
    [topic] = consumer.client.wait(asked).responses
    assert [(answer.partition_index, values_of(answer.records)) for answer in topic.partitions] == [(3, [b"woken"])]


def test_a_moved_high_watermark_or_start_is_news_without_records(broker):
    consumer, writer = Consumer(broker), broker.client()
    writer.produce("t", 0)
    consumer.fetch([(0, 1)])
    assert consumer.fetch() == {}
    writer.produce("t", 0)
    consumer.fetch()
    assert set(consumer.fetch([(0, 2)])) == set()
    broker.node.broker.partitions.advance_start(broker.partition("t", 0), 1)
    told = consumer.fetch()
    assert told[0].log_start_offset == 1
    assert consumer.fetch() == {}


def test_errors_are_sent_every_time(broker):
    consumer = Consumer(broker)
    for _ in range(3):
        told = consumer.fetch([(9, 0)] if consumer.epoch == 0 else ())
        assert told[9].error_code == E.UNKNOWN_TOPIC_OR_PARTITION


def test_a_partition_that_recovers_from_an_error_is_sent(broker):
    consumer, admin = Consumer(broker, topic="later"), broker.client()
    assert consumer.fetch([(0, 0)])[0].error_code == E.UNKNOWN_TOPIC_OR_PARTITION
    admin.create_topic("later")
    assert consumer.fetch()[0].error_code == 0
    assert consumer.fetch() == {}


def test_wrong_epochs_and_unknown_sessions(broker):
    consumer = Consumer(broker)
    consumer.fetch(everything())
    assert consumer.epoch == 1
    for epoch in (2, 5):
        assert consumer.ask(session_epoch=epoch).error_code == E.INVALID_FETCH_SESSION_EPOCH
    assert consumer.ask(session_id=consumer.session_id ^ 1).error_code == E.FETCH_SESSION_ID_NOT_FOUND
    assert consumer.fetch() == {}, "the session itself goes on"
    assert consumer.ask(session_epoch=1).error_code == E.INVALID_FETCH_SESSION_EPOCH, "a retry of an old request"


def test_a_full_fetch_ends_the_old_session(broker):
    consumer = Consumer(broker)
    consumer.fetch(everything())
    old = consumer.session_id
    consumer.epoch = 0
    assert set(consumer.fetch([(0, 0)])) == {0}
    assert consumer.session_id != old
    assert consumer.ask(session_id=old, session_epoch=1).error_code == E.FETCH_SESSION_ID_NOT_FOUND


def test_the_final_epoch_closes_the_session_and_answers_in_full(broker):
    consumer = Consumer(broker)
    consumer.fetch(everything())
    response = consumer.ask([(1, 0)], session_epoch=-1)
    assert response.session_id == 0
    assert [answer.partition_index for answer in response.responses[0].partitions] == [1]
    assert consumer.ask(session_epoch=1).error_code == E.FETCH_SESSION_ID_NOT_FOUND
    assert len(broker.node.broker.fetch_sessions) == 0


def test_partitions_with_records_take_turns(broker):
    consumer, writer = Consumer(broker), broker.client()
    content = writer.batch(bytes(1000))
    for partition in range(4):
        for _ in range(3):
            writer.produce("t", partition, content)
    told = [set(consumer.fetch(everything(), bytes_max=len(content)))]
    offsets = dict(everything())
    order = []
    for _ in range(8):
        news = {
            partition: answer for partition, answer in consumer.fetch(bytes_max=len(content)).items() if answer.records
        }
        [partition] = news
        order.append(partition)
        offsets[partition] += 1
    assert told == [{0, 1, 2, 3}]
    assert order[:4] == [1, 2, 3, 0], "who gave records goes to the end"
    assert order[4:] == order[:4]


# Ids


def test_sessions_by_topic_id(broker):
    topic_id = broker.client().topic_id("t")
    consumer, writer = Consumer(broker, version=13, topic=topic_id, by_id=True), broker.client()
    assert set(consumer.fetch(everything())) == {0, 1, 2, 3}
    writer.produce("t", 2)
    assert set(consumer.fetch()) == {2}
    assert set(consumer.fetch(forget=[2])) == set()


def test_a_session_by_name_is_not_one_by_id(broker):
    consumer = Consumer(broker)
    consumer.fetch(everything())
    consumer.version, consumer.by_id = 13, True
    consumer.topic = broker.client().topic_id("t")
    assert consumer.ask().error_code == E.FETCH_SESSION_TOPIC_ID_ERROR


def test_a_recreated_topic_is_unknown_to_a_session_by_id(broker):
    admin = broker.client()
    consumer = Consumer(broker, version=13, topic=admin.topic_id("t"), by_id=True)
    consumer.fetch([(0, 0)])
    admin.delete_topic("t")
    admin.create_topic("t")
    writer = broker.client()
    writer.produce("t", 0, writer.batch(b"of another topic"))
    told = consumer.fetch()
    assert told[0].error_code == E.UNKNOWN_TOPIC_ID
    assert not told[0].records


# The cache


def test_no_place_in_the_cache_means_a_fetch_without_session():
    broker = VirtualBroker(settings={"max.incremental.fetch.session.cache.slots": "2"}).with_topic("t", partitions=4)
    consumers = [Consumer(broker) for _ in range(3)]
    for consumer in consumers:
        assert set(consumer.fetch(everything())) == {0, 1, 2, 3}
    assert [bool(consumer.session_id) for consumer in consumers] == [True, True, False]
    broker.pass_time(EVICTABLE_AFTER_MS)
    consumers[0].fetch()
    late = Consumer(broker)
    late.fetch(everything())
    assert late.session_id, "the one that was unused for long made room"
    assert consumers[1].ask().error_code == E.FETCH_SESSION_ID_NOT_FOUND
    assert consumers[0].fetch() == {}


def test_no_sessions_at_all():
    broker = VirtualBroker(settings={"max.incremental.fetch.session.cache.slots": "0"}).with_topic("t", partitions=4)
    consumer = Consumer(broker)
    assert set(consumer.fetch(everything())) == {0, 1, 2, 3}
    assert consumer.session_id == 0


def test_session_ids_are_positive_and_not_taken_twice():
    sessions = FetchSessions(VirtualClock(VirtualTime()), SeededEntropy(3), sessions_max=500)
    made = [sessions.create(by_id=False) for _ in range(500)]
    assert len({session.session_id for session in made}) == 500
    assert all(0 < session.session_id <= EPOCH_MAX for session in made)
    assert sessions.create(by_id=False) is None


@pytest.mark.slow
def test_a_session_of_too_many_partitions_is_not_kept():
    broker = VirtualBroker().with_topic("t")
    client = broker.client()
    part = fetch.FetchRequestPartition(partition=0, fetch_offset=0, partition_max_bytes=1)
    topic = fetch.FetchRequestTopic(
        topic="t", partitions=tuple(replace(part, partition=index) for index in range(FETCH_PARTITIONS_MAX + 1))
    )
    client.send(ApiKey.FETCH, 7, fetch.FetchRequest(max_bytes=100, session_epoch=0, topics=(topic,)))
    client.wait_closed()
    assert len(broker.node.broker.fetch_sessions) == 0


def test_epochs_wrap_to_one():
    session = FetchSession(1, by_id=False, now_ms=0)
    session.epoch = EPOCH_MAX
    session.advance(0)
    assert session.epoch == 1
