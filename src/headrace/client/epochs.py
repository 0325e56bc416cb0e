"""The values of epochs: who writes for a batch, and how the batch ended. They can be pickled and sent about."""

from enum import StrEnum
from typing import NamedTuple

FEATURE = "headrace.epoch.version"
"""The finalized feature of clusters that have epochs."""


class EpochMember(NamedTuple):
    """The producer identity that a task has borrowed for one batch."""

    owner: str
    run: str
    batch_id: int
    task_attempt_id: int
    transactional_id: str
    producer_id: int
    producer_epoch: int
    timeout_ms: int
    """The broker gives up the run's open members when it has heard nothing of the run for so long."""


class EpochOutcome(StrEnum):
    COMMITTED = "committed"
    ABORTED = "aborted"
    ALREADY_COMMITTED = "already committed"
    """By an earlier request: nothing was changed."""


class PooledMember(NamedTuple):
    """An id of an owner's pool; the run is empty while nobody has it."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    state: str
    run: str
    batch_id: int
    task_attempt_id: int


class EpochsDescription(NamedTuple):
    owner: str
    run: str
    """The newest; older ones are fenced."""
    committed_batch_id: int
    """-1 while none is."""
    committed_run: str
    updated_at_ms: int
    members: tuple[PooledMember, ...]
