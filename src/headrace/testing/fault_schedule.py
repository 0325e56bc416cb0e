"""The faults of a disturbed cluster, in an order that a seed fixes."""

from collections.abc import Iterator, Sequence
from enum import StrEnum
from random import Random
from typing import NamedTuple

FAULT_S = (1.0, 8.0)
"""The shortest and the longest fault; a session of brokers lasts 6 s."""
PAUSE_BETWEEN_S = (0.5, 3.0)
SLOW_DISK_DELAY_MS = (20, 400)


class FaultKind(StrEnum):
    KILL = "kill"
    """kill -9, and a restart."""
    PAUSE = "pause"
    """SIGSTOP: the broker hangs."""
    CUT = "cut"
    """The broker and the others do not reach one another; clients reach all of them."""
    ONE_WAY_CUT = "one-way cut"
    """Nothing that the broker sends reaches the others."""
    SLOW_DISK = "slow disk"
    """Every write and every sync of the broker takes longer."""


class PlannedFault(NamedTuple):
    kind: FaultKind
    node_id: int
    after_s: float
    """Time from the end of the fault before it."""
    duration_s: float
    delay_ms: int = 0
    """Of each write and sync of a slow disk."""


def planned_faults(seed: int, node_ids: Sequence[int]) -> Iterator[PlannedFault]:
    """Yield faults without end. One is over before the next begins: a majority of the brokers is always well."""
    source = Random(seed)  # noqa: S311  (repeatable on purpose)
    while True:
        kind = source.choice(list(FaultKind))
        yield PlannedFault(
            kind,
            source.choice(node_ids),
            after_s=round(source.uniform(*PAUSE_BETWEEN_S), 3),
            duration_s=round(source.uniform(*FAULT_S), 3),
            delay_ms=source.randint(*SLOW_DISK_DELAY_MS) if kind is FaultKind.SLOW_DISK else 0,
        )
