"""The follower's end of replication: fetches from one other broker all partitions that it leads and this node copies.

One fetch is under way at a time, for all partitions that can be fetched, and the next one leaves in the turn in which
its response came. The batches of a response are written from the buffer into which they were received.
"""

from collections.abc import Callable

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
    VERSION,
    FollowerPosition,
    ReplicaFetchRequest,
    ReplicaFetchResponse,
    ReplicaResult,
)

BYTES_MIN = 1
CONNECTION_RETRY_MS = 50
"""Wait after a fetch that had no response. The connection has a longer wait of its own while the leader is away."""

TURN_WAIT_MS = 50
"""Wait at the leader for a fetch that could not have all partitions: the others have their turn after it."""

PARTITION_RETRY_MS_MIN = 10
"""First wait for a partition that could not be fetched; the leader may learn of its new role a moment later."""

PARTITION_RETRY_MS_MAX = 1_000

FULL_RETRY_MS = 1_000
"""Interval of checks whether a full directory has space again."""

Key = tuple[bytes, int]
"""(topic id, partition)."""


class _Followed:
    """A partition of this fetcher."""

    __slots__ = ("backoff_ms", "key", "replica", "reported", "retry_ms")

    def __init__(self, replica: Replica) -> None:
        self.replica = replica
        self.key: Key = (replica.topic_id, replica.index)
        self.retry_ms = 0.0
        self.backoff_ms = PARTITION_RETRY_MS_MIN
        self.reported = ""
        """The last problem in the log, so that a repeated one is logged once."""


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
        timers: Timers,
        logger: NodeLogger,
    ) -> None:
        self.leader = leader
        self._node_id = node_id
        self._broker_epoch = broker_epoch
        self._config = config
        self._links = links
        self._logs = logs
        self._timers = timers
        self._logger = logger
        self._followed: dict[Key, _Followed] = {}
        """In the order in which they are fetched. Those that had records move to the end, and so do all of a fetch that
        left others out.
        """
        self._asked: dict[Key, tuple[Follower, int]] = {}
        """The partitions of the fetch that is under way, with the role and the offset of each."""
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
        self.fetch_soon()

    def remove(self, replica: Replica) -> None:
        self._followed.pop((replica.topic_id, replica.index), None)

    def fetch_soon(self) -> None:
        """Fetch at the end of this turn, when all partitions that change in it have changed."""
        if not self._scheduled:
            self._scheduled = True
            self._timers.next_turn(self._scheduled_fetch)

    def _scheduled_fetch(self) -> None:
        self._scheduled = False
        if not self._is_fetching:
            self._fetch()
        elif not self._hurried and any(self._is_new(followed) for followed in self._followed.values()):
            self._hurry()

    def _is_new(self, followed: _Followed) -> bool:
        role = followed.replica.role
        if not isinstance(role, Follower) or role.next_fetch() is None or followed.replica.is_damaged:
            return False
        asked = self._asked.get(followed.key)
        return asked is None or asked[0] is not role

    # Fetching

    def _fetch(self) -> None:
        """Send the next fetch, if any partition can be fetched."""
        if self._timer is not None:
            self._timers.cancel(self._timer)
            self._timer = None
        topics: dict[bytes, list[FollowerPosition]] = {}
        now_ms = self._timers.now_ms()
        next_retry_ms = float("inf")
        bytes_max = self._config().replica_fetch_bytes_max
        self._asked.clear()
        for followed in self._followed.values():
            if followed.retry_ms > now_ms:
                next_retry_ms = min(next_retry_ms, followed.retry_ms)
                continue
            if followed.replica.space.full:
                next_retry_ms = min(next_retry_ms, now_ms + FULL_RETRY_MS)
                continue
            role = followed.replica.role
            fetch = role.next_fetch() if isinstance(role, Follower) else None
            if fetch is None or followed.replica.is_damaged:
                continue
            assert isinstance(role, Follower)
            position = FollowerPosition(
                followed.replica.index,
                role.leader_epoch,
                fetch.offset,
                fetch.last_fetched_epoch,
                role.log_start,
                bytes_max,
            )
            topics.setdefault(followed.replica.topic_id, []).append(position)
            self._asked[followed.key] = (role, fetch.offset)
            if len(self._asked) >= REPLICA_FETCH_PARTITIONS_MAX:
                break
        if self._asked:
            wait_ms = min(self._config().replica_fetch_wait_ms, max(next_retry_ms - now_ms, 0))
            if len(self._followed) > len(self._asked) >= REPLICA_FETCH_PARTITIONS_MAX:
                wait_ms = min(wait_ms, TURN_WAIT_MS)
                for key in self._asked:  # the next fetch begins with those that this one has left out
                    self._followed[key] = self._followed.pop(key)
            self._send(int(wait_ms), list(topics.items()), self._answered)
            self._is_fetching = True
        elif next_retry_ms < float("inf"):
            self._timer = self._timers.at(next_retry_ms, self._retry)

    def _retry(self) -> None:
        self._timer = None
        if not self._is_fetching:
            self._fetch()

    def _hurry(self) -> None:
        """Have the leader answer the waiting fetch now, because the next one has more partitions."""
        self._hurried = True
        self._send(0, [], lambda _response: None)

    def _send(
        self, wait_ms: int, topics: list[tuple[bytes, list[FollowerPosition]]], then: Callable[[object], None]
    ) -> None:
        config = self._config()
        request = ReplicaFetchRequest(
            replica_id=self._node_id,
            broker_epoch=self._broker_epoch(),
            wait_ms_max=wait_ms,
            bytes_min=BYTES_MIN,
            bytes_max=config.replica_response_bytes_max,
            topics=topics,
        )
        self._links.send(
            self.leader, ApiKey.FETCH, VERSION, request, timeout_ms=wait_ms + config.replica_timeout_ms, then=then
        )

    def _answered(self, response: object) -> None:
        self._is_fetching = self._hurried = False
        if isinstance(response, PeerFailure):
            if self._followed:
                self._timer = self._timers.after(CONNECTION_RETRY_MS, self._retry)
            return
        assert isinstance(response, ReplicaFetchResponse)
        for topic_id, results in response.topics:
            for result in results:
                key = (topic_id, result.partition)
                followed, asked = self._followed.get(key), self._asked.get(key)
                if followed is not None and asked is not None:
                    self._take(followed, asked, result)
        self._fetch()

    def _take(self, followed: _Followed, asked: tuple[Follower, int], result: ReplicaResult) -> None:
        """Apply the result of one partition, if the partition is still as it was when the fetch left."""
        role, offset = asked
        replica = followed.replica
        fetch = role.next_fetch()
        if replica.role is not role or replica.offline or fetch is None or fetch.offset != offset:
            return
        try:
            self._execute(followed, self._apply(followed, role, result))
        except (WrongAnswer, RefusedBatch) as error:
            self._later(followed, str(error))
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
            self._followed[followed.key] = self._followed.pop(followed.key)
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
                replica.log.advance_start(effect.offset)
            else:
                replica.execute((effect,))

    def _later(self, followed: _Followed, problem: str) -> None:
        """Fetch the partition again after a while, which grows."""
        followed.retry_ms = self._timers.now_ms() + followed.backoff_ms
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
