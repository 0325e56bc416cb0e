"""Offsets by time: which lookups a helper may work on, in turn between connections, and which are refused.

A lookup may have to open a batch of a million records, and a request of a few bytes asks for many. So lookups have a
lane of their own (`ports/spawner.py`), few are under way at once, connections take turns, and those of a connection
that is closed are not carried out. Above the named limits a lookup is refused for now, and the client asks again.
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
    """Too many lookups wait, or this one took too long; the client may ask again."""


class _Lookup:
    __slots__ = ("asked_ms", "done", "generation", "line", "log", "make_search", "search", "timer")

    def __init__(
        self, line: "_Line", log: PartitionLog, make_search: Callable[[], TimeSearch], done: Done, asked_ms: float
    ) -> None:
        self.line = line
        self.asked_ms = asked_ms
        self.log = log
        self.make_search = make_search
        self.done: Done | None = done
        """None once it was called."""
        self.search: TimeSearch | None = None
        self.timer: Timer | None = None
        """Set while it is one of those under way."""
        self.generation = 0


class _Line:
    """The lookups of one connection."""

    def __init__(self, lookups: "Lookups", connection: Connection) -> None:
        self._lookups = lookups
        self.connection = connection
        self.waiting: deque[_Lookup] = deque()
        self.all: dict[_Lookup, None] = {}
        """Those that wait and those under way."""

    def abandon(self) -> None:
        self._end(SearchCancelled())

    def answer_now(self) -> None:
        self._end(LookupRefused("the node stops"))

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
        self._lines: dict[Connection, _Line] = {}
        self._turns: deque[_Line] = deque()
        """Connections with lookups that wait, the next one first."""
        self._going_on = False
        """Whether the next turn looks who is next."""
        self._under_way = 0
        self._count = 0
        self.refused = 0

    def __len__(self) -> int:
        return self._count

    def add(self, connection: Connection, log: PartitionLog, make_search: Callable[[], TimeSearch], done: Done) -> bool:
        """Have the search made and carried out when it is its turn; False if it is refused for now.

        `done` is called in a later turn, with what was found or with why nothing was.
        """
        line = self._lines.get(connection)
        if line is None:
            line = _Line(self, connection)
        elif self._is_full(line):
            self.refused += 1
            return False
        self._lines[connection] = line
        connection.parked[line] = None
        lookup = _Lookup(line, log, make_search, done, self._timers.now_ms())
        line.all[lookup] = None
        self._count += 1
        if not line.waiting:
            self._turns.append(line)
        line.waiting.append(lookup)
        self._go_on_later()
        return True

    def _is_full(self, line: _Line) -> bool:
        """Whether the connection has as many as it may; fewer are its share while all together are too many."""
        if len(line.all) >= LOOKUPS_PER_CONNECTION_MAX:
            return True
        return self._count >= LOOKUPS_MAX and len(line.all) >= max(LOOKUPS_MAX // len(self._lines), LOOKUPS_SHARE_MIN)

    def _go_on_later(self) -> None:
        if self._turns and self._under_way < LOOKUPS_AT_ONCE_MAX and not self._going_on:
            self._going_on = True
            self._timers.next_turn(self._go_on)

    def _go_on(self) -> None:
        self._going_on = False
        given_up, too_old_ms = 0, self._timers.now_ms() - LOOKUP_MS_MAX
        while self._turns and self._under_way < LOOKUPS_AT_ONCE_MAX:
            line = self._turns.popleft()
            if not line.waiting:
                continue  # its connection is gone
            lookup = line.waiting.popleft()
            if line.waiting:
                self._turns.append(line)
            if lookup.asked_ms > too_old_ms:
                self._hand_over(lookup)
                continue
            self._give_up(lookup)
            given_up += 1
            if given_up == LOOKUPS_GIVEN_UP_PER_TURN_MAX:
                self._go_on_later()
                return

    def _hand_over(self, lookup: _Lookup) -> None:
        self._under_way += 1
        lookup.timer = self._timers.after(LOOKUP_MS_MAX, partial(self._took_too_long, lookup))
        self._begin(lookup)

    def _begin(self, lookup: _Lookup) -> None:
        lookup.generation = lookup.log.names_generation
        try:
            lookup.search = lookup.make_search()
        except OSError as error:
            self._leave(lookup)
            self.end(lookup, None, error)
            return

        def completed(found: TimestampedOffset | None, error: BaseException | None) -> None:
            if self._is_outdated(lookup):
                self._begin(lookup)
                return
            try:
                self.end(lookup, found, error)
            finally:
                self._leave(lookup)

        self._spawner.submit(lookup.search, completed, Lane.LOOKUP)

    def _is_outdated(self, lookup: _Lookup) -> bool:
        """A search opens segments by name, so it is made again if compaction exchanged some of them meanwhile."""
        exchanged = lookup.generation != lookup.log.names_generation or lookup.generation % 2
        return bool(exchanged) and lookup.done is not None and lookup.timer is not None

    def _took_too_long(self, lookup: _Lookup) -> None:
        """The device may never answer: others are not to wait for it."""
        self._leave(lookup)
        if lookup.search is not None:
            lookup.search.cancel()
        self._give_up(lookup)

    def _give_up(self, lookup: _Lookup) -> None:
        self.refused += 1
        self.end(lookup, None, LookupRefused(f"nothing was found for {LOOKUP_MS_MAX} ms"))

    def _leave(self, lookup: _Lookup) -> None:
        """It is not under way any more: the next one may be."""
        if lookup.timer is not None:
            self._timers.cancel(lookup.timer)
            lookup.timer = None
            self._under_way -= 1
            self._go_on_later()

    def end(self, lookup: _Lookup, found: TimestampedOffset | None, error: BaseException | None) -> None:
        """Call `done`, once; a search that is under way still is not waited for."""
        done, lookup.done = lookup.done, None
        if done is None:
            return
        if lookup.timer is not None and lookup.search is not None:
            lookup.search.cancel()
        line = lookup.line
        del line.all[lookup]
        self._count -= 1
        if not line.all:
            del self._lines[line.connection]
            line.connection.parked.pop(line, None)
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
