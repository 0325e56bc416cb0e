"""Configs of topics and of the broker: seen whole, changed one by one, replaced."""

from compat.cases.case import Case, eventually
from compat.client import Client, ConfigEntry, Feature

FEWEST_TOPIC_CONFIGS = 25
FEWEST_BROKER_CONFIGS = 100


def describe_topic(client: Client, topic: str) -> None:
    """Every config with its value and whether it is the default: tools write back what they have read."""
    configs = client.topic_configs(topic)
    assert len(configs) >= FEWEST_TOPIC_CONFIGS
    assert (configs["segment.bytes"].value, configs["segment.bytes"].is_default) == ("1048576", False)
    assert (configs["retention.ms"].value, configs["retention.ms"].is_default) == ("604800000", True)
    assert configs["compression.type"].value == "producer"


def describe_broker(client: Client, topic: str) -> None:
    configs = client.broker_configs()
    assert len(configs) >= FEWEST_BROKER_CONFIGS
    assert configs["log.retention.hours"].value == "168"
    assert not configs["listeners"].is_default


def set_and_delete(client: Client, topic: str) -> None:
    client.set_topic_configs(topic, {"retention.ms": ("set", "1000"), "max.message.bytes": ("set", "2000")})
    assert eventually(lambda: client.topic_configs(topic)["retention.ms"].value == "1000")
    assert client.topic_configs(topic)["max.message.bytes"].value == "2000"
    client.set_topic_configs(topic, {"retention.ms": ("delete", None)})
    default = ConfigEntry(value="604800000", is_default=True)
    assert eventually(lambda: client.topic_configs(topic)["retention.ms"] == default)
    configs = client.topic_configs(topic)
    assert configs["max.message.bytes"].value == "2000"
    assert configs["segment.bytes"].value == "1048576"


def append_and_subtract(client: Client, topic: str) -> None:
    client.set_topic_configs(topic, {"cleanup.policy": ("append", "compact")})
    assert eventually(lambda: _policies(client, topic) == {"delete", "compact"})
    client.set_topic_configs(topic, {"cleanup.policy": ("subtract", "delete")})
    assert eventually(lambda: _policies(client, topic) == {"compact"})


def _policies(client: Client, topic: str) -> set[str]:
    return set((client.topic_configs(topic)["cleanup.policy"].value or "").split(","))


def broker_set_and_delete(client: Client, topic: str) -> None:
    name = "log.cleaner.backoff.ms"
    before = client.broker_configs()[name]
    client.set_broker_configs({name: ("set", "16000")})
    assert eventually(lambda: client.broker_configs()[name] == ConfigEntry(value="16000", is_default=False))
    client.set_broker_configs({name: ("delete", None)})
    assert eventually(lambda: client.broker_configs()[name] == before)


def list_resources(client: Client, topic: str) -> None:
    assert topic in client.topics_with_configs()


def old_call_sets(client: Client, topic: str) -> None:
    client.replace_topic_configs(topic, {"retention.bytes": "5000000"})
    expected = ConfigEntry(value="5000000", is_default=False)
    assert eventually(lambda: client.topic_configs(topic)["retention.bytes"] == expected)


def old_call_resets(client: Client, topic: str) -> None:
    client.replace_topic_configs(topic, {"retention.bytes": "5000000"})
    assert eventually(lambda: client.topic_configs(topic)["segment.bytes"].is_default)


OWN = {"segment.bytes": "1048576"}
CASES = (
    Case(
        group="Configs", name="describe a topic's", run=describe_topic, needs=frozenset({Feature.CONFIGS}), configs=OWN
    ),
    Case(group="Configs", name="describe the broker's", run=describe_broker, needs=frozenset({Feature.CONFIGS})),
    Case(
        group="Configs",
        name="set and delete",
        run=set_and_delete,
        needs=frozenset({Feature.CONFIGS, Feature.INCREMENTAL_CONFIGS}),
        configs=OWN,
    ),
    Case(
        group="Configs",
        name="append and subtract",
        run=append_and_subtract,
        needs=frozenset({Feature.CONFIGS, Feature.INCREMENTAL_CONFIGS}),
    ),
    Case(
        group="Configs",
        name="set and delete a broker's",
        run=broker_set_and_delete,
        needs=frozenset({Feature.CONFIGS, Feature.INCREMENTAL_CONFIGS}),
    ),
    Case(
        group="Configs",
        name="list config resources",
        run=list_resources,
        needs=frozenset({Feature.CONFIG_RESOURCES}),
        configs=OWN,
    ),
    Case(
        group="Configs",
        name="set by the old call",
        run=old_call_sets,
        needs=frozenset({Feature.CONFIGS, Feature.ALTER_CONFIGS}),
    ),
    Case(
        group="Configs",
        name="reset by the old call",
        run=old_call_resets,
        needs=frozenset({Feature.CONFIGS, Feature.ALTER_CONFIGS, Feature.RESET_CONFIGS}),
        configs=OWN,
    ),
)
