"""Blocking work: a function for a helper thread, and a completion for the loop."""

from collections.abc import Callable
from typing import Any, NamedTuple


class NotStarted(Exception):
    """Passed to `done` when no helper thread took the work: nothing was done, and the device is not at fault."""


class Work(NamedTuple):
    """Arguments for the Spawner: `submit(*work)`. `run` touches only its own arguments; `done` runs on the loop."""

    run: Callable[[], Any]
    done: Callable[[Any, BaseException | None], None]

    def run_inline(self) -> Any:
        """Run the work in the calling thread and return its result, for callers without a loop."""
        try:
            result = self.run()
        except Exception as error:
            self.done(None, error)
            raise
        self.done(result, None)
        return result
