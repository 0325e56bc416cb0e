"""The follower's end of replication: fetches from one other broker all partitions that it leads and this node copies.

One fetch is under way at a time, and the next one leaves in the turn in which its response came. A fetch names only the
partitions whose position is another than the leader knows from the fetches before (`follower_session.py` is the other
end). The batches of a response are written from the buffer into which they were received.
"""

from collections.abc import Callable, Sequence
from functools import partial
from itertools import islice

from headrace.broker.logs import NodeLogger
from headrace.broker.partitions.replica import Replica
from headrace.broker.peers.requests import PeerFailure, PeerRequests
from headrace.broker.replication.followed_logs import FollowedLogs
from headrace.broker.timers import Timer, Timers
from headrace.core.replication.follower import Follower, WrongAnswer
from headrace.core.replication.role import AdvanceStart, Effects, RestartAt, TruncateTo
from headrace.log.errors import RefusedBatch, ReplicaDiverged
from headrace.model.configs.values import BrokerConfig
from headrace.model.errors import ErrorCode, error_name
from headrace.model.ids import NodeId, Offset
from headrace.model.limits import REPLICA_FETCH_PARTITIONS_MAX
from headrace.wire.apis import ApiKey
from headrace.wire.replica_fetch import (
    NEW_SESSION,
    NO_SESSION,
    VERSION,
    FollowerPosition,
    ReplicaFetchRequest,
    ReplicaFetchResponse,
    ReplicaResult,
)

BYTES_MIN = 1
CONNECTION_RETRY_MS = 50
"""Wait after a fetch that had no response. The connection has a longer wait of its own while the leader is away."""

PARTITION_RETRY_MS_MIN = 10
"""First wait for a partition that could not be fetched; the leader may learn of its new role a moment later."""

PARTITION_RETRY_MS_MAX = 1_000

FULL_RETRY_MS = 1_000
"""Interval of checks whether a full directory has space again."""

Key = tuple[bytes, int]
"""(topic id, partition)."""


class _Followed:
    """A partition of this fetcher."""

    __slots__ = ("backoff_ms", "key", "replica", "reported", "retry", "role", "sent")

    def __init__(self, replica: Replica) -> None:
        self.replica = replica
        self.key: Key = (replica.topic_id, replica.index)
        self.retry: Timer | None = None
        """Set while the partition may not be fetched."""
        self.backoff_ms = PARTITION_RETRY_MS_MIN
        self.reported = ""
        """The last problem in the log, so that a repeated one is logged once."""
        self.sent: FollowerPosition | None = None
        """The position that the leader knows, and the role that asked for it; None if it is to send nothing."""
        self.role: Follower | None = None

    def wanted(self, bytes_max: int) -> FollowerPosition | None:
        """Return the position from which to fetch; None if nothing can be fetched now."""
        role = self.replica.role
        fetch = role.next_fetch() if isinstance(role, Follower) and self.retry is None else None
        if fetch is None or self.replica.is_damaged:
            return None
        assert isinstance(role, Follower)
        return FollowerPosition(
            self.replica.index, role.leader_epoch, fetch.offset, fetch.last_fetched_epoch, role.log_start, bytes_max
        )


