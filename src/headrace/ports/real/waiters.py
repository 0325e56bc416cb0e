"""One wait for many sockets: by epoll where the system has it, by `selectors` elsewhere."""

import select
import selectors
from typing import Protocol

from headrace.ports.network import BROKEN, HANGUP, READABLE, WRITABLE

POLL_EVENTS_MAX = 1024
"""Events that one wait returns; the next wait returns the others."""
MILLISECONDS_PER_SECOND = 1000.0


class Waiter(Protocol):
    def watch(self, token: int, interest: int) -> None: ...
    def forget(self, token: int) -> None: ...
    def poll(self, timeout_ms: float) -> list[tuple[int, int]]: ...
    def close(self) -> None: ...


class EpollWaiter:
    """Linux. A muted token still reports BROKEN, because epoll always reports it."""

    __slots__ = ("_epoll", "_events_by_mask", "_interests", "_masks")

    def __init__(self) -> None:
        self._epoll = select.epoll()
        self._interests: dict[int, int] = {}
        self._masks = [
            (select.EPOLLIN if interest & READABLE else 0)
            | (select.EPOLLOUT if interest & WRITABLE else 0)
            | (select.EPOLLRDHUP if interest & HANGUP else 0)
            for interest in range((READABLE | WRITABLE | BROKEN | HANGUP) + 1)
        ]
        known = select.EPOLLIN | select.EPOLLOUT | select.EPOLLERR | select.EPOLLHUP | select.EPOLLPRI
        known |= select.EPOLLRDHUP
        self._events_by_mask = [_events_of_mask(mask) for mask in range(known + 1)]

    def watch(self, token: int, interest: int) -> None:
        previous = self._interests.get(token)
        if previous is None:
            self._epoll.register(token, self._masks[interest])
        elif previous != interest:
            self._epoll.modify(token, self._masks[interest])
        self._interests[token] = interest

    def forget(self, token: int) -> None:
        if self._interests.pop(token, None) is not None:
            self._epoll.unregister(token)

    def poll(self, timeout_ms: float) -> list[tuple[int, int]]:
        timeout = timeout_ms / MILLISECONDS_PER_SECOND if timeout_ms >= 0 else None
        events = self._events_by_mask
        return [(token, events[mask]) for token, mask in self._epoll.poll(timeout, POLL_EVENTS_MAX)]

    def close(self) -> None:
        self._interests.clear()
        self._epoll.close()


def _events_of_mask(mask: int) -> int:
    events = READABLE if mask & (select.EPOLLIN | select.EPOLLPRI) else 0
    if mask & select.EPOLLOUT:
        events |= WRITABLE
    if mask & (select.EPOLLERR | select.EPOLLHUP | select.EPOLLRDHUP):
        events |= BROKEN
    return events


class SelectorWaiter:
    """Systems without epoll. A broken connection shows as ready, and its next call raises; HANGUP counts as no
    interest.
    """

    __slots__ = ("_interests", "_selector")

    def __init__(self, selector: selectors.BaseSelector | None = None) -> None:
        self._selector = selector if selector is not None else selectors.DefaultSelector()
        self._interests: dict[int, int] = {}

    def watch(self, token: int, interest: int) -> None:
        previous = self._interests.get(token, 0)
        interest &= READABLE | WRITABLE
        if previous and not interest:
            self._selector.unregister(token)
        elif interest and not previous:
            self._selector.register(token, interest)
        elif interest != previous:
            self._selector.modify(token, interest)
        self._interests[token] = interest

    def forget(self, token: int) -> None:
        if self._interests.pop(token, 0):
            self._selector.unregister(token)

    def poll(self, timeout_ms: float) -> list[tuple[int, int]]:
        timeout = timeout_ms / MILLISECONDS_PER_SECOND if timeout_ms >= 0 else None
        return [(key.fd, events) for key, events in self._selector.select(timeout)]

    def close(self) -> None:
        self._interests.clear()
        self._selector.close()


assert (selectors.EVENT_READ, selectors.EVENT_WRITE) == (READABLE, WRITABLE), "selectors' bits are the port's bits"


def best_waiter() -> Waiter:
    return EpollWaiter() if hasattr(select, "epoll") else SelectorWaiter()
