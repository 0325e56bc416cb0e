"""What a transaction coordinator can be asked, and what it answers: plain values."""

from dataclasses import dataclass
from typing import NamedTuple

from headrace.core.coordination.machine import Producer
from headrace.core.transactions.records import Partitions
from headrace.core.transactions.states import TransactionState
from headrace.model.errors import ErrorCode
from headrace.model.ids import NO_PRODUCER_EPOCH, NO_PRODUCER_ID

EPOCH_BUMPED_FROM = 2
"""From this level of transaction.version on, the end of every transaction bumps the epoch (KIP-890)."""


NOBODY = Producer(NO_PRODUCER_ID, NO_PRODUCER_EPOCH)


@dataclass(frozen=True, slots=True, kw_only=True)
class InitProducer:
    transactional_id: str
    timeout_ms: int
    expected: Producer | None
    """What a producer that goes on after an error believes to be (KIP-360); None takes the id over."""
    fresh_producer_id: int | None = None
    """One that nobody has; it is asked for when it is needed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AddPartitions:
    transactional_id: str
    producer: Producer
    partitions: Partitions
    client_version: int
    waits: bool = False
    """While the transaction before is still ending, for a while: whoever asks cannot come again by itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EndTransaction:
    transactional_id: str
    producer: Producer
    commit: bool
    client_version: int
    fresh_producer_id: int | None = None
    """One that nobody has; it is asked for when it is needed."""


class ProducerResult(NamedTuple):
    """To whoever initializes or ends: what to go on as."""

    error: ErrorCode
    producer: Producer = NOBODY


class ProducerIdNeeded(NamedTuple):
    """The answer needs a fresh producer id: ask again with one."""


class Ending(NamedTuple):
    """A transaction whose outcome is committed, and whose partitions must be told."""

    transactional_id: str
    producer: Producer
    """As the markers carry it."""
    commit: bool
    partitions: Partitions
    client_version: int
    decided_at_ms: int
    """Tells it from others of the same producer: not every transaction has an epoch of its own."""
    timed_out: bool
    """Its time was up; not known any more once the coordinator was loaded again."""


class ListedTransaction(NamedTuple):
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
    producer: Producer = NOBODY
    partitions: tuple[tuple[str, int], ...] = ()
