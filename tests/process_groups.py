"""Programs in process groups of their own, as a terminal has them, of which a test leaves nothing behind."""

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

WAIT_S_MAX = 60.0
LOOK_S = 0.02


@contextmanager
def running(*command: str, folder: Path | None = None) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        command,
        cwd=folder,
        start_new_session=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=_take_signals,
    )
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):  # it has ended, and so have all that it started
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def _take_signals() -> None:
    """The tests may run under nohup, or in the background of a shell."""
    for number in (signal.SIGHUP, signal.SIGINT):
        signal.signal(number, signal.SIG_DFL)


def wait_until(holds: Callable[[], object], what: str, seconds_max: float = WAIT_S_MAX) -> None:
    deadline = time.monotonic() + seconds_max
    while not holds():
        assert time.monotonic() < deadline, what
        time.sleep(LOOK_S)


def wait_until_gone(group: int, seconds_max: float = WAIT_S_MAX) -> None:
    wait_until(lambda: not _is_left(group), "a process stays", seconds_max)


def _is_left(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True
