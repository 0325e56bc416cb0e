"""Consumers in groups against a real broker: protocols, assignors, commits, rebalances, patterns, static members."""

import re
import threading
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import pytest

from headrace.client import Admin, Consumer, ConsumerRecord, OffsetAndMetadata, Producer, TopicPartition
from headrace.client.errors import BrokerError, DeserializationError, InvalidArgument
from headrace.testing import EmbeddedBroker

WAIT_MS = 60_000
PARTITIONS = 6
PROTOCOLS: dict[str, dict[str, Any]] = {
    "range": {"partition_assignment_strategy": "range"},
    "roundrobin": {"partition_assignment_strategy": "roundrobin"},
    "cooperative": {"partition_assignment_strategy": "cooperative-sticky"},
    "kip-848": {"group_protocol": "consumer"},
}


pytestmark = [pytest.mark.process, pytest.mark.usefixtures("front")]


@pytest.fixture(scope="module")
def broker(any_broker: EmbeddedBroker) -> EmbeddedBroker:
    return any_broker


@pytest.fixture
def topic(broker: EmbeddedBroker, request: pytest.FixtureRequest) -> str:
    return broker.create_topic(broker.unused_topic_name(request.node.name), partitions=PARTITIONS)


@pytest.fixture(params=sorted(PROTOCOLS))
def protocol(request: pytest.FixtureRequest) -> dict[str, Any]:
    return PROTOCOLS[request.param]


def member(broker: EmbeddedBroker, *topics: str, **options: Any) -> Consumer:
    defaults = {"group_id": "g-" + (topics[0] if topics else "x"), "auto_offset_reset": "earliest"}
    fast = {"heartbeat_interval_ms": 100, "session_timeout_ms": 30_000, "fetch_max_wait_ms": 50}
    return Consumer(*topics, bootstrap_servers=broker.bootstrap_servers, **{**defaults, **fast, **options})


def send(broker: EmbeddedBroker, topic: str, values: range) -> None:
    with Producer(broker.bootstrap_servers) as producer:
        for number in values:
            producer.send(topic, b"%d" % number, partition=number % PARTITIONS)


