"""The consumer's decisions: which partitions are read from where, what to fetch next, and the records in order.

Without a clock or a socket: `poll` takes the time and gives errands, whose replies come back through `completed`, and
`take` gives records. A partition is fetched again only when all its records were taken, so what is held is bounded by
the fetch sizes; the partitions take turns.
"""

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from headrace.client.core.admin.partitions import list_offsets_call, offsets_in
from headrace.client.core.admin.routing import LEADER_ERRORS, by_topic
from headrace.client.core.calls import Call, Errand
from headrace.client.core.cluster import Cluster
from headrace.client.errors import BadAnswer, BrokerError, ClientError
from headrace.client.types import EARLIEST, LATEST, ConsumerRecord, OffsetAt
from headrace.model.errors import RETRIABLE, ErrorCode
from headrace.model.ids import NO_TOPIC_ID, TopicPartition
from headrace.wire.errors import ProtocolError
from headrace.wire.messages import fetch
from headrace.wire.records.header import (
    ATTRIBUTES,
    BASE_OFFSET,
    CONTROL_BIT,
    HEADER,
    LAST_OFFSET_DELTA,
    HeaderFields,
)
from headrace.wire.records.reader import batches, check_batch, records

_BATCHES_V2_FROM_VERSION = 4
_TOPIC_IDS_FROM_VERSION = 13


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerSettings:
    reset_to: int | None = LATEST
    """Where to begin without a position, and after an offset that does not exist: EARLIEST, LATEST, or an error."""

    fetch_wait_ms_max: int = 500
    fetch_bytes_min: int = 1
    fetch_bytes_max: int = 50 * 1024 * 1024
    partition_bytes_max: int = 1024 * 1024
    check_crcs: bool = True
    retry_pause_ms: float = 100
    request_timeout_ms: int = 30_000


class _Reading:
    """How far one partition is read."""

    __slots__ = ("fetched", "generation", "is_asking", "position", "resume_ms", "start", "taken")

    def __init__(self, start: int | None) -> None:
        self.position: int | None = None
        """The next offset to give; None while it is looked up."""
        self.start = start
        """What to look up: a time, EARLIEST or LATEST."""
        self.generation = 0
        """Grows with every seek, so that older answers are not taken for newer ones."""
        self.is_asking = False
        self.resume_ms = 0.0
        self.fetched: deque[memoryview] = deque()
        self.taken: Iterator[ConsumerRecord] | None = None

    def move(self, position: int | None, start: int | None) -> None:
        self.position, self.start = position, start
        self.generation += 1
        self.is_asking = False
        self.resume_ms = 0.0
        self.fetched.clear()
        self.taken = None

    def is_drained(self) -> bool:
        return not self.fetched and self.taken is None


