"""The thread of a producer: it sends and receives while the producer is there, and delivers what one left behind."""

import weakref
from collections import deque
from collections.abc import Iterable
from time import sleep
from typing import TYPE_CHECKING, Any, Protocol

from headrace.ports.real.network import RealNetwork

if TYPE_CHECKING:
    from headrace.client.core.links import Links

FORGOTTEN_LOOK_S = 0.01
FORGOTTEN_LOOKS_MAX = 1_000
"""How often a producer is looked for that is about to be handed over."""


class Driven(Protocol):
    def _turn(self, events: Iterable[Any], *, is_last: bool) -> float | None:
        """Do what is due; how many milliseconds to wait for the network then, None at the end.

        With `is_last` nobody gives it anything more: it ends when all is delivered or given up.
        """

    def _stop(self, fault: BaseException) -> None: ...


def drive(owner: "weakref.ref[Driven]", forgotten: deque[Driven], network: RealNetwork, _links: "Links") -> None:
    """Until it is closed. A producer that nobody has any more puts itself among the forgotten.

    The links are only held: the collector of cycles closes sockets that it finds together with a producer, although
    that one lives on.
    """
    kept: Driven | None = None
    events: Iterable[Any] = ()
    while True:
        driven = kept or owner()
        if kept is None and (forgotten or driven is None):
            driven = kept = _handed_over(forgotten)
        wait_ms = driven._turn(events, is_last=kept is not None) if driven is not None else None
        if wait_ms is None:
            return
        del driven  # Else this thread would keep it alive.
        try:
            events = network.poll(wait_ms)
        except BaseException as fault:
            driven = kept or owner()
            if driven is not None:
                driven._stop(fault)
            raise


def _handed_over(forgotten: deque[Driven]) -> Driven | None:
    """The collector of cycles takes the reference away a moment before."""
    for _ in range(FORGOTTEN_LOOKS_MAX):
        if forgotten:
            return forgotten.popleft()
        sleep(FORGOTTEN_LOOK_S)
    return None
