"""The Spawner port in one thread: operations run, and their completions come, in turns that the seed draws."""

import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

from headrace.ports.spawner import LANE_HELPERS, BytesProcessed, Lane, LaneState, raise_failures
from headrace.sim.entropy import SeededEntropy
from headrace.sim.jobs import VirtualJob, VirtualJobs
from headrace.sim.trace import Trace

DELAY_TURNS_MAX = 3
LONG_DELAY_TURNS_MAX = 200
METADATA_COMMIT = "metadata commit"
LATER_ANSWERS = {
    METADATA_COMMIT: ("sync_metadata",),
    "sync": ("DataSync", "_sync.<locals>.run"),
    "read of cold pages": ("read_ahead",),
    "offset by time": ("TimeSearch",),
}
"""Responses that come in a later turn, with parts of the names of the operations that produce them."""
OTHER_WORK = "other work"
SWAP = "swap_work"
"""Part of the name of the operation that ends a compaction."""
CLEANED = "compacted segment put in place"

T = TypeVar("T")


@dataclass(slots=True, eq=False)
class _Work:
    name: str
    lane: Lane
    operation: Callable[[], Any]
    completed: Callable[[Any, BaseException | None], None]
    turns_left: int
    runs_first: bool
    """True if it acts on the disk when it starts or only when it ends: a power cut between makes the difference."""
    injected: BaseException | None
    lost: bool
    result: Any = None
    failure: BaseException | None = None
    has_run: bool = False
    began_ms: float = 0.0

    def run(self) -> None:
        self.has_run = True
        if self.injected is not None:
            self.failure = self.injected
            return
        try:
            self.result = self.operation()
        except Exception as error:
            self.failure = error


