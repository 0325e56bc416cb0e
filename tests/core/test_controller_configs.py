"""Configs of topics and brokers: set, delete, append, subtract, replace; and who may set what."""

import pytest

from headrace.core.controller.commands import (
    CONFIGS_PER_REQUEST_MAX,
    AlterableConfig,
    AlterOperation,
    ConfigAlteration,
    ConfigReplacement,
    ConfigResult,
)
from headrace.core.controller.records import ConfigRecord, ResourceKind
from headrace.model.errors import ErrorCode
from headrace.model.ids import NodeId
from tests.core.controllers import TestedController, one_broker

SET, DELETE, APPEND, SUBTRACT = AlterOperation


def with_topic(**configs: str) -> TestedController:
    controller = one_broker()
    controller.create_one("orders", configs=[(name.replace("_", "."), value) for name, value in configs.items()])
    return controller


def alter(
    controller: TestedController,
    *changes: tuple[str, int, str | None],
    kind: int = ResourceKind.TOPIC,
    name: str = "orders",
) -> ConfigResult:
    alteration = ConfigAlteration(
        resource_kind=kind, resource_name=name, changes=[AlterableConfig(*change) for change in changes]
    )
    (result,) = controller.carry_out(controller.alter_configs([alteration]))
    return result


class TestTopics:
    def test_set_and_delete(self) -> None:
        controller = with_topic(retention_ms="1000")
        assert alter(controller, ("retention.bytes", SET, "5"), ("retention.ms", DELETE, None)).error is ErrorCode.NONE
        assert controller.image.topic_configs("orders") == {"retention.bytes": "5"}
        assert alter(controller, ("retention.bytes", DELETE, None)).error is ErrorCode.NONE
        assert controller.image.configs == {}

    def test_what_is_already_so_writes_no_record(self) -> None:
        controller = with_topic(retention_ms="1000")
        before = len(controller.log)
        assert (
            alter(controller, ("retention.ms", SET, "1000"), ("retention.bytes", DELETE, None)).error is ErrorCode.NONE
        )
        assert len(controller.log) == before

    def test_append_and_subtract_work_on_the_value_in_force(self) -> None:
        controller = with_topic()
        assert alter(controller, ("cleanup.policy", APPEND, "compact")).error is ErrorCode.NONE
        assert controller.image.topic_configs("orders") == {"cleanup.policy": "delete,compact"}
        assert alter(controller, ("cleanup.policy", APPEND, "compact")).error is ErrorCode.NONE
        assert alter(controller, ("cleanup.policy", SUBTRACT, "delete")).error is ErrorCode.NONE
        assert controller.image.topic_configs("orders") == {"cleanup.policy": "compact"}

    def test_append_starts_from_what_the_broker_configures(self) -> None:
        controller = one_broker(static_configs={"log.cleanup.policy": "compact"})
        controller.create_one("orders")
        alter(controller, ("cleanup.policy", APPEND, "delete"))
        assert controller.image.topic_configs("orders") == {"cleanup.policy": "compact,delete"}

    def test_subtracting_everything_is_refused_where_something_is_needed(self) -> None:
        controller = with_topic()
        assert alter(controller, ("cleanup.policy", SUBTRACT, "delete")).error is ErrorCode.INVALID_CONFIG

    @pytest.mark.parametrize(
        ("change", "error", "told"),
        [
            (("retention.minutes", SET, "1"), ErrorCode.INVALID_CONFIG, 'did you mean "retention.ms"'),
            (("retention.minutes", DELETE, None), ErrorCode.INVALID_CONFIG, 'did you mean "retention.ms"'),
            (("retention.ms", SET, "long"), ErrorCode.INVALID_CONFIG, "whole number"),
            (("retention.ms", SET, None), ErrorCode.INVALID_REQUEST, "has no value"),
            (("retention.ms", APPEND, "1"), ErrorCode.INVALID_CONFIG, "not a list"),
            (("retention.ms", 4, "1"), ErrorCode.INVALID_REQUEST, "operation 4 is unknown"),
            (("retention.ms", -1, "1"), ErrorCode.INVALID_REQUEST, "operation -1 is unknown"),
        ],
    )
    def test_wrong_changes(self, change: tuple[str, int, str | None], error: ErrorCode, told: str) -> None:
        controller = with_topic()
        result = alter(controller, ("retention.bytes", SET, "7"), change)
        assert result.error is error
        assert result.message is not None
        assert told in result.message
        assert controller.image.topic_configs("orders") == {}, "all changes of a resource happen or none"

    def test_repeated_names_and_resources(self) -> None:
        controller = with_topic()
        result = alter(controller, ("retention.ms", SET, "1"), ("retention.ms", SET, "2"))
        assert result.error is ErrorCode.INVALID_REQUEST
        alteration = ConfigAlteration(resource_kind=2, resource_name="orders", changes=[])
        (result,) = controller.alter_configs([alteration, alteration]).response
        assert result.error is ErrorCode.INVALID_REQUEST

    def test_unknown_resources(self) -> None:
        controller = with_topic()
        assert alter(controller, name="nowhere").error is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert alter(controller, kind=7).error is ErrorCode.INVALID_REQUEST

    def test_too_many_changes(self) -> None:
        controller = with_topic()
        changes = [(f"c{number}", SET, "1") for number in range(CONFIGS_PER_REQUEST_MAX + 1)]
        assert alter(controller, *changes).error is ErrorCode.POLICY_VIOLATION

    def test_values_that_contradict_each_other(self) -> None:
        controller = with_topic(max_compaction_lag_ms="10")
        assert alter(controller, ("min.compaction.lag.ms", SET, "11")).error is ErrorCode.INVALID_CONFIG

    def test_validate_only(self) -> None:
        controller = with_topic()
        alteration = ConfigAlteration(
            resource_kind=2, resource_name="orders", changes=[AlterableConfig("retention.ms", SET, "1")]
        )
        decision = controller.alter_configs([alteration], validate_only=True)
        assert decision.records == ()
        assert decision.response[0].error is ErrorCode.NONE


