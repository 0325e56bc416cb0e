"""Fetch sessions (KIP-227): the broker keeps the partition list of a consumer, so that a fetch names only changes."""

from collections import OrderedDict
from collections.abc import Iterator
from itertools import islice

from headrace.ports.clock import Clock
from headrace.ports.entropy import Entropy

NO_SESSION = 0
FINAL_EPOCH = -1
INITIAL_EPOCH = 0
EPOCH_MAX = (1 << 31) - 1
EVICTABLE_AFTER_MS = 120_000
"""The time without a fetch after which a session may be replaced by a new one."""

PartitionKey = tuple[bytes, int]
"""(topic name or id, as the requests of the session name it; partition)."""


Changes = list[tuple[bytes, list[tuple[int, int, int, int]]]]
Forgotten = list[tuple[bytes, list[int]]]


class SessionPartition:
    """A partition of a session: the fetch position, and the offsets of the last response."""

    __slots__ = ("bytes_max", "leader_epoch", "offset", "sent_high_watermark", "sent_log_start")

    def __init__(self, offset: int, leader_epoch: int, bytes_max: int) -> None:
        self.ask(offset, leader_epoch, bytes_max)
        self.sent_high_watermark = -1
        self.sent_log_start = -1

    def ask(self, offset: int, leader_epoch: int, bytes_max: int) -> None:
        self.offset = offset
        self.leader_epoch = leader_epoch
        self.bytes_max = bytes_max


class FetchSession:
    __slots__ = ("by_id", "epoch", "last_used_ms", "partitions", "session_id")

    def __init__(self, session_id: int, *, by_id: bool, now_ms: float) -> None:
        self.session_id = session_id
        self.by_id = by_id
        self.epoch = 1
        self.last_used_ms = now_ms
        self.partitions: OrderedDict[PartitionKey, SessionPartition] = OrderedDict()
        """In reading order. A partition that returned records moves to the end, so that all are read in turn."""

    def advance(self, now_ms: float) -> None:
        self.epoch = 1 if self.epoch == EPOCH_MAX else self.epoch + 1
        self.last_used_ms = now_ms

    def update(self, topics: Changes, forgotten: Forgotten) -> None:
        partitions = self.partitions
        for topic, wanted in topics:
            for index, offset, leader_epoch, bytes_max in wanted:
                known = partitions.get((topic, index))
                if known is None:
                    partitions[topic, index] = SessionPartition(offset, leader_epoch, bytes_max)
                else:
                    known.ask(offset, leader_epoch, bytes_max)
        for topic, indexes in forgotten:
            for index in indexes:
                partitions.pop((topic, index), None)


def changes_in_slices(
    topics: Changes, forgotten: Forgotten, partitions_max: int
) -> Iterator[tuple[Changes, Forgotten]]:
    """Split the changes into parts of at most `partitions_max` partitions, in the same order."""
    for topic, wanted in topics:
        for at in range(0, len(wanted), partitions_max):
            yield [(topic, wanted[at : at + partitions_max])], []
    for topic, indexes in forgotten:
        for at in range(0, len(indexes), partitions_max):
            yield [], [(topic, indexes[at : at + partitions_max])]


class FetchSessions:
    """A bounded number of sessions. A new one may replace the one that was not used for the longest time."""

    def __init__(self, clock: Clock, entropy: Entropy, *, sessions_max: int) -> None:
        self._clock = clock
        self._entropy = entropy
        self.sessions_max = sessions_max
        self._sessions: OrderedDict[int, FetchSession] = OrderedDict()

    def __len__(self) -> int:
        return len(self._sessions)

    def find(self, session_id: int) -> FetchSession | None:
        session = self._sessions.get(session_id)
        if session is not None:
            self._sessions.move_to_end(session_id)
        return session

    def topics_of(self, session_id: int, partitions_max: int) -> Iterator[bytes]:
        """Yield the topics of the first partitions of a session as its requests name them; none if it has ended."""
        session = self._sessions.get(session_id)
        if session is not None:
            yield from (topic for topic, _ in islice(session.partitions, partitions_max))

    def close(self, session_id: int) -> None:
        self._sessions.pop(session_id, None)

    def create(self, *, by_id: bool) -> FetchSession | None:
        """Create a session; None when the limit is reached by sessions in use. The client then sends full fetches."""
        now_ms = self._clock.monotonic_ms()
        if len(self._sessions) >= self.sessions_max:
            oldest = next(iter(self._sessions.values()), None)
            if oldest is None or now_ms - oldest.last_used_ms < EVICTABLE_AFTER_MS:
                return None
            del self._sessions[oldest.session_id]
        session_id = 1 + self._entropy.below(EPOCH_MAX)
        while session_id in self._sessions:
            session_id = 1 + self._entropy.below(EPOCH_MAX)
        session = FetchSession(session_id, by_id=by_id, now_ms=now_ms)
        self._sessions[session_id] = session
        return session
