"""Settings of the group coordinator from the broker's config, and its fixed limits."""

from dataclasses import dataclass
from typing import Self

from headrace.model.configs import BrokerConfig

NEW_MEMBER_WAIT_MS_MAX = 300_000
"""The session of a member that joins for the first time: it sends no heartbeats before its first response."""

GROUP_BYTES_MAX = 16 << 20
"""The size of the subscriptions and assignments of one group, which form one record and one response to the leader."""

PENDING_MEMBERS_MAX = 10_000
"""Unused member ids of one group; beyond the limit the coordinator drops the oldest one."""

PROTOCOLS_PER_MEMBER_MAX = 100
SUBSCRIBED_TOPICS_MAX = 10_000
"""Topic names in the subscription of one member."""

OFFSETS_PER_GROUP_MAX = 1_000_000
PENDING_OFFSETS_MAX = 1_000_000
"""Offsets that open transactions have staged with one coordinator."""

GROUPS_PER_SLICE = 100
"""Groups that the coordinator processes in one turn when it must process all of them."""

OFFSETS_PER_SLICE = 1_000
"""Offsets that the coordinator processes in one turn when it must process all of them."""

SLICE_PAUSE_MS = 1
"""The pause before the next slice of such work, which must not run in the same turn."""

ASSIGNED_AT_ONCE_MAX = 1_000
"""Members plus partitions of a group whose target the coordinator computes at once when its members change. The target
of a larger group is computed step by step, and members that join or leave meanwhile are part of the next target."""

ASSIGNMENT_PAUSE_MS = 100
"""The pause before the coordinator begins to compute the target of a large group."""

TARGETS_PER_STEP = 100
"""Members of a large group whose targets the coordinator writes in one step."""

MEMBER_RESPONSES_PER_TURN = 200
"""Join or sync responses of one classic group in one turn, when a generation begins or its assignment is known."""

DEADLINES_PER_TURN = 200
REBALANCE_TIMEOUT_MS_MAX = 2**31 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupCoordinatorSettings:
    session_timeout_ms_min: int = 6_000
    session_timeout_ms_max: int = 1_800_000
    initial_rebalance_delay_ms: int = 3_000
    initial_rebalance_quiet_ms: int = 300
    members_max: int = 2**31 - 1
    groups_max: int = 1_000_000
    """Groups of one coordinator, which is one partition of the offsets topic."""
    offset_metadata_bytes_max: int = 4_096
    offset_retention_ms: int = 7 * 24 * 3_600_000
    offset_check_interval_ms: int = 600_000
    consumer_session_timeout_ms: int = 45_000
    consumer_heartbeat_interval_ms: int = 5_000
    consumer_members_max: int = 2**31 - 1
    consumer_assignors: tuple[str, ...] = ("uniform", "range")
    migration_policy: str = "bidirectional"

    @property
    def upgrades(self) -> bool:
        """Return whether a classic group with members may become a KIP-848 group."""
        return self.migration_policy in ("bidirectional", "upgrade")

    @property
    def downgrades(self) -> bool:
        return self.migration_policy in ("bidirectional", "downgrade")

    @classmethod
    def of(cls, config: BrokerConfig) -> Self:
        return cls(
            session_timeout_ms_min=config.groups.session_timeout_ms_min,
            session_timeout_ms_max=config.groups.session_timeout_ms_max,
            initial_rebalance_delay_ms=config.groups.initial_rebalance_delay_ms,
            initial_rebalance_quiet_ms=config.groups.initial_rebalance_quiet_ms,
            members_max=config.groups.members_max,
            groups_max=config.groups.groups_max,
            offset_metadata_bytes_max=config.groups.offset_metadata_bytes_max,
            offset_retention_ms=config.groups.offset_retention_ms,
            offset_check_interval_ms=config.groups.offset_check_interval_ms,
            consumer_session_timeout_ms=config.groups.consumer_session_timeout_ms,
            consumer_heartbeat_interval_ms=config.groups.consumer_heartbeat_interval_ms,
            consumer_members_max=config.groups.consumer_members_max,
            consumer_assignors=config.groups.consumer_assignors,
            migration_policy=config.groups.migration_policy,
        )
