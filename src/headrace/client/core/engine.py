"""Run cores and operations on one set of links; every front drives it in its own way.

`step` sends what is due and returns when to call again; `handle` takes network events. A blocking front polls the
network in between; a front on a loop passes the loop's events.
"""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Protocol

from headrace.client.core.calls import Call, Operation, Pause, PendingCall
from headrace.client.core.links import Links
from headrace.client.errors import ClientError, DeadlineExceeded
from headrace.ports.clock import Clock

OPERATIONS_MAX = 10_000
"""Operations in progress at once."""


class Core(Protocol):
    """The decisions of a producer or a consumer."""

    def poll(self, now_ms: float) -> tuple[list[PendingCall], float]: ...


class _Running:
    """An operation and the replies that it waits for."""

    __slots__ = ("deadline_ms", "ended", "missing", "operation", "replies", "resume_ms")

    def __init__(self, operation: Operation[Any], deadline_ms: float, ended: Callable[[Any], None]) -> None:
        self.operation = operation
        self.deadline_ms = deadline_ms
        self.ended = ended
        self.replies: list[Any] = []
        self.missing = 0
        self.resume_ms: float | None = None


class ClientEngine:
    def __init__(self, links: Links, clock: Clock) -> None:
        self.trouble: ClientError | None = None
        """The error of the last reply, if it was one."""
        self.trouble_since_ms = 0.0
        self._links = links
        self._clock = clock
        self._cores: list[Core] = []
        self._paused: list[_Running] = []
        self._running: set[_Running] = set()

    def attach(self, core: Core) -> None:
        self._cores.append(core)

    def detach(self, core: Core) -> None:
        """Stop polling the core; replies to its calls still reach it."""
        self._cores.remove(core)

    def start(self, operation: Operation[Any], *, deadline_ms: float, ended: Callable[[Any], None]) -> None:
        """Begin an operation; `ended` gets its result or the error, perhaps at once."""
        assert len(self._running) < OPERATIONS_MAX, "operations are started faster than they end"
        running = _Running(operation, deadline_ms, ended)
        self._running.add(running)
        self._advance(running, None)

    def step(self) -> float:
        """Send what is due; return the time of the next call, unless something happens first."""
        now_ms = self._clock.monotonic_ms()
        wakeup_ms = self._resume(now_ms)
        for core in self._cores:
            calls, due_ms = core.poll(now_ms)
            wakeup_ms = min(wakeup_ms, due_ms)
            for pending in calls:
                self._links.submit(pending.call, partial(self._completed, pending))
        return wakeup_ms

    def stop(self, error: ClientError) -> None:
        """End every operation with this error."""
        self._paused.clear()
        for running in list(self._running):
            self._end(running, error)

    def _completed(self, pending: PendingCall, reply: Any) -> None:
        now_ms = self._clock.monotonic_ms()
        if not isinstance(reply, ClientError):
            self.trouble = None
        elif self.trouble is None:
            self.trouble, self.trouble_since_ms = reply, now_ms
        pending.completed(reply, now_ms)

    def _resume(self, now_ms: float) -> float:
        due = [running for running in self._paused if running.resume_ms is not None and running.resume_ms <= now_ms]
        for running in due:
            self._paused.remove(running)
            self._advance(running, [])
        return min((running.resume_ms or now_ms for running in self._paused), default=float("inf"))

    def _advance(self, running: _Running, replies: list[Any] | None) -> None:
        try:
            step = running.operation.send(replies) if replies is not None else next(running.operation)
        except StopIteration as end:
            self._end(running, end.value)
        except Exception as error:  # any exception is passed to the caller of the operation
            self._end(running, error)
        else:
            if isinstance(step, Pause):
                self._pause(running, step)
            else:
                self._call(running, step)

    def _pause(self, running: _Running, pause: Pause) -> None:
        running.resume_ms = self._clock.monotonic_ms() + pause.milliseconds
        if running.resume_ms >= running.deadline_ms:
            text = (
                "the cluster was not ready in time; check that its brokers are running and its partitions have leaders"
            )
            self._end(running, DeadlineExceeded(text))
        else:
            self._paused.append(running)

    def _call(self, running: _Running, calls: Iterable[Call]) -> None:
        wanted = tuple(calls)
        running.replies, running.missing = [None] * len(wanted), len(wanted)
        for place, call in enumerate(wanted):
            self._links.submit(call, partial(self._replied, running, place), deadline_ms=running.deadline_ms)
        if not wanted:
            self._advance(running, [])

    def _replied(self, running: _Running, place: int, reply: Any) -> None:
        running.replies[place] = reply
        running.missing -= 1
        if running.missing == 0 and running in self._running:
            self._advance(running, running.replies)

    def _end(self, running: _Running, result: Any) -> None:
        self._running.discard(running)
        running.operation.close()
        running.ended(result)
