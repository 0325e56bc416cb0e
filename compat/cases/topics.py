"""Topics come, are seen, grow and go."""

from compat.cases.case import Case, assert_same, eventually, sample
from compat.client import Client, Feature, Message


def create_and_delete(client: Client, topic: str) -> None:
    client.create_topic(topic, partitions=3)
    assert eventually(lambda: topic in client.topics())
    assert client.describe_topic(topic).partitions == 3
    client.delete_topic(topic)
    assert eventually(lambda: topic not in client.topics())


def list_and_describe(client: Client, topic: str) -> None:
    assert topic in client.topics()
    assert client.describe_topic(topic).partitions == 2


def create_with_configs(client: Client, topic: str) -> None:
    client.create_topic(topic, configs={"retention.ms": "3600000", "cleanup.policy": "compact"})
    assert eventually(lambda: topic in client.topics())
    configs = client.topic_configs(topic)
    assert (configs["retention.ms"].value, configs["retention.ms"].is_default) == ("3600000", False)
    assert configs["cleanup.policy"].value == "compact"
    assert configs["segment.bytes"].is_default


def validate_only(client: Client, topic: str) -> None:
    client.create_topic(topic, validate_only=True)
    assert topic not in client.topics()


def topic_ids(client: Client, topic: str) -> None:
    client.create_topic(topic)
    assert eventually(lambda: topic in client.topics())
    first = client.describe_topic(topic).topic_id
    assert first == client.describe_topic(topic).topic_id
    client.delete_topic(topic)
    assert eventually(lambda: topic not in client.topics())
    client.create_topic(topic)
    assert eventually(lambda: client.describe_topic(topic).topic_id not in (first, None))


def recreated_is_empty(client: Client, topic: str) -> None:
    client.create_topic(topic)
    assert eventually(lambda: topic in client.topics())
    client.send(topic, sample(5, seed=1))
    assert client.bounds(topic) == (0, 5)
    client.delete_topic(topic)
    assert eventually(lambda: topic not in client.topics())
    client.create_topic(topic)
    assert eventually(lambda: client.bounds(topic) == (0, 0))
    after = [Message(value=b"after")]
    client.send(topic, after)
    assert_same(client.read(topic, 1), after)


def add_partitions(client: Client, topic: str) -> None:
    client.grow_topic(topic, 3)
    assert eventually(lambda: client.describe_topic(topic).partitions == 3)
    assert eventually(lambda: client.bounds(topic, 2) == (0, 0))


def described_by_pages(client: Client, topic: str) -> None:
    assert client.partitions_by_pages(topic, 3) == list(range(8))


def named_into_being(client: Client, topic: str) -> None:
    assert topic not in client.topics()
    messages = sample(3, seed=2)
    client.send(topic, messages)
    assert_same(client.read(topic, 3), messages)


CASES = (
    Case(group="Topics", name="list and describe", run=list_and_describe, partitions=2),
    Case(
        group="Topics",
        name="create and delete",
        run=create_and_delete,
        needs=frozenset({Feature.TOPICS}),
        without_topic=True,
    ),
    Case(
        group="Topics",
        name="create with configs",
        run=create_with_configs,
        needs=frozenset({Feature.TOPICS, Feature.CONFIGS}),
        without_topic=True,
    ),
    Case(
        group="Topics",
        name="validate only",
        run=validate_only,
        needs=frozenset({Feature.TOPICS, Feature.VALIDATE_ONLY}),
        without_topic=True,
    ),
    Case(
        group="Topics",
        name="topic ids",
        run=topic_ids,
        needs=frozenset({Feature.TOPICS, Feature.TOPIC_IDS}),
        without_topic=True,
        alone=True,
    ),
    Case(
        group="Topics",
        name="a topic made again is empty",
        run=recreated_is_empty,
        needs=frozenset({Feature.TOPICS}),
        without_topic=True,
        alone=True,
    ),
    Case(group="Topics", name="add partitions", run=add_partitions, needs=frozenset({Feature.PARTITIONS})),
    Case(
        group="Topics",
        name="describe by pages",
        run=described_by_pages,
        needs=frozenset({Feature.PAGED_TOPICS}),
        partitions=8,
    ),
    Case(group="Topics", name="auto-creation", run=named_into_being, without_topic=True, auto_creation=True),
)
