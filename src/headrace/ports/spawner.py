"""The Spawner port: blocking work runs outside the loop, and its completion is an event of a later turn.

`operation` runs outside the loop (in production in a helper thread) and may touch only its own arguments: disk handles
and immutable values, never the node's state. `completed` runs on the loop, in a later turn, and gets the result or the
exception.

Operations are queued in lanes. A lane has its own helper threads, so that work of one kind never waits for work of
another: work that clients can slow down must not delay a sync. A lane refuses nothing. Its queue is limited at the
source of the work: one flush of a partition at a time, 32 unanswered requests of a connection, and the named limits of
`broker/lookups.py` and `broker/produce/record_hold.py`.

A job is work that computes for long: in production it runs in a separate process, at a low priority, because a thread
would take the interpreter away from the loop. It is a picklable function of ports and immutable values that yields its
results one by one.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import IntEnum
from typing import NamedTuple, Protocol, TypeVar

T = TypeVar("T")


class Lane(IntEnum):
    OTHER = 0
    """All work without a lane of its own: retention, deletions, checkpoints, snapshots, swaps of compaction, the scrub,
    reads of coordinators.
    """
    SYNC = 1
    """Flushes of partitions, and preallocation for them."""
    METADATA = 2
    """Commits of metadata."""
    CREATION = 3
    """New partitions."""
    READ = 4
    """Cold pages that consumers wait for."""
    LOOKUP = 5
    """Offsets by time."""
    RECORDS = 6
    """Records of Produce requests that are opened or compressed."""
    REQUEST = 7
    """Disk work of other requests: space of directories, files for scans."""
    NAMES = 8
    """Host names of other nodes: a resolver may take long, or never answer."""
    KEYS = 9
    """Keys of an identity provider, which may take as long."""
    AUDIT = 10
    """Writes of the audit log, for which answers to changes wait."""

    @property
    def label(self) -> str:
        """Return the name for metrics and logs."""
        return self.name.lower()


LANE_HELPERS = {
    Lane.OTHER: 2,
    Lane.SYNC: 2,
    Lane.METADATA: 1,
    Lane.CREATION: 1,
    Lane.READ: 2,
    Lane.LOOKUP: 1,
    Lane.RECORDS: 1,
    Lane.REQUEST: 1,
    Lane.NAMES: 2,
    Lane.KEYS: 1,
    Lane.AUDIT: 1,
}
"""Operations of a lane that run at once. Lanes that compute (LOOKUP, RECORDS) have one, because that takes the
interpreter from the loop.
"""

UNJOINED_LANES = frozenset({Lane.NAMES, Lane.KEYS})
"""Lanes that wait for other servers: one that hangs must not delay the end of the process."""


class LaneState(NamedTuple):
    lane: Lane
    in_flight: int
    """Operations whose completion has not run yet."""
    longest_ms: float
    """The age of the oldest running operation; 0 when there is none."""


def raise_failures(failures: list[Exception]) -> None:
    """Raise the exceptions of one turn's completions, after all of them have run: one by itself, several as a group."""
    if len(failures) > 1:
        raise ExceptionGroup(f"{len(failures)} completions failed", failures)
    if failures:
        raise failures[0]


def call_all(calls: Iterable[Callable[[], object]]) -> None:
    """Call each function even if others raise; the exceptions are raised after the last."""
    failures: list[Exception] = []
    for call in calls:
        try:
            call()
        except Exception as error:
            failures.append(error)
    raise_failures(failures)


class BytesProcessed(NamedTuple):
    """A job yields it from time to time: the bytes it has read and written, so that it can be throttled."""

    bytes: int


class JobDied(Exception):
    """The process of a job ended without a result."""


class RunningJob(Protocol):
    def cancel(self) -> None:
        """End the job; no more callbacks follow."""


class Spawner(Protocol):
    def submit(
        self,
        operation: Callable[[], T],
        completed: Callable[[T | None, BaseException | None], None],
        lane: Lane = Lane.OTHER,
    ) -> None:
        """Queue `operation`; `completed` gets either the result or the exception."""

    def run_completions(self) -> int:
        """Called by the loop once per turn: call `completed` for every ended operation; return their number.

        All of them are called, and their exceptions are raised after the last.
        """

    def start_job(
        self,
        job: Callable[[], Iterator[BytesProcessed | T]],
        each: Callable[[T], None],
        completed: Callable[[BaseException | None], None],
        *,
        bytes_per_second: float,
    ) -> RunningJob:
        """Begin a job. `each` gets its results, `completed` its end, both on the loop; its rate is limited."""

    def in_flight(self) -> int:
        """Return the jobs and operations whose completion has not run yet."""

    def lanes(self) -> Sequence[LaneState]:
        """Return the state of every lane, for metrics."""

    def close(self) -> None:
        """Wait for running operations; drop queued ones that have not started."""