class VirtualSpawner:
    """`delay_turns_max` 0 runs an operation at once; its completion still waits for `run_completions`.

    `long_delays_one_in` and `losses_one_in` are rates (0: never): of operations that take up to 200 turns, and of
    awaited operations whose completion never comes.
    """

    def __init__(
        self,
        entropy: SeededEntropy,
        trace: Trace,
        *,
        delay_turns_max: int = DELAY_TURNS_MAX,
        now_ms: Callable[[], float] = lambda: 0.0,
    ) -> None:
        self.delay_turns_max = delay_turns_max
        self.long_delays_one_in = 0
        self.losses_one_in = 0
        self._entropy = entropy
        self._trace = trace
        self._now_ms = now_ms
        self._jobs = VirtualJobs(entropy, trace)
        self._queued: list[_Work] = []
        self._running: list[_Work] = []
        self._failures: list[tuple[str, BaseException]] = []
        self._losses: list[str] = []
        self._held: list[str] = []
        self._lost = 0

    def submit(
        self,
        operation: Callable[[], T],
        completed: Callable[[T | None, BaseException | None], None],
        lane: Lane = Lane.OTHER,
    ) -> None:
        name = _name(operation)
        work = _Work(
            name=name,
            lane=lane,
            operation=operation,
            completed=completed,
            turns_left=self._drawn_delay(name),
            runs_first=self.delay_turns_max == 0 or self._entropy.below(2) == 0,
            injected=self._planned_failure(name),
            lost=self._planned_loss(name) or self._draws_loss(name),
        )
        self._queued.append(work)
        self._start()

    def run_completions(self) -> int:
        self._start()
        ended: list[_Work] = []
        if self._running:
            ended = [work for work in self._running if work.turns_left == 0 and not self._is_held(work)]
            for work in self._running:
                work.turns_left = max(0, work.turns_left - 1)
            self._running = [work for work in self._running if work not in ended]
        failures: list[Exception] = []
        for work in ended:
            try:
                self._end(work)
            except Exception as error:
                failures.append(error)
        told = self._jobs.work(failures)
        raise_failures(failures)
        return len(ended) + told

    def start_job(
        self,
        job: Callable[[], Iterator[BytesProcessed | T]],
        each: Callable[[T], None],
        completed: Callable[[BaseException | None], None],
        *,
        bytes_per_second: float,
    ) -> VirtualJob:
        """Start a job; its steps run in later turns, a few each; the rate is that of the real spawner."""
        return self._jobs.start(_name(job), job, each, completed)

    def in_flight(self) -> int:
        return len(self._queued) + len(self._running) + self._lost + len(self._jobs)

    def lanes(self) -> list[LaneState]:
        works, now_ms = (*self._running, *self._queued), self._now_ms()
        return [
            LaneState(
                lane,
                sum(work.lane is lane for work in works),
                max((now_ms - work.began_ms for work in self._running if work.lane is lane), default=0.0),
            )
            for lane in Lane
        ]

    @property
    def lost(self) -> int:
        """Return the completions that never came."""
        return self._lost

    def close(self) -> None:
        """Let the running operations end on the disk, as joined threads would, without completions."""
        for work in self._running:
            if not work.has_run:
                work.run()
        self._queued.clear()
        self._running.clear()
        self._jobs.kill()

    def kill(self) -> None:
        """End the process: operations that have not run yet never do."""
        self._jobs.kill()
        self._queued.clear()
        self._running.clear()

    # Faults that tests inject; a name matches if it is part of the operation's qualified name

    def fail_next(self, error: BaseException, *, name_contains: str = "") -> None:
        """Let the next matching operation fail with `error` without running."""
        self._failures.append((name_contains, error))

    def lose_next(self, *, name_contains: str = "") -> None:
        """Run the next matching operation, but never call its completion."""
        self._losses.append(name_contains)

    def hold(self, *, name_contains: str = "") -> None:
        """Keep matching operations from ending until `release`; they do not block helper threads."""
        self._held.append(name_contains)

    def release(self) -> None:
        self._held.clear()

    def heal(self) -> None:
        """End all delays and losses, also of operations in progress."""
        self.long_delays_one_in = self.losses_one_in = 0
        for work in (*self._running, *self._queued):
            work.lost = False
            work.turns_left = min(work.turns_left, self.delay_turns_max)

    def waiting_names(self) -> list[str]:
        return [work.name for work in (*self._running, *self._queued)]

    def holds_a_commit(self) -> bool:
        """Return whether a metadata commit waits for a helper thread."""
        return any(_kind(name) == METADATA_COMMIT for name in self.waiting_names())

    # Internals

    def _start(self) -> None:
        """Start as many operations of each lane as it has helper threads, in order of arrival: that many may overtake
        one another.
        """
        if not self._queued:
            return
        free = dict(LANE_HELPERS)
        for work in self._running:
            free[work.lane] -= not self._is_held(work)
        waiting, self._queued = self._queued, []
        for work in waiting:
            if free[work.lane] <= 0:
                self._queued.append(work)
                continue
            self._running.append(work)
            work.began_ms = self._now_ms()
            free[work.lane] -= not self._is_held(work)
            if work.runs_first and not self._is_held(work):
                work.run()

    def _end(self, work: _Work) -> None:
        if not work.has_run:
            work.run()
        if work.lost:
            self._lost += 1
            self._trace.count_fault(f"{_kind(work.name)} lost")
            self._trace.record(f"spawner lost {work.name}")
            return
        self._trace.record(f"spawner ended {work.name} {type(work.failure).__name__}")
        if SWAP in work.name and work.failure is None:
            self._trace.count_fault(CLEANED)
        work.completed(work.result, work.failure)

    def _is_held(self, work: _Work) -> bool:
        return bool(self._held) and any(part in work.name for part in self._held)

    def _drawn_delay(self, name: str) -> int:
        if self._entropy.one_in(self.long_delays_one_in):
            self._trace.count_fault(f"{_kind(name)} delayed")
            return self._entropy.below(LONG_DELAY_TURNS_MAX + 1)
        return self._entropy.below(self.delay_turns_max + 1)

    def _draws_loss(self, name: str) -> bool:
        return _kind(name) != OTHER_WORK and self._entropy.one_in(self.losses_one_in)

    def _planned_failure(self, name: str) -> BaseException | None:
        for index, (part, error) in enumerate(self._failures):
            if part in name:
                del self._failures[index]
                return error
        return None

    def _planned_loss(self, name: str) -> bool:
        for index, part in enumerate(self._losses):
            if part in name:
                del self._losses[index]
                return True
        return False


def _kind(name: str) -> str:
    return next((kind for kind, parts in LATER_ANSWERS.items() if any(part in name for part in parts)), OTHER_WORK)


def _name(operation: Callable[..., object]) -> str:
    while isinstance(operation, functools.partial):
        operation = operation.func
    return getattr(operation, "__qualname__", type(operation).__qualname__)
