"""What the owner of epochs can ask, and what it is told: plain values.

An epoch is one batch of one owner, written by many tasks under ids that the owner's pool lends, and committed as one.
"""

from dataclasses import dataclass
from typing import NamedTuple

from headrace.core.coordination.machine import Producer
from headrace.core.transactions.commands import NOBODY
from headrace.core.transactions.names import SLOT_MARK
from headrace.core.transactions.states import TransactionState
from headrace.model.errors import ErrorCode

OWNER_CHARACTERS_MAX = 200
RUN_CHARACTERS_MAX = 200
WRITE_ID_CHARACTERS_MAX = 200
NUMBER_MAX = 2**63 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class BeginMember:
    owner: str
    run: str
    batch_id: int
    task_attempt_id: int
    timeout_ms: int
    """0 for the usual time."""
    fresh_producer_id: int | None = None
    """One that nobody has; it is asked for when it is needed."""


class NamedMember(NamedTuple):
    transactional_id: str
    producer: Producer


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitEpoch:
    owner: str
    run: str
    batch_id: int
    members: frozenset[NamedMember]
    write_id: str = ""
    """Tells the writes of one run apart, where whoever asks has a name for them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AbortEpoch:
    owner: str
    run: str
    batch_id: int


class EpochResult(NamedTuple):
    error: ErrorCode
    reason: str = ""
    already_committed: bool = False
    transactional_id: str = ""
    """Of a member that was begun."""
    producer: Producer = NOBODY
    timeout_ms: int = 0
    aborted: int = 0
    """How many members were aborted on request."""


class DescribedMember(NamedTuple):
    transactional_id: str
    producer: Producer
    state: TransactionState
    run: str
    batch_id: int
    task_attempt_id: int
    """Of whoever has it now: -1, and no run, while it waits in the pool."""


class DescribedEpochs(NamedTuple):
    error: ErrorCode
    run: str = ""
    committed_batch_id: int = -1
    committed_run: str = ""
    updated_at_ms: int = -1
    members: tuple[DescribedMember, ...] = ()


def argument_refusal(owner: str, run: str, batch_id: int) -> str:
    """What is wrong with them; empty if nothing is."""
    if not owner or len(owner) > OWNER_CHARACTERS_MAX or SLOT_MARK in owner:
        return f"an owner has 1 to {OWNER_CHARACTERS_MAX} characters, none of them {SLOT_MARK!r}"
    if not run or len(run) > RUN_CHARACTERS_MAX:
        return f"a run has 1 to {RUN_CHARACTERS_MAX} characters"
    return "" if 0 <= batch_id <= NUMBER_MAX else "a batch id is not negative"
