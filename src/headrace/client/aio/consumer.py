"""Consume on an asyncio loop: records or whole batches as they arrive, alone or as a member of a group.

The loop sends heartbeats, so they continue while the application awaits; code that blocks the loop stops them.
"""

import asyncio
import inspect
import logging
import re
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar, Unpack

from headrace.client.aio.failures import TaskFailures
from headrace.client.aio.session import Session
from headrace.client.config import ConsumerConfig, SerializerName, resolve_config
from headrace.client.config_options import ConsumerOptions
from headrace.client.consumer_base import (
    CALLBACK_CLOSES,
    CALLBACK_POLLS,
    ChangeCallback,
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
from headrace.client.errors import ClientClosed, ClientError, DeadlineExceeded, InvalidArgument
from headrace.client.record_batch import RecordBatch
from headrace.client.timeouts import named_timeout
from headrace.client.types import EARLIEST, LATEST, ConsumerRecord, OffsetAndMetadata, Value
from headrace.model.ids import TopicPartition

if TYPE_CHECKING:
    from headrace.client.core.groups.group import GroupCore

CLOSE_TIMEOUT_MS = 10_000
ITERATION_POLL_MS = 60_000

T = TypeVar("T")
logger = logging.getLogger("headrace.client")


class Consumer(ConsumerBase, Generic[Value]):
    """Reads topics, or assigned partitions. For one task at a time; every wait has a time limit."""

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
        self._parts = ConsumerParts(self.config, self._session.cluster, self._session.entropy, logger.log)
        self._core, self._group = self._parts.core, self._parts.group
        self._session.engine.attach(self._group or self._core)
        self._listener = RebalanceListener()
        self._handover = PendingRecords(self.config)
        self._failures = TaskFailures(self)
        self._callback_owner: asyncio.Task[Any] | None = None
        """The thread or task that runs a rebalance callback."""
        self._is_leaving = False
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
        on_assigned: ChangeCallback | None = None,
        on_revoked: ChangeCallback | None = None,
        on_lost: ChangeCallback | None = None,
    ) -> None:
        """Read these topics, or all whose whole name matches; in a group, the partitions that it assigns.

        The callbacks, plain or `async`, run within `poll`. Offsets of revoked partitions can still be committed there;
        those of lost partitions cannot.
        """
        self._check_open()
        self._listener = RebalanceListener(on_assigned, on_revoked, on_lost)
        self._parts.subscribe(topics, pattern)
        self._handover.forget()
        self._session.schedule()

    def assign(self, partitions: Iterable[Place]) -> None:
        """Read exactly these partitions, without group assignment."""
        self._check_open()
        self._parts.assign(as_partitions(partitions))
        self._handover.forget()
        self._session.schedule()

    async def seek(self, partition: Place, offset: int) -> None:
        """Continue from this offset, or from EARLIEST or LATEST."""
        check_offset(offset)
        (place,) = await self._assigned([partition])
        self._handover.forget([place])
        self._core.seek(place, offset)
        self._session.schedule()

    async def seek_to_time(self, time_ms: int, partitions: Iterable[Place] | None = None) -> None:
        """Continue from the first record at or after the time, in these or all partitions; at the end if there is
        none.
        """
        check_time(time_ms)
        chosen = await self._assigned(partitions)
        self._handover.forget(chosen)
        for partition in chosen:
            self._core.seek_to_time(partition, time_ms)
        self._session.schedule()

    def pause(self, partitions: Iterable[Place]) -> None:
        """Deliver no records of these partitions until they are resumed; the group membership is not affected."""
        chosen = self._parts.chosen(partitions)
        self._handover.give_back(self._core, chosen)
        self._core.pause(chosen)

    def resume(self, partitions: Iterable[Place]) -> None:
        self._core.resume(self._parts.chosen(partitions))
        self._session.schedule()

    # Records

    @named_timeout
    async def poll(self, *, timeout_ms: float = 1_000, max_records: int | None = None) -> list[ConsumerRecord[Value]]:
        """Return the available records, or those that arrive within the time; an empty list if none do."""
        limit = self.config.max_poll_records if max_records is None else max_records
        if limit <= 0:
            raise InvalidArgument(f"max_records must be above zero, not {limit}")
        try:
            if not (records := self._handover.waiting(limit)):
                began_ms = self._session.clock.monotonic_ms()
                taken = await self._await(lambda: self._core.take(limit), timeout_ms) or []
                self._tell_received(taken, self._session.clock.monotonic_ms() - began_ms)
                records = self._handover.ready(taken)
        except Exception as error:
            self._failures.note(error)
            raise
        self._failures.clear()
        return records

    @named_timeout
    async def batches(self, *, timeout_ms: float | None = None) -> AsyncIterator[RecordBatch]:
        """Yield many records of a partition at once, for speed; ends when none arrived for `timeout_ms`, if that is
        given.
        """
        if timeout_ms is None:
            timeout_ms = self.config.consumer_timeout_ms
        while True:
            if self._handover.not_given():
                self._handover.give_back(self._core)
            try:
                fetched = await self._await(
                    self._core.take_batches, ITERATION_POLL_MS if timeout_ms is None else timeout_ms
                )
            except Exception as error:
                self._failures.note(error)
                raise
            if fetched:
                yield RecordBatch(fetched)
            elif timeout_ms is not None:
                return

    async def __aiter__(self) -> AsyncIterator[ConsumerRecord[Value]]:
        """Iterate record by record; a new iteration continues at the same place, also after an error."""
        timeout_ms = self.config.consumer_timeout_ms
        for record in self._handover.left:
            yield record
        while True:
            records = await self.poll(timeout_ms=ITERATION_POLL_MS if timeout_ms is None else timeout_ms)
            if not records and timeout_ms is not None:
                return
            for record in self._handover.iterate(records):
                yield record

    async def _await(self, take: Callable[[], T], timeout_ms: float) -> T | None:
        """Return the result of `take` as soon as it is not empty; None if it stays empty for that time."""
        self._check_open()
        if self._callback_owner is not None:
            raise InvalidArgument(CALLBACK_POLLS)
        self._parts.check_reads()
        session, group = self._session, self._group
        deadline_ms = session.clock.monotonic_ms() + timeout_ms
        while True:
            if group is not None:
                group.polled(session.clock.monotonic_ms())
                await self._announce_changes(group)
            taken = take()
            now_ms = session.clock.monotonic_ms()
            self._parts.look_for_topics(now_ms)
            if taken:
                session.schedule()  # The next fetch is in flight while the application works.
                return taken
            self._parts.raise_error(session.engine, now_ms)
            if now_ms >= deadline_ms:
                return None
            session.schedule()
            await session.changed(deadline_ms)

    # Offsets

    async def position(self, partition: Place) -> int:
        """Return the offset of the next record that the consumer will return."""
        (place,) = await self._assigned([partition])
        held = self._handover.held().get(place)
        if held is not None:
            return held
        await self._wait_until(
            lambda: self._core.position(place) is not None,
            f"the start offset of {place} could not be looked up in time; check that its leader is running",
        )
        position = self._core.position(place)
        assert position is not None
        return position

    @named_timeout
    async def commit(self, offsets: Commits = None, *, timeout_ms: float | None = None) -> None:
        """Commit the records returned so far, up to a record, or these offsets."""
        self._check_open()
        group = self._require_group()
        wanted = as_offsets(offsets) if offsets is not None else self._handover.positions(group)
        limit_ms = self.config.request_timeout_ms if timeout_ms is None else timeout_ms
        await self._session.run(group.commit(wanted), limit_ms)

    async def committed(self, partitions: Iterable[Place] | None = None) -> dict[TopicPartition, OffsetAndMetadata]:
        """Return the committed offsets of these or the assigned partitions; those without one are left out."""
        self._check_open()
        chosen = self._core.assignment() if partitions is None else as_partitions(partitions)
        return await self._session.run(self._require_group().committed(chosen), self.config.request_timeout_ms)

    async def end_offsets(self, partitions: Iterable[Place] | None = None) -> dict[TopicPartition, int]:
        """Return the current log end offset of each partition; with read_committed, the last stable offset."""
        return await self._offsets(partitions, LATEST)

    async def beginning_offsets(self, partitions: Iterable[Place] | None = None) -> dict[TopicPartition, int]:
        return await self._offsets(partitions, EARLIEST)

    async def offsets_for_time(
        self, time_ms: int, partitions: Iterable[Place] | None = None
    ) -> dict[TopicPartition, int]:
        """Return the first offset at or after the time; -1 where there is none."""
        check_time(time_ms)
        return await self._offsets(partitions, time_ms)

    def metrics(self) -> dict[str, float]:
        """Return the counters since the consumer was created."""
        return self._parts.metrics(self._session.links)

    # Closing

    @named_timeout
    async def close(self, *, timeout_ms: float = CLOSE_TIMEOUT_MS) -> None:
        """Commit if auto-commit is on, leave the group, and close the connections."""
        if self._session.is_closed or self._is_leaving:
            return
        if self._callback_owner is not None and self._callback_owner is asyncio.current_task():
            raise InvalidArgument(CALLBACK_CLOSES)
        try:
            if self._group is not None and self._session.is_own_process():
                await self._leave(self._group, timeout_ms)
        finally:
            if self._session.is_own_process():
                self._session.links.send_last(self._core.closing_calls())
            self._session.close()
            if self.config.telemetry is not None:
                self.config.telemetry.closed(self)

    async def _leave(self, group: "GroupCore", timeout_ms: float) -> None:
        owned = group.owned()
        self._is_leaving = True
        try:
            if self.config.enable_auto_commit and (held := self._handover.positions(group)):
                await self._session.run(group.commit(held), timeout_ms)
            if owned:
                await self._tell(NoticeKind.REVOKED, owned)
        except ClientError as error:
            logger.warning("the last records read are not committed: %s", error)
        finally:
            try:
                await self._session.run(group.leave(), timeout_ms)
            except ClientError as error:
                logger.info(
                    "the consumer could not send its leave request; the group waits for the session timeout: %s", error
                )
            self._is_leaving = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_exception: object) -> None:
        await self.close()

    # Internals

    async def _announce_changes(self, group: "GroupCore") -> None:
        """Call the application's callbacks for assigned, revoked and lost partitions."""
        while (notice := group.notice()) is not None:
            if notice.kind == NoticeKind.REVOKED and self.config.enable_auto_commit:
                await self._commit_before_revocation(group, notice)
            group.begin(notice)
            try:
                await self._tell(notice.kind, notice.partitions)
            finally:
                group.finish(notice, self._session.clock.monotonic_ms())
                self._session.schedule()

    async def _tell(self, kind: NoticeKind, partitions: tuple[TopicPartition, ...]) -> None:
        callback = self._listener.callback(kind)
        if callback is None:
            return
        self._callback_owner = asyncio.current_task()
        try:
            outcome = callback(partitions)
            if inspect.isawaitable(outcome):
                await outcome
        finally:
            self._callback_owner = None

    async def _commit_before_revocation(self, group: "GroupCore", notice: Notice) -> None:
        held = {place: each for place, each in group.uncommitted().items() if place in notice.partitions}
        try:
            await self._session.run(group.commit(held), self.config.session_timeout_ms / 2)
        except ClientError as error:
            logger.warning(
                "the offsets of revoked partitions could not be committed; their records will be read again: %s", error
            )

    async def _offsets(self, partitions: Iterable[Place] | None, time: int) -> dict[TopicPartition, int]:
        chosen = await self._assigned(None) if partitions is None else as_partitions(partitions)
        self._check_open()
        return await self._session.run(self._parts.offsets(chosen, time), self.config.request_timeout_ms)

    async def _assigned(self, partitions: Iterable[Place] | None) -> list[TopicPartition]:
        """Return these partitions, or all; without a group, wait until the partitions of the topics are known."""
        self._check_open()
        if self._parts.topics and self._group is None:
            names = ", ".join(self._parts.topics)
            await self._wait_until(
                self._parts.knows_topics,
                f"the partitions of {names} could not be looked up in time; check that a broker is running",
            )
            self._core.follow_topics()
        return self._parts.chosen(partitions)

    async def _wait_until(self, is_so: Callable[[], bool], otherwise: str) -> None:
        deadline_ms = self._session.clock.monotonic_ms() + self.config.request_timeout_ms
        while not is_so():
            now_ms = self._session.clock.monotonic_ms()
            self._parts.raise_error(self._session.engine, now_ms, needs_topics=True)
            if now_ms >= deadline_ms:
                raise DeadlineExceeded(otherwise)
            self._session.schedule()
            await self._session.changed(deadline_ms)

    def _check_open(self) -> None:
        if self._session.is_closed:
            raise ClientClosed("the consumer is closed; create a new one")
        self._session.check_usable()
