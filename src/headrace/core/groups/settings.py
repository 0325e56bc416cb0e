"""What the operator chose that groups must know, and the limits that nobody can choose."""

from dataclasses import dataclass
from typing import Self

from headrace.model.configs import BrokerConfig

NEW_MEMBER_WAIT_MS_MAX = 300_000
"""A member that joins for the first time cannot send heartbeats yet: so long its answer is waited for."""

GROUP_BYTES_MAX = 16 << 20
"""Subscriptions and assignments of one group: they are written as one record and told to the leader in one answer."""

PENDING_MEMBERS_MAX = 10_000
"""Ids of one group that were given out and not used yet; the next one takes the place of the oldest."""

PROTOCOLS_PER_MEMBER_MAX = 100
SUBSCRIBED_TOPICS_MAX = 10_000
"""Names in one member's subscription."""

OFFSETS_PER_GROUP_MAX = 1_000_000
PENDING_OFFSETS_MAX = 1_000_000
"""Offsets of one coordinator that open transactions have staged."""

GROUPS_PER_SLICE = 100
"""Groups looked at in one turn where all of them must be."""

OFFSETS_PER_SLICE = 1_000
"""Offsets looked at in one turn where all of them must be."""

SLICE_PAUSE_MS = 1
"""Until the next slice of such work: not in the same turn."""

ASSIGNED_AT_ONCE_MAX = 1_000
"""Members and partitions of a group that the broker assigns as soon as somebody comes or goes. Of a larger one the
target is decided step by step, and those who come and go meanwhile share the next one."""

ASSIGNMENT_PAUSE_MS = 100
"""Until the target of a large group is decided."""

TARGETS_PER_STEP = 100
"""Members of a large group whose targets are written in one step."""

MEMBERS_TOLD_PER_TURN = 200
"""Of a classic group, when a generation begins and when its assignment is known."""

DEADLINES_PER_TURN = 200
REBALANCE_TIMEOUT_MS_MAX = 2**31 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupSettings:
    session_timeout_ms_min: int = 6_000
    session_timeout_ms_max: int = 1_800_000
    initial_rebalance_delay_ms: int = 3_000
    initial_rebalance_quiet_ms: int = 300
    members_max: int = 2**31 - 1
    groups_max: int = 1_000_000
    """Of one coordinator: one partition of the offsets topic."""
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
        """Whether a classic group with members becomes one of KIP-848."""
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
