"""Helper threads, and helper processes for jobs, behind the Spawner port."""

import threading
from collections import deque
from collections.abc import Callable, Iterator
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, TypeVar

from headrace.ports.disk import DataSync
from headrace.ports.real.disk import RealDisk
from headrace.ports.real.jobs import Jobs, ProcessJob
from headrace.ports.spawner import Spent, raise_failures

if TYPE_CHECKING:
    from headrace.ports.real.kernel_syncs import KernelSyncs

THREADS = 2
IN_FLIGHT_OPERATIONS_MAX = 65_536

T = TypeVar("T")
_Completed = Callable[[Any, BaseException | None], None]


class SpawnerFull(RuntimeError):
    """More operations are in flight than the named limit; this one did not run."""


class ThreadSpawner:
    """A few daemon threads, started as the first operations need them; `network_wake` ends the loop's wait.

    With `wake_on`, which has the loop's wait end by an eventfd, the syncs of a real disk go to the kernel if they can.
    """

    def __init__(
        self,
        network_wake: Callable[[], None],
        *,
        wake_on: Callable[[int], None] | None = None,
        threads: int = THREADS,
        in_flight_max: int = IN_FLIGHT_OPERATIONS_MAX,
    ) -> None:
        assert threads > 0
        assert in_flight_max > 0
        self._network_wake = network_wake
        self._threads_max = threads
        self._in_flight_max = in_flight_max
        self._threads: list[threading.Thread] = []
        self._queue: SimpleQueue[tuple[Callable[[], Any], _Completed] | None] = SimpleQueue()
        self._ended: deque[tuple[_Completed, Any, BaseException | None]] = deque()
        self._in_flight = 0
        self._jobs = Jobs(network_wake)
        self._wake_on = wake_on
        self._syncs: KernelSyncs | None = None
        self._closed = False

    def submit(self, operation: Callable[[], T], completed: Callable[[T | None, BaseException | None], None]) -> None:
        if self._closed:
            raise RuntimeError("the spawner is closed")
        self._in_flight += 1
        if self._in_flight > self._in_flight_max:
            self._ended.append((completed, None, SpawnerFull(f"{self._in_flight_max} operations are in flight")))
            self._network_wake()
            return
        if type(operation) is DataSync and type(operation.disk) is RealDisk and self._sync(operation, completed):
            return
        if len(self._threads) < min(self._threads_max, self._in_flight):
            self._start_thread()
        self._queue.put((operation, completed))

    def _sync(self, sync: DataSync, completed: _Completed) -> bool:
        """Whether the kernel does it; what that takes is made at the first sync, as most nodes never need one."""
        if self._wake_on is not None:
            self._syncs, wake_on, self._wake_on = _opened_syncs(), self._wake_on, None
            if self._syncs is not None:
                wake_on(self._syncs.token)
        return self._syncs is not None and self._syncs.begin(sync.file, sync.on_failure, completed)

    def _start_thread(self) -> None:
        name = f"headrace-spawner-{len(self._threads)}"
        thread = threading.Thread(target=self._run, name=name, daemon=True)
        thread.start()
        self._threads.append(thread)

    def _run(self) -> None:
        while (work := self._queue.get()) is not None:
            operation, completed = work
            result: Any = None
            failure: BaseException | None = None
            try:
                result = operation()
            except BaseException as error:  # whatever it is, the loop must hear of the end
                failure = error
            self._ended.append((completed, result, failure))
            self._network_wake()
            del work, operation, completed, result, failure  # an idle thread keeps nothing alive

    def run_completions(self) -> int:
        ended = self._ended
        if self._syncs:
            ended.extend(self._syncs.ended())
        count = len(ended)
        failures: list[Exception] = []
        for _ in range(count):
            completed, result, failure = ended.popleft()
            self._in_flight -= 1
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
        job: Callable[[], Iterator[Spent | T]],
        each: Callable[[T], None],
        completed: Callable[[BaseException | None], None],
        *,
        bytes_per_second: float,
    ) -> ProcessJob:
        if self._closed:
            raise RuntimeError("the spawner is closed")
        return self._jobs.start(job, each, completed, bytes_per_second=bytes_per_second)

    def in_flight(self) -> int:
        return self._in_flight + len(self._jobs)

    def close(self) -> None:
        """Idempotent. Completions of operations that ran may still be taken with `run_completions`."""
        self._closed = True
        self._jobs.close()
        if self._syncs is not None:
            self._in_flight -= len(self._syncs)
            self._syncs.close()
            self._syncs = None
        try:
            while True:
                self._queue.get_nowait()
                self._in_flight -= 1
        except Empty:
            pass
        for _ in self._threads:
            self._queue.put(None)
        for thread in self._threads:
            thread.join()
        self._threads.clear()


def _opened_syncs() -> "KernelSyncs | None":
    from headrace.ports.real.kernel_syncs import KernelSyncs

    try:
        return KernelSyncs()
    except OSError:
        return None
