"""Failures of tasks: an error that ends the task of a client is logged at once.

asyncio itself reports the error of a task when somebody awaits the task, or when the task is deleted. A consumer that
runs in a task which the program keeps until its end would fail without a word.
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
        """The client raises this error in the current task; log it if the task ends with it."""
        try:
            task = asyncio.current_task()
        except RuntimeError:
            return  # A forked process has no running loop.
        self._error = error
        if task is not None and task is not self._task:
            self._task = task
            task.add_done_callback(self._ended)

    def clear(self) -> None:
        """The task has gone on after the last error."""
        self._error = None

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._task = None
        if self._error is not None and not task.cancelled() and task.exception() is self._error:
            logger.error("%r ended task %r: %s", self._owner, task.get_name(), self._error)
        self._error = None
