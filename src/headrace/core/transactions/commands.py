"""Commands to a transaction coordinator and their results, as plain values."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from headrace.core.coordination.machine import PendingProducer
from headrace.core.transactions.records import LeaderBoot, Partition, Partitions
from headrace.core.transactions.states import TransactionState
from headrace.model.errors import ErrorCode
from headrace.model.ids import NO_PRODUCER_EPOCH, NO_PRODUCER_ID

EPOCH_BUMPED_FROM = 2
"""From this level of transaction.version on, the end of every transaction bumps the producer epoch (KIP-890)."""


NO_PRODUCER = PendingProducer(NO_PRODUCER_ID, NO_PRODUCER_EPOCH)


@dataclass(frozen=True, slots=True, kw_only=True)
class InitProducer:
    transactional_id: str
    timeout_ms: int
    expected: PendingProducer | None
    """The identity that a producer has when it continues after an error (KIP-360); None takes the id over."""
    fresh_producer_id: int | None = None
    """An unused producer id. The coordinator returns ProducerIdNeeded where it needs one and has none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AddPartitions:
    transactional_id: str
    producer: PendingProducer
    partitions: Partitions
    client_version: int
    waits: bool = False
    """Wait a short time while the previous transaction is still ending; set by callers that cannot retry."""
    leader: LeaderBoot | None = None
    """The leader of the partitions, which adds them for a producer; None if the producer adds them itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyPartitions:
    transactional_id: str
    producer: PendingProducer
    partitions: Sequence[Partition]
    leader: LeaderBoot | None = None
    """The leader of the partitions, which asks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EndTransaction:
    transactional_id: str
    producer: PendingProducer
    commit: bool
    client_version: int
    fresh_producer_id: int | None = None
    """An unused producer id. The coordinator returns ProducerIdNeeded where it needs one and has none."""


class ProducerResult(NamedTuple):
    """The result of InitProducer and EndTransaction: the identity with which the producer continues."""

    error: ErrorCode
    producer: PendingProducer = NO_PRODUCER


class ProducerIdNeeded(NamedTuple):
    """The command needs an unused producer id: repeat it with one."""


class Ending(NamedTuple):
    """A transaction whose outcome is committed, and whose partitions must receive their markers."""

    transactional_id: str
    producer: PendingProducer
    """The identity that the markers carry."""
    commit: bool
    partitions: Partitions
    client_version: int
    decided_at_ms: int
    """Distinguishes it from other transactions of the producer: they may share a producer epoch."""
    timed_out: bool
    """True if it was aborted by its timeout; False after the coordinator was reloaded, which does not know it."""
    metadata_offset: int = 0
    """The offset of the coordinator's metadata at which every partition was known."""


class TransactionListing(NamedTuple):
    transactional_id: str
    producer_id: int
    state: TransactionState
    started_at_ms: int


class DescribedTransaction(NamedTuple):
    error: ErrorCode
    transactional_id: str
    state: str = ""
    timeout_ms: int = 0
    started_at_ms: int = 0
    producer: PendingProducer = NO_PRODUCER
    partitions: tuple[tuple[str, int], ...] = ()