class ConsumerCore:
    def __init__(self, settings: ConsumerSettings, cluster: Cluster) -> None:
        self._settings = settings
        self._cluster = cluster
        self._topics: tuple[str, ...] = ()
        self._readings: dict[TopicPartition, _Reading] = {}
        self._turns: deque[TopicPartition] = deque()
        self._fetching: set[int] = set()
        self._errors: deque[ClientError] = deque()

    def subscribe(self, topics: Iterable[str]) -> None:
        """Read all partitions of these topics, also those that are added later (from their beginning)."""
        self._topics = tuple(topics)
        self._cluster.want(self._topics)

    def assign(self, partitions: Iterable[TopicPartition]) -> None:
        """Read exactly these partitions; those that were read before go on where they are."""
        self._topics = ()
        wanted = dict.fromkeys(partitions)
        self._readings = {p: self._readings.get(p) or _Reading(self._settings.reset_to) for p in wanted}
        self._turns = deque(wanted)
        self._cluster.want(partition.topic for partition in wanted)

    def assignment(self) -> tuple[TopicPartition, ...]:
        return tuple(self._readings)

    def seek(self, partition: TopicPartition, offset: int) -> None:
        """Go on from this offset, or from EARLIEST or LATEST."""
        if offset < 0:
            self._readings[partition].move(None, offset)
        else:
            self._readings[partition].move(offset, None)

    def seek_to_time(self, partition: TopicPartition, time_ms: int) -> None:
        """Go on from the first record at or after this time, or from the end if there is none."""
        self._readings[partition].move(None, time_ms)

    def position(self, partition: TopicPartition) -> int | None:
        return self._readings[partition].position

    def poll(self, now_ms: float) -> tuple[list[Errand], float]:
        """What to ask now, and when to call again at the latest, unless a reply comes first."""
        errands: list[Errand] = []
        refresh = self._cluster.refresh(now_ms) if self._cluster.has_wanted() else None
        if refresh is not None:
            errands.append(Errand(refresh, self._refreshed))
        self.follow_topics()
        lookups: dict[int, dict[TopicPartition, int]] = {}
        fetches: dict[int, list[TopicPartition]] = {}
        wakeup_ms = self._cluster.next_refresh_ms()
        for partition, reading in self._readings.items():
            if reading.is_asking or not reading.is_drained():
                continue
            if reading.resume_ms > now_ms:
                wakeup_ms = min(wakeup_ms, reading.resume_ms)
                continue
            leader = self._cluster.leader(partition)
            if leader is None:
                self._cluster.mark_wrong()
                wakeup_ms = min(wakeup_ms, self._cluster.next_refresh_ms())
            elif reading.position is None:
                if reading.start is not None:
                    lookups.setdefault(leader, {})[partition] = reading.start
            elif leader not in self._fetching:
                fetches.setdefault(leader, []).append(partition)
        errands.extend(self._lookup(leader, times) for leader, times in lookups.items())
        errands.extend(self._fetch(leader, partitions) for leader, partitions in fetches.items())
        return errands, wakeup_ms

    def take(self, records_max: int) -> list[ConsumerRecord]:
        """Records that have come, in order within each partition; raises what went wrong."""
        taken: list[ConsumerRecord] = []
        for _ in range(len(self._turns)):
            if len(taken) >= records_max:
                break
            partition = self._turns[0]
            self._turns.rotate(-1)
            reading = self._readings[partition]
            if not reading.is_drained():
                self._take_from(partition, reading, taken, records_max)
        if not taken and self._errors:
            raise self._errors.popleft()
        return taken

    def _take_from(
        self, partition: TopicPartition, reading: _Reading, taken: list[ConsumerRecord], records_max: int
    ) -> None:
        try:
            while len(taken) < records_max:
                if reading.taken is None:
                    if not reading.fetched:
                        break
                    reading.taken = self._open(partition, reading, reading.fetched.popleft())
                for record in reading.taken:
                    taken.append(record)
                    reading.position = record.offset + 1
                    if len(taken) >= records_max:
                        return
                reading.taken = None
        except ProtocolError as error:
            position = reading.position
            reading.move(position, None)
            self._errors.append(
                BadAnswer(f"{partition} is damaged at offset {position}: {error}; seek behind it to go on")
            )

    def _open(self, partition: TopicPartition, reading: _Reading, batch: memoryview) -> Iterator[ConsumerRecord]:
        """The records of a batch from the position on; its end moves the position also where records are missing."""
        fields: HeaderFields = check_batch(batch) if self._settings.check_crcs else HEADER.unpack_from(batch)
        assert reading.position is not None
        begin = reading.position
        end = fields[BASE_OFFSET] + fields[LAST_OFFSET_DELTA] + 1
        if not fields[ATTRIBUTES] & CONTROL_BIT and end > begin:
            topic, index = partition
            new = tuple.__new__
            for record in records(batch):
                if record.offset >= begin:
                    yield new(ConsumerRecord, (topic, index, *record))
        reading.position = max(end, begin)

    def follow_topics(self) -> None:
        for topic in self._topics:
            count = self._cluster.partition_count(topic) or 0
            is_grown = any(partition.topic == topic for partition in self._readings)
            for index in range(count):
                partition = TopicPartition(topic, index)
                if partition not in self._readings:
                    self._readings[partition] = _Reading(EARLIEST if is_grown else self._settings.reset_to)
                    self._turns.append(partition)
                    self._require_start(partition, self._readings[partition])

    def _require_start(self, partition: TopicPartition, reading: _Reading) -> None:
        if reading.start is None:
            what = f"where to begin reading {partition} is not said"
            self._errors.append(BrokerError(ErrorCode.OFFSET_OUT_OF_RANGE, what))

    def _refreshed(self, reply: Any, now_ms: float) -> None:
        if isinstance(reply, ClientError):
            self._cluster.refresh_failed()
        else:
            self._cluster.refreshed(reply, now_ms)

    def _lookup(self, leader: int, times: dict[TopicPartition, int]) -> Errand:
        call = list_offsets_call(self._cluster, leader, times, timeout_ms=self._settings.request_timeout_ms)
        return Errand(call, partial(self._looked_up, self._ask(times)))

    def _looked_up(self, asked: dict[TopicPartition, int], reply: Any, now_ms: float) -> None:
        found = {} if isinstance(reply, ClientError) else offsets_in(reply)
        for partition, reading in self._answered(asked):
            at = found.get(partition)
            if at is None:
                self._pause(reading, now_ms)
            elif at.error:
                self._stumble(partition, reading, at.error, now_ms)
            else:
                self._begin(reading, at)

    def _begin(self, reading: _Reading, at: OffsetAt) -> None:
        if at.offset >= 0:
            reading.position = at.offset
        else:
            reading.start = LATEST  # Nothing is as new as the time asked for.

    def _fetch(self, leader: int, partitions: list[TopicPartition]) -> Errand:
        settings = self._settings
        has_ids = all(self._cluster.topic_id(partition.topic) != NO_TOPIC_ID for partition in partitions)
        request = fetch.FetchRequest(
            max_wait_ms=settings.fetch_wait_ms_max,
            min_bytes=settings.fetch_bytes_min,
            max_bytes=settings.fetch_bytes_max,
            topics=tuple(
                fetch.FetchRequestTopic(
                    topic=topic,
                    topic_id=self._cluster.topic_id(topic),
                    partitions=tuple(self._wanted(TopicPartition(topic, index)) for index in indexes),
                )
                for topic, indexes in by_topic(partitions).items()
            ),
        )
        call = Call(
            fetch,
            request,
            leader,
            min_version=_BATCHES_V2_FROM_VERSION,
            max_version=fetch.MAX_VERSION if has_ids else _TOPIC_IDS_FROM_VERSION - 1,
            wait_ms_max=settings.fetch_wait_ms_max,
        )
        self._fetching.add(leader)
        return Errand(call, partial(self._fetched, leader, self._ask(partitions)))

    def _wanted(self, partition: TopicPartition) -> fetch.FetchRequestPartition:
        position = self._readings[partition].position
        assert position is not None
        return fetch.FetchRequestPartition(
            partition=partition.partition,
            current_leader_epoch=self._cluster.leader_epoch(partition),
            fetch_offset=position,
            partition_max_bytes=self._settings.partition_bytes_max,
        )

    def _fetched(self, leader: int, asked: dict[TopicPartition, int], reply: Any, now_ms: float) -> None:
        self._fetching.discard(leader)
        answers: dict[TopicPartition, fetch.FetchResponsePartition] = {}
        if isinstance(reply, ClientError):
            self._cluster.mark_wrong()
        else:
            for topic in reply.responses:
                name = topic.topic or self._cluster.topic_name(topic.topic_id) or ""
                answers.update((TopicPartition(name, one.partition_index), one) for one in topic.partitions)
        for partition, reading in self._answered(asked):
            answer = answers.get(partition)
            if answer is None:
                if isinstance(reply, ClientError) or reply.error_code:
                    self._pause(reading, now_ms)
            elif answer.error_code:
                self._stumble(partition, reading, answer.error_code, now_ms)
            elif answer.records:
                self._keep(partition, reading, answer.records, now_ms)

    def _keep(self, partition: TopicPartition, reading: _Reading, fetched: Any, now_ms: float) -> None:
        try:
            reading.fetched.extend(batches(fetched, allow_truncated_end=True))
        except ProtocolError as error:
            reading.fetched.clear()
            self._pause(reading, now_ms)
            self._errors.append(BadAnswer(f"the records of {partition} at {reading.position} cannot be read: {error}"))

    def _ask(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        asked: dict[TopicPartition, int] = {}
        for partition in partitions:
            reading = self._readings[partition]
            reading.is_asking = True
            asked[partition] = reading.generation
        return asked

    def _answered(self, asked: dict[TopicPartition, int]) -> Iterator[tuple[TopicPartition, _Reading]]:
        """The partitions that are still read from where they were when this was asked."""
        for partition, generation in asked.items():
            reading = self._readings.get(partition)
            if reading is not None and reading.generation == generation:
                reading.is_asking = False
                yield partition, reading

    def _pause(self, reading: _Reading, now_ms: float) -> None:
        reading.resume_ms = now_ms + self._settings.retry_pause_ms

    def _stumble(self, partition: TopicPartition, reading: _Reading, code: int, now_ms: float) -> None:
        """An error for one partition: look again, begin again, or tell."""
        self._pause(reading, now_ms)
        if code == ErrorCode.OFFSET_OUT_OF_RANGE and self._settings.reset_to is not None:
            reading.move(None, self._settings.reset_to)
        elif code in LEADER_ERRORS or code in RETRIABLE:
            self._cluster.mark_wrong()
        else:
            self._errors.append(BrokerError(code, f"{partition} cannot be read at offset {reading.position}"))
