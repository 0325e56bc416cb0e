"""The Spawner port: work that may wait is done elsewhere, and its end is an event of a later turn.

`operation` runs outside the loop (in production on a helper thread) and may touch only what it was handed: disk
handles and immutable values, never the node's state. `completed` runs on the loop, in a later turn, and gets the
result or the exception.

A job is work that computes for long: in production it runs in a process of its own, at a low priority, because a
thread would take the interpreter away from the loop. It is a picklable function of ports and immutable values that
yields its results one by one.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple, Protocol, TypeVar

T = TypeVar("T")


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


class Spent(NamedTuple):
    """A job yields it from time to time: so many bytes were read and written, and the job may be held back now."""

    bytes: int


class JobDied(Exception):
    """The process of a job ended without saying how the job did."""


class RunningJob(Protocol):
    def cancel(self) -> None:
        """End it where it is; nothing more is heard of it."""


class Spawner(Protocol):
    def submit(self, operation: Callable[[], T], completed: Callable[[T | None, BaseException | None], None]) -> None:
        """Queue `operation`; exactly one of the two arguments of `completed` tells how it ended."""

    def run_completions(self) -> int:
        """Called by the loop once per turn: call `completed` for what has ended; how many there were.

        All of them are called, and what some of them raise is raised after the last.
        """

    def start_job(
        self,
        job: Callable[[], Iterator[Spent | T]],
        each: Callable[[T], None],
        completed: Callable[[BaseException | None], None],
        *,
        bytes_per_second: float,
    ) -> RunningJob:
        """Begin a job. `each` gets its results, `completed` its end, both on the loop; it spends no more than that."""

    def in_flight(self) -> int:
        """Jobs and operations submitted whose completion has not run yet."""

    def close(self) -> None:
        """Wait for running operations; drop queued ones that have not started."""
