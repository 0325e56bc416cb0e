"""The process of one job: it reads the job from standard input and writes results to standard output, at a low
priority.

Started by `jobs` as `python -m headrace.ports.real.helper PARENT`. It ends with its parent, so that a job of a killed
broker does not keep writing beside the next one.
"""

import os
import pickle
import signal
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO

from headrace.ports.spawner import BytesProcessed

NICENESS = 10
"""For processes that cannot or may no longer be idle."""
STARVED_SECONDS = 3.0
STARVED_SHARE = 0.05
"""A job that gets less than this share of a core for this time leaves the idle class, so that it ends some day."""
PARENT_DEATH_SIGNAL = 1
"""prctl's PR_SET_PDEATHSIG."""


def main(parent: int, source: BinaryIO, target: BinaryIO) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which ends its jobs itself
    _end_with_parent(parent)
    job, bytes_per_second = pickle.load(source)  # noqa: S301  (written by our parent)
    priority = Priority()
    failure: BaseException | None = None
    try:
        for result in paced(
            job(), bytes_per_second, parent_is_there=lambda: os.getppid() == parent, rest=priority.look
        ):
            _send(target, (result, None, False))
    except Exception as error:
        failure = error
    _send(target, (None, failure, True))


class Priority:
    """Gives everything else the processor first: the broker's loop must not wait for a job's time slice."""

    def __init__(
        self, now: Callable[[], float] = time.monotonic, spent: Callable[[], float] = time.process_time
    ) -> None:
        self._now = now
        self._spent = spent
        self._since = now()
        self._spent_then = spent()
        self.is_idle = hasattr(os, "SCHED_IDLE")
        if self.is_idle:
            os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
        else:
            os.nice(NICENESS)

    def look(self) -> None:
        elapsed = self._now() - self._since
        if not self.is_idle or elapsed < STARVED_SECONDS:
            return
        if self._spent() - self._spent_then < elapsed * STARVED_SHARE:
            self.is_idle = False
            os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
            os.nice(NICENESS)
        self._since, self._spent_then = self._now(), self._spent()


def paced(
    results: Iterator[Any],
    bytes_per_second: float,
    *,
    parent_is_there: Callable[[], bool] = lambda: True,
    rest: Callable[[], None] = lambda: None,
    now: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> Iterator[Any]:
    """Yield the results of a job, which pauses whenever it exceeds its rate."""
    due = now()
    for result in results:
        if not isinstance(result, BytesProcessed):
            yield result
            continue
        if not parent_is_there():
            raise SystemExit("the parent is gone")
        rest()
        due = max(due, now()) + result.bytes / bytes_per_second
        wait = due - now()
        if wait > 0:
            sleep(wait)


def _send(target: BinaryIO, message: tuple[Any, BaseException | None, bool]) -> None:
    try:
        frame = pickle.dumps(message)
    except Exception as error:  # an exception may not be picklable; its text is
        frame = pickle.dumps((None, RuntimeError(f"{message[1]!r} ({error})"), True))
    target.write(frame)
    target.flush()


def _end_with_parent(parent: int) -> None:
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(PARENT_DEATH_SIGNAL, signal.SIGKILL)
    if os.getppid() != parent:
        raise SystemExit("the parent is gone")


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.stdin.buffer, sys.stdout.buffer)
