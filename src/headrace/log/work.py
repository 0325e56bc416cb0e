"""Work that may wait: what a helper runs away from the loop, and what the loop does when it has ended."""

from collections.abc import Callable
from typing import Any, NamedTuple


class NotStarted(Exception):
    """Given to `done` when no helper took the work: nothing was done, and nothing is wrong with the device."""


class Work(NamedTuple):
    """To be given to the Spawner as `submit(*work)`. `run` touches only what it was handed; `done` is for the loop."""

    run: Callable[[], Any]
    done: Callable[[Any, BaseException | None], None]

    def here(self) -> Any:
        """Run it in place, for whoever has no loop to keep going; what it gave."""
        try:
            result = self.run()
        except Exception as error:
            self.done(None, error)
            raise
        self.done(result, None)
        return result
