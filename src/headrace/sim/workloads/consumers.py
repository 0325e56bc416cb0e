"""Consumers: long polls with and without sessions, reads from the middle, and offsets by time."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from headrace.model.errors import ErrorCode
from headrace.model.ids import TopicId
from headrace.sim.checkers.history import KEPT, PartitionHistory
from headrace.sim.checkers.violation import Violation, require
from headrace.sim.context import RunContext
from headrace.sim.workloads import requests
from headrace.sim.workloads.client import Client
from headrace.sim.workloads.producers import GONE, HONEST_ERRORS
from headrace.wire.apis import ApiKey
from headrace.wire.messages.fetch import FetchRequestTopic

NO_SESSION = 0
WITHOUT_SESSION = -1
NEW_SESSION = 0
ERROR_PAUSE_MS = 200
REREAD_ONE_IN = 15
LOOK_UP_ONE_IN = 20
WAITS_MS = (0, 100, 500, 2_000)
BYTES_MIN = (1, 1, 2_000, 50_000)
BYTES_MAX = (300, 4_000, requests.FETCH_BYTES_MAX)
"""Most bytes fetched of a partition at once; a larger batch comes alone."""
SESSION_ERRORS = (ErrorCode.FETCH_SESSION_ID_NOT_FOUND, ErrorCode.INVALID_FETCH_SESSION_EPOCH)
TIME_IS_FOUND = "an offset by time is the first of a record at or after it"


class _Asked(NamedTuple):
    """The offset from which a partition is read, and its sync level at the time of the request."""

    offset: int
    sync_level: int


class SimulatedConsumer(Client):
    """Follows `targets`, which others may extend and change meanwhile; the records it is shown must never change."""

    def __init__(self, context: RunContext, name: str, targets: Sequence[PartitionHistory], *, sessions: bool) -> None:
        super().__init__(context, name)
        self._targets = targets
        self._sessions = sessions
        self._by_id = self.entropy.below(2) == 0
        self._wait_ms = WAITS_MS[self.entropy.below(len(WAITS_MS))]
        self._bytes_min = BYTES_MIN[self.entropy.below(len(BYTES_MIN))]
        self._bytes_max = BYTES_MAX[self.entropy.below(len(BYTES_MAX))]
        self._positions: dict[PartitionHistory, int] = {}
        self._losses: dict[PartitionHistory, int] = {}
        self._asked: dict[PartitionHistory, _Asked] = {}
        self._session_id = NO_SESSION
        self._session_epoch = NEW_SESSION
        self._waits = False
        self._next_ms = 0.0
        self._ends: dict[PartitionHistory, int] | None = None
        """The offset it must reach after `hurry`."""

    def hurry(self) -> None:
        """Read on to the end, in large pieces and without detours."""
        self._ends = {target: target.known_end for target in self._targets}
        self._wait_ms, self._bytes_min, self._bytes_max = 0, 1, requests.FETCH_BYTES_MAX

    @property
    def _hurries(self) -> bool:
        return self._ends is not None

    def has_progressed(self) -> bool:
        """Return whether it has read to the ends of the partitions that it can name."""
        ends = self._ends or {}
        return all(
            self.position(target) >= ends.get(target, 0)
            for target in self._targets
            if self._by_id or not target.topic.mortal
        )

    def position(self, partition: PartitionHistory) -> int:
        return self._positions.get(partition, 0)

    def connected(self) -> None:
        self._waits = False
        self._forget_session()

    def _forget_session(self) -> None:
        self._session_id, self._session_epoch = NO_SESSION, NEW_SESSION
        self._asked.clear()

    # Requests

    def work(self) -> None:
        if self._waits or self.now_ms < self._next_ms:
            return
        targets = self._readable()
        if not targets:
            return
        self._waits = True
        if self.entropy.one_in(LOOK_UP_ONE_IN):
            self._look_up(targets[self.entropy.below(len(targets))])
        else:
            self._fetch(targets)

    def _readable(self) -> list[PartitionHistory]:
        """Return the partitions to read: one at a time without a session; by name only if no other topic can have that
        name.
        """
        targets = [target for target in self._targets if self._by_id or not target.topic.mortal]
        if self._sessions or self._hurries or not targets:
            return targets
        return [targets[self.entropy.below(len(targets))]]

    def _fetch(self, targets: list[PartitionHistory]) -> None:
        if not self._hurries and self.entropy.one_in(REREAD_ONE_IN):
            self._go_back(targets[self.entropy.below(len(targets))])
        if not self._sessions:
            self._asked.clear()
        elif any(partition not in targets for partition in self._asked):
            self._session_epoch = NEW_SESSION  # with the old session's id, which ends that one
            self._asked.clear()
        news: dict[TopicId, list[PartitionHistory]] = {}
        for target in targets:
            wanted = _Asked(self.position(target), target.topic.sync_level)
            before = self._asked.get(target)
            self._asked[target] = wanted
            if before is None or before.offset != wanted.offset:
                news.setdefault(target.topic.topic_id, []).append(target)
        request = requests.fetched(
            [self._wanted(partitions) for partitions in news.values()],
            wait_ms=self._wait_ms,
            bytes_min=self._bytes_min,
            session_id=self._session_id,
            session_epoch=self._session_epoch if self._sessions else WITHOUT_SESSION,
        )
        version = requests.FETCH_BY_ID if self._by_id else requests.FETCH_BY_NAME
        self.ask(ApiKey.FETCH, version, request, self._fetched)

    def _wanted(self, partitions: list[PartitionHistory]) -> FetchRequestTopic:
        topic = partitions[0].topic
        offsets = [(partition.index, self.position(partition)) for partition in partitions]
        return requests.wanted_topic(topic.name, offsets, topic_id=topic.topic_id, bytes_max=self._bytes_max)

    def _go_back(self, partition: PartitionHistory) -> None:
        start, position = partition.start, self.position(partition)
        if position > start:
            self._positions[partition] = start + self.entropy.below(position - start)

    # Responses

    def _fetched(self, response: Any) -> None:
        self._waits = False
        if response.error_code:
            error = ErrorCode(response.error_code)
            require(error in SESSION_ERRORS and self._session_id != NO_SESSION, HONEST_ERRORS, f"fetch: {error.name}")
            self._forget_session()
            return
        known = {self._key(partition): partition for partition in self._asked}
        for topic in response.responses:
            key = topic.topic_id if self._by_id else topic.topic
            for part in topic.partitions:
                self._shown(known[key, part.partition_index], part)
        if self._sessions:
            self._session_epoch += 1
            self._session_id = response.session_id
            if self._session_id == NO_SESSION:
                self._forget_session()

    def _key(self, partition: PartitionHistory) -> tuple[object, int]:
        return (partition.topic.topic_id if self._by_id else partition.topic.name), partition.index

    def _shown(self, partition: PartitionHistory, part: Any) -> None:
        asked = self._asked[partition]
        if part.error_code:
            self._refused(partition, asked.offset, ErrorCode(part.error_code), part.log_start_offset)
            return
        partition.starts_at(part.log_start_offset)
        partition.reaches(part.high_watermark)
        if part.records:
            _, self._positions[partition] = self.context.histories.show(
                partition,
                bytes(part.records),
                offset=asked.offset,
                high_watermark=part.high_watermark,
                sync_level=asked.sync_level,
            )

    def _refused(self, partition: PartitionHistory, offset: int, error: ErrorCode, log_start: int) -> None:
        self._next_ms = self.now_ms + ERROR_PAUSE_MS
        if error is ErrorCode.OFFSET_OUT_OF_RANGE:
            if offset < log_start:
                partition.starts_at(log_start)
                self._positions[partition] = log_start
                return
            fresh = partition.losses != self._losses.get(partition, 0)
            require(
                fresh, KEPT, f"offset {offset} of {partition} is out of range, but no power cut can have removed it"
            )
            self._losses[partition] = partition.losses
            self._positions[partition] = min(offset, partition.known_end)
        elif error in GONE:
            require(not partition.topic.certain, HONEST_ERRORS, f"{error.name} for a fetch of {partition}")
        else:
            honest = error is ErrorCode.KAFKA_STORAGE_ERROR and self.excused
            require(honest, HONEST_ERRORS, f"{error.name} for a fetch of {partition}")

    # Offsets by time

    def _look_up(self, partition: PartitionHistory) -> None:
        if partition.topic.mortal:
            self._waits = False
            return
        entries = list(partition.entries.values())
        timestamp = entries[self.entropy.below(len(entries))].timestamp if entries else 0
        request = requests.offset_at(partition.topic.name, partition.index, timestamp)

        def found(response: Any) -> None:
            self._waits = False
            self._check_found(partition, timestamp, response.topics[0].partitions[0])

        self.ask(ApiKey.LIST_OFFSETS, requests.LIST_OFFSETS, request, found)

    def _check_found(self, partition: PartitionHistory, timestamp: int, part: Any) -> None:
        if part.error_code:
            error = ErrorCode(part.error_code)
            # A lookup that takes too long, or whose node stops, must be requested again.
            honest = error is ErrorCode.OFFSET_NOT_AVAILABLE
            honest = honest or (error is ErrorCode.KAFKA_STORAGE_ERROR and self.excused)
            require(honest, HONEST_ERRORS, f"{error.name} for an offset by time of {partition}")
        elif part.offset >= 0:
            batch = partition.entries.get(part.offset)
            if part.timestamp < timestamp or (
                batch is not None and not partition.topic.append_time and batch.timestamp != part.timestamp
            ):
                detail = (
                    f"{partition}: for time {timestamp}, offset {part.offset} of time {part.timestamp} was returned"
                )
                raise Violation(TIME_IS_FOUND, detail)
