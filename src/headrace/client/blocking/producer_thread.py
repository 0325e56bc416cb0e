"""The thread of a producer: it sends and receives while the producer exists, and delivers the records left behind."""

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
"""Attempts to find a producer that is about to be handed over to its thread."""


class Driven(Protocol):
    def _turn(self, events: Iterable[Any], *, is_last: bool) -> float | None:
        """Do what is due; return the milliseconds to wait for the network, or None at the end.

        With `is_last` no more records come: it ends when all are delivered or have failed.
        """

    def _stop(self, fault: BaseException) -> None: ...


def drive(owner: "weakref.ref[Driven]", forgotten: deque[Driven], network: RealNetwork, _links: "Links") -> None:
    """Run until the producer is closed. A producer without references is put among the forgotten ones.

    This thread holds the links only to keep them alive: the garbage collector would close the sockets it finds together
    with a producer, although the producer lives on.
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
        del driven  # Otherwise this thread would keep it alive.
        try:
            events = network.poll(wait_ms)
        except BaseException as fault:
            driven = kept or owner()
            if driven is not None:
                driven._stop(fault)
            raise


def _handed_over(forgotten: deque[Driven]) -> Driven | None:
    """Return the producer if it was handed over: the garbage collector clears the reference a moment before."""
    for _ in range(FORGOTTEN_LOOKS_MAX):
        if forgotten:
            return forgotten.popleft()
        sleep(FORGOTTEN_LOOK_S)
    return None
