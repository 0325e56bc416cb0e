"""Decisions of the consumer: the position of each partition, the next fetch, and the order of records.

Without a clock or a socket: `poll` takes the time and returns calls, whose replies come back through `completed`, and
`take` returns records. A partition is fetched again when at most one fetch of it is left to return, so that the next
one arrives while the application works, and at most twice the fetch size is held; partitions with records take turns.
"""

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from headrace.client.core.calls import Call, PendingCall
from headrace.client.core.cluster import Cluster
from headrace.client.core.fetch_requests import FetchSettings, aborted_in, fetch_call, results_in, wanted_from
from headrace.client.core.fetch_sessions import SESSION_ERRORS, ClientFetchSession, Plan
from headrace.client.core.partition_reader import FetchedBatch, PartitionReading
from headrace.client.core.positions import Positions
from headrace.client.core.readings import Readings
from headrace.client.errors import BadResponse, BrokerError, ClientError, UnsupportedByBroker
from headrace.client.types import EARLIEST, LATEST, ConsumerRecord, IsolationLevel
from headrace.model.errors import ErrorCode
from headrace.model.ids import TopicPartition
from headrace.wire.errors import ProtocolError
from headrace.wire.messages import fetch

PREFERRED_REPLICA_MS = 300_000
"""Time for which a nearer replica is read before the leader is asked again (KIP-392)."""

FEW_PARTITIONS_MAX = 8
"""Up to this number, partitions count as few."""

