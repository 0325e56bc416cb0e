"""Consume with blocking calls: records or whole batches as they arrive, alone or as a member of a group."""

import logging
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar, Unpack

from headrace.client.blocking.heartbeat_thread import SessionDriver
from headrace.client.blocking.session import Session
from headrace.client.config import ConsumerConfig, SerializerName, resolve_config
from headrace.client.config_options import ConsumerOptions
from headrace.client.consumer_base import (
    CALLBACK_CLOSES,
    CALLBACK_POLLS,
    Commits,
    ConsumerBase,
    ConsumerParts,
    PendingRecords,
    Place,
    RebalanceListener,
    as_offsets,
    as_partitions,
    check_offset,
    check_time,
)
from headrace.client.core.groups.membership import Notice, NoticeKind
from headrace.client.core.partition_reader import FetchedBatch
from headrace.client.errors import ClientClosed, ClientError, DeadlineExceeded, InvalidArgument
from headrace.client.record_batch import RecordBatch
from headrace.client.timeouts import named_timeout
from headrace.client.types import EARLIEST, LATEST, ConsumerRecord, OffsetAndMetadata, Value
from headrace.model.ids import TopicPartition

if TYPE_CHECKING:
    from headrace.client.core.groups.group import GroupCore

CLOSE_TIMEOUT_MS = 10_000
ITERATION_POLL_MS = 1_000
TURN_PAUSE_MS = 1.0
"""Least time between two polls of the network while records are available."""


T = TypeVar("T")
logger = logging.getLogger("headrace.client")


