"""Calls that wait for a reply, and their repetition at another address when a connection stays silent.

A server may respond to ApiVersions and hang afterwards. A call for any broker is then sent to another address as
well, if it may be carried out twice. The first response counts, or the last error if there is none.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from headrace.client.core.calls import ANY_BROKER, Call
from headrace.client.errors import ClientError
from headrace.wire.apis import ApiKey

NEVER = float("inf")

Completed = Callable[[Any], None]

REPETITIONS_MAX = 10
"""Repetitions of one call, over all addresses."""

_REPEATABLE = frozenset(
    {
        ApiKey.METADATA,
        ApiKey.DESCRIBE_CLUSTER,
        ApiKey.FIND_COORDINATOR,
        ApiKey.INIT_PRODUCER_ID,
        ApiKey.DESCRIBE_CONFIGS,
    }
)
"""A producer id that is given twice costs a number: calls for any broker have no transactional id."""


class Pending(NamedTuple):
    call: Call
    completed: Completed
    deadline_ms: float
    connect_by_ms: float = NEVER
    """When a call for any broker must have found one, however many addresses are tried."""

    is_repeated: bool = False
    """True if a copy was sent to another address because this connection stays silent."""

    @property
    def is_free(self) -> bool:
        """Return whether any broker can serve the call."""
        return self.call.target == ANY_BROKER


class FirstReply:
    """Passes one reply on, of all that come for the copies of a call."""

    def __init__(self, completed: Completed) -> None:
        self._completed = completed
        self._awaited = 1
        self._is_done = False
        self.repetitions = 0

    def repeat(self) -> None:
        self._awaited += 1
        self.repetitions += 1

    def __call__(self, reply: Any) -> None:
        self._awaited -= 1
        if self._is_done or (isinstance(reply, ClientError) and self._awaited):
            return
        self._is_done = True
        self._completed(reply)


def may_repeat(pending: Pending) -> bool:
    """Return whether the call may be sent to another address too, and was not yet because of this connection."""
    if pending.is_repeated or not pending.is_free or pending.call.api.API_KEY not in _REPEATABLE:
        return False
    return not isinstance(pending.completed, FirstReply) or pending.completed.repetitions < REPETITIONS_MAX


def repeated(pending: Pending) -> tuple[Pending, Pending]:
    """Return what takes the place of the call, and its copy for another address."""
    completed = pending.completed if isinstance(pending.completed, FirstReply) else FirstReply(pending.completed)
    completed.repeat()
    return pending._replace(completed=completed, is_repeated=True), pending._replace(completed=completed)
