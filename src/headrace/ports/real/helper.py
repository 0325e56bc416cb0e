"""The process of one job: takes it from its standard input, gives results to its standard output, at a low priority.

Started by `jobs` as `python -m headrace.ports.real.helper PARENT`. It ends with its parent, so that a job of a broker
that was killed does not go on writing beside the next one.
"""

import os
import pickle
import signal
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO

from headrace.ports.spawner import Spent

NICENESS = 10
PARENT_DEATH_SIGNAL = 1
"""prctl's PR_SET_PDEATHSIG."""


def main(parent: int, source: BinaryIO, target: BinaryIO) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which ends its jobs itself
    _end_with_parent(parent)
    os.nice(NICENESS)
    job, bytes_per_second = pickle.load(source)  # noqa: S301  (written by our parent)
    failure: BaseException | None = None
    try:
        for result in paced(job(), bytes_per_second, parent_is_there=lambda: os.getppid() == parent):
            _send(target, (result, None, False))
    except Exception as error:
        failure = error
    _send(target, (None, failure, True))


def paced(
    results: Iterator[Any],
    bytes_per_second: float,
    *,
    parent_is_there: Callable[[], bool] = lambda: True,
    now: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> Iterator[Any]:
    """The results of a job, which rests whenever it has spent more than the time so far allows."""
    due = now()
    for result in results:
        if not isinstance(result, Spent):
            yield result
            continue
        if not parent_is_there():
            raise SystemExit("the parent is gone")
        due = max(due, now()) + result.bytes / bytes_per_second
        wait = due - now()
        if wait > 0:
            sleep(wait)


def _send(target: BinaryIO, message: tuple[Any, BaseException | None, bool]) -> None:
    try:
        frame = pickle.dumps(message)
    except Exception as error:  # an exception need not be picklable; its text is
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
