"""Signals to end a run: held back while a worker is started, and taken by the worker."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager

STOPS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def held_back() -> Iterator[None]:
    """While a worker may be started: nobody would end one that is not known yet, and it would wait for ever."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, STOPS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def take() -> None:
    """A worker begins with them held back, and so would the brokers that it starts."""
    signal.pthread_sigmask(signal.SIG_UNBLOCK, STOPS)
