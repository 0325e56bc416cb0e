"""A client whose work is a list of steps, one request each, executed in order."""

from collections.abc import Callable
from typing import Any

from headrace.sim.context import RunContext
from headrace.sim.workloads.client import Client
from headrace.wire.apis import ApiKey

Step = Callable[[], None]


class SteppingClient(Client):
    """A step stays the first until a subclass removes it, so that an unanswered one is sent again."""

    def __init__(self, context: RunContext, name: str) -> None:
        super().__init__(context, name)
        self._steps: list[Step] = []
        self._waits = self._hurries = False
        self._next_ms = 0.0
        self._committed_before = 0
        self.committed = 0

    def lost(self) -> None:
        self._waits = False

    @property
    def settled(self) -> bool:
        return not self._waits and not self._steps

    def hurry(self) -> None:
        self._hurries = True
        self._next_ms = 0.0
        self._committed_before = self.committed

    def has_progressed(self) -> bool:
        return self.committed > self._committed_before

    def work(self) -> None:
        if not self._waits and self.now_ms >= self._next_ms:
            self.resume()

    def resume(self) -> None:
        """Continue: no response is awaited, and the pause is over."""
        raise NotImplementedError

    def _request(self, api_key: ApiKey, version: int, message: object, handle: Callable[[Any], object]) -> None:
        self._waits = True

        def answered(response: Any) -> None:
            self._waits = False
            handle(response)

        self.ask(api_key, version, message, answered)

    def _rest(self, longest_ms: int) -> None:
        self._next_ms = self.now_ms + self.entropy.below(longest_ms)
