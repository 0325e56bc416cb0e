"""Tables of topic and broker configs, and typed views of their values.

Names, types and defaults are Kafka's, so that files, tools and clients written for Kafka work unchanged; configs of
Headrace itself start with `headrace.`. The tables are the only description of a config: parsing, DescribeConfigs, the
command line and the reference pages all read them.
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
from headrace.model.configs.values import BrokerConfig, ConfigLayer, LayeredConfig, Synonym, TopicConfig

__all__ = [
    "BROKER_CONFIGS",
    "TOPIC_CONFIGS",
    "BrokerConfig",
    "ConfigError",
    "ConfigKey",
    "ConfigLayer",
    "ConfigTable",
    "ConfigType",
    "ConfigValue",
    "LayeredConfig",
    "Listener",
    "Scope",
    "Synonym",
    "TopicConfig",
]
