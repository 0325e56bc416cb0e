"""The session of one follower's connection at the leader: the positions of all partitions that it fetches.

A fetch names only the positions that have changed. Each says what the follower has, which is what moves the high
watermark. Only partitions of which there is something to say are read: those with a new position, and those whose log
end has moved. They are read at the end of the turn, so that the response has what this turn appends. A fetch that finds
nothing waits; the high watermarks that have moved go with the next response.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, cast

from headrace.broker.net.connection import Part, PeerResponseSlot
from headrace.broker.partitions.fetch_waiters import ReadBound
from headrace.broker.partitions.replica import Replica
from headrace.broker.services import FetchServices
from headrace.broker.timers import Timer
from headrace.core.replication.leader import FollowerFetch, Leader, UnknownReplica
from headrace.core.replication.role import NO_BROKER_EPOCH
from headrace.log.errors import DamagedLog, OffsetOutsideLog
from headrace.model.errors import ErrorCode
from headrace.model.ids import NO_OFFSET, NodeId, Offset
from headrace.model.limits import (
    REPLICA_FETCH_BYTES_MAX,
    REPLICA_FETCH_PARTITIONS_MAX,
    REPLICA_FETCH_WAIT_MS_MAX,
    REPLICA_SESSION_PARTITIONS_MAX,
)
from headrace.ports.disk import FileHandle, FileRange
from headrace.wire.errors import ProtocolError
from headrace.wire.replica_fetch import (
    EpochEnd,
    FollowerPosition,
    ReplicaFetchRequest,
    ReplicaFetchResponse,
    ReplicaResult,
    encode_response,
)

if TYPE_CHECKING:
    from headrace.broker.net.connection import Connection
    from headrace.broker.replication.served_fetches import ServedFetches

NOTED_AGAIN_PER_LAG = 4
"""The number of times in replica.lag.time.max.ms that an unchanged position is noted: the follower still has it."""

_NONE = ErrorCode.NONE
_Key = tuple[bytes, int]
"""(topic id, partition)."""
_Results = dict[_Key, ReplicaResult]


class _Position:
    """A partition of the session."""

    __slots__ = ("asked", "diverging", "error", "high_watermark", "log_start", "noted_ms", "replica")

    def __init__(self, asked: FollowerPosition) -> None:
        self.asked = asked
        self.replica: Replica | None = None
        """The replica on which the session waits."""
        self.high_watermark: int = NO_OFFSET
        self.log_start: int = NO_OFFSET
        """Both as in the last response."""
        self.noted_ms = 0.0
        self.error = _NONE
        self.diverging: EpochEnd | None = None
        """The reasons why the position did not count when it was noted."""


class _Raised:
    """Waits for high watermarks on behalf of a session, which are no reason to answer."""

    __slots__ = ("_keys",)

    def __init__(self, keys: dict[_Key, None]) -> None:
        self._keys = keys

    def readable(self, partition: Replica, _new_bytes: int) -> None:
        self._keys[partition.topic_id, partition.index] = None


class FollowerSession:
    """A fetch waiter of all its partitions. It ends with its connection, or when the follower begins another."""

    def __init__(
        self, fetches: "ServedFetches", services: FetchServices, connection: "Connection", follower: NodeId
    ) -> None:
        self._fetches = fetches
        self._services = services
        self._connection = connection
        self.follower = follower
        self.next_epoch = 0
        self._positions: dict[_Key, _Position] = {}
        """In the order in which they were noted."""
        self._outside: dict[_Key, None] = {}
        """Partitions in whose in-sync set the follower is not; it may be able to join at any of its fetches."""
        self._ready: dict[_Key, None] = {}
        """Partitions that may have something to send."""
        self._raised: dict[_Key, None] = {}
        """Partitions whose high watermark may have moved."""
        self._raised_waiter = _Raised(self._raised)
        self._waiting: tuple[PeerResponseSlot, int] | None = None
        """The fetch that waits: its slot and correlation id."""
        self._bytes_max = 0
        self._wait_ms = 0
        self._timer: Timer | None = None

    # Fetches

    def fetch(self, request: ReplicaFetchRequest, slot: PeerResponseSlot, correlation_id: int) -> None:
        self.next_epoch = request.session_epoch + 1
        self._bytes_max = min(request.bytes_max, REPLICA_FETCH_BYTES_MAX)
        self._take(request)
        self._waiting = slot, correlation_id
        self._wait_ms = min(max(request.wait_ms_max, 0), REPLICA_FETCH_WAIT_MS_MAX)
        self._fetches.woken[self] = None

    def _take(self, request: ReplicaFetchRequest) -> None:
        """Note the positions of a request, and again those that it leaves as they were."""
        note = self._noting(request)
        for topic_id, indexes in request.forgotten:
            for index in indexes:
                self._forget((topic_id, index))
        now_ms = self._services.timers.now_ms()
        for topic_id, positions in request.topics:
            for asked in positions:
                key = topic_id, asked.partition
                position = self._positions.pop(key, None)
                if position is None:
                    position = _Position(asked)
                else:
                    position.asked = asked
                self._positions[key] = position
                position.noted_ms = now_ms
                self._ready[key] = None
                self._note(key, position, note)
        if len(self._positions) > REPLICA_SESSION_PARTITIONS_MAX:
            raise ProtocolError(f"a follower's session has more than {REPLICA_SESSION_PARTITIONS_MAX} partitions")
        for key in [key for key in self._outside if self._positions[key].noted_ms < now_ms]:
            self._note_again(key, now_ms, note)
        long_ago_ms = now_ms - self._services.config.replica_lag_ms_max / NOTED_AGAIN_PER_LAG
        for _ in range(REPLICA_FETCH_PARTITIONS_MAX):
            oldest = next(iter(self._positions), None)
            if oldest is None or self._positions[oldest].noted_ms > long_ago_ms:
                break
            self._note_again(oldest, now_ms, note)

    def _note_again(self, key: _Key, now_ms: float, note: "partial[FollowerFetch]") -> None:
        position = self._positions[key] = self._positions.pop(key)
        position.noted_ms = now_ms
        self._note(key, position, note)

    def _noting(self, request: ReplicaFetchRequest) -> "partial[FollowerFetch]":
        registered = self._services.image.brokers.get(self.follower)
        registered_epoch = NO_BROKER_EPOCH if registered is None else registered.broker_epoch
        may_join = registered is not None and registered.takes_partitions
        return partial(
            FollowerFetch,
            replica=self.follower,
            broker_epoch=request.broker_epoch,
            registered_epoch=registered_epoch,
            may_join=may_join and request.broker_epoch == registered_epoch,
        )

    def _note(self, key: _Key, position: _Position, note: "partial[FollowerFetch]") -> None:
        """Tell the leader of a partition what the follower has.

        A position that does not count has its error as the result, even if the reason ends within this turn: the
        follower then says again what it has.
        """
        position.error, position.diverging = _NONE, None
        replica = self._replica(key, position)
        if isinstance(replica, ErrorCode):
            self._refuse(key, position, replica)
            return
        asked, role, log = position.asked, replica.role, replica.log
        if asked.offset < log.start_offset:
            self._refuse(key, position, ErrorCode.OFFSET_OUT_OF_RANGE)
            return
        if position.replica is not replica:
            self._ready[key] = None
        fetch = note(
            leader_epoch=asked.leader_epoch,
            offset=Offset(asked.offset),
            last_fetched_epoch=asked.last_fetched_epoch,
            epoch_end=log.epoch_end(asked.last_fetched_epoch),
            log_start=asked.log_start,
        )
        if asked.log_start < log.start_offset:
            fetch = fetch._replace(may_join=False)  # as a leader it would show deleted records
        diverging = fetch.diverging
        if diverging is not None:
            position.diverging = EpochEnd(*diverging)
            self._ready[key] = None
            return
        if asked.offset > log.end_offset:
            self._refuse(key, position, ErrorCode.OFFSET_OUT_OF_RANGE)
            return
        try:
            replica.follower_fetched(fetch)
        except UnknownReplica:  # this node may not have seen its assignment yet
            self._refuse(key, position, ErrorCode.UNKNOWN_LEADER_EPOCH)
            return
        assert isinstance(role, Leader)
        if self.follower in role.isr:
            self._outside.pop(key, None)
        else:
            self._outside[key] = None

    def _replica(self, key: _Key, position: _Position) -> Replica | ErrorCode:
        topic_id, index = key
        local = self._services.partitions.by_id.get(topic_id)
        if local is None:
            return ErrorCode.UNKNOWN_TOPIC_ID
        asked_epoch = position.asked.leader_epoch
        replica = local.partition(index, asked_epoch)
        if isinstance(replica, ErrorCode) or asked_epoch == replica.role.leader_epoch:
            return replica
        # A follower always knows the epoch in which it fetches.
        return replica.check_leader_epoch(asked_epoch) or ErrorCode.UNKNOWN_LEADER_EPOCH

    def _refuse(self, key: _Key, position: _Position, error: ErrorCode) -> None:
        position.error = error
        self._ready[key] = None

    # Reading

    def _read(self) -> _Results:
        """Read what is ready, as far as it fits; partitions without news say their offsets in the next response."""
        results: _Results = {}
        bytes_left = self._bytes_max
        for key in tuple(self._ready):
            if len(results) >= REPLICA_FETCH_PARTITIONS_MAX or bytes_left <= 0:
                break
            del self._ready[key]
            position = self._positions[key]
            result = self._result(key, position, bytes_left)
            has_new_start = position.asked.log_start < result.log_start
            if isinstance(result.records, FileRange):
                bytes_left -= result.records.length
            elif not (result.error or result.diverging or has_new_start):
                self._raised[key] = None
                continue
            results[key] = result
        return results

    def _result(self, key: _Key, position: _Position, bytes_left: int) -> ReplicaResult:
        replica, asked = self._replica(key, position), position.asked
        error = position.error
        if isinstance(replica, ErrorCode) or (error and error is not ErrorCode.OFFSET_OUT_OF_RANGE):
            return _failed(asked, error or cast(ErrorCode, replica))
        if position.replica is not replica:
            self._watch(position, replica)
        role, log = replica.role, replica.log
        records: FileRange | None = None
        try:
            if not error and position.diverging is None:
                records = log.read(asked.offset, min(asked.bytes_max, bytes_left), log.end_offset, True)
        except OffsetOutsideLog:
            error = ErrorCode.OFFSET_OUT_OF_RANGE
        except OSError:
            error = ErrorCode.KAFKA_STORAGE_ERROR
        except DamagedLog as damage:
            replica.damage_found(damage)
            error = ErrorCode.CORRUPT_MESSAGE
        return ReplicaResult(asked.partition, error, role.high_watermark, log.start_offset, position.diverging, records)

    # Waiting

    def readable(self, partition: Replica, _new_bytes: int) -> None:
        """Read the partition at the end of this turn, or at the next fetch; the partition calls this."""
        key = partition.topic_id, partition.index
        if key in self._positions:
            self._ready[key] = None
            if self._waiting is not None:
                self._fetches.woken[self] = None

    def _watch(self, position: _Position, replica: Replica) -> None:
        self._unwatch(position)
        position.replica = replica
        replica.add_waiter(self, ReadBound.LOG_END)
        replica.add_waiter(self._raised_waiter, ReadBound.HIGH_WATERMARK)

    def _unwatch(self, position: _Position) -> None:
        if position.replica is not None:
            position.replica.remove_waiter(self)
            position.replica.remove_waiter(self._raised_waiter)
            position.replica = None

    def _forget(self, key: _Key) -> None:
        position = self._positions.pop(key, None)
        if position is not None:
            self._unwatch(position)
        for keys in (self._ready, self._raised, self._outside):
            keys.pop(key, None)

    def end_turn(self) -> None:
        """Answer the fetch that waits if there is news; otherwise wait on, if it may."""
        results = self._read()
        if results or not self._wait_ms:
            self._answer(results)
        elif self._timer is None:
            self._services.metrics.parked_fetches += 1
            self._timer = self._services.timers.after(self._wait_ms, self.finish)

    def finish(self) -> None:
        """Answer the fetch that waits, if there is one."""
        if self._waiting is not None:
            self._answer(self._read())

    def answer_now(self) -> None:
        self.finish()

    def abandon(self) -> None:
        """End, because the connection is closed or the follower begins another session."""
        self._stop_waiting()
        for position in self._positions.values():
            self._unwatch(position)
        self._positions.clear()
        self._connection.parked.pop(self, None)
        self._fetches.left(self, self._connection)

    def files(self) -> Iterator[FileHandle]:
        return iter(())  # it reads when it answers

    def _stop_waiting(self) -> None:
        self._waiting = None
        self._fetches.woken.pop(self, None)
        if self._timer is not None:
            self._services.timers.cancel(self._timer)
            self._timer = None
            self._services.metrics.parked_fetches -= 1

    # Responses

    def _answer(self, results: _Results) -> None:
        assert self._waiting is not None
        slot, correlation_id = self._waiting
        self._stop_waiting()
        self._add_offsets(results)
        topics: dict[bytes, list[ReplicaResult]] = {}
        for key, result in results.items():
            position = self._positions[key]
            position.high_watermark, position.log_start = result.high_watermark, result.log_start
            topics.setdefault(key[0], []).append(result)
            if result.error or result.diverging is not None:
                self._forget(key)  # the follower names it again when it can continue
        respond(self._services, slot, correlation_id, _NONE, list(topics.items()))

    def _add_offsets(self, results: _Results) -> None:
        """Add the partitions of which the follower knows an older high watermark or log start."""
        for key in tuple(self._raised):
            if len(results) >= REPLICA_FETCH_PARTITIONS_MAX:
                return
            del self._raised[key]
            position = self._positions[key]
            if key in results or position.replica is None:
                continue
            high_watermark, log_start = position.replica.role.high_watermark, position.replica.log.start_offset
            if (high_watermark, log_start) != (position.high_watermark, position.log_start):
                results[key] = ReplicaResult(position.asked.partition, _NONE, high_watermark, log_start, None, None)


def respond(
    services: FetchServices,
    slot: PeerResponseSlot,
    correlation_id: int,
    error: ErrorCode,
    topics: Sequence[tuple[bytes, Sequence[ReplicaResult]]],
) -> None:
    """Send a response when the records in it are in memory."""

    def send() -> None:
        if not slot.connection.closed:
            slot.complete(cast(list[Part], encode_response(correlation_id, ReplicaFetchResponse(error, topics))))

    records = [result.records for _, results in topics for result in results]
    services.when_hot([part for part in records if isinstance(part, FileRange)], send)


def _failed(asked: FollowerPosition, error: ErrorCode) -> ReplicaResult:
    return ReplicaResult(asked.partition, error, -1, -1, None, None)
