"""Warnings about configs that the broker stores and describes but that have no effect in this release."""

from collections.abc import Mapping

from headrace.broker.logs import NodeLogger
from headrace.core.controller.delta import MetadataDelta
from headrace.core.controller.image import NO_CONFIGS, MetadataImage
from headrace.core.controller.records import ResourceKind
from headrace.model.configs import BROKER_CONFIGS, TOPIC_CONFIGS, ConfigTable

EVENT = "configs without effect"
ADVICE = "see `headrace configs list`: remove the config, or do not rely on it"


class ConfigWarnings:
    """Logs one line for each topic or broker that gets such configs, and one when the broker starts."""

    def __init__(self, image: MetadataImage, logger: NodeLogger) -> None:
        self._image = image
        self._logger = logger

    def started(self, static: Mapping[str, str]) -> None:
        self._warn(BROKER_CONFIGS, static, given_to="this broker")

    def image_changed(self, delta: MetadataDelta) -> None:
        for name in (*(topic.name for topic in delta.topics_created), *delta.topic_configs_changed):
            configs = self._image.configs.get((ResourceKind.TOPIC, name), NO_CONFIGS)
            self._warn(TOPIC_CONFIGS, configs, given_to=f'topic "{name}"')
        for name in delta.broker_configs_changed:
            configs = self._image.configs.get((ResourceKind.BROKER, name), NO_CONFIGS)
            self._warn(BROKER_CONFIGS, configs, given_to=f"broker {name}" if name else "every broker")

    def _warn(self, table: ConfigTable, configs: Mapping[str, str], *, given_to: str) -> None:
        names = table.without_effect(configs)
        if names:
            self._logger.warning(EVENT, given_to=given_to, configs=", ".join(names), advice=ADVICE)