class TestReplace:
    def replace(self, controller: TestedController, *configs: tuple[str, str | None]) -> ConfigResult:
        asked = ConfigReplacement(resource_kind=ResourceKind.TOPIC, resource_name="orders", configs=configs)
        (result,) = controller.carry_out(controller.replace_configs([asked]))
        return result

    def test_what_is_not_listed_goes_back_to_its_default(self) -> None:
        controller = with_topic(retention_ms="1000", retention_bytes="5")
        assert self.replace(controller, ("retention.bytes", "5"), ("segment.ms", "9")).error is ErrorCode.NONE
        assert controller.image.topic_configs("orders") == {"retention.bytes": "5", "segment.ms": "9"}

    def test_no_value(self) -> None:
        assert self.replace(with_topic(), ("retention.ms", None)).error is ErrorCode.INVALID_REQUEST


class TestBrokers:
    def test_every_broker_and_one_broker(self) -> None:
        controller = one_broker()
        change = ("log.retention.ms", SET, "1000")
        assert alter(controller, change, kind=ResourceKind.BROKER, name="").error is ErrorCode.NONE
        assert alter(controller, change, kind=ResourceKind.BROKER, name="1").error is ErrorCode.NONE
        assert controller.image.cluster_configs() == {"log.retention.ms": "1000"}
        assert controller.image.broker_configs(NodeId(1)) == {"log.retention.ms": "1000"}
        assert controller.log[-1] == ConfigRecord(ResourceKind.BROKER, "1", "log.retention.ms", "1000")

    @pytest.mark.parametrize("name", ["2", "one", "-1", "٣", "9" * 400])
    def test_no_such_broker(self, name: str) -> None:
        result = alter(one_broker(), ("log.retention.ms", SET, "1"), kind=ResourceKind.BROKER, name=name)
        assert result.error is ErrorCode.INVALID_REQUEST

    def test_what_needs_a_restart_is_refused(self) -> None:
        result = alter(one_broker(), ("node.id", SET, "2"), kind=ResourceKind.BROKER, name="1")
        assert result.error is ErrorCode.INVALID_REQUEST
        assert result.message is not None
        assert "restart" in result.message

    def test_an_unknown_name_is_refused(self) -> None:
        result = alter(one_broker(), ("log.retention.mss", SET, "2"), kind=ResourceKind.BROKER, name="")
        assert result.error is ErrorCode.INVALID_CONFIG
        assert result.message is not None
        assert "log.retention.ms" in result.message
