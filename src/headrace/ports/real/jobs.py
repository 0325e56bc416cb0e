"""Jobs in separate processes, for the Spawner port: one thread per job reads the output of its process."""

import os
import pickle
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator
from typing import IO, Any, TypeVar, cast

from headrace.ports.spawner import BytesProcessed, JobDied

JOBS_MAX = 16

T = TypeVar("T")


class ProcessJob:
    """The thread that starts the process lives as long as it does: the kernel ends the process with the thread."""

    def __init__(self, frame: bytes, each: Callable[[Any], None], completed: Callable[[Any], None]) -> None:
        self.each = each
        self.completed = completed
        self.cancelled = False
        self._frame = frame
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self.thread: threading.Thread | None = None

    def cancel(self) -> None:
        with self._lock:
            self.cancelled = True
            if self._process is not None:
                self._process.kill()

    def run(self, tell: Callable[[Any, BaseException | None, bool], None]) -> None:
        """Run in its own thread, from the start of the process to its end."""
        try:
            process = self._start()
        except OSError as error:
            tell(None, error, True)
            return
        if process is None:
            tell(None, None, True)
            return
        with process:
            ended = self._listen(process, tell)
        if not ended:
            tell(None, JobDied(f"the helper process ended with status {process.returncode}"), True)

    def _start(self) -> "subprocess.Popen[bytes] | None":
        # Without -P the working directory would come before the installed modules.
        command = [sys.executable, "-P", "-m", "headrace.ports.real.helper", str(os.getpid())]
        with self._lock:
            if self.cancelled:
                return None
            # exec closes Python's own descriptors; closing them one by one would hold the interpreter.
            self._process = subprocess.Popen(  # noqa: S603  (our own interpreter and module)
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, close_fds=False
            )
            return self._process

    def _listen(
        self, process: "subprocess.Popen[bytes]", tell: Callable[[Any, BaseException | None, bool], None]
    ) -> bool:
        """Return whether the process reported how the job ended."""
        try:
            with cast(IO[bytes], process.stdin) as stdin:
                stdin.write(self._frame)
            while True:
                result, failure, is_end = pickle.load(cast(IO[bytes], process.stdout))  # noqa: S301  (our own child)
                tell(result, failure, is_end)
                if is_end:
                    return True
        except (OSError, EOFError, pickle.UnpicklingError):
            process.kill()
            return False


class Jobs:
    def __init__(self, wake: Callable[[], None]) -> None:
        self._wake = wake
        self._running: list[ProcessJob] = []
        self._told: deque[tuple[ProcessJob, Any, BaseException | None, bool]] = deque()

    def __len__(self) -> int:
        return len(self._running)

    def start(
        self,
        job: Callable[[], Iterator[BytesProcessed | T]],
        each: Callable[[T], None],
        completed: Callable[[BaseException | None], None],
        *,
        bytes_per_second: float,
    ) -> ProcessJob:
        assert len(self._running) < JOBS_MAX, "too many jobs run at once"
        started = ProcessJob(pickle.dumps((job, bytes_per_second)), each, completed)

        def tell(result: Any, failure: BaseException | None, is_end: bool) -> None:
            self._told.append((started, result, failure, is_end))
            self._wake()

        started.thread = threading.Thread(target=started.run, args=(tell,), name="headrace-job", daemon=True)
        self._running.append(started)
        started.thread.start()
        return started

    def deliver(self, failures: list[Exception]) -> int:
        """On the loop: deliver the messages since the last call; exceptions are added to `failures`."""
        count = len(self._told)
        for _ in range(count):
            job, result, failure, is_end = self._told.popleft()
            if is_end:
                self._running.remove(job)
            if job.cancelled:
                continue
            try:
                if is_end:
                    job.completed(failure)
                else:
                    job.each(result)
            except Exception as error:
                failures.append(error)
        return count

    def close(self) -> None:
        for job in self._running:
            job.cancel()
        for job in self._running:
            if job.thread is not None:
                job.thread.join()