def turn_until(is_so: Callable[[], bool], *consumers: Consumer, into: list[ConsumerRecord] | None = None) -> None:
    """Poll all of them, each for a moment, until it is so."""
    for _ in range(WAIT_MS // 20):
        for consumer in consumers:
            records = consumer.poll(timeout_ms=20)
            if into is not None:
                into += records
        if is_so():
            return
    raise AssertionError("it did not come to that")


def shares(*consumers: Consumer) -> list[int]:
    return [len(consumer.assignment()) for consumer in consumers]


def test_members_share_and_inherit(broker: EmbeddedBroker, topic: str, protocol: dict[str, Any]) -> None:
    send(broker, topic, range(60))
    read: list[ConsumerRecord] = []
    with ExitStack() as closing:
        first = closing.enter_context(member(broker, topic, **protocol))
        turn_until(lambda: shares(first) == [PARTITIONS] and len(read) == 60, first, into=read)
        second = closing.enter_context(member(broker, topic, **protocol))
        turn_until(lambda: shares(first, second) == [3, 3], first, second, into=read)
        assert not set(first.assignment()) & set(second.assignment())
        send(broker, topic, range(60, 120))
        turn_until(lambda: len(read) >= 120, first, second, into=read)
        second.close()
        turn_until(lambda: shares(first) == [PARTITIONS], first, into=read)
        send(broker, topic, range(120, 130))
        turn_until(lambda: len(read) >= 130, first, into=read)
    # Automatic commits before each revocation: nothing is read twice, nothing is missing.
    assert sorted(int(record.value) for record in read) == list(range(130))
    with Admin(broker.bootstrap_servers) as admin:
        committed = admin.group_offsets("g-" + topic)
        assert sum(each.offset for each in committed.values()) == 130


def test_manual_commits_decide_where_the_next_begins(
    broker: EmbeddedBroker, topic: str, protocol: dict[str, Any]
) -> None:
    send(broker, topic, range(12))
    options = {**protocol, "enable_auto_commit": False, "consumer_timeout_ms": WAIT_MS}
    with member(broker, topic, **options) as consumer:
        iterator = iter(consumer)
        seen = [next(iterator) for _ in range(5)]
        consumer.commit(seen[-1])
        place = TopicPartition(topic, seen[-1].partition)
        assert consumer.committed() == {place: OffsetAndMetadata(seen[-1].offset + 1)}
        consumer.commit()
        # What the iteration holds back is not committed.
        assert sum(each.offset for each in consumer.committed().values()) == 5
        consumer.commit({place: OffsetAndMetadata(1, "a note")})
        assert consumer.committed()[place] == OffsetAndMetadata(1, "a note")
    with member(broker, topic, **options) as consumer:
        read: list[ConsumerRecord] = []
        turn_until(lambda: any(record.partition == place.partition for record in read), consumer, into=read)
        assert next(record.offset for record in read if record.partition == place.partition) == 1


def test_callbacks_tell_of_every_change(broker: EmbeddedBroker, topic: str, protocol: dict[str, Any]) -> None:
    told: list[tuple[str, tuple[TopicPartition, ...]]] = []
    owned: set[TopicPartition] = set()

    def assigned(partitions: tuple[TopicPartition, ...]) -> None:
        assert not owned & set(partitions)
        owned.update(partitions)
        told.append(("assigned", partitions))
        for partition in partitions:
            first.seek(partition, 1)

    def revoked(partitions: tuple[TopicPartition, ...]) -> None:
        assert set(partitions) <= owned
        owned.difference_update(partitions)
        told.append(("revoked", partitions))
        first.commit()

    send(broker, topic, range(12))
    with member(broker, **protocol, group_id="g-" + topic) as first:
        first.subscribe(topic, on_assigned=assigned, on_revoked=revoked)
        read: list[ConsumerRecord] = []
        turn_until(lambda: len(read) == 6, first, into=read)
        assert {record.offset for record in read} == {1}
        with member(broker, topic, **protocol) as second:
            turn_until(lambda: shares(first, second) == [3, 3], first, second)
            assert owned == set(first.assignment())
        revocations = [partitions for kind, partitions in told if kind == "revoked"]
        is_eager = "partition_assignment_strategy" in protocol and "cooperative" not in str(protocol)
        assert len(revocations[0]) == (PARTITIONS if is_eager else 3)
    assert owned == set()


def test_heartbeats_continue_while_the_application_works(
    broker: EmbeddedBroker, topic: str, protocol: dict[str, Any]
) -> None:
    options = {**protocol, "session_timeout_ms": 30_000, "heartbeat_interval_ms": 50}
    with member(broker, topic, **options) as consumer:
        turn_until(lambda: shares(consumer) == [PARTITIONS], consumer)
        before = consumer.metrics()["request-total"]
        busy = threading.Event()
        for _ in range(WAIT_MS // 50):
            busy.wait(0.05)  # The application's own work: it does not poll.
            if consumer.metrics()["request-total"] >= before + 5:
                break
        else:
            raise AssertionError("no heartbeats were sent")
        assert consumer.poll(timeout_ms=0) == []
        assert shares(consumer) == [PARTITIONS]


def test_an_application_that_is_stuck_loses_its_partitions(
    broker: EmbeddedBroker, topic: str, protocol: dict[str, Any]
) -> None:
    lost: list[tuple[TopicPartition, ...]] = []
    with ExitStack() as closing:
        stuck = closing.enter_context(member(broker, group_id="g-" + topic, max_poll_interval_ms=400, **protocol))
        stuck.subscribe(topic, on_lost=lost.append)
        turn_until(lambda: shares(stuck) == [PARTITIONS], stuck)
        other = closing.enter_context(member(broker, topic, **protocol))
        turn_until(lambda: shares(other) == [PARTITIONS], other)
        turn_until(lambda: shares(stuck, other) == [3, 3], stuck, other)
        assert lost


def test_a_static_member_keeps_its_partitions_over_a_restart(
    broker: EmbeddedBroker, topic: str, protocol: dict[str, Any]
) -> None:
    changes: list[object] = []
    with member(broker, group_id="g-" + topic, **protocol) as other:
        other.subscribe(topic, on_assigned=changes.append, on_revoked=changes.append)
        with member(broker, topic, group_instance_id="one", **protocol) as static:
            turn_until(lambda: shares(static, other) == [3, 3], static, other)
            had = static.assignment()
        changes.clear()
        with member(broker, topic, group_instance_id="one", **protocol) as static:
            turn_until(lambda: shares(static) == [3], static, other)
            assert set(static.assignment()) == set(had)
        assert not changes


def test_a_pattern_finds_topics_that_come_later(broker: EmbeddedBroker, protocol: dict[str, Any]) -> None:
    stem = broker.unused_topic_name("pattern").replace("-", "x")
    broker.create_topic(f"{stem}-a", partitions=1)
    broker.create_topic(f"other-{stem}-a", partitions=1)
    with member(broker, pattern=re.compile(f"{stem}-."), group_id=stem, **protocol) as consumer:
        consumer._session.cluster._age_ms_max = 100
        turn_until(lambda: consumer.assignment() == (TopicPartition(f"{stem}-a", 0),), consumer)
        broker.create_topic(f"{stem}-b", partitions=2)
        turn_until(lambda: len(consumer.assignment()) == 3, consumer)


def test_a_topic_that_grows_is_assigned_again(broker: EmbeddedBroker, protocol: dict[str, Any]) -> None:
    topic = broker.create_topic(broker.unused_topic_name("grows"), partitions=1)
    with member(broker, topic, **protocol) as consumer, Admin(broker.bootstrap_servers) as admin:
        consumer._session.cluster._age_ms_max = 100
        turn_until(lambda: shares(consumer) == [1], consumer)
        admin.create_partitions({topic: 3})
        turn_until(lambda: shares(consumer) == [3], consumer)


def test_assigned_partitions_with_a_group_only_commit(broker: EmbeddedBroker, topic: str) -> None:
    send(broker, topic, range(12))
    place = TopicPartition(topic, 0)
    for expected in ([0, 1], []):
        with member(broker, group_id="g-" + topic) as consumer:
            consumer.assign([place])
            read: list[ConsumerRecord] = []
            turn_until(lambda: consumer.lag() == {place: 0}, consumer, into=read)
            assert [record.offset for record in read] == expected
            with pytest.raises(InvalidArgument, match="not assigned to this consumer"):
                consumer.seek((topic, 1), 0)


def test_what_only_a_group_can_do(broker: EmbeddedBroker, topic: str) -> None:
    with Consumer(topic, bootstrap_servers=broker.bootstrap_servers) as consumer:
        with pytest.raises(InvalidArgument, match="set group_id"):
            consumer.commit()
    with member(broker, topic) as consumer:
        with pytest.raises(InvalidArgument, match="gets its partitions from its group"):
            consumer.assign([(topic, 0)])
        with pytest.raises(InvalidArgument, match="either topic names or a pattern"):
            consumer.subscribe()
    with pytest.raises(InvalidArgument, match="not a valid regular expression"):
        Consumer(pattern="(", bootstrap_servers=broker.bootstrap_servers)


def test_members_that_do_not_fit_are_reported(broker: EmbeddedBroker, topic: str) -> None:
    with member(broker, topic, partition_assignment_strategy="range") as first:
        turn_until(lambda: shares(first) == [PARTITIONS], first)
        with member(broker, topic, partition_assignment_strategy="roundrobin") as second:
            with pytest.raises(BrokerError, match="INCONSISTENT_GROUP_PROTOCOL"):
                second.poll(timeout_ms=WAIT_MS)


def test_a_record_that_cannot_be_read_is_reported_and_passed(broker: EmbeddedBroker, topic: str) -> None:
    with Producer(broker.bootstrap_servers) as producer:
        for value in (b"1", b"two", b"3"):
            producer.send(topic, value, partition=0)
    with member(broker, topic, value_deserializer=int) as consumer:
        read: list[ConsumerRecord] = []
        with pytest.raises(DeserializationError) as caught:
            turn_until(lambda: False, consumer, into=read)
        assert caught.value.record.value == b"two"
        turn_until(lambda: len(read) == 2, consumer, into=read)
        assert [record.value for record in read] == [1, 3]


def test_a_static_member_is_removed_by_its_name(broker: EmbeddedBroker, topic: str) -> None:
    options = {"group_instance_id": "one", "partition_assignment_strategy": "range"}
    with member(broker, topic, **options) as static:
        turn_until(lambda: shares(static) == [PARTITIONS], static)
    with Admin(broker.bootstrap_servers) as admin:
        group = f"g-{topic}"
        assert len(admin.describe_groups([group])[group].members) == 1
        outcomes = admin.remove_group_members(group, instance_ids=["one", "two"])
        assert outcomes["one"].error == 0
        assert outcomes["two"].error != 0
        assert admin.describe_groups([group])[group].members == ()


def test_changes_are_said_once(broker: EmbeddedBroker, topic: str, caplog: pytest.LogCaptureFixture) -> None:
    """Joined, assigned, rebalanced, revoked and left: a line each on the logger, and no line while nothing changes."""
    caplog.set_level("INFO", logger="headrace")
    with member(broker, topic, **PROTOCOLS["range"]) as first:
        turn_until(lambda: shares(first) == [PARTITIONS], first)
        with member(broker, topic, client_id="second", **PROTOCOLS["range"]) as second:
            turn_until(lambda: shares(first, second) == [3, 3], first, second)
            for _ in range(5):
                first.poll(timeout_ms=20)
    said = [record.message for record in caplog.records if f'group "g-{topic}"' in record.message]
    kinds = [re.split(r" in group | as |group |, generation", each)[0].strip() or "rebalanced" for each in said]
    assert sorted(kinds[:2]) == ["assigned", "joined"], said
    assert sorted(kinds[2:-2]) == ["assigned", "assigned", "joined", "rebalanced", "revoked"], said
    assert kinds[-2:] == ["left", "left"], said


def test_a_member_that_is_away_for_too_long(
    broker: EmbeddedBroker, topic: str, caplog: pytest.LogCaptureFixture
) -> None:
    """It leaves, which is said with what to do; what it had is lost, and it comes back."""
    caplog.set_level("INFO", logger="headrace")
    with member(broker, topic, max_poll_interval_ms=300) as consumer:
        turn_until(lambda: shares(consumer) == [PARTITIONS], consumer)
        caplog.clear()
        for _ in range(WAIT_MS // 20):
            if "poll more often" in caplog.text:
                break
            threading.Event().wait(0.02)
        turn_until(lambda: "lost partitions in group" in caplog.text, consumer)
        turn_until(lambda: "joined group" in caplog.text and shares(consumer) == [PARTITIONS], consumer)
