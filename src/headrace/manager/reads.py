"""One request that reads records: where it starts, what it may return, and where the next one continues."""

import asyncio
import time
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field, replace

from headrace.client.aio.consumer import Consumer
from headrace.client.types import ConsumerRecord
from headrace.manager.access.mask_rules import Masking
from headrace.manager.filters import Predicate
from headrace.manager.limits import (
    FILTERED_RECORDS_MAX,
    FILTERED_SECONDS_MAX,
    READ_RESPONSE_BYTES_MAX,
    READ_SLICE_RECORDS,
)
from headrace.manager.problems import ApiProblem
from headrace.model.ids import TopicPartition

MARKERS_SECONDS_MAX = 0.05
"""Interval at which a reader before the end looks whether only ends of transactions are left, which bring no record."""

EARLIEST, LATEST = "earliest", "latest"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadPlan:
    """`positions` go before `offset`, which goes before `time_ms`, which goes before `start`."""

    topic: str
    masking: Masking
    """Masks the records before anything else looks at them."""
    partition: int | None = None
    """None for the whole topic."""
    positions: Mapping[int, int] = field(default_factory=dict)
    offset: int | None = None
    time_ms: int | None = None
    start: str = EARLIEST
    records_max: int
    wait_ms: int = 0
    matches: Predicate | None = None
    clamp: bool = False
    """Start at the nearest offset that exists, instead of refusing one that does not."""

    @property
    def starts_at_end(self) -> bool:
        return self.start == LATEST and not self.positions and self.offset is None and self.time_ms is None

    def resumed(self, positions: Mapping[int, int]) -> "ReadPlan":
        """Return the plan that continues at these positions."""
        return replace(self, positions=dict(positions), clamp=True)


class TopicRead:
    """Reads records of a plan with a consumer that was lent for it."""

    def __init__(self, plan: ReadPlan, consumer: Consumer[bytes | None]) -> None:
        self._plan = plan
        self._consumer = consumer
        self.next: dict[int, int] = {}
        """The next offset of every partition."""
        self.is_complete = True
        """False if the request ended before the end of the topic or `records_max` was reached."""
        self._ends: dict[int, int] = {}
        self._looked_at = 0
        self._bytes = 0

    async def begin(self, partition_count: int) -> None:
        """Look up the start and the end of every partition, and assign those that may have records."""
        plan = self._plan
        chosen = range(partition_count) if plan.partition is None else (plan.partition,)
        for number in (*chosen, *plan.positions):
            if not 0 <= number < partition_count:
                raise ApiProblem(
                    404, f'topic "{plan.topic}" has no partition {number}: it has {partition_count}, from 0 on'
                )
        places = [TopicPartition(plan.topic, number) for number in chosen]
        starts = await self._consumer.beginning_offsets(places)
        ends = await self._consumer.end_offsets(places)
        at_time: Mapping[TopicPartition, int] = {}
        if plan.time_ms is not None:
            at_time = await self._consumer.offsets_for_time(plan.time_ms, places)
        for place in places:
            self.next[place.partition] = self._start(place, starts[place], ends[place], at_time.get(place))
            self._ends[place.partition] = ends[place]
        read = [place for place in places if plan.wait_ms or not self._is_drained(place.partition)]
        self._consumer.assign(read)
        for place in read:
            await self._consumer.seek(place, self.next[place.partition])

    def _start(self, place: TopicPartition, first: int, end: int, at_time: int | None) -> int:
        plan = self._plan
        wanted = plan.positions.get(place.partition)
        if wanted is None and not plan.positions:
            wanted = plan.offset
        if wanted is not None:
            if plan.clamp:
                return min(max(wanted, first), end)
            if not first <= wanted <= end:
                raise ApiProblem(
                    400, f"{place} has no offset {wanted}: it has {first} to {end}; read from=earliest to start at "
                    "the first record that exists", error="OFFSET_OUT_OF_RANGE"
                )  # fmt: skip
            return wanted
        if plan.time_ms is not None:
            return end if at_time is None or at_time < 0 else at_time
        return end if plan.start == LATEST else first

    def _is_drained(self, partition: int) -> bool:
        return self.next[partition] >= self._ends[partition]

    async def records(self) -> AsyncIterator[list[ConsumerRecord]]:
        """Yield matching records, in slices, until the plan is fulfilled."""
        plan = self._plan
        deadline = time.monotonic() + plan.wait_ms / 1000
        searched_until = deadline + FILTERED_SECONDS_MAX
        left = plan.records_max
        while left > 0 and self._consumer.assignment():
            now = time.monotonic()
            is_behind = any(not self._is_drained(number) for number in self._ends)
            has_found = left < plan.records_max
            if now >= searched_until or self._is_full():
                self.is_complete = False
                return
            if not is_behind and (has_found or now >= deadline):
                return
            wait_seconds = MARKERS_SECONDS_MAX if is_behind else deadline - now
            found = self._chosen(
                await self.more(wait_seconds, records_max=left if plan.matches is None else None), left
            )
            left -= len(found)
            if found:
                yield found
            await asyncio.sleep(0)

    async def more(self, wait_seconds: float, *, records_max: int | None = None) -> list[ConsumerRecord]:
        """Return the next records, as they come within this time; the caller keeps `next` up to date for them."""
        taken = await self._consumer.poll(
            timeout_ms=max(0.0, wait_seconds * 1000),
            max_records=min(READ_SLICE_RECORDS, records_max or READ_SLICE_RECORDS),
        )
        if not taken:
            await self._skip_markers()
        return self._plan.masking(taken)

    def _is_full(self) -> bool:
        return self._looked_at >= FILTERED_RECORDS_MAX or self._bytes >= READ_RESPONSE_BYTES_MAX

    async def _skip_markers(self) -> None:
        """Move over the ends of transactions, which take offsets and are not records."""
        for place in self._consumer.assignment():
            self.next[place.partition] = max(self.next[place.partition], await self._consumer.position(place))

    def _chosen(self, taken: list[ConsumerRecord], left: int) -> list[ConsumerRecord]:
        found = []
        matches = self._plan.matches
        for record in taken:
            self.next[record.partition] = record.offset + 1
            self._looked_at += 1
            if matches is None or matches(record):
                self._bytes += len(record.key or b"") + len(record.value or b"")
                found.append(record)
                if len(found) == left:
                    break
        return found
