"""Commands of `headrace pipeline` in processes of their own, and what they have said so far."""

import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

SECONDS_MAX = 300


class Running:
    def __init__(self, arguments: tuple[str, ...], folder: Path | None) -> None:
        self.lines: list[str] = []
        self._changed = threading.Condition()
        command = [sys.executable, "-m", "headrace", "pipeline", *arguments]
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=folder
        )
        self._thread = threading.Thread(target=self._hear)
        self._thread.start()

    def _hear(self) -> None:
        assert self.process.stdout is not None
        with self.process.stdout:
            for line in self.process.stdout:
                with self._changed:
                    self.lines.append(line.rstrip("\n"))
                    self._changed.notify_all()
        with self._changed:
            self._changed.notify_all()

    def wait_for(self, is_reached: Callable[[], bool]) -> None:
        """Looked at after each line; a command that ends before has failed."""
        with self._changed:
            self._changed.wait_for(lambda: is_reached() or not self._thread.is_alive(), SECONDS_MAX)
        assert is_reached(), "\n".join(self.lines)

    def end(self) -> int:
        status = self.process.wait(SECONDS_MAX)
        self._thread.join()
        return status


@contextmanager
def running(*arguments: str, folder: Path | None = None) -> Iterator[Running]:
    started = Running(arguments, folder)
    try:
        yield started
    finally:
        if started.process.poll() is None:
            started.process.kill()
        started.end()


def ran(*arguments: str, folder: Path | None = None) -> tuple[int, str]:
    """The status of a command that ends by itself, and all it said."""
    with running(*arguments, folder=folder) as started:
        status = started.end()
    return status, "\n".join(started.lines)
