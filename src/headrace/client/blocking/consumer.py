"""Consuming in a thread that waits: records as they come, from assigned partitions, without a group."""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Any, Literal, Self

from headrace.client.blocking.session import DEFAULT_BOOTSTRAP, Session
from headrace.client.core.admin.partitions import offsets
from headrace.client.core.calls import Errand
from headrace.client.core.consumer import ConsumerCore, ConsumerSettings
from headrace.client.errors import BrokerError, ClientClosed, ClientError, DeadlineExceeded, InvalidArgument
from headrace.client.types import EARLIEST, LATEST, ConsumerRecord
from headrace.model.errors import RETRIABLE, ErrorCode
from headrace.model.ids import TopicPartition

POLL_RECORDS_MAX = 500
UNKNOWN_TOPIC_WAIT_MS = 5_000
"""How long a topic may stay unknown before `poll` says so."""

_RESETS: dict[str, int | None] = {"earliest": EARLIEST, "latest": LATEST, "none": None}


class Consumer:
    """Reads topics, or assigned partitions. For one thread; every wait has an end."""

    def __init__(
        self,
        *topics: str,
        bootstrap_servers: str | Sequence[str] = DEFAULT_BOOTSTRAP,
        group_id: str | None = None,
        client_id: str = "headrace",
        auto_offset_reset: Literal["earliest", "latest", "none"] = "latest",
        max_poll_records: int = POLL_RECORDS_MAX,
        fetch_max_wait_ms: int = 500,
        fetch_min_bytes: int = 1,
        fetch_max_bytes: int = 50 * 1024 * 1024,
        max_partition_fetch_bytes: int = 1024 * 1024,
        check_crcs: bool = True,
        consumer_timeout_ms: float | None = None,
        request_timeout_ms: int = 30_000,
    ) -> None:
        """`consumer_timeout_ms` ends the iteration when no record came for that long; None waits for ever."""
        if group_id is not None:
            raise InvalidArgument(
                "consumer groups are not supported yet: leave out group_id and read all partitions, or assign() some"
            )
        if auto_offset_reset not in _RESETS:
            raise InvalidArgument(f'auto_offset_reset is "earliest", "latest" or "none", not {auto_offset_reset!r}')
        if not all(isinstance(topic, str) for topic in topics):
            raise InvalidArgument(f"topics are given one by one as text, not as {topics!r}")
        _check_limit(max_poll_records)
        self._records_max = max_poll_records
        self._iteration_timeout_ms = consumer_timeout_ms
        self._request_timeout_ms = request_timeout_ms
        self._session = Session(bootstrap_servers, client_id=client_id, request_timeout_ms=request_timeout_ms)
        self._core = ConsumerCore(
            ConsumerSettings(
                reset_to=_RESETS[auto_offset_reset],
                fetch_wait_ms_max=fetch_max_wait_ms,
                fetch_bytes_min=fetch_min_bytes,
                fetch_bytes_max=fetch_max_bytes,
                partition_bytes_max=max_partition_fetch_bytes,
                check_crcs=check_crcs,
                request_timeout_ms=request_timeout_ms,
            ),
            self._session.cluster,
        )
        self._topics = topics
        self._core.subscribe(topics)
        self._ready: deque[ConsumerRecord] = deque()
        """Polled by the iterator and not given yet."""
        self._trouble: ClientError | None = None
        self._trouble_since_ms = 0.0
        self._began_ms = self._session.clock.monotonic_ms()

    def assign(self, partitions: Iterable[TopicPartition | tuple[str, int]]) -> None:
        """Read exactly these partitions."""
        self._topics = ()
        self._ready.clear()
        self._core.assign(TopicPartition(*partition) for partition in partitions)

    def assignment(self) -> tuple[TopicPartition, ...]:
        """The partitions being read; of topics, only once they are known."""
        return self._core.assignment()

    def seek(self, partition: TopicPartition | tuple[str, int], offset: int) -> None:
        """Go on from this offset, or from EARLIEST or LATEST."""
        if offset < EARLIEST:
            raise InvalidArgument(f"an offset is not below zero, {offset} is")
        self._forget_ready(self._assigned([partition]))
        self._core.seek(TopicPartition(*partition), offset)

    def seek_to_time(self, time_ms: int, partitions: Iterable[TopicPartition | tuple[str, int]] | None = None) -> None:
        """Go on from the first record at or after the time, in these or all partitions; at the end if there is none."""
        if time_ms < 0:
            raise InvalidArgument(f"a time is in milliseconds since 1970, not {time_ms}")
        chosen = self._assigned(partitions)
        self._forget_ready(chosen)
        for partition in chosen:
            self._core.seek_to_time(partition, time_ms)

    def poll(self, timeout_ms: float = 1_000, max_records: int | None = None) -> list[ConsumerRecord]:
        """The records that are there, or come within the time; an empty list if none do."""
        self._check_open()
        if not self._topics and not self._core.assignment():
            raise InvalidArgument("there is nothing to read: name topics, or assign() partitions")
        limit = _check_limit(max_records) if max_records is not None else self._records_max
        if self._ready:
            return [self._ready.popleft() for _ in range(min(limit, len(self._ready)))]
        clock = self._session.clock
        deadline_ms = clock.monotonic_ms() + timeout_ms
        while True:
            taken = self._core.take(limit)
            now_ms = clock.monotonic_ms()
            wakeup_ms = self._step(now_ms)
            if taken:
                return taken
            self._raise_trouble(now_ms)
            if now_ms >= deadline_ms:
                return []
            self._session.links.turn(max(0.0, min(wakeup_ms, deadline_ms) - now_ms))

    def position(self, partition: TopicPartition | tuple[str, int]) -> int:
        """The offset of the next record to be given."""
        (place,) = self._assigned([partition])
        for record in self._ready:
            if record.partition == place.partition and record.topic == place.topic:
                return record.offset
        deadline_ms = self._session.clock.monotonic_ms() + self._request_timeout_ms
        while (position := self._core.position(place)) is None:
            now_ms = self._session.clock.monotonic_ms()
            wakeup_ms = self._step(now_ms)
            self._raise_trouble(now_ms)
            if now_ms >= deadline_ms:
                raise DeadlineExceeded(f"where {place} begins was not answered in {self._request_timeout_ms} ms")
            self._session.links.turn(max(0.0, min(wakeup_ms, deadline_ms) - now_ms))
        return position

    def end_offsets(
        self, partitions: Iterable[TopicPartition | tuple[str, int]] | None = None
    ) -> dict[TopicPartition, int]:
        """The offset behind the last record of each partition, as of now."""
        return self._offsets(partitions, LATEST)

    def beginning_offsets(
        self, partitions: Iterable[TopicPartition | tuple[str, int]] | None = None
    ) -> dict[TopicPartition, int]:
        return self._offsets(partitions, EARLIEST)

    def close(self) -> None:
        self._session.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    def __iter__(self) -> Iterator[ConsumerRecord]:
        return self

    def __next__(self) -> ConsumerRecord:
        waited_since_ms = self._session.clock.monotonic_ms()
        while not self._ready:
            self._ready.extend(self.poll(min(1_000, self._iteration_timeout_ms or 1_000)))
            waited_ms = self._session.clock.monotonic_ms() - waited_since_ms
            if not self._ready and self._iteration_timeout_ms is not None and waited_ms >= self._iteration_timeout_ms:
                raise StopIteration
        return self._ready.popleft()

    def _offsets(
        self, partitions: Iterable[TopicPartition | tuple[str, int]] | None, time: int
    ) -> dict[TopicPartition, int]:
        self._check_open()
        chosen = (
            self._assigned(None) if partitions is None else [TopicPartition(*partition) for partition in partitions]
        )
        operation = offsets(self._session.cluster, dict.fromkeys(chosen, time), timeout_ms=self._request_timeout_ms)
        found = self._session.run(operation, self._request_timeout_ms)
        for partition, at in found.items():
            if at.error:
                raise BrokerError(at.error, f"the offsets of {partition} are not known")
        return {partition: at.offset for partition, at in found.items()}

    def _assigned(self, partitions: Iterable[TopicPartition | tuple[str, int]] | None) -> list[TopicPartition]:
        """These partitions, or all; waits until the partitions of the topics are known."""
        self._check_open()
        deadline_ms = self._session.clock.monotonic_ms() + self._request_timeout_ms
        while any(self._session.cluster.partition_count(topic) is None for topic in self._topics):
            now_ms = self._session.clock.monotonic_ms()
            if now_ms >= deadline_ms:
                raise DeadlineExceeded(f"the partitions of {', '.join(self._topics)} are not known in time")
            wakeup_ms = self._step(now_ms)
            self._raise_trouble(now_ms)
            self._session.links.turn(max(0.0, min(wakeup_ms, deadline_ms) - now_ms))
        self._core.follow_topics()
        assigned = self._core.assignment()
        chosen = list(assigned) if partitions is None else [TopicPartition(*partition) for partition in partitions]
        for partition in chosen:
            if partition not in assigned:
                raise InvalidArgument(f"{partition} is not read here: assign() it first")
        return chosen

    def _step(self, now_ms: float) -> float:
        """Send what is due; when to do so again."""
        errands, wakeup_ms = self._core.poll(now_ms)
        for errand in errands:
            self._session.links.submit(errand.call, partial(self._completed, errand))
        return wakeup_ms

    def _completed(self, errand: Errand, reply: Any) -> None:
        now_ms = self._session.clock.monotonic_ms()
        if not isinstance(reply, ClientError):
            self._trouble = None
        elif self._trouble is None:
            self._trouble, self._trouble_since_ms = reply, now_ms
        errand.completed(reply, now_ms)

    def _raise_trouble(self, now_ms: float) -> None:
        """Brokers that cannot be reached are tried again for a while, but not at the very first contact."""
        cluster = self._session.cluster
        is_lasting = now_ms - self._trouble_since_ms >= self._request_timeout_ms
        if self._trouble is not None and (is_lasting or not cluster.brokers):
            trouble, self._trouble = self._trouble, None
            raise trouble
        if now_ms - self._began_ms < UNKNOWN_TOPIC_WAIT_MS:
            return
        topics = self._topics or {partition.topic for partition in self._core.assignment()}
        for topic in topics:
            error = cluster.topic_errors.get(topic, ErrorCode.NONE)
            if error and (error == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION or error not in RETRIABLE):
                raise BrokerError(error, f"topic {topic!r} cannot be read")

    def _forget_ready(self, partitions: Sequence[TopicPartition]) -> None:
        self._ready = deque(
            record for record in self._ready if TopicPartition(record.topic, record.partition) not in partitions
        )

    def _check_open(self) -> None:
        if self._session.is_closed:
            raise ClientClosed("the consumer was closed: make a new one")


def _check_limit(records_max: int) -> int:
    if records_max <= 0:
        raise InvalidArgument(f"the most records of a poll must be above zero, not {records_max}")
    return records_max
