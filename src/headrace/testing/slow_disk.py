"""`python -m headrace.testing.slow_disk FILE broker ...`: a broker whose disk can be slowed down while it runs.

The file has the delay of every write and sync in milliseconds as text; an empty or missing file is no delay.
"""

import os
import runpy
import sys
import time
from collections.abc import Sequence

from headrace.ports.disk import Buffer, FileHandle

DELAY_MS_MAX = 60_000
DELAY_BYTES_MAX = 16


def write_delay(path: str, delay_ms: int) -> None:
    """Set the delay of a broker that runs, at once for all of its threads."""
    new = f"{path}.new"
    with open(new, "w", encoding="ascii") as file:
        file.write(str(delay_ms) if delay_ms else "")
    os.replace(new, path)


class SlowDisk:
    """Replaces the calls of the real disk in this process."""

    def __init__(self, path: str) -> None:
        self._path = path

    def write_vector(self, file: FileHandle, buffers: Sequence[Buffer], position: int) -> int:
        self._wait()
        return os.pwritev(file, buffers, position)

    def data_sync(self, file: FileHandle) -> None:
        self._wait()
        os.fsync(file)

    def _wait(self) -> None:
        try:
            with open(self._path, "rb") as file:
                text = file.read(DELAY_BYTES_MAX)
        except FileNotFoundError:
            return
        if text:
            time.sleep(min(int(text), DELAY_MS_MAX) / 1_000)


def _no_kernel_syncs() -> None:
    raise OSError("syncs that the kernel does by itself cannot be slowed down")


def main() -> None:
    from headrace.ports.real import kernel_syncs
    from headrace.ports.real.disk import RealDisk

    slow = SlowDisk(sys.argv[1])
    RealDisk.write_vector = staticmethod(slow.write_vector)  # type: ignore[method-assign, assignment]
    RealDisk.data_sync = staticmethod(slow.data_sync)  # type: ignore[method-assign, assignment]
    kernel_syncs.KernelSyncs = _no_kernel_syncs  # type: ignore[misc, assignment]
    sys.argv[1:] = sys.argv[2:]
    runpy.run_module("headrace", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
