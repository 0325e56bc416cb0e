"""Searches of offsets by timestamp: scheduled fairly between connections, and limited.

A lookup may have to decompress a batch of a million records, and a request of a few bytes can ask for many. So lookups
have their own lane (`ports/spawner.py`), few run at once, connections take turns, and lookups of a closed connection
are dropped. Above the named limits a lookup is refused, and the client retries.
"""

from collections import deque
from collections.abc import Callable, Iterator
from functools import partial

from headrace.broker.metrics import Family
from headrace.broker.net.connection import Connection
from headrace.broker.timers import Timer, Timers
from headrace.log.partition_log import PartitionLog
from headrace.log.times import SearchCancelled, TimeSearch, TimestampedOffset
from headrace.model.limits import (
    LOOKUP_MS_MAX,
    LOOKUPS_AT_ONCE_MAX,
    LOOKUPS_GIVEN_UP_PER_TURN_MAX,
    LOOKUPS_MAX,
    LOOKUPS_PER_CONNECTION_MAX,
    LOOKUPS_SHARE_MIN,
)
from headrace.ports.disk import FileHandle
from headrace.ports.spawner import Lane, Spawner

Done = Callable[[TimestampedOffset | None, BaseException | None], None]


class LookupRefused(Exception):
    """A lookup was refused because too many wait, or it took too long; the client may retry."""


class _Lookup:
    __slots__ = ("done", "generation", "log", "make_search", "owner", "requested_ms", "search", "timer")

    def __init__(
        self,
        owner: "_ConnectionLookups",
        log: PartitionLog,
        make_search: Callable[[], TimeSearch],
        done: Done,
        requested_ms: float,
    ) -> None:
        self.owner = owner
        self.requested_ms = requested_ms
        self.log = log
        self.make_search = make_search
        self.done: Done | None = done
        """None once it was called."""
        self.search: TimeSearch | None = None
        self.timer: Timer | None = None
        """Set while the lookup is running."""
        self.generation = 0


class _ConnectionLookups:
    """The lookups of one connection."""

    def __init__(self, lookups: "Lookups", connection: Connection) -> None:
        self._lookups = lookups
        self.connection = connection
        self.waiting: deque[_Lookup] = deque()
        self.all: dict[_Lookup, None] = {}
        """Lookups that wait or run."""

    def abandon(self) -> None:
        self._end(SearchCancelled())

    def answer_now(self) -> None:
        self._end(LookupRefused("the broker stops"))

    def files(self) -> Iterator[FileHandle]:
        return iter(())

    def _end(self, reason: Exception) -> None:
        self.waiting.clear()
        for lookup in tuple(self.all):
            self._lookups.end(lookup, None, reason)


