"""Layers of config values: the topic's own, the broker's dynamic configs, the file and the default."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from types import MappingProxyType
from typing import NamedTuple

from headrace.model.configs.broker import BROKER_CONFIGS
from headrace.model.configs.definition import (
    REPLICAS_OF_REPLICATED,
    ConfigKey,
    ConfigValue,
    Scope,
    parse_value,
    render_value,
)
from headrace.model.configs.topic import TOPIC_CONFIGS

NO_TEXTS: Mapping[str, str] = MappingProxyType({})


class ConfigLayer(IntEnum):
    """Source of a value, with the numbers of a DescribeConfigs response."""

    TOPIC = 1
    DYNAMIC_BROKER = 2
    DYNAMIC_DEFAULT_BROKER = 3
    STATIC_BROKER = 4
    DEFAULT = 5


class Synonym(NamedTuple):
    """The value of a config in one layer."""

    name: str
    value: str | None
    source: ConfigLayer


class LayeredConfig(NamedTuple):
    """A config as in a DescribeConfigs response. A sensitive value is None."""

    key: ConfigKey
    value: str | None
    source: ConfigLayer
    read_only: bool
    synonyms: tuple[Synonym, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerLayers:
    """The config texts of a broker, by layer."""

    static: Mapping[str, str] = field(default_factory=lambda: NO_TEXTS, repr=False)
    """Merged from the file, the environment and the command line."""
    dynamic_default: Mapping[str, str] = field(default_factory=lambda: NO_TEXTS, repr=False)
    """Set dynamically for all brokers."""
    dynamic_broker: Mapping[str, str] = field(default_factory=lambda: NO_TEXTS, repr=False)
    """Set dynamically for this broker."""

    def value(self, name: str) -> ConfigValue:
        """Return the effective value of a broker config."""
        key = BROKER_CONFIGS.lookup(name)
        for texts in (self.dynamic_broker, self.dynamic_default, self.static):
            if name in texts:
                return parse_value(key, texts[name])
        return key.default

    def synonyms(self, *names: str) -> tuple[Synonym, ...]:
        """Return every layer that sets one of `names`, highest precedence first."""
        found: list[Synonym] = []
        for source, texts in (
            (ConfigLayer.DYNAMIC_BROKER, self.dynamic_broker),
            (ConfigLayer.DYNAMIC_DEFAULT_BROKER, self.dynamic_default),
            (ConfigLayer.STATIC_BROKER, self.static),
        ):
            found.extend(_synonym(name, texts[name], source) for name in names if name in texts)
        for name in names:
            default = render_value(BROKER_CONFIGS.lookup(name).default)
            if default is not None:
                found.append(_synonym(name, default, ConfigLayer.DEFAULT))
        return tuple(found)

    def describe(self) -> list[LayeredConfig]:
        """Return every broker config with its effective value."""
        entries: list[LayeredConfig] = []
        for key in BROKER_CONFIGS:
            synonyms = self.synonyms(key.name)
            source = synonyms[0].source if synonyms else ConfigLayer.DEFAULT
            value = None if key.sensitive else render_value(self.value(key.name))
            entries.append(LayeredConfig(key, value, source, key.scope is Scope.READ_ONLY, synonyms))
        return entries

    def topic_value(self, key: ConfigKey, overrides: Mapping[str, str], *, replicas: int = 1) -> ConfigValue:
        """Return the effective value of a topic config: the topic's own, that of its broker configs, or the default
        for a topic with that number of replicas.
        """
        if key.name in overrides:
            return parse_value(key, overrides[key.name])
        if self._takes_replicated_default(key, replicas):
            return key.replicated_default
        for counterpart in key.counterparts:
            value = self.value(counterpart.name)
            if value is not None:
                return value if counterpart.factor == 1 else _multiplied(value, counterpart.factor)
        return key.default

    def _takes_replicated_default(self, key: ConfigKey, replicas: int) -> bool:
        if key.replicated_default is None or replicas < REPLICAS_OF_REPLICATED:
            return False
        layers = (self.dynamic_broker, self.dynamic_default, self.static)
        return not any(counterpart.name in texts for counterpart in key.counterparts for texts in layers)

    def describe_topic(self, overrides: Mapping[str, str], *, replicas: int = 1) -> list[LayeredConfig]:
        """Return every topic config with its effective value for a topic that sets `overrides`."""
        entries: list[LayeredConfig] = []
        for key in TOPIC_CONFIGS:
            synonyms = self.synonyms(*(counterpart.name for counterpart in key.counterparts))
            if not synonyms and key.default is not None:
                synonyms = (_synonym(key.name, render_value(key.default), ConfigLayer.DEFAULT),)
            if self._takes_replicated_default(key, replicas):
                synonyms = (_synonym(key.name, render_value(key.replicated_default), ConfigLayer.DEFAULT),)
            if key.name in overrides:
                synonyms = (_synonym(key.name, overrides[key.name], ConfigLayer.TOPIC), *synonyms)
            value = None if key.sensitive else render_value(self.topic_value(key, overrides, replicas=replicas))
            source = synonyms[0].source if synonyms else ConfigLayer.DEFAULT
            entries.append(LayeredConfig(key, value, source, False, synonyms))
        return entries


def _synonym(name: str, text: str | None, source: ConfigLayer) -> Synonym:
    key = BROKER_CONFIGS.get(name) or TOPIC_CONFIGS.lookup(name)
    return Synonym(name, None if key.sensitive else text, source)


def _multiplied(value: ConfigValue, factor: int) -> int:
    """Convert hours or minutes to milliseconds; a negative age means no limit and stays -1."""
    assert isinstance(value, int)
    return -1 if value < 0 else value * factor
