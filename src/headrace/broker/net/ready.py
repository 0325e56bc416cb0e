"""Ready connections that one turn has no time for, and their order in the next.

Whoever became ready since then is served before a part of those who wait: a client with a small request is not behind
a thousand that came at once, and those who wait go on all the same.
"""

from collections.abc import Callable, Sequence

from headrace.model.limits import EVENTS_BETWEEN_LOOKS
from headrace.ports.network import BROKEN

Event = tuple[int, int]
"""(token, what it is ready for)."""


class Ready:
    def __init__(self) -> None:
        self._waiting: list[Event] = []

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def groups(self, fresh: Sequence[Event], is_wanted: Callable[[Event], bool]) -> list[list[Event]]:
        """To be served a few at a time: new ones and those who wait in turns."""
        waiting, self._waiting = [event for event in self._waiting if is_wanted(event)], []
        if waiting:
            known = {token for token, _ in waiting}
            fresh = [event for event in fresh if event[0] not in known]
        few = EVENTS_BETWEEN_LOOKS
        return [[*fresh[at : at + few], *waiting[at : at + few]] for at in range(0, max(len(fresh), len(waiting)), few)]

    def put_off(self, groups: Sequence[Sequence[Event]]) -> None:
        """They wait until the next turn."""
        self._waiting = [_lasting(event) for group in groups for event in group]


def _lasting(event: Event) -> Event:
    """What may be believed a turn later: not that a connection broke, as its token may be another one's by then. The
    next poll tells again."""
    return event[0], event[1] & ~BROKEN
