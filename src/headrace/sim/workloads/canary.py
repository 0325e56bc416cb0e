"""A healthy client on a healthy link, whatever happens to the others: it must get its responses, and soon."""

from typing import Any

from headrace.sim.checkers.violation import Violation
from headrace.sim.context import RunContext
from headrace.sim.workloads import requests
from headrace.sim.workloads.client import Client
from headrace.wire.apis import ApiKey
from headrace.wire.messages.api_versions import ApiVersionsRequest

API_VERSIONS = 3
PAUSE_MS_MAX = 1_000
ANSWER_MS_MAX = 5_000
"""Counts only time in which the node has its turns and accepts clients."""
ANSWERED_SOON = "a healthy client gets its responses"
SERVED_MEANWHILE = "answer while a commit waits"


class Canary(Client):
    """Sends requests that need no disk and no commit; a piece of a stream may still be late, so the limit is
    generous.
    """

    def __init__(self, context: RunContext) -> None:
        super().__init__(context, "canary")
        self._next_ms = 0.0
        self._waited_ms = 0.0
        self._waits = False
        self._last_step_ms = 0.0
        self._answers = 0
        self._answers_before = 0

    def hurry(self) -> None:
        self._answers_before = self._answers

    def has_progressed(self) -> bool:
        return self._answers > self._answers_before

    def connected(self) -> None:
        self._waits = False

    def lost(self) -> None:
        self._waits = False

    def step(self) -> None:
        elapsed_ms, self._last_step_ms = self.now_ms - self._last_step_ms, self.now_ms
        super().step()
        if not self._waits:
            self._waited_ms = 0.0
        elif self.context.virtual.serves:
            self._waited_ms += elapsed_ms
            if self._waited_ms > ANSWER_MS_MAX:
                raise Violation(ANSWERED_SOON, f"no response for {self._waited_ms:.0f} ms of service")

    def work(self) -> None:
        if self._waits or self.now_ms < self._next_ms:
            return
        self._waits = True
        if self.entropy.below(2):
            self.ask(ApiKey.API_VERSIONS, API_VERSIONS, ApiVersionsRequest(), self._answered)
        else:
            names = [plan.name for plan in self.context.plans]
            self.ask(ApiKey.METADATA, requests.METADATA, requests.topic_names(*names), self._answered)

    def _answered(self, response: Any) -> None:
        self._waits = False
        self._answers += 1
        if self.context.virtual.machine.spawner.holds_a_commit():
            self.context.world.trace.count_fault(SERVED_MEANWHILE)
        self._next_ms = self.now_ms + self.entropy.below(PAUSE_MS_MAX)
