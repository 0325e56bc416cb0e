"""Configs that this release does not obey: each is refused or answered by a warning, and no other row does nothing."""

import pytest

from headrace.model.configs import BROKER_CONFIGS, TOPIC_CONFIGS, BrokerConfig, ConfigError, ConfigType
from headrace.model.configs import values as views
from headrace.model.configs.sources import Setting, merged
from headrace.model.configs.typed_values import TypedValues
from headrace.model.errors import ErrorCode
from tests.broker.virtual import VirtualBroker
from tests.groups.wire import GroupClient, group_broker

TOPIC, BROKER = 2, 4
READ_BY_NAME = {"node.id", "broker.id", "headrace.controller.promotion"}
"""Read from the layers, which know whether the file has both, or by the active controller for another node."""


class Recorded(TypedValues):
    """Notes which rows the typed views read."""

    names: set[str]

    def __init__(self, values):
        class Noting(dict):
            def __getitem__(_, name):
                Recorded.names.add(name)
                return values[name]

        super().__init__(Noting())


@pytest.fixture
def read_names(monkeypatch):
    Recorded.names = set()
    monkeypatch.setattr(views, "TypedValues", Recorded)
    return Recorded.names


def test_every_topic_config_that_is_obeyed_is_read_and_no_other(read_names):
    config = BrokerConfig.from_texts()
    read_names.clear()
    config.topic_view()
    of_the_controller = {"unclean.leader.election.enable"}
    assert read_names | of_the_controller == {key.name for key in TOPIC_CONFIGS if key.honoured}


def test_every_broker_config_that_is_obeyed_is_read_and_no_other(read_names):
    BrokerConfig.from_texts()
    defaults = {counterpart.name for key in TOPIC_CONFIGS if key.honoured for counterpart in key.counterparts}
    describing = {"controller.quorum.voters"}
    assert {key.name for key in BROKER_CONFIGS if key.honoured} == read_names | defaults | describing | READ_BY_NAME


def other_value(key):
    """A value that the row takes and that is not its default."""
    if key.choices:
        return next(choice for choice in key.choices if choice != key.default)
    if key.type is ConfigType.BOOLEAN:
        return "false" if key.default else "true"
    if key.type in (ConfigType.STRING, ConfigType.CLASS, ConfigType.LIST):
        return "0:1" if key.validator else "x"
    lowest = int(key.low or 0)
    return str(lowest if lowest != key.default else lowest + 1)


UNOBEYED = [(table, key) for table in (TOPIC_CONFIGS, BROKER_CONFIGS) for key in table if not key.honoured]


@pytest.mark.parametrize(("table", "key"), UNOBEYED, ids=[f"{table.kind}-{key.name}" for table, key in UNOBEYED])
def test_each_is_refused_or_warned_about(table, key):
    text = other_value(key)
    table.parse(key.name, text)
    assert table.without_effect({key.name: text}) == [key.name]
    if key.refusal:
        with pytest.raises(ConfigError, match=f'config "{key.name}" for it cannot be "{text}": ..'):
            table.check_served(key.name, text, subject="it")
    else:
        table.check_served(key.name, text)
        assert "as no effect" in key.description


@pytest.mark.parametrize(
    ("name", "text", "reason"),
    [
        ("remote.log.storage.system.enable", "true", "tiered storage is not supported"),
        ("authorizer.class.name", "com.example.Authorizer", "StandardAuthorizer"),
        ("security.inter.broker.protocol", "SSL", "brokers identify each other by the key"),
        ("process.roles", "broker,broker", "names a role twice"),
        ("controller.quorum.voters", "1@a:9093,2@b:9093", "name the other nodes in controller.quorum.bootstrap"),
        ("group.coordinator.rebalance.protocols", "consumer", "the classic protocol cannot be disabled"),
        ("group.coordinator.rebalance.protocols", "classic,share", "must be a comma-separated list"),
    ],
)
def test_a_broker_does_not_start_with_a_promise_that_it_cannot_keep(name, text, reason):
    with pytest.raises(ConfigError, match=rf"^server\.properties:3: .*{name}.*{reason}"):
        merged([Setting(name, text, "server.properties:3")])
    with pytest.raises(ConfigError, match=reason):
        BrokerConfig.from_texts({name: text})


class TestOnANode:
    def test_the_start_names_all_in_one_line(self):
        broker = VirtualBroker(settings={"num.io.threads": "4", "num.network.threads": "3", "log.preallocate": "true"})
        (line,) = [line for line in broker.log_lines if "configs without effect" in line]
        assert "num.io.threads, log.preallocate" in line
        assert "num.network.threads" not in line  # it has its default

    def test_tiered_storage_is_refused_and_other_configs_are_warned_about(self):
        broker = VirtualBroker()
        client = broker.client()
        refused = client.create_topic("tiered", configs={"remote.storage.enable": "true"})
        assert refused.error_code == ErrorCode.INVALID_CONFIG
        assert "tiered storage is not supported" in refused.error_message
        assert client.create_topic("plain", configs={"remote.storage.enable": "false"}).error_code == ErrorCode.NONE
        assert client.alter_configs(TOPIC, "plain", {"remote.storage.enable": "true"}) == ErrorCode.INVALID_CONFIG
        assert not [line for line in broker.log_lines if "configs without effect" in line]
        client.create_topic("told", configs={"segment.jitter.ms": "5"})
        client.alter_configs(TOPIC, "plain", {"local.retention.ms": "5"})
        client.alter_configs(BROKER, "", {"compression.gzip.level": "5"})
        told = [line for line in broker.log_lines if "configs without effect" in line]
        for line, names in zip(
            told, (("told", "segment.jitter"), ("plain", "local.ret"), ("every", "gzip")), strict=True
        ):
            assert all(name in line for name in names)

    def test_a_topic_of_an_older_release_keeps_what_it_has_and_can_be_changed(self, monkeypatch):
        broker = VirtualBroker()
        with monkeypatch.context() as older:
            older.setattr("headrace.core.controller.configs._check_served", lambda *_: None)
            broker.with_topic("old", remote_storage_enable="true")
        broker.restart()
        client = broker.client()
        assert client.alter_configs(TOPIC, "old", {"retention.ms": "5"}) == ErrorCode.NONE
        assert client.alter_configs(TOPIC, "old", {"remote.storage.enable": "true"}) == ErrorCode.NONE
        assert client.alter_configs(TOPIC, "old", {"remote.storage.enable": "false"}) == ErrorCode.NONE

    def test_the_new_group_protocol_can_be_turned_off(self):
        client = GroupClient(group_broker(settings={"group.coordinator.rebalance.protocols": "classic"}))
        answer = client.consumer_beat("m")
        assert answer.error_code == ErrorCode.UNSUPPORTED_VERSION
        assert "group.protocol=classic" in answer.error_message
        assert client.join(version=3).error_code == ErrorCode.NONE
