"""Helper threads, and helper processes for jobs, behind the Spawner port."""

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from math import inf
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, TypeVar

from headrace.ports.disk import DataSync
from headrace.ports.real.disk import RealDisk
from headrace.ports.real.jobs import Jobs, ProcessJob
from headrace.ports.spawner import LANE_HELPERS, UNJOINED_LANES, BytesProcessed, Lane, LaneState, raise_failures

if TYPE_CHECKING:
    from headrace.ports.real.kernel_syncs import KernelSyncs

T = TypeVar("T")
_Completed = Callable[[Any, BaseException | None], None]


class _Line:
    """The queue and the threads of one lane. Threads are started as the first operations need them."""

    def __init__(self, lane: Lane, tell: Callable[["_Line", _Completed, Any, BaseException | None], None]) -> None:
        self.lane = lane
        self.in_flight = 0
        self.threads: list[threading.Thread] = []
        self._threads_max = LANE_HELPERS[lane]
        self._tell = tell
        self._queue: SimpleQueue[tuple[Callable[[], Any], _Completed] | None] = SimpleQueue()
        self._began: dict[int, float] = {}
        """When each thread began its current operation, by its number; on the clock of `time.monotonic`."""

    def put(self, operation: Callable[[], Any], completed: _Completed) -> None:
        self.in_flight += 1
        if len(self.threads) < min(self._threads_max, self.in_flight):
            self._start_thread(len(self.threads))
        self._queue.put((operation, completed))

    def _start_thread(self, number: int) -> None:
        name = f"headrace-{self.lane.label}-{number}"
        thread = threading.Thread(target=self._run, args=(number,), name=name, daemon=True)
        thread.start()
        self.threads.append(thread)

    def _run(self, number: int) -> None:
        while (work := self._queue.get()) is not None:
            self._began[number] = time.monotonic()
            operation, completed = work
            result: Any = None
            failure: BaseException | None = None
            try:
                result = operation()
            except BaseException as error:  # for any exception, the loop must get the completion
                failure = error
            del self._began[number]
            self._tell(self, completed, result, failure)
            del work, operation, completed, result, failure  # an idle thread keeps no object alive

    def began(self) -> float | None:
        """Return when the oldest running operation began."""
        return min(tuple(self._began.values()), default=None)

    def close(self) -> None:
        try:
            while True:
                self._queue.get_nowait()
                self.in_flight -= 1
        except Empty:
            pass
        for _ in self.threads:
            self._queue.put(None)
        if self.lane not in UNJOINED_LANES:
            for thread in self.threads:
                thread.join()
        self.threads.clear()


class ThreadSpawner:
    """A few daemon threads for each lane; `network_wake` ends the loop's wait.

    With `wake_on`, which ends the loop's wait by an eventfd, the kernel does the syncs of a real disk if possible.
    """

    def __init__(self, network_wake: Callable[[], None], *, wake_on: Callable[[int], None] | None = None) -> None:
        self._network_wake = network_wake
        self._lines = [_Line(lane, self._tell) for lane in Lane]
        self._ended: deque[tuple[_Line | None, _Completed, Any, BaseException | None]] = deque()
        self._jobs = Jobs(network_wake)
        self._wake_on = wake_on
        self._syncs: KernelSyncs | None = None
        self._closed = False

    def submit(
        self,
        operation: Callable[[], T],
        completed: Callable[[T | None, BaseException | None], None],
        lane: Lane = Lane.OTHER,
    ) -> None:
        if self._closed:
            raise RuntimeError("the spawner is closed")
        if type(operation) is DataSync and type(operation.disk) is RealDisk and self._sync(operation, completed):
            return
        self._lines[lane].put(operation, completed)

    def _sync(self, sync: DataSync, completed: _Completed) -> bool:
        """Return whether the kernel does the sync; its resources are created at the first sync, because most nodes
        never need one.
        """
        if self._wake_on is not None:
            self._syncs, wake_on, self._wake_on = _opened_syncs(), self._wake_on, None
            if self._syncs is not None:
                wake_on(self._syncs.token)
        return self._syncs is not None and self._syncs.begin(sync.file, sync.on_failure, completed)

    def _tell(self, line: _Line, completed: _Completed, result: Any, failure: BaseException | None) -> None:
        """Called by the threads."""
        self._ended.append((line, completed, result, failure))
        self._network_wake()

    def run_completions(self) -> int:
        ended = self._ended
        if self._syncs:
            ended.extend((None, *end) for end in self._syncs.ended())
        count = len(ended)
        failures: list[Exception] = []
        for _ in range(count):
            line, completed, result, failure = ended.popleft()
            if line is not None:
                line.in_flight -= 1
            try:
                completed(result, failure)
            except Exception as error:
                failures.append(error)
        if self._jobs:
            count += self._jobs.deliver(failures)
        raise_failures(failures)
        return count

    def start_job(
        self,
        job: Callable[[], Iterator[BytesProcessed | T]],
        each: Callable[[T], None],
        completed: Callable[[BaseException | None], None],
        *,
        bytes_per_second: float,
    ) -> ProcessJob:
        if self._closed:
            raise RuntimeError("the spawner is closed")
        return self._jobs.start(job, each, completed, bytes_per_second=bytes_per_second)

    def in_flight(self) -> int:
        kernel = 0 if self._syncs is None else len(self._syncs)
        return sum(line.in_flight for line in self._lines) + kernel + len(self._jobs)

    def lanes(self) -> list[LaneState]:
        return [self._state(line) for line in self._lines]

    def _state(self, line: _Line) -> LaneState:
        in_flight, began = line.in_flight, line.began()
        if line.lane is Lane.SYNC and self._syncs:
            in_flight += len(self._syncs)
            began = min(self._syncs.oldest_began(), began if began is not None else inf)
        return LaneState(line.lane, in_flight, 0.0 if began is None else 1000 * (time.monotonic() - began))

    def close(self) -> None:
        """Idempotent. Completions of operations that ran may still be taken with `run_completions`."""
        self._closed = True
        self._jobs.close()
        if self._syncs is not None:
            self._syncs.close()
            self._syncs = None
        for line in self._lines:
            line.close()


def _opened_syncs() -> "KernelSyncs | None":
    from headrace.ports.real.kernel_syncs import KernelSyncs

    try:
        return KernelSyncs()
    except OSError:
        return None
