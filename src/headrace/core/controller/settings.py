"""The operator's settings that the controller needs."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Self

from headrace.core.controller.names import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from headrace.core.controller.placement import REPLICATION_FACTOR_MAX
from headrace.model.configs import BrokerConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerSettings:
    default_partition_count: int = 1
    default_replication_factor: int | None = None
    """None: as many replicas as there are failure domains, up to `DEFAULT_REPLICATION_FACTOR`."""
    replication_factor_max: int = REPLICATION_FACTOR_MAX
    internal_replication: Mapping[str, int] = field(default_factory=dict)
    """The replicas that the operator wants for each internal topic, if there are hosts for them."""
    topic_deletion_enabled: bool = True
    topics_max: int = 100_000
    partitions_max: int = 100_000
    static_configs: Mapping[str, str] = field(default_factory=dict)
    """The texts of the configuration file: a list config is appended to these when nothing else is set."""

    @classmethod
    def of(cls, config: BrokerConfig) -> Self:
        return cls(
            default_partition_count=config.num_partitions,
            default_replication_factor=config.default_replication_factor if config.sets_replication_factor else None,
            internal_replication={
                OFFSETS_TOPIC: config.groups.offsets_replication_factor,
                TRANSACTIONS_TOPIC: config.transactions.log_replication_factor,
            },
            topic_deletion_enabled=config.delete_topics,
            topics_max=config.topics_max,
            partitions_max=config.partitions_max,
            static_configs=config.layers.static,
        )
