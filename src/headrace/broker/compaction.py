"""Schedules compaction: the dirtiest partitions first, a limited number at a time, and requested ones at once.

Each round checks the partitions of compacted topics, a slice per turn. `compaction_pass` carries out one pass. A
checkpoint per log directory records how far each log is clean.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from headrace.broker.compaction_health import CompactionHealth
from headrace.broker.compaction_pass import CompactionPass
from headrace.broker.logs import NodeLogger
from headrace.broker.metrics import Family
from headrace.broker.partitions.replica import Replica
from headrace.broker.partitions.table import PartitionTable
from headrace.broker.timers import Timers
from headrace.core.controller.delta import MetadataDelta
from headrace.log.compaction.checkpoint import clean_offsets_work, read_clean_offsets
from headrace.log.compaction.plan import Cleanable, cleanable, make_plan
from headrace.log.errors import DamagedLog, is_transient
from headrace.model.configs.values import CleanerConfig
from headrace.model.ids import TopicPartition
from headrace.ports.bundle import Ports

CHECKED_PER_SLICE = 1000
"""Partitions, and segments of compacted partitions, that one turn checks."""
REQUESTED_CHECK_MS = 50
"""Wait before a partition whose compaction was requested, but whose records are not synced yet, is checked again."""
BACKOFF_MS_MIN = 100
UNIQUE_BYTES = 4
BYTES_PER_SECOND_MIN = 1.0
PASSES_MAX = 8
"""Passes at a time, whatever log.cleaner.threads says: each is a process."""


class _Candidate(NamedTuple):
    partition: Replica
    found: Cleanable
    requested: bool

    @property
    def urgency(self) -> tuple[bool, bool, float]:
        return self.requested, self.found.is_overdue, self.found.dirty_ratio


class Compactor:
    def __init__(self, *, table: PartitionTable, ports: Ports, timers: Timers, logger: NodeLogger) -> None:
        self._table = table
        self._ports = ports
        self._timers = timers
        self._logger = logger
        self._clean_offsets: dict[str, dict[TopicPartition, int]] = {}
        self._writing: set[str] = set()
        self._unwritten: set[str] = set()
        self._passes: dict[Replica, CompactionPass] = {}
        self._health = CompactionHealth(ports.clock.monotonic_ms)
        self._requested: dict[Replica, int] = {}
        """The partitions whose compaction was requested, and the offset up to which."""
        self._seen_requests: dict[str, str] = {}
        self._round_running = False
        self.passes_ended = 0
        self.passes_failed = 0
        self.bytes_read = 0
        self.bytes_written = 0
        self.records_removed = 0

    @property
    def _config(self) -> CleanerConfig:
        return self._table.config.cleaner

    @property
    def _passes_max(self) -> int:
        return min(self._config.jobs_max, PASSES_MAX)

    def start(self) -> None:
        for directory in self._table.directories:
            self._clean_offsets[directory.path] = read_clean_offsets(self._ports.disk, directory.path)
        for partition in self._table:
            self._seen_requests[partition.topic] = partition.config.compact_request
        self._schedule_round()

    # Requests

    def image_changed(self, delta: MetadataDelta) -> None:
        """Follow a change of metadata after the partition table did: topics may be gone, or need compaction."""
        for running in tuple(self._passes.values()):
            if running.partition.offline:
                running.cancel()
        self._health.forget_offline()
        for name in delta.topic_configs_changed:
            self._take_request(name)

    def _take_request(self, topic: str) -> None:
        local = self._table.by_name.get(topic.encode())
        partitions = list(local.replicas.values()) if local is not None else []
        if not partitions:
            return
        request, seen = partitions[0].config.compact_request, self._seen_requests.get(topic, "")
        self._seen_requests[topic] = request
        if request and request != seen and partitions[0].config.cleanup_compact:
            for partition in partitions:
                self._requested[partition] = partition.log.staged_end_offset
                self._health.wake(partition)
            self._begin_round()

    # Rounds

    def _schedule_round(self) -> None:
        def again() -> None:
            self._schedule_round()
            self._begin_round()
            for directory in tuple(self._unwritten):
                self._checkpoint(directory)

        self._timers.after(max(self._config.backoff_ms, BACKOFF_MS_MIN), again)

    def _begin_round(self) -> None:
        if self._round_running or not self._config.enabled:
            return
        self._round_running = True
        self._health.forget_offline()
        self._check_partitions(iter(tuple(self._table)), [])

    def _check_partitions(self, partitions: Iterator[Replica], candidates: list[_Candidate]) -> None:
        checked = 0
        for partition in partitions:
            checked += 1
            if partition.config.cleanup_compact and partition not in self._passes:
                checked += len(partition.log.segments)
                with self._failure_of(partition):
                    candidates.extend(self._candidates(partition))
            if checked >= CHECKED_PER_SLICE:
                self._timers.next_turn(lambda: self._check_partitions(partitions, candidates))
                return
        self._round_running = False
        for candidate in sorted(candidates, key=lambda candidate: candidate.urgency, reverse=True):
            if len(self._passes) >= self._passes_max:
                return
            with self._failure_of(candidate.partition):
                self._begin(candidate)

    @contextmanager
    def _failure_of(self, partition: Replica) -> Iterator[None]:
        """Confine an error to its partition, so that the others are compacted all the same."""
        try:
            yield
        except Exception as error:
            self._passes.pop(partition, None)
            self._pass_failed(partition, error)

    def _candidates(self, partition: Replica) -> list[_Candidate]:
        """Return the partition if it is to be compacted now."""
        if partition.offline:
            self._requested.pop(partition, None)
            return []
        requested = partition in self._requested
        if partition in self._health.uncleanable and not requested:
            return []
        if requested and not self._is_ready(partition):
            self._timers.after(REQUESTED_CHECK_MS, self._begin_round)
            return []
        found = self._cleanable(partition)
        is_due = requested or (
            found.dirty_bytes > 0
            and (found.is_overdue or found.dirty_ratio > partition.config.min_cleanable_dirty_ratio)
        )
        self._health.checked(partition, is_due=is_due)
        is_wanted = is_due and not self._health.rests(partition)
        return [_Candidate(partition, found, requested)] if is_wanted else []

    def _is_ready(self, partition: Replica) -> bool:
        """Return whether everything up to the requested offset is in closed, synced segments."""
        log, wanted = partition.log, self._requested[partition]
        if log.staged or log.is_truncating:
            return False
        if log.active.size and log.active.base_offset < wanted:
            try:
                log.roll()
            except OSError as error:
                if not is_transient(error):
                    log.work_failed(error)
                return False
        if log.recovery_point < wanted or any(not log.is_flushed(segment) for segment in log.segments[-2:-1]):
            self._table.flush(partition)
            return False
        return True

    def _cleanable(self, partition: Replica) -> Cleanable:
        log = partition.log
        return cleanable(
            log,
            clean_offset=self._clean_offsets.get(_directory(partition), {}).get(log.topic_partition, 0),
            stable_offset=int(partition.role.last_stable_offset),
            wall_ms=self._ports.clock.wall_ms(),
        )

    # Passes

    def _begin(self, candidate: _Candidate) -> None:
        partition, config = candidate.partition, self._config
        plan = make_plan(
            partition.log,
            candidate.found,
            unique=self._ports.entropy.random_bytes(UNIQUE_BYTES).hex(),
            wall_ms=self._ports.clock.wall_ms(),
            key_map_bytes_max=config.key_map_bytes // self._passes_max,
            producer_expiration_ms=self._table.config.producer_id_expiration_ms,
        )
        if plan is None:
            self._requested.pop(partition, None)
            return
        begun = CompactionPass(
            partition,
            plan,
            spawner=self._ports.spawner,
            clock=self._ports.clock,
            later=self._timers.after,
            ended=self._pass_ended,
        )
        self._passes[partition] = begun
        begun.start(max(config.bytes_per_second / self._passes_max, BYTES_PER_SECOND_MIN))

    def _pass_ended(self, ended: CompactionPass) -> None:
        partition = ended.partition
        del self._passes[partition]
        self.bytes_read += ended.bytes_before
        self.bytes_written += ended.bytes_after
        self.records_removed += ended.records_removed
        self._timers.next_turn(self._begin_round)  # the next pass, or the rest of this one if its keys did not fit
        if partition.offline:
            return
        if ended.log_changed:
            self._health.had_no_result(partition)
            return
        if ended.failure is not None:
            self._pass_failed(partition, ended.failure)
            return
        self.passes_ended += 1
        self._health.forget(partition)
        log = partition.log
        self._clean_offsets.setdefault(_directory(partition), {})[log.topic_partition] = ended.cleaned_to
        self._checkpoint(_directory(partition))
        if ended.cleaned_to >= ended.plan.segments[-1].end_offset:
            self._requested.pop(partition, None)
        self._log_pass(ended)
        self._timers.after(log.config.file_delete_delay_ms, lambda: self._unlink(partition))

    def _unlink(self, partition: Replica) -> None:
        """Delete the replaced segments once their delay is over: their space is needed before retention runs again."""
        if not partition.offline:
            wall_ms, high_watermark = self._ports.clock.wall_ms(), int(partition.role.high_watermark)
            work = partition.log.retirement.work(wall_ms, high_watermark)
            if work is not None:
                self._ports.spawner.submit(*work)

    def _log_pass(self, ended: CompactionPass) -> None:
        self._logger.info(
            "partition compacted",
            partition=str(ended.partition.log.topic_partition),
            up_to_offset=ended.cleaned_to,
            bytes_before=ended.bytes_before,
            bytes_after=ended.bytes_after,
            records_removed=ended.records_removed,
        )
        if ended.unreadable_batches:
            self._logger.warning(
                "batches whose records cannot be read were kept unchanged",
                partition=str(ended.partition.log.topic_partition),
                batches=ended.unreadable_batches,
            )

    def _pass_failed(self, partition: Replica, failure: BaseException) -> None:
        """Give up on a partition after damage or a disk error; try again later after any other error."""
        self.passes_failed += 1
        self._health.failed(partition)
        self._requested.pop(partition, None)
        where = str(partition.log.topic_partition)
        for_good = isinstance(failure, DamagedLog) or (
            isinstance(failure, OSError) and not isinstance(failure, FileNotFoundError) and not is_transient(failure)
        )
        if for_good:
            self._health.uncleanable[partition] = str(failure)
            self._logger.error("partition cannot be compacted", partition=where, reason=str(failure))
        else:
            self._logger.warning("compaction failed and will be retried", partition=where, reason=repr(failure))

    # The checkpoint

    def _checkpoint(self, directory: str) -> None:
        """Write one checkpoint at a time; later changes are written after it, and a write that failed is retried."""
        if directory in self._writing:
            self._unwritten.add(directory)
            return
        self._writing.add(directory)
        self._unwritten.discard(directory)
        there = {partition.log.topic_partition for partition in self._table}
        offsets = self._clean_offsets[directory] = {
            topic_partition: offset
            for topic_partition, offset in self._clean_offsets[directory].items()
            if topic_partition in there
        }

        def written(error: BaseException | None) -> None:
            self._writing.discard(directory)
            if error is not None:
                self._unwritten.add(directory)  # retry in the next round
                self._logger.warning("the compaction checkpoint cannot be written", reason=repr(error))
            elif directory in self._unwritten:
                self._checkpoint(directory)

        self._ports.spawner.submit(*clean_offsets_work(self._ports.disk, directory, offsets, written))

    # Metrics

    def families(self) -> Iterator[Family]:
        counters: tuple[tuple[str, str, float], ...] = (
            ("passes", "Compaction passes that ended well.", self.passes_ended),
            ("failures", "Compaction passes that failed.", self.passes_failed),
            ("read_bytes", "Bytes of segments that compaction cleaned.", self.bytes_read),
            ("written_bytes", "Bytes that compaction left of them.", self.bytes_written),
            ("removed_records", "Records that compaction removed.", self.records_removed),
        )
        for name, help_text, value in counters:
            yield Family(f"headrace_compaction_{name}_total", "counter", help_text, (((), value),))
        yield from self._health.families(self._passes.values())


def _directory(partition: Replica) -> str:
    return partition.log.path.rpartition("/")[0]