TURN_BYTES = 128 * 1024
"""Bytes after which a partition that is read by batches yields to the next one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerSettings:
    reset_to: int | None = LATEST
    """The start without a position, and after an offset that does not exist: EARLIEST, LATEST, or an error."""

    fetches: FetchSettings = field(default_factory=FetchSettings)
    few_partitions_bytes: int | None = None
    """Bytes to fetch of a partition at a time while there are few of them, if different."""

    check_crcs: bool = True
    create_topics: bool = False
    """True if a broker may create the requested topics automatically."""

    retry_pause_ms: float = 100
    request_timeout_ms: int = 30_000


class ConsumerCore:
    def __init__(self, settings: ConsumerSettings, cluster: Cluster) -> None:
        self._settings = settings
        self._is_committed = settings.fetches.isolation == IsolationLevel.READ_COMMITTED
        self._cluster = cluster
        self._topics: tuple[str, ...] = ()
        self._matches: Callable[[str], bool] | None = None
        self._records_count = self._bytes_count = self._fetches_count = 0
        self._readings = Readings(cluster, reset_to=settings.reset_to, retry_pause_ms=settings.retry_pause_ms)
        self.tell = self._readings.tell
        self._positions = Positions(
            self._readings,
            cluster,
            reset_to=settings.reset_to,
            isolation=settings.fetches.isolation,
            request_timeout_ms=settings.request_timeout_ms,
        )
        self._turns: deque[TopicPartition] = deque()
        """The partitions with records to return, each once."""
        self._fetching: set[int] = set()
        self._sessions: dict[int, ClientFetchSession] = {}
        """By node; at most one per node."""

    def subscribe(self, topics: Iterable[str]) -> None:
        """Read all partitions of these topics, including those added later (from their beginning)."""
        self._topics, self._matches = tuple(topics), None
        self._cluster.want(self._topics)

    def subscribe_matching(self, matches: Callable[[str], bool]) -> None:
        """Read all topics whose names match, including those created later; not the internal ones."""
        self._matches = matches
        self._cluster.want_all()

    def assign(self, partitions: Iterable[TopicPartition], *, needs_committed: bool = False) -> None:
        """Read exactly these partitions; those that were read before continue at their positions."""
        self._topics, self._matches = (), None
        wanted = dict.fromkeys(partitions)
        reset_to = self._settings.reset_to
        kept = {each: self._readings.get(each) for each in wanted}
        self._readings.clear()
        for each, reading in kept.items():
            self._readings[each] = reading or PartitionReading(each, reset_to, needs_committed=needs_committed)
        self._turns = deque(each for each in self._turns if each in wanted)
        self._cluster.want(partition.topic for partition in wanted)

    def assignment(self) -> tuple[TopicPartition, ...]:
        return tuple(self._readings)

    def seek(self, partition: TopicPartition, offset: int) -> None:
        """Continue from this offset, or from EARLIEST or LATEST."""
        if offset < 0:
            self._readings[partition].move(None, offset)
        else:
            self._readings[partition].move(offset, None)

    def seek_to_time(self, partition: TopicPartition, time_ms: int) -> None:
        """Continue from the first record at or after this time, or from the end if there is none."""
        self._readings[partition].move(None, time_ms)

    def pause(self, partitions: Iterable[TopicPartition]) -> None:
        """Neither deliver nor fetch records of these partitions until they are resumed; fetched records are kept."""
        for partition in partitions:
            self._readings[partition].is_paused = True
        self._turns = deque(each for each in self._turns if not self._readings[each].is_paused)

    def resume(self, partitions: Iterable[TopicPartition]) -> None:
        for partition in partitions:
            reading = self._readings[partition]
            if reading.is_paused:
                reading.is_paused = False
                self._join_turns(partition, reading)

    def paused(self) -> tuple[TopicPartition, ...]:
        return tuple(partition for partition, reading in self._readings.items() if reading.is_paused)

    def position(self, partition: TopicPartition) -> int | None:
        return self._readings[partition].position

    def last_epoch(self, partition: TopicPartition) -> int:
        return self._readings[partition].last_epoch

    def lag(self, partition: TopicPartition) -> int | None:
        """Return the number of offsets between the position and the log end of the last response."""
        return self._lag(self._readings[partition])

    def lags(self) -> dict[TopicPartition, int | None]:
        """Return the lag of each partition; another thread may consume meanwhile."""
        return {partition: self._lag(reading) for partition, reading in list(self._readings.items())}

    def _lag(self, reading: PartitionReading) -> int | None:
        end, position = reading.last_stable_offset if self._is_committed else reading.high_watermark, reading.position
        return max(0, end - position) if end >= 0 and position is not None else None

    def awaiting_committed(self) -> tuple[TopicPartition, ...]:
        """Return the partitions that begin at their group's committed offset, which is not known yet."""
        return tuple(partition for partition, reading in self._readings.items() if reading.needs_committed)

    def begin_at_committed(self, partition: TopicPartition, offset: int, leader_epoch: int = -1) -> None:
        """Set the committed offset of the group; -1 if there is none, then the reset decides."""
        reading = self._readings.get(partition)
        if reading is not None and reading.needs_committed:
            reading.needs_committed = False
            if offset >= 0:
                reading.move(offset, None, epoch=leader_epoch)
            else:
                self._require_start(partition, reading)

    def poll(self, now_ms: float) -> tuple[list[PendingCall], float]:
        """Return the calls to make now, and the time of the next `poll` unless a reply comes first."""
        calls: list[PendingCall] = []
        creates = self._settings.create_topics
        refresh = self._cluster.refresh(now_ms, create_topics=creates) if self._cluster.has_wanted() else None
        if refresh is not None:
            calls.append(PendingCall(refresh, self._refreshed))
        self.follow_topics()
        lookups: dict[int, dict[TopicPartition, int]] = {}
        checks: dict[int, dict[TopicPartition, int]] = {}
        fetches: dict[int, list[TopicPartition]] = {}
        wakeup_ms = self._cluster.next_refresh_ms()
        bytes_enough = self._bytes_max()
        for partition, reading in self._readings.items():
            if reading.is_asking or reading.is_paused or reading.needs_committed:
                continue
            if reading.fetched_bytes > bytes_enough:
                continue
            if reading.resume_ms > now_ms:
                wakeup_ms = min(wakeup_ms, reading.resume_ms)
                continue
            leader = self._cluster.leader(partition)
            if leader is None:
                if self._cluster.partition_count(partition.topic) is not None:
                    self._cluster.mark_wrong()
                wakeup_ms = min(wakeup_ms, self._cluster.next_refresh_ms())
            elif reading.position is None:
                if reading.start is not None:
                    lookups.setdefault(leader, {})[partition] = reading.start
            elif self._positions.needs_check(partition, reading):
                checks.setdefault(leader, {})[partition] = reading.fetched_epoch
            else:
                node = self._source(reading, leader, now_ms)
                if node not in self._fetching:
                    fetches.setdefault(node, []).append(partition)
        calls.extend(self._positions.lookup(leader, times) for leader, times in lookups.items())
        calls.extend(self._positions.check(leader, epochs) for leader, epochs in checks.items())
        calls.extend(self._fetch(node, partitions) for node, partitions in fetches.items())
        return calls, wakeup_ms

    def _bytes_max(self) -> int:
        """Return the bytes to fetch of one partition at a time; it is fetched again when no more than this is left."""
        few_bytes = self._settings.few_partitions_bytes
        is_few = few_bytes is not None and len(self._readings) <= FEW_PARTITIONS_MAX
        return few_bytes if is_few and few_bytes is not None else self._settings.fetches.partition_bytes_max

    def _source(self, reading: PartitionReading, leader: int, now_ms: float) -> int:
        """Return the node to fetch from: the leader, or the nearer replica that it named."""
        node = reading.preferred_node
        if node is None or now_ms >= reading.preferred_until_ms or node not in self._cluster.brokers:
            reading.preferred_node = None
            return leader
        return node

    def take(self, records_max: int) -> list[ConsumerRecord]:
        """Return records that have arrived, in order within each partition; raises errors."""
        taken: list[ConsumerRecord] = []
        turns = self._turns
        while turns and len(taken) < records_max:
            partition = turns.popleft()
            reading = self._readings.get(partition)
            if reading is None:
                continue
            try:
                taken += reading.take(records_max - len(taken), check_crcs=self._settings.check_crcs)
            except ProtocolError as error:
                self._tell_damage(partition, reading, error)
            self._join_turns(partition, reading)
        if not taken and self._readings.errors:
            raise self._readings.errors.popleft()
        self._records_count += len(taken)
        return taken

    def take_batches(self) -> list[FetchedBatch]:
        """Return the next whole batches of the partition whose turn it is."""
        turns = self._turns
        while turns:
            partition = turns.popleft()
            reading = self._readings.get(partition)
            if reading is None:
                continue
            taken: list[FetchedBatch] = []
            try:
                taken = reading.take_batches(TURN_BYTES, check_crcs=self._settings.check_crcs)
            except ProtocolError as error:
                self._tell_damage(partition, reading, error)
            if not reading.is_drained():
                turns.append(partition)
            if taken:
                self._records_count += taken[-1].end - taken[0].begin
                return taken
        if self._readings.errors:
            raise self._readings.errors.popleft()
        return []

    def _join_turns(self, partition: TopicPartition, reading: PartitionReading) -> None:
        if not reading.is_drained() and not reading.is_paused and partition not in self._turns:
            self._turns.append(partition)

    def _tell_damage(self, partition: TopicPartition, reading: PartitionReading, error: ProtocolError) -> None:
        position = reading.position
        reading.move(position, None)
        self.tell(BadResponse(f"{partition} is damaged at offset {position}: {error}; seek behind it to continue"))

    def closing_calls(self) -> list[Call]:
        """Return the last requests, which let brokers drop the fetch sessions; their responses are not awaited."""
        settings = replace(self._settings.fetches, wait_ms_max=0)
        plans = {node: session.closing() for node, session in self._sessions.items()}
        return [
            fetch_call(node, {}, plan, settings)._replace(is_answered=False)
            for node, plan in plans.items()
            if plan is not None
        ]

    def counters(self) -> dict[str, float]:
        return {
            "records-consumed-total": self._records_count,
            "bytes-consumed-total": self._bytes_count,
            "fetch-total": self._fetches_count,
        }

    def follow_topics(self) -> None:
        if self._matches is not None:
            known = self._cluster.topics.values()
            self._topics = tuple(t.name for t in known if not t.internal and self._matches(t.name))
        for topic in self._topics:
            count = self._cluster.partition_count(topic) or 0
            is_grown = any(partition.topic == topic for partition in self._readings)
            for index in range(count):
                partition = TopicPartition(topic, index)
                if partition not in self._readings:
                    reading = PartitionReading(partition, EARLIEST if is_grown else self._settings.reset_to)
                    self._readings[partition] = reading
                    self._require_start(partition, reading)

    def _require_start(self, partition: TopicPartition, reading: PartitionReading) -> None:
        if reading.start is None:
            what = f"{partition} has no start position: seek, or set auto_offset_reset"
            self.tell(BrokerError(ErrorCode.OFFSET_OUT_OF_RANGE, what))

    def _refreshed(self, reply: Any, now_ms: float) -> None:
        if isinstance(reply, ClientError):
            self._cluster.refresh_failed()
        else:
            self._cluster.refreshed(reply, now_ms)

    def _fetch(self, node: int, partitions: list[TopicPartition]) -> PendingCall:
        positions: dict[TopicPartition, int] = {}
        for partition in partitions:
            position = self._readings[partition].fetch_position()
            assert position is not None
            positions[partition] = position
        self._fetching.add(node)
        wanted = wanted_from(self._cluster, positions, self._bytes_max())
        session = self._sessions.setdefault(node, ClientFetchSession())
        plan = session.plan(wanted)
        call = fetch_call(node, wanted, plan, self._settings.fetches)
        return PendingCall(call, partial(self._fetched, node, session, plan, self._readings.ask(partitions)))

    def _fetched(
        self,
        node: int,
        session: ClientFetchSession,
        plan: Plan,
        asked: dict[TopicPartition, int],
        reply: Any,
        now_ms: float,
    ) -> None:
        self._fetching.discard(node)
        self._fetches_count += 1
        results: dict[TopicPartition, fetch.FetchResponsePartition] = {}
        is_failure = isinstance(reply, ClientError)
        if is_failure:
            session.broken()
            self._cluster.mark_wrong()
            if isinstance(reply, UnsupportedByBroker):
                self.tell(reply)
        else:
            session.answered(plan, reply)
            self._cluster.learn_endpoints(reply.node_endpoints)
            results = results_in(self._cluster, reply)
        for partition, reading in self._readings.answered(asked):
            result = results.get(partition)
            if result is None:
                if not is_failure and plan.is_incremental and reply.error_code in SESSION_ERRORS:
                    continue  # The next request names everything, and may be sent at once.
                if is_failure or reply.error_code:
                    reading.preferred_node = None
                    self._readings.pause(reading, now_ms)
            elif result.error_code:
                self._fetch_refused(partition, reading, result, now_ms)
            else:
                self._keep(partition, reading, result, now_ms)

    def _keep(
        self, partition: TopicPartition, reading: PartitionReading, result: fetch.FetchResponsePartition, now_ms: float
    ) -> None:
        reading.high_watermark = result.high_watermark
        reading.last_stable_offset = result.last_stable_offset
        reading.log_start = result.log_start_offset
        if result.preferred_read_replica >= 0:
            reading.preferred_node = result.preferred_read_replica
            reading.preferred_until_ms = now_ms + PREFERRED_REPLICA_MS
        if not result.records:
            return
        self._bytes_count += len(result.records)
        try:
            reading.keep(result.records, aborted_in(result) if self._is_committed else None)
        except ProtocolError as error:
            reading.move(reading.position, None)
            self._readings.pause(reading, now_ms)
            self.tell(BadResponse(f"the records of {partition} at {reading.position} cannot be decoded: {error}"))
            return
        # Partitions that just got records are requested last, so that the limit of one response does not starve the
        # others.
        self._readings[partition] = self._readings.pop(partition)
        self._join_turns(partition, reading)

    def _fetch_refused(
        self, partition: TopicPartition, reading: PartitionReading, result: fetch.FetchResponsePartition, now_ms: float
    ) -> None:
        leader = result.current_leader
        may_hurry = now_ms - reading.redirected_ms >= self._settings.retry_pause_ms
        reading.redirected_ms = now_ms
        if reading.preferred_node is not None:
            reading.preferred_node = None  # A replica that cannot serve us: ask the leader.
        elif not self._cluster.learn_leader(partition, leader.leader_id, leader.leader_epoch):
            self._readings.handle_partition_error(partition, reading, result.error_code, now_ms)
        if not may_hurry:
            self._readings.pause(reading, now_ms)  # Nodes that redirect us to each other must not keep us busy.
