"""Changed partitions whose replicas on this node have yet to take their roles: a limited number per turn, in order.

The metadata is read when the turn of a partition has come, so several changes of one partition are one.
"""

from collections.abc import Callable, Iterable, Sequence
from itertools import islice

from headrace.broker.timers import Timers
from headrace.model.ids import TopicPartition
from headrace.ports.spawner import call_all, raise_failures

ROLE_CHANGES_PER_TURN = 500
"""Partitions whose roles one turn changes; a change of role takes up to 10 us."""


class RoleChanges:
    def __init__(self, timers: Timers, change: Callable[[Sequence[TopicPartition]], list[Exception]]) -> None:
        """`change` gives the replicas of these partitions the roles of the current metadata, and returns failures."""
        self._timers = timers
        self._change = change
        self._waiting: dict[TopicPartition, None] = {}
        """A dictionary serves as an ordered set."""
        self._calls: list[Callable[[], None]] = []
        """Calls that wait until nothing else does."""
        self._is_due = False

    def add(self, changed: Iterable[TopicPartition]) -> None:
        """Change the first ones at once, unless earlier ones wait for their turn."""
        self._waiting.update(dict.fromkeys(changed))
        if self._waiting and not self._is_due:
            self._change_some()

    def when_done(self, call: Callable[[], None]) -> None:
        """Call back when every partition that was added has been changed."""
        if self._waiting:
            self._calls.append(call)
        else:
            call()

    def _change_some(self) -> None:
        some = list(islice(self._waiting, ROLE_CHANGES_PER_TURN))
        for partition in some:
            del self._waiting[partition]
        calls: list[Callable[[], None]] = []
        self._is_due = bool(self._waiting)
        if self._is_due:
            self._timers.next_turn(self._change_some)
        else:
            calls, self._calls = self._calls, calls
        call_all((lambda: raise_failures(self._change(some)), *calls))
