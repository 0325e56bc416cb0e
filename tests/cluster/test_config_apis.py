"""Configs on a whole node: described and altered in every served version, with Kafka's codes and helpful messages."""

import pytest

from headrace.model.configs import BROKER_CONFIGS, TOPIC_CONFIGS, ConfigLayer
from headrace.model.errors import ErrorCode
from headrace.wire.apis import ApiKey
from headrace.wire.messages import (
    alter_configs,
    describe_configs,
)
from tests.cluster.admin_requests import (
    APPEND,
    BROKER,
    BROKER_LOGGER,
    DELETE,
    SET,
    SUBTRACT,
    TOPIC,
    alter,
    config,
    create,
    describe,
    each_version,
    image,
    topic,
)
from tests.sim.kafka_client import KafkaClient


class TestDescribeConfigs:
    @each_version(ApiKey.DESCRIBE_CONFIGS)
    def test_every_version(self, client, version):
        create(client, topic("orders", configs=(config("retention.ms", "5"),)))
        result = describe(client, TOPIC, "orders", version=version, include_synonyms=True, include_documentation=True)
        told = {entry.name: entry for entry in result.configs}
        assert told.keys() == {key.name for key in TOPIC_CONFIGS}
        assert told["retention.ms"].value == "5"
        if version == 0:
            assert (told["retention.ms"].is_default, told["segment.bytes"].is_default) == (False, True)
        else:
            assert told["retention.ms"].config_source == ConfigLayer.TOPIC
            synonyms = [(synonym.name, synonym.value) for synonym in told["retention.ms"].synonyms]
            assert synonyms[0] == ("retention.ms", "5")
            assert ("log.retention.hours", "168") in synonyms
        if version >= 3:
            assert told["retention.ms"].config_type == 5
            assert all(entry.documentation for entry in told.values())

    def test_only_what_is_asked_for(self, client):
        create(client, topic("orders"))
        result = describe(client, TOPIC, "orders", keys=("retention.ms", "no.such.config"))
        assert [entry.name for entry in result.configs] == ["retention.ms"]
        assert (result.configs[0].synonyms, result.configs[0].documentation) == ((), None)

    def test_a_broker_and_every_broker(self, client):
        alter(client, ("log.retention.ms", SET, "77"), kind=BROKER, name="")
        result = describe(client, BROKER, "1")
        told = {entry.name: entry for entry in result.configs}
        assert told.keys() == {key.name for key in BROKER_CONFIGS}
        assert (told["log.retention.ms"].value, told["log.retention.ms"].config_source) == (
            "77",
            ConfigLayer.DYNAMIC_DEFAULT_BROKER,
        )
        assert told["node.id"].read_only
        (only,) = describe(client, BROKER, "").configs
        assert (only.name, only.value) == ("log.retention.ms", "77")

    @pytest.mark.parametrize(
        ("kind", "name", "error"),
        [
            (TOPIC, "nowhere", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
            (TOPIC, "no good", ErrorCode.INVALID_TOPIC_EXCEPTION),
            (BROKER, "2", ErrorCode.INVALID_REQUEST),
            (BROKER, "one", ErrorCode.INVALID_REQUEST),
            (BROKER_LOGGER, "1", ErrorCode.INVALID_REQUEST),
            (0, "", ErrorCode.INVALID_REQUEST),
        ],
    )
    def test_what_does_not_exist(self, client, kind, name, error):
        result = describe(client, kind, name)
        assert (result.error_code, result.resource_type, result.resource_name) == (error, kind, name)
        assert result.error_message

    def test_many_resources_are_described_over_several_turns(self, client):
        create(client, *(topic(f"topic-{number}") for number in range(90)))
        request = describe_configs.DescribeConfigsRequest(
            resources=tuple(
                describe_configs.DescribeConfigsRequestResource(
                    resource_type=TOPIC, resource_name=f"topic-{number}", configuration_keys=("retention.ms",)
                )
                for number in range(90)
            )
        )
        results = client.ask(ApiKey.DESCRIBE_CONFIGS, 4, request).results
        assert [result.resource_name for result in results] == [f"topic-{number}" for number in range(90)]


class TestAlterConfigs:
    @each_version(ApiKey.ALTER_CONFIGS)
    def test_every_version_of_the_older_form(self, node, client, version):
        create(client, topic("orders", configs=(config("retention.ms", "5"),)))
        request = alter_configs.AlterConfigsRequest(
            resources=(
                alter_configs.AlterConfigsRequestResource(
                    resource_type=TOPIC,
                    resource_name="orders",
                    configs=(alter_configs.AlterConfigsRequestConfig(name="segment.ms", value="9"),),
                ),
                alter_configs.AlterConfigsRequestResource(resource_type=TOPIC, resource_name="nowhere"),
            )
        )
        done, unknown = client.ask(ApiKey.ALTER_CONFIGS, version, request).responses
        assert (done.resource_name, done.error_code, done.error_message) == ("orders", 0, None)
        assert unknown.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert image(node).topic_configs("orders") == {"segment.ms": "9"}

    @each_version(ApiKey.INCREMENTAL_ALTER_CONFIGS)
    def test_every_version_of_the_incremental_form(self, node, client, version):
        create(client, topic("orders", configs=(config("retention.ms", "5"),)))
        result = alter(
            client,
            ("retention.ms", DELETE, None),
            ("segment.ms", SET, "9"),
            ("cleanup.policy", APPEND, "compact"),
            version=version,
        )
        assert (result.resource_type, result.resource_name, result.error_code) == (TOPIC, "orders", 0)
        assert image(node).topic_configs("orders") == {"segment.ms": "9", "cleanup.policy": "delete,compact"}
        assert alter(client, ("cleanup.policy", SUBTRACT, "delete"), version=version).error_code == 0
        assert image(node).topic_configs("orders")["cleanup.policy"] == "compact"

    def test_a_topic_obeys_at_once(self, node, client):
        create(client, topic("orders"))
        assert alter(client, ("max.message.bytes", SET, "99")).error_code == 0
        partition = node.machine.node.broker.partitions.by_name[b"orders"].replicas[0]
        assert partition.config.message_bytes_max == 99

    def test_a_helpful_message(self, client):
        create(client, topic("orders"))
        result = alter(client, ("retention.minutes", SET, "5"))
        assert result.error_code == ErrorCode.INVALID_CONFIG
        assert 'did you mean "retention.ms"' in result.error_message

    def test_configs_survive_a_restart(self, node, client):
        create(client, topic("orders"))
        alter(client, ("retention.ms", SET, "123456"))
        alter(client, ("log.segment.bytes", SET, "1048576"), kind=BROKER, name="")
        node.stop()
        node.boot()
        again = KafkaClient(node.world)
        told = {entry.name: entry.value for entry in describe(again, TOPIC, "orders").configs}
        assert (told["retention.ms"], told["segment.bytes"]) == ("123456", "1048576")
        partition = node.machine.node.broker.partitions.by_name[b"orders"].replicas[0]
        assert (partition.config.retention_ms, partition.config.segment_bytes) == (123456, 1048576)
