"""Fetches of followers at the leader: each gets what the leader's log has beyond its position, committed or not.

A fetch also says what its follower has, which is what moves the high watermark. A fetch that finds nothing waits for
the log end of its partitions to move. All fetches that appends have woken are answered at the end of the turn, when
every partition has written, so that one response has the records of all of them.
"""

from collections.abc import Iterator
from functools import partial
from typing import cast

from headrace.broker.net.connection import NO_RESPONSE_YET, Connection, Part, PeerResponseSlot
from headrace.broker.partitions.fetch_waiters import ReadBound
from headrace.broker.partitions.replica import Replica
from headrace.broker.services import FetchServices
from headrace.broker.timers import Timer
from headrace.core.replication.leader import FollowerFetch, UnknownReplica
from headrace.core.replication.role import NO_BROKER_EPOCH
from headrace.log.errors import DamagedLog, OffsetOutsideLog
from headrace.model.errors import ErrorCode
from headrace.model.ids import NO_EPOCH, NodeId, Offset
from headrace.model.limits import (
    REPLICA_FETCH_BYTES_MAX,
    REPLICA_FETCH_PARTITIONS_MAX,
    REPLICA_FETCH_WAIT_MS_MAX,
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

_NONE = ErrorCode.NONE


class ServedFetches:
    """The fetches of all followers that this node has not answered yet: at most one of each connection."""

    def __init__(self, services: FetchServices) -> None:
        self._services = services
        self._waiting: dict[Connection, ServedFetch] = {}
        self.woken: dict[ServedFetch, None] = {}
        """Waiting fetches that the end of this turn answers."""

    def begin(self, connection: Connection, request: ReplicaFetchRequest, correlation_id: int) -> None:
        """Answer a fetch, now or when there is something to send; an earlier one of the connection waits no longer."""
        peer = connection.peer
        assert peer is not None
        assert peer.identity is not None
        if request.replica_id != peer.identity.node_id:
            raise ProtocolError(f"node {peer.identity.node_id} fetches as replica {request.replica_id}")
        if sum(len(positions) for _, positions in request.topics) > REPLICA_FETCH_PARTITIONS_MAX:
            raise ProtocolError(f"a follower's fetch has more than {REPLICA_FETCH_PARTITIONS_MAX} partitions")
        earlier = self._waiting.get(connection)
        if earlier is not None:
            earlier.finish()
        peer.requests_unanswered += 1
        slot = PeerResponseSlot(connection, None, NO_RESPONSE_YET)
        fetch = ServedFetch(self, self._services, slot, request, correlation_id)
        if fetch.read(is_new=True):
            fetch.respond()
        else:
            self._waiting[connection] = fetch
            fetch.park()

    def end_turn(self) -> None:
        while self.woken:
            next(iter(self.woken)).finish()

    def left(self, fetch: "ServedFetch", connection: Connection) -> None:
        self.woken.pop(fetch, None)
        if self._waiting.get(connection) is fetch:
            del self._waiting[connection]


class ServedFetch:
    """One fetch of a follower; a fetch waiter of its partitions while it is parked."""

    def __init__(
        self,
        fetches: ServedFetches,
        services: FetchServices,
        slot: PeerResponseSlot,
        request: ReplicaFetchRequest,
        correlation_id: int,
    ) -> None:
        self._fetches = fetches
        self._services = services
        self._slot = slot
        self._request = request
        self._correlation_id = correlation_id
        self._topics: list[tuple[bytes, list[ReplicaResult]]] = []
        self._watched: dict[Replica, None] = {}
        self._bytes_left = 0
        self._timer: Timer | None = None

    # Reading

    def read(self, *, is_new: bool) -> bool:
        """Read all partitions, and return whether the response has something to say.

        Only a new fetch is noted as the follower's progress: at the end of a turn nothing may be appended any more, but
        what is committed by a fetch wakes coordinators, which append.
        """
        self._bytes_left = min(self._request.bytes_max, REPLICA_FETCH_BYTES_MAX)
        follower = NodeId(self._request.replica_id)
        registered = self._services.image.brokers.get(follower)
        registered_epoch = NO_BROKER_EPOCH if registered is None else registered.broker_epoch
        may_join = registered is not None and registered.takes_partitions
        note = partial(
            FollowerFetch,
            replica=follower,
            broker_epoch=self._request.broker_epoch,
            registered_epoch=registered_epoch,
            may_join=may_join and self._request.broker_epoch == registered_epoch,
        )
        has_news = not self._request.topics
        self._topics = []
        for topic_id, positions in self._request.topics:
            local = self._services.partitions.by_id.get(topic_id)
            results = []
            for position in positions:
                if local is None:
                    result = _failed(position, ErrorCode.UNKNOWN_TOPIC_ID)
                else:
                    replica = local.partition(position.partition, position.leader_epoch)
                    if isinstance(replica, ErrorCode):
                        result = _failed(position, replica)
                    else:
                        self._watched[replica] = None
                        result = self._read(replica, position, note, is_new=is_new)
                has_news |= bool(result.error) or result.records is not None or result.diverging is not None
                results.append(result)
            self._topics.append((topic_id, results))
        return has_news

    def _read(
        self, replica: Replica, position: FollowerPosition, note: "partial[FollowerFetch]", *, is_new: bool
    ) -> ReplicaResult:
        role, log = replica.role, replica.log
        if position.leader_epoch != role.leader_epoch:
            # A follower always knows the epoch in which it fetches.
            error = replica.check_leader_epoch(position.leader_epoch) or ErrorCode.UNKNOWN_LEADER_EPOCH
            return _failed(position, error)
        fetch = note(
            leader_epoch=position.leader_epoch,
            offset=Offset(position.offset),
            last_fetched_epoch=position.last_fetched_epoch,
            epoch_end=log.epoch_end(position.last_fetched_epoch),
        )
        records: FileRange | None = None
        diverging: EpochEnd | None = None
        error = _NONE
        try:
            if position.offset < log.start_offset:
                raise OffsetOutsideLog(position.offset, log.start_offset, log.end_offset)
            if position.last_fetched_epoch != NO_EPOCH and fetch.diverging is not None:
                diverging = EpochEnd(*fetch.diverging)
            else:
                bytes_max = min(position.bytes_max, self._bytes_left)
                at_least_one = self._bytes_left > 0
                records = log.read(position.offset, bytes_max, log.end_offset, at_least_one) if at_least_one else None
                if is_new:
                    replica.follower_fetched(fetch)
        except UnknownReplica:
            error = ErrorCode.UNKNOWN_LEADER_EPOCH  # this node may not have seen its assignment yet: it asks again
        except OffsetOutsideLog:
            error = ErrorCode.OFFSET_OUT_OF_RANGE
        except OSError:
            error = ErrorCode.KAFKA_STORAGE_ERROR
        except DamagedLog as damage:
            replica.damage_found(damage)
            error = ErrorCode.CORRUPT_MESSAGE
        if records is not None:
            self._bytes_left -= records.length
        high_watermark = replica.role.high_watermark
        return ReplicaResult(position.partition, error, high_watermark, log.start_offset, diverging, records)

    # Waiting

    def park(self) -> None:
        wait_ms = min(max(self._request.wait_ms_max, 0), REPLICA_FETCH_WAIT_MS_MAX)
        for replica in self._watched:
            replica.add_waiter(self, ReadBound.LOG_END)
        self._slot.connection.parked[self] = None
        self._services.metrics.parked_fetches += 1
        self._timer = self._services.timers.after(wait_ms, self.finish)

    def readable(self, partition: Replica, new_bytes: int) -> None:
        """Answer at the end of this turn; the partition calls this."""
        self._fetches.woken[self] = None

    def _leave(self) -> None:
        self._fetches.left(self, self._slot.connection)
        self._slot.connection.parked.pop(self, None)
        for replica in self._watched:
            replica.remove_waiter(self)
        self._watched.clear()
        if self._timer is not None:
            self._services.timers.cancel(self._timer)
            self._timer = None
            self._services.metrics.parked_fetches -= 1

    def finish(self) -> None:
        """Stop waiting, read again and answer."""
        self._leave()
        self.read(is_new=False)
        self.respond()

    def answer_now(self) -> None:
        self.finish()

    def abandon(self) -> None:
        """Stop, because the follower is gone."""
        self._leave()

    def files(self) -> Iterator[FileHandle]:
        return iter(())  # it reads when it answers

    def respond(self) -> None:
        """Send the results when their bytes are in memory."""
        self._watched.clear()
        slices = [result.records for _, results in self._topics for result in results if result.records is not None]
        self._services.when_hot([part for part in slices if isinstance(part, FileRange)], self._send)

    def _send(self) -> None:
        if not self._slot.connection.closed:
            response = ReplicaFetchResponse(_NONE, self._topics)
            self._slot.complete(cast(list[Part], encode_response(self._correlation_id, response)))


def _failed(position: FollowerPosition, error: ErrorCode) -> ReplicaResult:
    return ReplicaResult(position.partition, error, -1, -1, None, None)