class Fetcher:
    def __init__(
        self,
        leader: NodeId,
        *,
        node_id: NodeId,
        broker_epoch: Callable[[], int],
        config: Callable[[], BrokerConfig],
        links: PeerRequests,
        logs: FollowedLogs,
        refused: Callable[[Replica], None],
        timers: Timers,
        logger: NodeLogger,
    ) -> None:
        self.leader = leader
        self._node_id = node_id
        self._broker_epoch = broker_epoch
        self._config = config
        self._links = links
        self._logs = logs
        self._refused = refused
        self._timers = timers
        self._logger = logger
        self._followed: dict[Key, _Followed] = {}
        self._due: dict[Key, None] = {}
        """Partitions whose position may be another than the leader knows."""
        self._session_epoch = NEW_SESSION
        self._session_size = 0
        """Partitions of which the leader knows the position."""
        self._gone: dict[Key, None] = {}
        """Partitions that are not followed any more, and whose position the leader still knows."""
        self._is_fetching = False
        self._hurried = False
        """True if the leader was asked to answer the fetch that is under way now."""
        self._timer: Timer | None = None
        self._scheduled = False

    def __len__(self) -> int:
        return len(self._followed)

    # Partitions

    def add(self, replica: Replica) -> None:
        followed = _Followed(replica)
        self._followed[followed.key] = followed
        self.fetch_soon(replica)

    def remove(self, replica: Replica) -> None:
        followed = self._followed.pop((replica.topic_id, replica.index), None)
        if followed is None:
            return
        self._due.pop(followed.key, None)
        if followed.retry is not None:
            self._timers.cancel(followed.retry)
        if followed.sent is not None:
            self._gone[followed.key] = None
            self._session_size -= 1

    def fetch_soon(self, replica: Replica) -> None:
        """Fetch at the end of this turn, when all partitions that change in it have changed."""
        self._due[replica.topic_id, replica.index] = None
        if not self._scheduled:
            self._scheduled = True
            self._timers.next_turn(self._scheduled_fetch)

    def _scheduled_fetch(self) -> None:
        self._scheduled = False
        if not self._is_fetching:
            self._fetch()
        elif not self._hurried and self._due:
            self._hurry()

    # Fetching

    def _fetch(self) -> None:
        """Send the next fetch, if any partition can be fetched."""
        if self._timer is not None:
            self._timers.cancel(self._timer)
            self._timer = None
        topics: dict[bytes, list[FollowerPosition]] = {}
        forgotten: dict[bytes, list[int]] = {}
        for topic_id, index in self._gone:
            forgotten.setdefault(topic_id, []).append(index)
        self._gone.clear()
        self._choose(topics, forgotten)
        if not self._session_size and not forgotten:
            return
        wait_ms = 0 if self._due else self._config().replica_fetch_wait_ms
        self._is_fetching = True
        self._send(wait_ms, self._session_epoch, list(topics.items()), list(forgotten.items()), self._answered)

    def _choose(self, topics: dict[bytes, list[FollowerPosition]], forgotten: dict[bytes, list[int]]) -> None:
        """Take as many due partitions as fit into a fetch: those to fetch, and those not to fetch for now."""
        bytes_max = self._config().replica_fetch_bytes_max
        for key in tuple(islice(self._due, REPLICA_FETCH_PARTITIONS_MAX)):
            del self._due[key]
            followed = self._followed[key]
            wanted = followed.wanted(bytes_max)
            if wanted is not None and followed.replica.space.full:
                self._pause(followed, FULL_RETRY_MS)
                wanted = None
            if wanted == followed.sent and followed.role is followed.replica.role:
                continue
            if wanted is not None:
                topics.setdefault(key[0], []).append(wanted)
            elif followed.sent is not None:
                forgotten.setdefault(key[0], []).append(key[1])
            self._note_sent(followed, wanted)

    def _note_sent(self, followed: _Followed, sent: FollowerPosition | None) -> None:
        self._session_size += (sent is not None) - (followed.sent is not None)
        followed.sent = sent
        role = followed.replica.role
        followed.role = role if isinstance(role, Follower) else None

    def _end_session(self) -> None:
        """Begin again: it is not known which positions the leader has."""
        self._session_epoch = NEW_SESSION
        self._gone.clear()
        for followed in self._followed.values():
            self._note_sent(followed, None)
            self._due[followed.key] = None

    def _retry(self) -> None:
        self._timer = None
        if not self._is_fetching:
            self._fetch()

    def _hurry(self) -> None:
        """Have the leader answer the waiting fetch now, because the next one has more partitions."""
        self._hurried = True
        self._send(0, NO_SESSION, [], [], lambda _response: None)

    def _send(
        self,
        wait_ms: int,
        session_epoch: int,
        topics: Sequence[tuple[bytes, Sequence[FollowerPosition]]],
        forgotten: Sequence[tuple[bytes, Sequence[int]]],
        then: Callable[[object], None],
    ) -> None:
        config = self._config()
        request = ReplicaFetchRequest(
            replica_id=self._node_id,
            broker_epoch=self._broker_epoch(),
            wait_ms_max=wait_ms,
            bytes_min=BYTES_MIN,
            bytes_max=config.replica_response_bytes_max,
            session_epoch=session_epoch,
            topics=topics,
            forgotten=forgotten,
        )
        self._links.send(
            self.leader, ApiKey.FETCH, VERSION, request, timeout_ms=wait_ms + config.replica_timeout_ms, then=then
        )

    def _answered(self, response: object) -> None:
        self._is_fetching = self._hurried = False
        if not isinstance(response, ReplicaFetchResponse) or response.error:
            assert isinstance(response, PeerFailure | ReplicaFetchResponse)
            self._end_session()
            if self._followed:
                self._timer = self._timers.after(CONNECTION_RETRY_MS, self._retry)
            return
        self._session_epoch += 1
        for topic_id, results in response.topics:
            for result in results:
                followed = self._followed.get((topic_id, result.partition))
                sent = None if followed is None else followed.sent
                if followed is None or sent is None:
                    continue
                if result.records is None and not result.error and result.diverging is None:
                    self._take_offsets(followed, sent, result)
                else:
                    self._take(followed, sent, result)
        self._fetch()

    def _take_offsets(self, followed: _Followed, sent: FollowerPosition, result: ReplicaResult) -> None:
        """HOT. Apply the result of a partition without news but for the leader's offsets."""
        role, replica = followed.role, followed.replica
        if role is None or replica.role is not role or replica.offline or replica.is_damaged or role.is_truncating:
            return
        effects = role.fetched(leader_high_watermark=result.high_watermark, leader_log_start=result.log_start)
        if effects:
            self._execute(followed, effects)
        if role.log_start != sent.log_start:
            self._due[followed.key] = None

    def _take(self, followed: _Followed, sent: FollowerPosition, result: ReplicaResult) -> None:
        """Apply the result of one partition, if the partition is still as it was when the fetch left."""
        role, replica = followed.role, followed.replica
        self._due[followed.key] = None
        if result.error or result.diverging is not None:
            self._note_sent(followed, None)  # the leader has forgotten it
        fetch = role.next_fetch() if role is not None else None
        if role is None or replica.role is not role or replica.offline or replica.is_damaged:
            return
        if fetch is None or fetch.offset != sent.offset:
            return
        try:
            self._execute(followed, self._apply(followed, role, result))
        except (WrongAnswer, RefusedBatch) as error:
            self._later(followed, str(error))
            if isinstance(error, RefusedBatch):
                self._refused(replica)
        except OSError:  # reported already
            self._later(followed, "")

    def _apply(self, followed: _Followed, role: Follower, result: ReplicaResult) -> Effects:
        replica, log = followed.replica, followed.replica.log
        if result.error == ErrorCode.OFFSET_OUT_OF_RANGE:
            return role.out_of_range(result.log_start)
        if result.error:
            self._later(followed, f"the leader answers {error_name(result.error)}")
            return ()
        followed.backoff_ms = PARTITION_RETRY_MS_MIN
        followed.reported = ""
        if result.diverging is not None:
            epoch, end_offset = result.diverging
            return role.diverging_epoch(epoch, end_offset, log.epoch_end(epoch))
        if result.records is not None:
            assert isinstance(result.records, memoryview)
            try:
                self._logs.append(replica, result.records)
            except ReplicaDiverged as error:
                if log.end_offset > log.start_offset:
                    raise
                return role.batch_begins_at(error.found)
            finally:  # good batches before a refused one are in the log
                role.appended(Offset(log.end_offset), log.epochs.epoch_at(log.end_offset - 1))
        return role.fetched(leader_high_watermark=result.high_watermark, leader_log_start=result.log_start)

    def _execute(self, followed: _Followed, effects: Effects) -> None:
        replica = followed.replica
        for effect in effects:
            if isinstance(effect, TruncateTo | RestartAt):
                self._logger.info(
                    "a follower's log differs from its leader's and is cut",
                    partition=f"{replica.topic}-{replica.index}",
                    end=replica.log.end_offset,
                    cut_to=effect.offset,
                    leader=self.leader,
                )
                self._logs.cut(replica, effect)
            elif isinstance(effect, AdvanceStart):
                self._logs.advance_start(replica, effect)
            else:
                replica.execute((effect,))

    def _later(self, followed: _Followed, problem: str) -> None:
        """Fetch the partition again after a while, which grows."""
        self._pause(followed, followed.backoff_ms)
        followed.backoff_ms = min(2 * followed.backoff_ms, PARTITION_RETRY_MS_MAX)
        if problem and problem != followed.reported and followed.backoff_ms > 8 * PARTITION_RETRY_MS_MIN:
            followed.reported = problem
            replica = followed.replica
            self._logger.warning(
                "a partition is not replicated",
                partition=f"{replica.topic}-{replica.index}",
                leader=self.leader,
                reason=problem,
            )

    def _pause(self, followed: _Followed, duration_ms: float) -> None:
        if followed.retry is None:
            followed.retry = self._timers.after(duration_ms, partial(self._resume, followed))

    def _resume(self, followed: _Followed) -> None:
        followed.retry = None
        self.fetch_soon(followed.replica)
