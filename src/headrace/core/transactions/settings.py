"""What the operator chose that transactions must know, and the limits that nobody can choose."""

from dataclasses import dataclass
from typing import Self

from headrace.model.configs import BrokerConfig

PARTITIONS_PER_TRANSACTION_MAX = 10_000
"""They are written as one record whenever one of them is added."""

TRANSACTIONAL_IDS_MAX = 1_000_000
"""Of one coordinator: one partition of the transaction topic."""

DEADLINES_PER_TURN = 50
IDS_PER_SLICE = 500
"""Transactional ids looked at in one turn where all of them must be."""

SLICE_PAUSE_MS = 1
"""Until the next slice of such work: not in the same turn."""

COMPLETION_WAIT_MS_MAX = 100
"""How long a partition that is added to the next transaction waits for the end of the one before."""

WAITING_PER_ID_MAX = 1_000
"""Who may wait for that at once."""

ENDINGS_PER_ANSWER = 100
"""Transactions whose markers are asked for at once."""

OWNERS_MAX = 100_000
"""Owners of epochs, of one coordinator."""

EPOCH_MEMBERS_MAX = 10_000
"""Members that an owner has open at once; a commit ends them all in one batch of records."""

EPOCH_PARTITIONS_MAX = 200_000
"""Of the open members of one owner together, each counted once for every member that writes to it."""

OLDER_RUNS_MAX = 32
"""Runs of an owner that are known to be over; one from before these would be taken for a new one."""

MEMBER_TIMEOUT_MS_DEFAULT = 900_000
"""How long nothing is heard of an owner's run before its open members are aborted, unless a member asks for another."""

MEMBER_TIMEOUT_MS_MAX = 24 * 3_600_000


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionSettings:
    timeout_ms_max: int = 900_000
    id_expiration_ms: int = 7 * 24 * 3_600_000
    abort_interval_ms: int = 10_000
    """Timeouts are rounded up to it, so that many of them are one piece of work."""
    expiry_interval_ms: int = 3_600_000
    boot_id: str = ""
    """The run of the operating system: when another one begins, rows that were not synced may be lost."""
    server_version: int = 2
    """The level of transaction.version: what the coordinator goes by when it ends a transaction of its own accord."""

    @classmethod
    def of(cls, config: BrokerConfig) -> Self:
        return cls(
            timeout_ms_max=config.transactions.timeout_ms_max,
            id_expiration_ms=config.transactions.id_expiration_ms,
            abort_interval_ms=config.transactions.abort_interval_ms,
            expiry_interval_ms=config.transactions.expiry_interval_ms,
        )
