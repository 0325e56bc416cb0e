"""Drive a consumer's network: the application's thread while it polls, a heartbeat thread while it works.

A group member must send heartbeats even while the application processes records. The two threads never drive at once:
the heartbeat thread begins when the application has been away for a moment, and stops as soon as it returns.
"""

import os
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager

from headrace.client.blocking.session import Session

AWAY_MS = 50
"""Time after which the heartbeat thread drives while the application is away."""

KEEPER_TURN_MS = 1_000
KEEPER_JOIN_MS = 5_000


class SessionDriver:
    """Exclusive access to a session; `with driver:` takes it for the application."""

    def __init__(self, session: Session) -> None:
        self._session = session
        # A reentrant lock: Ctrl-C in `__enter__` or `__exit__` may leave it held, and closing the consumer must not
        # wait for it then.
        self._lock = threading.RLock()
        self._is_wanted = False
        self._keeper: threading.Thread | None = None
        self._stopped = threading.Event()
        self._left_ms = 0.0

    def start(self) -> None:
        """Start the heartbeat thread, which drives while the application is away."""
        if self._keeper is None:
            self._keeper = threading.Thread(
                target=_run_heartbeats, args=(weakref.ref(self), self._stopped), name="headrace-consumer", daemon=True
            )
            self._keeper.start()

    def stop(self) -> None:
        """Stop the heartbeat thread; called by the application's thread, outside of its turn."""
        self._stopped.set()
        if self._keeper is not None and self._session.process_id == os.getpid():
            self._is_wanted = True
            self._session.network.wake()
            self._keeper.join(KEEPER_JOIN_MS / 1000)
            self._is_wanted = False

    def __enter__(self) -> None:
        self._session.check_own_process()  # In a forked child the heartbeat thread's lock would never be released.
        if not self._lock.acquire(blocking=False):
            self._is_wanted = True
            self._session.network.wake()
            self._lock.acquire()
            self._is_wanted = False

    def __exit__(self, *_exception: object) -> None:
        self._left_ms = self._session.clock.monotonic_ms()
        self._lock.release()

    @contextmanager
    def away(self) -> Iterator[None]:
        """Within the application's turn: let the heartbeat thread drive while the application's own code runs."""
        self.__exit__()
        try:
            yield
        finally:
            self.__enter__()

    def drive_while_away(self) -> None:
        """Run one turn of the heartbeat thread, if no other thread drives."""
        session = self._session
        if session.clock.monotonic_ms() - self._left_ms < AWAY_MS or not self._lock.acquire(blocking=False):
            return
        try:
            if not self._is_wanted and not self._stopped.is_set() and not session.is_closed:
                session.turn(session.clock.monotonic_ms() + KEEPER_TURN_MS)
        finally:
            self._lock.release()


def _run_heartbeats(owner: "weakref.ref[SessionDriver]", stopped: threading.Event) -> None:
    """The heartbeat thread; it also ends when the consumer was garbage-collected without being closed."""
    while not stopped.wait(AWAY_MS / 1000):
        driver = owner()
        if driver is None:
            return
        driver.drive_while_away()
        del driver
