"""Log an error that ends the task of a client at once.

asyncio reports the error of a task only when the task is awaited or deleted. A consumer in a task that the program
keeps until its end would otherwise fail silently.
"""

import asyncio
import logging
from typing import Any

logger = logging.getLogger("headrace.client")


class TaskFailures:
    """Watches the tasks that call one client."""

    def __init__(self, owner: object) -> None:
        self._owner = owner
        self._task: asyncio.Task[Any] | None = None
        self._error: Exception | None = None

    def note(self, error: Exception) -> None:
        """Note that the client raises this error in the current task; log it if the task ends with it."""
        try:
            task = asyncio.current_task()
        except RuntimeError:
            return  # A forked process has no running loop.
        self._error = error
        if task is not None and task is not self._task:
            self._task = task
            task.add_done_callback(self._ended)

    def clear(self) -> None:
        """Forget the last error: the task has continued after it."""
        self._error = None

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._task = None
        if self._error is not None and not task.cancelled() and task.exception() is self._error:
            logger.error("%r ended task %r: %s", self._owner, task.get_name(), self._error)
        self._error = None