class Lookups:
    def __init__(self, spawner: Spawner, timers: Timers) -> None:
        self._spawner = spawner
        self._timers = timers
        self._by_connection: dict[Connection, _ConnectionLookups] = {}
        self._queue: deque[_ConnectionLookups] = deque()
        """Connections with lookups that wait; the first is next."""
        self._start_is_due = False
        """True while the next turn is due to start further lookups."""
        self._running = 0
        self._count = 0
        self.refused = 0

    def __len__(self) -> int:
        return self._count

    def add(self, connection: Connection, log: PartitionLog, make_search: Callable[[], TimeSearch], done: Done) -> bool:
        """Run the search when its turn comes; return False if it is refused for now.

        `done` is called in a later turn, with the result or the error.
        """
        owner = self._by_connection.get(connection)
        if owner is None:
            owner = _ConnectionLookups(self, connection)
        elif self._is_full(owner):
            self.refused += 1
            return False
        self._by_connection[connection] = owner
        connection.parked[owner] = None
        lookup = _Lookup(owner, log, make_search, done, self._timers.now_ms())
        owner.all[lookup] = None
        self._count += 1
        if not owner.waiting:
            self._queue.append(owner)
        owner.waiting.append(lookup)
        self._start_later()
        return True

    def _is_full(self, owner: _ConnectionLookups) -> bool:
        """Return whether the connection is at its limit, which is lower while all together have too many."""
        if len(owner.all) >= LOOKUPS_PER_CONNECTION_MAX:
            return True
        return self._count >= LOOKUPS_MAX and len(owner.all) >= max(
            LOOKUPS_MAX // len(self._by_connection), LOOKUPS_SHARE_MIN
        )

    def _start_later(self) -> None:
        if self._queue and self._running < LOOKUPS_AT_ONCE_MAX and not self._start_is_due:
            self._start_is_due = True
            self._timers.next_turn(self._start_waiting)

    def _start_waiting(self) -> None:
        self._start_is_due = False
        given_up, too_old_ms = 0, self._timers.now_ms() - LOOKUP_MS_MAX
        while self._queue and self._running < LOOKUPS_AT_ONCE_MAX:
            owner = self._queue.popleft()
            if not owner.waiting:
                continue  # its connection is closed
            lookup = owner.waiting.popleft()
            if owner.waiting:
                self._queue.append(owner)
            if lookup.requested_ms > too_old_ms:
                self._start(lookup)
                continue
            self._give_up(lookup)
            given_up += 1
            if given_up == LOOKUPS_GIVEN_UP_PER_TURN_MAX:
                self._start_later()
                return

    def _start(self, lookup: _Lookup) -> None:
        self._running += 1
        lookup.timer = self._timers.after(LOOKUP_MS_MAX, partial(self._took_too_long, lookup))
        self._begin(lookup)

    def _begin(self, lookup: _Lookup) -> None:
        lookup.generation = lookup.log.names_generation
        try:
            lookup.search = lookup.make_search()
        except OSError as error:
            self._release(lookup)
            self.end(lookup, None, error)
            return

        def completed(found: TimestampedOffset | None, error: BaseException | None) -> None:
            if self._is_outdated(lookup):
                self._begin(lookup)
                return
            try:
                self.end(lookup, found, error)
            finally:
                self._release(lookup)

        self._spawner.submit(lookup.search, completed, Lane.LOOKUP)

    def _is_outdated(self, lookup: _Lookup) -> bool:
        """Return whether to search again: a search opens segments by name, and compaction replaced some meanwhile."""
        replaced = lookup.generation != lookup.log.names_generation or lookup.generation % 2
        return bool(replaced) and lookup.done is not None and lookup.timer is not None

    def _took_too_long(self, lookup: _Lookup) -> None:
        """Give up on a lookup that takes too long, so that others do not wait for a disk that may never respond."""
        self._release(lookup)
        if lookup.search is not None:
            lookup.search.cancel()
        self._give_up(lookup)

    def _give_up(self, lookup: _Lookup) -> None:
        self.refused += 1
        self.end(lookup, None, LookupRefused(f"the lookup took longer than {LOOKUP_MS_MAX} ms"))

    def _release(self, lookup: _Lookup) -> None:
        """End the time limit of a lookup, and let the next one start."""
        if lookup.timer is not None:
            self._timers.cancel(lookup.timer)
            lookup.timer = None
            self._running -= 1
            self._start_later()

    def end(self, lookup: _Lookup, found: TimestampedOffset | None, error: BaseException | None) -> None:
        """Call `done` once, without waiting for a search that is still running."""
        done, lookup.done = lookup.done, None
        if done is None:
            return
        if lookup.timer is not None and lookup.search is not None:
            lookup.search.cancel()
        owner = lookup.owner
        del owner.all[lookup]
        self._count -= 1
        if not owner.all:
            del self._by_connection[owner.connection]
            owner.connection.parked.pop(owner, None)
        done(found, error)

    def families(self) -> Iterator[Family]:
        yield Family(
            "headrace_lookups", "gauge", "Offsets by time that are looked up or wait for it.", (((), self._count),)
        )
        yield Family(
            "headrace_lookups_refused_total",
            "counter",
            "Offsets by time that were refused: too many, or too slow.",
            (((), self.refused),),
        )
