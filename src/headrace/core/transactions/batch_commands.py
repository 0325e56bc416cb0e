"""Commands of batch commits and their results, as plain values.

A batch commit makes one batch of an owner visible at once. Many tasks write the batch, each under a transactional id
that it borrows from the owner's pool.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from headrace.core.coordination.machine import PendingProducer
from headrace.core.transactions.commands import NO_PRODUCER
from headrace.core.transactions.names import SLOT_MARK
from headrace.core.transactions.records import LeaderBoot, Partition
from headrace.core.transactions.states import TransactionState
from headrace.model.errors import ErrorCode

OWNER_CHARACTERS_MAX = 200
RUN_CHARACTERS_MAX = 200
WRITE_ID_CHARACTERS_MAX = 200
NUMBER_MAX = 2**63 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class BeginBatchWriter:
    owner: str
    run: str
    batch_id: int
    task_attempt_id: int
    timeout_ms: int
    """0 for the default timeout."""
    fresh_producer_id: int | None = None
    """An unused producer id. The coordinator returns ProducerIdNeeded where it needs one and has none."""


class NamedWriter(NamedTuple):
    """A writer as the driver names it in a commit."""

    transactional_id: str
    producer: PendingProducer


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitBatch:
    owner: str
    run: str
    batch_id: int
    writers: frozenset[NamedWriter]
    write_id: str = ""
    """Distinguishes the writes of one run; empty where the caller has no id for them."""
    synced: Mapping[Partition, LeaderBoot | None] = field(default_factory=dict)
    """The partitions of the writers that are synced, with the leader that has synced them; None if it is deleted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AbortBatch:
    owner: str
    run: str
    batch_id: int


class BatchResult(NamedTuple):
    error: ErrorCode
    reason: str = ""
    already_committed: bool = False
    transactional_id: str = ""
    """The id that BeginBatchWriter lent."""
    producer: PendingProducer = NO_PRODUCER
    timeout_ms: int = 0
    aborted: int = 0
    """The number of writers that AbortBatch aborted."""


class DescribedWriter(NamedTuple):
    transactional_id: str
    producer: PendingProducer
    state: TransactionState
    run: str
    batch_id: int
    task_attempt_id: int
    """The attempt that has borrowed the id; -1, with an empty run, while the id is in the pool."""


class DescribedBatches(NamedTuple):
    error: ErrorCode
    run: str = ""
    committed_batch_id: int = -1
    committed_run: str = ""
    updated_at_ms: int = -1
    writers: tuple[DescribedWriter, ...] = ()


def argument_refusal(owner: str, run: str, batch_id: int) -> str:
    """Return what is wrong with the arguments of a command, or an empty text."""
    if not owner or len(owner) > OWNER_CHARACTERS_MAX or SLOT_MARK in owner:
        return f"an owner has 1 to {OWNER_CHARACTERS_MAX} characters, none of them {SLOT_MARK!r}"
    if not run or len(run) > RUN_CHARACTERS_MAX:
        return f"a run has 1 to {RUN_CHARACTERS_MAX} characters"
    return "" if 0 <= batch_id <= NUMBER_MAX else "a batch id is not negative"
