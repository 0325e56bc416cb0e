"""Who drives a consumer's network: the application while it waits for records, a keeper thread while it works.

A member of a group must send heartbeats also while the application is busy with records. The application's thread and
the keeper never drive at once: the keeper begins when the application has been away for a moment, and stops as soon
as it comes back.
"""

import os
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager

from headrace.client.blocking.session import Session

AWAY_MS = 50
"""How long the application is away before the keeper drives."""

KEEPER_TURN_MS = 1_000
KEEPER_JOIN_MS = 5_000


class Driver:
    """The right to drive a session; `with driver:` is the application's."""

    def __init__(self, session: Session) -> None:
        self._session = session
        # One that its thread can take again: Ctrl-C in `__enter__` or `__exit__` may leave it taken, and closing the
        # consumer must not wait for it then.
        self._lock = threading.RLock()
        self._is_wanted = False
        self._keeper: threading.Thread | None = None
        self._stopped = threading.Event()
        self._left_ms = 0.0

    def keep(self) -> None:
        """From now on a thread drives while the application is away."""
        if self._keeper is None:
            self._keeper = threading.Thread(
                target=_keep, args=(weakref.ref(self), self._stopped), name="headrace-consumer", daemon=True
            )
            self._keeper.start()

    def stop(self) -> None:
        """End the keeper; called by the application's thread, outside of its turn."""
        self._stopped.set()
        if self._keeper is not None and self._session.process_id == os.getpid():
            self._is_wanted = True
            self._session.network.wake()
            self._keeper.join(KEEPER_JOIN_MS / 1000)
            self._is_wanted = False

    def __enter__(self) -> None:
        self._session.check_own_process()  # In a child of a fork the keeper's lock would never be given back.
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
        """Within the application's turn: let the keeper drive while the application's own code runs."""
        self.__exit__()
        try:
            yield
        finally:
            self.__enter__()

    def drive_while_away(self) -> None:
        """One turn of the keeper, if nobody else drives."""
        session = self._session
        if session.clock.monotonic_ms() - self._left_ms < AWAY_MS or not self._lock.acquire(blocking=False):
            return
        try:
            if not self._is_wanted and not self._stopped.is_set() and not session.is_closed:
                session.turn(session.clock.monotonic_ms() + KEEPER_TURN_MS)
        finally:
            self._lock.release()


def _keep(owner: "weakref.ref[Driver]", stopped: threading.Event) -> None:
    """The keeper's thread; ends also when the consumer was forgotten without being closed."""
    while not stopped.wait(AWAY_MS / 1000):
        driver = owner()
        if driver is None:
            return
        driver.drive_while_away()
        del driver
