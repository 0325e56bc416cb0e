"""Jobs of the Spawner port in one thread: each is a generator whose steps are spread over turns that the seed draws."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from headrace.ports.spawner import BytesProcessed
from headrace.sim.entropy import SeededEntropy
from headrace.sim.trace import Trace

STEPS_PER_TURN_MAX = 4


@dataclass(slots=True, eq=False)
class VirtualJob:
    name: str
    steps: Iterator[Any]
    each: Callable[[Any], None]
    completed: Callable[[BaseException | None], None]
    ended: bool = False

    def cancel(self) -> None:
        self.ended = True


class VirtualJobs:
    def __init__(self, entropy: SeededEntropy, trace: Trace) -> None:
        self._entropy = entropy
        self._trace = trace
        self._running: list[VirtualJob] = []

    def __len__(self) -> int:
        return len(self._running)

    def start(
        self,
        name: str,
        job: Callable[[], Iterator[Any]],
        each: Callable[[Any], None],
        completed: Callable[[BaseException | None], None],
    ) -> VirtualJob:
        self._trace.record(f"job started {name}")
        started = VirtualJob(name, job(), each, completed)
        self._running.append(started)
        return started

    def work(self, failures: list[Exception]) -> int:
        """Run one turn's share of every job; return how many sent a message. Errors are added to `failures`."""
        told = 0
        for job in tuple(self._running):
            for _ in range(self._entropy.below(STEPS_PER_TURN_MAX + 1)):
                if job.ended:
                    break
                try:
                    told += self._step(job)
                except Exception as error:
                    failures.append(error)
        self._running = [job for job in self._running if not job.ended]
        return told

    def kill(self) -> None:
        """Kill the processes between two of their steps."""
        self._running.clear()

    def _step(self, job: VirtualJob) -> int:
        failure: BaseException | None = None
        try:
            result = next(job.steps)
        except StopIteration:
            job.ended = True
        except Exception as error:
            job.ended = True
            failure = error
        else:
            if isinstance(result, BytesProcessed):
                return 0
            job.each(result)
            return 1
        self._trace.record(f"job ended {job.name} {type(failure).__name__}")
        job.completed(failure)
        return 1
