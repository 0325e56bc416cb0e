"""Settings of the transaction coordinator: those of the operator, and fixed limits."""

from dataclasses import dataclass, field
from typing import Self

from headrace.core.transactions.records import LeaderBoot
from headrace.model.configs import BrokerConfig
from headrace.model.ids import NO_NODE

PARTITIONS_PER_TRANSACTION_MAX = 10_000
"""Partitions of one transaction, which are all written in one record whenever one is added."""

TRANSACTIONAL_IDS_MAX = 1_000_000
"""Transactional ids per coordinator, that is per partition of `__transaction_state`."""

DEADLINES_PER_TURN = 50
"""Timeouts of transactions that one turn handles; the rest follow in later turns."""

IDS_PER_SLICE = 500
"""Transactional ids that one turn examines, where all of them must be examined."""

SLICE_PAUSE_MS = 1
"""The pause before the next slice of such work, so that it runs in a later turn."""

COMPLETION_WAIT_MS_MAX = 100
"""The time that the addition of a partition waits for the end of the previous transaction."""

WAITING_PER_ID_MAX = 1_000
"""Additions that may wait at once for the end of the previous transaction of one transactional id."""

ENDINGS_PER_RESULT = 100
"""Ended transactions that one result hands to the sender of markers."""

OWNERS_MAX = 100_000
"""Owners of batch commits per coordinator."""

BATCH_WRITERS_MAX = 10_000
"""Open writers of one owner; a commit ends all of them in one record batch."""

BATCH_PARTITIONS_MAX = 200_000
"""Partitions of all open writers of one owner; a partition counts once for each of its writers."""

OLDER_RUNS_MAX = 32
"""Fenced runs that an owner remembers; the coordinator would take an older one for a new run."""

WRITER_TIMEOUT_MS_DEFAULT = 900_000
"""The time without a request of a run after which its open writers are aborted, unless a writer sets another."""

WRITER_TIMEOUT_MS_MAX = 24 * 3_600_000
"""The longest such time that a writer may set."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionSettings:
    timeout_ms_max: int = 900_000
    id_expiration_ms: int = 7 * 24 * 3_600_000
    abort_interval_ms: int = 10_000
    """Timeouts are rounded up to a multiple of it, so that many of them expire together."""
    expiry_interval_ms: int = 3_600_000
    leader: LeaderBoot = field(default_factory=lambda: LeaderBoot(NO_NODE, ""))
    """This broker and the boot of its operating system: rows of an earlier boot that were not synced may be lost."""
    server_version: int = 2
    """The level of transaction.version that applies when the coordinator itself ends a transaction."""

    @classmethod
    def of(cls, config: BrokerConfig) -> Self:
        return cls(
            timeout_ms_max=config.transactions.timeout_ms_max,
            id_expiration_ms=config.transactions.id_expiration_ms,
            abort_interval_ms=config.transactions.abort_interval_ms,
            expiry_interval_ms=config.transactions.expiry_interval_ms,
        )
