"""The Spawner port: work that may wait is done elsewhere, and its end is an event of a later turn.

`operation` runs outside the loop (in production on a helper thread) and may touch only what it was handed: disk
handles and immutable values, never the node's state. `completed` runs on the loop, in a later turn, and gets the
result or the exception.

Operations are queued in lanes. A lane has helpers of its own, so that work of one kind never waits for work of another:
what clients can make slow must not hold up a sync. A lane refuses nothing. Its queue is bounded where the work comes
from: one flush of a partition at a time, 32 unanswered requests of a connection, and the named limits of
`broker/lookups.py` and `broker/produce/record_hold.py`.

A job is work that computes for long: in production it runs in a process of its own, at a low priority, because a
thread would take the interpreter away from the loop. It is a picklable function of ports and immutable values that
yields its results one by one.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import IntEnum
from typing import NamedTuple, Protocol, TypeVar

T = TypeVar("T")


class Lane(IntEnum):
    OTHER = 0
    """Deletions, checkpoints, exchanges of compaction, the scrub, reads of coordinators."""
    SYNC = 1
    """Flushes of partitions, and the space that is allocated ahead of them."""
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
    """What other requests ask of the disk: room of directories, files for scans."""

    @property
    def label(self) -> str:
        """For metrics and logs."""
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
}
"""How many operations of a lane are under way at once. One where they compute: that takes the loop's interpreter."""


class LaneState(NamedTuple):
    lane: Lane
    in_flight: int
    """Operations whose completion has not run yet."""
    longest_ms: float
    """How long the oldest of those that are under way has been; 0 when there is none."""


def raise_failures(failures: list[Exception]) -> None:
    """Raise what completions of one turn raised, after all of them have run: one by itself, several as a group."""
    if len(failures) > 1:
        raise ExceptionGroup(f"{len(failures)} completions failed", failures)
    if failures:
        raise failures[0]


def call_all(calls: Iterable[Callable[[], object]]) -> None:
    """Call each, whatever the others raise; what they raised is raised after the last."""
    failures: list[Exception] = []
    for call in calls:
        try:
            call()
        except Exception as error:
            failures.append(error)
    raise_failures(failures)


class BytesProcessed(NamedTuple):
    """A job yields it from time to time: so many bytes were read and written, and the job may be held back now."""

    bytes: int


class JobDied(Exception):
    """The process of a job ended without saying how the job did."""


class RunningJob(Protocol):
    def cancel(self) -> None:
        """End it where it is; nothing more is heard of it."""


class Spawner(Protocol):
    def submit(
        self,
        operation: Callable[[], T],
        completed: Callable[[T | None, BaseException | None], None],
        lane: Lane = Lane.OTHER,
    ) -> None:
        """Queue `operation`; exactly one of the two arguments of `completed` tells how it ended."""

    def run_completions(self) -> int:
        """Called by the loop once per turn: call `completed` for what has ended; how many there were.

        All of them are called, and what some of them raise is raised after the last.
        """

    def start_job(
        self,
        job: Callable[[], Iterator[BytesProcessed | T]],
        each: Callable[[T], None],
        completed: Callable[[BaseException | None], None],
        *,
        bytes_per_second: float,
    ) -> RunningJob:
        """Begin a job. `each` gets its results, `completed` its end, both on the loop; it spends no more than that."""

    def in_flight(self) -> int:
        """Jobs and operations submitted whose completion has not run yet."""

    def lanes(self) -> Sequence[LaneState]:
        """The state of every lane, for metrics."""

    def close(self) -> None:
        """Wait for running operations; drop queued ones that have not started."""
