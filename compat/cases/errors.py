"""Cases about wrong requests: they are refused with Kafka's error code, and harm nothing."""

from compat.cases.case import Case, assert_refused, assert_same, eventually, now_ms
from compat.client import Client, Feature, Message
from headrace.model.errors import ErrorCode

NAME_LENGTH_MAX = 249
FAR_FUTURE_MS = 30 * 24 * 3_600_000


def unknown_topic(client: Client, topic: str) -> None:
    assert_refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, client.describe_topic, topic)
    assert_refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, client.send, topic, [Message(value=b"lost")])
    assert topic not in client.topics()


def unknown_topic_for_admin(client: Client, topic: str) -> None:
    assert_refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, client.delete_topic, topic)
    assert_refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, client.grow_topic, topic, 2)


def illegal_names(client: Client, topic: str) -> None:
    for name in ("a b", "..", "a/b", "ä", "n" * (NAME_LENGTH_MAX + 1)):
        assert_refused(ErrorCode.INVALID_TOPIC_EXCEPTION, client.create_topic, name)
    longest = topic.ljust(NAME_LENGTH_MAX, "n")
    client.create_topic(longest)
    assert eventually(lambda: longest in client.topics())
    client.delete_topic(longest)


def duplicate_topic(client: Client, topic: str) -> None:
    assert_refused(ErrorCode.TOPIC_ALREADY_EXISTS, client.create_topic, topic, partitions=5)
    assert client.describe_topic(topic).partitions == 1


def colliding_names(client: Client, topic: str) -> None:
    """A dot and an underscore are one in metric names."""
    client.create_topic(f"{topic}.a")
    assert_refused(ErrorCode.INVALID_TOPIC_EXCEPTION, client.create_topic, f"{topic}_a")
    client.delete_topic(f"{topic}.a")


def too_many_replicas(client: Client, topic: str) -> None:
    assert_refused(ErrorCode.INVALID_REPLICATION_FACTOR, client.create_topic, topic, replicas=9)
    assert topic not in client.topics()


def shrinking(client: Client, topic: str) -> None:
    for partitions in (1, 2):
        assert_refused(ErrorCode.INVALID_PARTITIONS, client.grow_topic, topic, partitions)
    assert client.describe_topic(topic).partitions == 2


def wrong_configs(client: Client, topic: str) -> None:
    for configs in ({"retention.minutes": "5"}, {"retention.ms": "soon"}, {"cleanup.policy": "never"}):
        assert_refused(ErrorCode.INVALID_CONFIG, client.create_topic, topic, configs=configs)
    assert topic not in client.topics()


def wrong_config_changes(client: Client, topic: str) -> None:
    for name, change in (
        ("retention.minutes", ("set", "5")),
        ("segment.bytes", ("set", "-1")),
        ("retention.ms", ("append", "5")),
    ):
        assert_refused(ErrorCode.INVALID_CONFIG, client.set_topic_configs, topic, {name: change})
    assert client.topic_configs(topic)["segment.bytes"].is_default


def oversize_record(client: Client, topic: str) -> None:
    assert_refused(ErrorCode.MESSAGE_TOO_LARGE, client.send, topic, [Message(value=b"x" * 20_000)])
    small = [Message(value=b"small")]
    client.send(topic, small)
    assert_same(client.read(topic, 1), small)


def key_missing(client: Client, topic: str) -> None:
    assert_refused(ErrorCode.INVALID_RECORD, client.send, topic, [Message(value=b"no key")])
    keyed = [Message(key=b"k", value=b"v")]
    client.send(topic, keyed)
    assert_same(client.read(topic, 1), keyed)


def time_out_of_bounds(client: Client, topic: str) -> None:
    future = Message(value=b"v", timestamp_ms=now_ms() + FAR_FUTURE_MS)
    assert_refused(ErrorCode.INVALID_TIMESTAMP, client.send, topic, [future])
    assert client.bounds(topic) == (0, 0)


def offset_out_of_range(client: Client, topic: str) -> None:
    client.send(topic, [Message(value=b"v")])
    assert_refused(ErrorCode.OFFSET_OUT_OF_RANGE, client.read, topic, 1, 100)


TOPICS = frozenset({Feature.TOPICS})
CASES = (
    Case(
        group="Errors",
        name="unknown topic",
        run=unknown_topic,
        needs=frozenset({Feature.PRODUCE_ERRORS}),
        without_topic=True,
    ),
    Case(
        group="Errors",
        name="unknown topic, administration",
        run=unknown_topic_for_admin,
        needs=frozenset({Feature.TOPICS, Feature.PARTITIONS}),
        without_topic=True,
    ),
    Case(group="Errors", name="illegal topic names", run=illegal_names, needs=TOPICS, without_topic=True),
    Case(group="Errors", name="duplicate topic", run=duplicate_topic, needs=TOPICS),
    Case(group="Errors", name="colliding topic names", run=colliding_names, needs=TOPICS, without_topic=True),
    Case(group="Errors", name="too many replicas", run=too_many_replicas, needs=TOPICS, without_topic=True),
    Case(
        group="Errors",
        name="fewer partitions",
        run=shrinking,
        needs=frozenset({Feature.PARTITIONS}),
        partitions=2,
    ),
    Case(group="Errors", name="wrong configs", run=wrong_configs, needs=TOPICS, without_topic=True),
    Case(
        group="Errors",
        name="wrong config changes",
        run=wrong_config_changes,
        needs=frozenset({Feature.CONFIGS, Feature.INCREMENTAL_CONFIGS}),
    ),
    Case(
        group="Errors",
        name="oversize record",
        run=oversize_record,
        needs=frozenset({Feature.PRODUCE_ERRORS}),
        configs={"max.message.bytes": "10000"},
    ),
    Case(
        group="Errors",
        name="no key in a compacted topic",
        run=key_missing,
        needs=frozenset({Feature.INVALID_RECORD, Feature.KEYS}),
        configs={"cleanup.policy": "compact"},
    ),
    Case(
        group="Errors",
        name="timestamp out of bounds",
        run=time_out_of_bounds,
        needs=frozenset({Feature.PRODUCE_ERRORS, Feature.TIMESTAMPS}),
    ),
    Case(
        group="Errors",
        name="offset out of range",
        run=offset_out_of_range,
        needs=frozenset({Feature.FETCH_ERRORS}),
    ),
)