class Consumer(ConsumerBase, Generic[Value]):
    """Reads topics, or assigned partitions. For one thread; every wait has a time limit."""

    def __init__(
        self,
        *topics: str,
        bootstrap_servers: str | Sequence[str] | None = None,
        config: ConsumerConfig | Mapping[str, Any] | None = None,
        pattern: str | re.Pattern[str] | None = None,
        value_deserializer: SerializerName | Callable[[bytes], Value] | None = None,
        **options: Unpack[ConsumerOptions],
    ) -> None:
        """Options are those of `ConsumerConfig`; `config` also accepts a dict with Kafka's names."""
        given = {**options, **({} if value_deserializer is None else {"value_deserializer": value_deserializer})}
        self.config: ConsumerConfig = resolve_config(ConsumerConfig, config, bootstrap_servers, given)
        self._session = Session(self.config)
        self._driver = SessionDriver(self._session)
        self._parts = ConsumerParts(self.config, self._session.cluster, self._session.entropy, logger.log)
        self._core, self._group = self._parts.core, self._parts.group
        self._session.engine.attach(self._group or self._core)
        self._listener = RebalanceListener()
        self._handover = PendingRecords(self.config)
        self._stream: Iterator[ConsumerRecord[Value]] | None = None
        self._callback_owner: threading.Thread | None = None
        """The thread or task that runs a rebalance callback."""
        self._is_leaving = False
        self._turn_ms = 0.0
        """When to poll the network again even though records are available."""
        try:
            if topics or pattern is not None:
                self.subscribe(*topics, pattern=pattern)
        except BaseException:
            self._session.close()
            raise
        if self.config.telemetry is not None:
            self.config.telemetry.opened(self)

    # Subscription and positions

    def subscribe(
        self,
        *topics: str,
        pattern: str | re.Pattern[str] | None = None,
        on_assigned: Callable[[tuple[TopicPartition, ...]], object] | None = None,
        on_revoked: Callable[[tuple[TopicPartition, ...]], object] | None = None,
        on_lost: Callable[[tuple[TopicPartition, ...]], object] | None = None,
    ) -> None:
        """Read these topics, or all whose whole name matches; in a group, the partitions that it assigns.

        The callbacks run within `poll`. Offsets of revoked partitions can still be committed there; those of lost
        partitions cannot.
        """
        self._check_open()
        self._listener = RebalanceListener(on_assigned, on_revoked, on_lost)
        with self._driver:
            self._parts.subscribe(topics, pattern)
        self._forget_left()
        if self._group is not None:
            self._driver.start()

    def assign(self, partitions: Iterable[Place]) -> None:
        """Read exactly these partitions, without group assignment."""
        self._check_open()
        wanted = as_partitions(partitions)
        with self._driver:
            self._parts.assign(wanted)
        self._forget_left()

    def seek(self, partition: Place, offset: int) -> None:
        """Continue from this offset, or from EARLIEST or LATEST."""
        check_offset(offset)
        (place,) = self._assigned([partition])
        self._forget_left([place])
        with self._driver:
            self._core.seek(place, offset)

    def seek_to_time(self, time_ms: int, partitions: Iterable[Place] | None = None) -> None:
        """Continue from the first record at or after the time, in these or all partitions; at the end if there is
        none.
        """
        check_time(time_ms)
        chosen = self._assigned(partitions)
        self._forget_left(chosen)
        with self._driver:
            for partition in chosen:
                self._core.seek_to_time(partition, time_ms)

    def pause(self, partitions: Iterable[Place]) -> None:
        """Deliver no records of these partitions until they are resumed; the group membership is not affected."""
        chosen = self._assigned(partitions)
        with self._driver:
            self._handover.give_back(self._core, chosen)
            self._core.pause(chosen)

    def resume(self, partitions: Iterable[Place]) -> None:
        chosen = self._assigned(partitions)
        with self._driver:
            self._core.resume(chosen)

    # Records

    @named_timeout
    def poll(self, *, timeout_ms: float = 1_000, max_records: int | None = None) -> list[ConsumerRecord[Value]]:
        """Return the available records, or those that arrive within the time; an empty list if none do."""
        limit = self.config.max_poll_records if max_records is None else max_records
        if limit <= 0:
            raise InvalidArgument(f"max_records must be above zero, not {limit}")
        if waiting := self._handover.waiting(limit):
            return waiting
        began_ms = self._session.clock.monotonic_ms()
        taken = self._await(lambda: self._core.take(limit), timeout_ms) or []
        self._tell_received(taken, self._session.clock.monotonic_ms() - began_ms)
        return self._handover.ready(taken)

    @named_timeout
    def batches(self, *, timeout_ms: float | None = None) -> Iterator[RecordBatch]:
        """Yield many records of a partition at once, for speed; ends when none arrived for `timeout_ms`, if that is
        given.
        """
        if timeout_ms is None:
            timeout_ms = self.config.consumer_timeout_ms
        while True:
            if self._handover.not_given():
                with self._driver:
                    self._handover.give_back(self._core)
            fetched = self._next_fetched() or self._await(
                self._core.take_batches, ITERATION_POLL_MS if timeout_ms is None else timeout_ms
            )
            if fetched:
                yield RecordBatch(fetched)
            elif timeout_ms is not None:
                return

    def _next_fetched(self) -> list[FetchedBatch]:
        """Return available batches if the network was polled a moment ago: nothing else can be due."""
        if self._session.is_closed or self._session.clock.monotonic_ms() >= self._turn_ms:
            return []
        if self._group is None:
            return (
                self._core.take_batches()
            )  # Without a group there is no heartbeat thread: only this thread drives the session.
        with self._driver:
            return self._core.take_batches() if self._group.notice() is None else []

    def __iter__(self) -> Iterator[ConsumerRecord[Value]]:
        if self._stream is None:
            self._stream = self._records()
        return self._stream

    def __next__(self) -> ConsumerRecord[Value]:
        return next(iter(self))

    def _records(self) -> Iterator[ConsumerRecord[Value]]:
        """Iterate record by record; a new iteration continues at the same place, also after an error."""
        timeout_ms = self.config.consumer_timeout_ms
        try:
            yield from self._handover.left
            while True:
                records = self.poll(timeout_ms=ITERATION_POLL_MS if timeout_ms is None else timeout_ms)
                if not records and timeout_ms is not None:
                    return
                yield from self._handover.iterate(records)
        finally:
            self._stream = None

    def _await(self, take: Callable[[], T], timeout_ms: float) -> T | None:
        """Return the result of `take` as soon as it is not empty; None if it stays empty for that time."""
        self._check_open()
        if self._callback_owner is not None:
            raise InvalidArgument(CALLBACK_POLLS)
        self._parts.check_reads()
        session, group = self._session, self._group
        with self._driver:
            deadline_ms = session.clock.monotonic_ms() + timeout_ms
            while True:
                if group is not None:
                    group.polled(session.clock.monotonic_ms())
                    self._announce_changes()
                taken = take()
                now_ms = session.clock.monotonic_ms()
                self._parts.look_for_topics(now_ms)
                if taken:
                    if now_ms >= self._turn_ms:
                        session.turn(0)  # The next fetch is in flight while the application works.
                        self._turn_ms = now_ms + TURN_PAUSE_MS
                    return taken
                self._parts.raise_error(session.engine, now_ms)
                if now_ms >= deadline_ms:
                    return None
                session.turn(deadline_ms)

    # Offsets

    def position(self, partition: Place) -> int:
        """Return the offset of the next record that the consumer will return."""
        (place,) = self._assigned([partition])
        held = self._handover.held().get(place)
        if held is not None:
            return held
        with self._driver:
            self._wait_until(
                lambda: self._core.position(place) is not None,
                f"the start offset of {place} could not be looked up in time; check that its leader is running",
            )
            position = self._core.position(place)
        assert position is not None
        return position

    @named_timeout
    def commit(self, offsets: Commits = None, *, wait: bool = True, timeout_ms: float | None = None) -> None:
        """Commit the records returned so far, up to a record, or these offsets; without `wait` errors are only
        logged.
        """
        self._check_open()
        group = self._require_group()
        wanted = as_offsets(offsets) if offsets is not None else self._handover.positions(group)
        limit_ms = self.config.request_timeout_ms if timeout_ms is None else timeout_ms
        with self._driver:
            operation = group.commit(wanted)
            if wait:
                self._session.run(operation, limit_ms)
            else:
                deadline_ms = self._session.clock.monotonic_ms() + limit_ms
                self._session.engine.start(operation, deadline_ms=deadline_ms, ended=_log_failure)
                self._session.turn(0)

    def committed(self, partitions: Iterable[Place] | None = None) -> dict[TopicPartition, OffsetAndMetadata]:
        """Return the committed offsets of these or the assigned partitions; those without one are left out."""
        self._check_open()
        chosen = self._core.assignment() if partitions is None else as_partitions(partitions)
        with self._driver:
            return self._session.run(self._require_group().committed(chosen), self.config.request_timeout_ms)

    def end_offsets(self, partitions: Iterable[Place] | None = None) -> dict[TopicPartition, int]:
        """Return the current log end offset of each partition; with read_committed, the last stable offset."""
        return self._offsets(partitions, LATEST)

    def beginning_offsets(self, partitions: Iterable[Place] | None = None) -> dict[TopicPartition, int]:
        return self._offsets(partitions, EARLIEST)

    def offsets_for_time(self, time_ms: int, partitions: Iterable[Place] | None = None) -> dict[TopicPartition, int]:
        """Return the first offset at or after the time; -1 where there is none."""
        check_time(time_ms)
        return self._offsets(partitions, time_ms)

    def metrics(self) -> dict[str, float]:
        """Return the counters since the consumer was created."""
        return self._parts.metrics(self._session.links)

    # Closing

    @named_timeout
    def close(self, *, timeout_ms: float = CLOSE_TIMEOUT_MS) -> None:
        """Commit if auto-commit is on, leave the group, and close the connections."""
        if self._session.is_closed or self._is_leaving:
            return
        if self._callback_owner is threading.current_thread():
            raise InvalidArgument(CALLBACK_CLOSES)
        self._driver.stop()
        try:
            if self._group is not None and self._session.is_own_process():
                with self._driver:
                    self._leave(self._group, timeout_ms)
        finally:
            if self._session.is_own_process():
                self._session.links.send_last(self._core.closing_calls())
            self._session.close()
            if self.config.telemetry is not None:
                self.config.telemetry.closed(self)

    def _leave(self, group: "GroupCore", timeout_ms: float) -> None:
        owned = group.owned()
        self._is_leaving = True
        try:
            if self.config.enable_auto_commit and (offsets := self._handover.positions(group)):
                self._session.run(group.commit(offsets), timeout_ms)
            if owned:
                self._tell(NoticeKind.REVOKED, owned)
        except ClientError as error:
            logger.warning("the last records read are not committed: %s", error)
        finally:
            try:
                self._session.run(group.leave(), timeout_ms)
            except ClientError as error:
                logger.info(
                    "the consumer could not send its leave request; the group waits for the session timeout: %s", error
                )
            self._is_leaving = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    # Internals

    def _announce_changes(self) -> None:
        """Call the application's callbacks for assigned, revoked and lost partitions."""
        group = self._require_group()
        while (notice := group.notice()) is not None:
            if notice.kind == NoticeKind.REVOKED and self.config.enable_auto_commit:
                self._commit_before_revocation(group, notice)
            group.begin(notice)
            try:
                self._tell(notice.kind, notice.partitions)
            finally:
                group.finish(notice, self._session.clock.monotonic_ms())

    def _tell(self, kind: NoticeKind, partitions: tuple[TopicPartition, ...]) -> None:
        callback = self._listener.callback(kind)
        if callback is None:
            return
        self._callback_owner = threading.current_thread()
        try:
            with self._driver.away():
                callback(partitions)
        finally:
            self._callback_owner = None

    def _commit_before_revocation(self, group: "GroupCore", notice: Notice) -> None:
        offsets = {place: each for place, each in group.uncommitted().items() if place in notice.partitions}
        try:
            self._session.run(group.commit(offsets), self.config.session_timeout_ms / 2)
        except ClientError as error:
            logger.warning(
                "the offsets of revoked partitions could not be committed; their records will be read again: %s", error
            )

    def _offsets(self, partitions: Iterable[Place] | None, time: int) -> dict[TopicPartition, int]:
        chosen = self._assigned(None) if partitions is None else as_partitions(partitions)
        with self._driver:
            self._check_open()
            return self._session.run(self._parts.offsets(chosen, time), self.config.request_timeout_ms)

    def _assigned(self, partitions: Iterable[Place] | None) -> list[TopicPartition]:
        """Return these partitions, or all; without a group, wait until the partitions of the topics are known."""
        self._check_open()
        with self._driver:
            if self._parts.topics and self._group is None:
                names = ", ".join(self._parts.topics)
                self._wait_until(
                    self._parts.knows_topics,
                    f"the partitions of {names} could not be looked up in time; check that a broker is running",
                )
                self._core.follow_topics()
        return self._parts.chosen(partitions)

    def _wait_until(self, is_so: Callable[[], bool], otherwise: str) -> None:
        deadline_ms = self._session.clock.monotonic_ms() + self.config.request_timeout_ms
        while not is_so():
            now_ms = self._session.clock.monotonic_ms()
            self._parts.raise_error(self._session.engine, now_ms, needs_topics=True)
            if now_ms >= deadline_ms:
                raise DeadlineExceeded(otherwise)
            self._session.turn(deadline_ms)

    def _forget_left(self, partitions: Iterable[TopicPartition] | None = None) -> None:
        self._handover.forget(partitions)
        self._stream = None

    def _check_open(self) -> None:
        if self._session.is_closed:
            raise ClientClosed("the consumer is closed; create a new one")
        self._session.check_usable()


def _log_failure(outcome: object) -> None:
    if isinstance(outcome, Exception):
        logger.warning("%s", outcome)
