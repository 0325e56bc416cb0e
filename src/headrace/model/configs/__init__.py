"""What can be configured: the tables of topic and broker configs, and typed views of their values.

Kafka's names, types and defaults are kept, so that files, tools and clients written for Kafka work unchanged; what is
Headrace's own starts with `headrace.`. The tables are the one place a config is described: parsing, DescribeConfigs,
the command line and the reference pages all read them.
"""

from headrace.model.configs.broker import BROKER_CONFIGS
from headrace.model.configs.definition import (
    ConfigError,
    ConfigKey,
    ConfigTable,
    ConfigType,
    ConfigValue,
    Scope,
)
from headrace.model.configs.listeners import Listener
from headrace.model.configs.topic import TOPIC_CONFIGS
from headrace.model.configs.values import BrokerConfig, ConfigEntry, ConfigSource, Synonym, TopicConfig

__all__ = [
    "BROKER_CONFIGS",
    "TOPIC_CONFIGS",
    "BrokerConfig",
    "ConfigEntry",
    "ConfigError",
    "ConfigKey",
    "ConfigSource",
    "ConfigTable",
    "ConfigType",
    "ConfigValue",
    "Listener",
    "Scope",
    "Synonym",
    "TopicConfig",
]
