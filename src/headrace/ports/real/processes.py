"""Processes of this machine: check whether one exists by its id, and stop those that this process started."""

import os
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import Any


def is_running(process_id: int) -> bool:
    try:
        os.kill(process_id, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True  # another user's process
    return True


def children() -> set[int]:
    """Return the children of this process, started by any of its threads; none where the system has no /proc."""
    found: set[int] = set()
    for thread in Path("/proc/self/task").glob("*"):
        with suppress(FileNotFoundError):  # the thread has just ended
            found.update(map(int, (thread / "children").read_text().split()))
    return found


def stop(process: "subprocess.Popen[Any]", seconds_max: float) -> None:
    """Stop by SIGTERM, and by SIGKILL if that takes too long."""
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(seconds_max)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
