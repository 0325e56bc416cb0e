"""Typed views: which layer wins, what is described, and which broker configs fit together."""

import pytest

from headrace.model.configs import BROKER_CONFIGS, TOPIC_CONFIGS, BrokerConfig, ConfigError, ConfigLayer, Listener
from headrace.model.configs.listeners import address_text, parse_address
from headrace.model.configs.values import check_broker_change, check_topic

HOUR_MS = 3_600_000


def test_a_broker_needs_no_configs() -> None:
    config = BrokerConfig.from_texts()
    assert config.node_id == 1
    assert config.listeners == (Listener("PLAINTEXT", "127.0.0.1", 9092),)
    assert config.advertised_listeners == config.listeners
    assert config.log_dirs == ("./headrace-data",)
    assert config.metrics_address is None
    topic = config.topic_view()
    assert topic.retention_ms == 168 * HOUR_MS
    assert topic.cleanup_delete
    assert not topic.cleanup_compact


def test_topic_overrides_win_over_the_broker() -> None:
    config = BrokerConfig.from_texts({"log.retention.ms": "5000", "log.message.timestamp.type": "LogAppendTime"})
    assert config.topic_view().retention_ms == 5000
    assert config.topic_view().log_append_time
    own = config.topic_view({"retention.ms": "7", "cleanup.policy": "compact,delete"})
    assert own.retention_ms == 7
    assert own.cleanup_compact
    assert own.cleanup_delete


@pytest.mark.parametrize(
    ("texts", "retention_ms"),
    [
        ({"log.retention.hours": "2"}, 2 * HOUR_MS),
        ({"log.retention.hours": "2", "log.retention.minutes": "3"}, 180_000),
        ({"log.retention.minutes": "3", "log.retention.ms": "4"}, 4),
        ({"log.retention.hours": "-1"}, -1),
    ],
)
def test_the_finer_unit_of_retention_wins(texts: dict[str, str], retention_ms: int) -> None:
    assert BrokerConfig.from_texts(texts).topic_view().retention_ms == retention_ms


def test_dynamic_values_win_over_the_file_and_go_away_again() -> None:
    config = BrokerConfig.from_texts({"log.segment.bytes": "1000", "max.connections": "9"})
    changed = config.with_dynamic(cluster={"log.segment.bytes": "2000", "max.connections": "8"}, broker={})
    assert changed.topic_view().segment_bytes == 2000
    assert changed.connections.count_max == 8
    own = changed.with_dynamic(cluster={"max.connections": "8"}, broker={"max.connections": "7"})
    assert own.connections.count_max == 7
    assert own.topic_view().segment_bytes == 1000
    assert own.with_dynamic(cluster={}, broker={}) == config


def test_describe_topic_lists_every_config_with_source_and_synonyms() -> None:
    config = BrokerConfig.from_texts({"log.retention.minutes": "3"}).with_dynamic(
        cluster={"log.retention.bytes": "9"}, broker={"log.retention.bytes": "8"}
    )
    entries = {entry.key.name: entry for entry in config.describe_topic({"segment.ms": "50", "retention.bytes": "7"})}
    assert entries.keys() == {key.name for key in TOPIC_CONFIGS}
    assert entries["segment.ms"].source is ConfigLayer.TOPIC
    assert [tuple(synonym) for synonym in entries["segment.ms"].synonyms] == [
        ("segment.ms", "50", ConfigLayer.TOPIC),
        ("log.roll.hours", "168", ConfigLayer.DEFAULT),
    ]
    assert entries["retention.ms"].value == "180000"
    assert entries["retention.ms"].source is ConfigLayer.STATIC_BROKER
    assert [(synonym.value, synonym.source) for synonym in entries["retention.bytes"].synonyms] == [
        ("7", ConfigLayer.TOPIC),
        ("8", ConfigLayer.DYNAMIC_BROKER),
        ("9", ConfigLayer.DYNAMIC_DEFAULT_BROKER),
        ("-1", ConfigLayer.DEFAULT),
    ]
    assert entries["max.message.bytes"].source is ConfigLayer.DEFAULT
    assert not any(entry.read_only for entry in entries.values())


