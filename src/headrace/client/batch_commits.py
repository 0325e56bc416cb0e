"""Values of batch commits: the writer of a task and the outcome of a batch. They can be pickled."""

from enum import StrEnum
from typing import NamedTuple

FEATURE = "headrace.batch.version"
"""The finalized feature of clusters that have batch commits."""

FEATURE_BEFORE = "headrace.epoch.version"
"""The name of the feature in development versions before 0.1; a cluster that has only this one is refused."""


class BatchWriter(NamedTuple):
    """The producer identity that a task has borrowed for one batch."""

    owner: str
    run: str
    batch_id: int
    task_attempt_id: int
    transactional_id: str
    producer_id: int
    producer_epoch: int
    timeout_ms: int
    """The time without a request of the run after which the coordinator aborts its open writers."""


class BatchOutcome(StrEnum):
    COMMITTED = "committed"
    ABORTED = "aborted"
    ALREADY_COMMITTED = "already committed"
    """An earlier request has committed the batch; this one changed nothing."""


class PooledWriter(NamedTuple):
    """An id of an owner's pool; the run is empty while no task has borrowed it."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    state: str
    run: str
    batch_id: int
    task_attempt_id: int


class BatchesDescription(NamedTuple):
    owner: str
    run: str
    """The newest run; older ones are fenced."""
    committed_batch_id: int
    """-1 before the first commit."""
    committed_run: str
    updated_at_ms: int
    writers: tuple[PooledWriter, ...]