def test_describe_broker_lists_every_config() -> None:
    config = BrokerConfig.from_texts({"node.id": "4"})
    entries = {entry.key.name: entry for entry in config.describe()}
    assert entries.keys() == {key.name for key in BROKER_CONFIGS}
    assert (entries["node.id"].value, entries["node.id"].source) == ("4", ConfigLayer.STATIC_BROKER)
    assert entries["node.id"].read_only
    assert not entries["log.retention.ms"].read_only
    assert entries["log.retention.ms"].value is None


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        ({"listeners": "127.0.0.1:9092"}, "must look like PLAINTEXT://"),
        ({"listeners": "PLAINTEXT://localhost"}, "must end in :PORT"),
        ({"listeners": "PLAINTEXT://localhost:70000"}, "from 0 to 65535"),
        ({"listeners": "PLAINTEXT://::1:9092"}, "IPv6 address in brackets"),
        ({"listeners": "A://x:1,A://x:2"}, "two listeners named A"),
        ({"listeners": ""}, "names no address for clients"),
        ({"listeners": "INSIDE://x:1"}, 'add "INSIDE:PLAINTEXT" to listener.security.protocol.map'),
        ({"listeners": "SSL://x:1"}, "has no certificate"),
        ({"listeners": "SASL_PLAINTEXT://x:1", "sasl.enabled.mechanisms": "PLAIN"}, "no user of it"),
        ({"advertised.listeners": "OTHER://x:1"}, '"OTHER", which "listeners" does not'),
        ({"advertised.listeners": "PLAINTEXT://0.0.0.0:9092"}, "no client can connect to"),
        ({"listener.security.protocol.map": "A:TLS"}, "must be NAME:PROTOCOL"),
        ({"broker.id": "1", "node.id": "2"}, "give only node.id"),
        ({"headrace.metrics.listen": "here"}, "must end in :PORT"),
    ],
)
def test_broker_configs_that_cannot_work_are_refused(texts: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        BrokerConfig.from_texts(texts)


def test_named_listeners_and_their_advertised_addresses() -> None:
    config = BrokerConfig.from_texts(
        {
            "listeners": "inside://:9092,OUTSIDE://[::1]:0,CONTROLLER://:9093",
            "advertised.listeners": "OUTSIDE://broker.example:19092",
            "listener.security.protocol.map": "INSIDE:PLAINTEXT,OUTSIDE:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "controller.listener.names": "CONTROLLER",
            "broker.id": "7",
        }
    )
    assert config.listeners == (Listener("INSIDE", "", 9092), Listener("OUTSIDE", "::1", 0))
    assert config.advertised_listeners == (Listener("INSIDE", "", 9092), Listener("OUTSIDE", "broker.example", 19092))
    assert config.listeners[0].any_host
    assert str(config.listeners[1]) == "OUTSIDE://[::1]:0"
    assert config.node_id == 7


@pytest.mark.parametrize("address", [("127.0.0.1", 1), ("::1", 9092), ("", 0), ("broker.example", 65535)])
def test_addresses_are_written_and_read(address: tuple[str, int]) -> None:
    assert parse_address(address_text(*address)) == address


def test_topic_configs_are_checked_together() -> None:
    check_topic({"min.compaction.lag.ms": "5", "max.compaction.lag.ms": "6"}, topic="orders")
    with pytest.raises(ConfigError, match=r"must not exceed max\.compaction\.lag\.ms, which is 6"):
        check_topic({"min.compaction.lag.ms": "7", "max.compaction.lag.ms": "6"}, topic="orders")


def test_only_dynamic_broker_configs_may_change() -> None:
    check_broker_change("log.retention.ms", "5", every_broker=True)
    check_broker_change("log.retention.ms", None, every_broker=True)
    with pytest.raises(ConfigError, match="set it in the file and restart"):
        check_broker_change("node.id", "5", every_broker=False)
    with pytest.raises(ConfigError, match="name the broker"):
        check_broker_change("ssl.client.auth", "none", every_broker=True)
    with pytest.raises(ConfigError, match="whole number"):
        check_broker_change("log.retention.ms", "x", every_broker=True)
