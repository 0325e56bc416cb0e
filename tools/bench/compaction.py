"""Compaction loads: cleaning on one core, and a producer beside a compaction."""

import itertools
import threading
import time
from dataclasses import replace
from pathlib import Path

from headrace.bench.brokers import MeasuredBroker
from headrace.bench.errors import BenchError
from headrace.bench.figures import Round
from headrace.bench.latency import PACED, PACED_INTERVAL_US
from headrace.bench.links import BenchConnection
from headrace.bench.produce import check_arrival, prepare_topic
from headrace.bench.replay import ReplayClient, ReplayReport
from headrace.bench.topics import create_topics
from headrace.client import Admin
from headrace.client.types import ConfigChange, ConfigOperation, ConfigResource, ResourceType
from headrace.log.compaction.cleaner import CleanedGroup, clean
from headrace.log.compaction.interrupted import remove_cleaned
from headrace.log.compaction.plan import CleaningPlan, cleanable, make_plan
from headrace.log.config import LogConfig
from headrace.log.partition_log import PartitionLog
from headrace.model.ids import TopicId, TopicPartition
from headrace.operations.metrics_page import (
    LOOP_TURNS,
    Histogram,
    MetricsUnavailable,
    difference,
    histogram,
    percentile,
    read_page,
)
from headrace.ports.real.disk import RealDisk
from headrace.wire.messages import produce
from headrace.wire.records.builder import NewRecord, build_batch
from headrace.wire.records.compression import Compression
from headrace.wire.records.header import HEADER

BATCH_BYTES = 16_000
KEY_MAP_BYTES = 256 << 20
SEGMENT_BYTES = 16 << 20
REWRITES_PER_KEY = 4
"""Records per key, of which compaction keeps one."""
COMPACTED = {"cleanup.policy": "compact", "segment.bytes": str(SEGMENT_BYTES)}
PRODUCE_VERSION = 9
SEND_TIMEOUT_MS = 30_000
COMPRESSION_NAMES = {Compression.NONE: "plain", Compression.LZ4: "lz4", Compression.ZSTD: "zstd"}


class CleaningRounds:
    """A log on disk that one process cleans repeatedly; the cleaned segments are discarded."""

    def __init__(self, folder: Path, *, record_bytes: int, total_bytes: int, compression: int) -> None:
        self._disk = RealDisk()
        self._log = _open_log(self._disk, folder)
        records = total_bytes // record_bytes
        for batch in _keyed_batches(records, record_bytes, keys=records // REWRITES_PER_KEY, compression=compression):
            self._log.stage(memoryview(batch), HEADER.unpack_from(batch), 0, 0)
            self._log.write_staged()
        self._log.roll()
        flush = self._log.flush_work()
        if flush is not None:
            flush.run_inline()
        self._plain_bytes = records * record_bytes

    def __call__(self) -> Round:
        plan = self._plan()
        began, cpu_began = time.monotonic(), time.process_time()
        kept = 0
        for result in clean(self._disk, plan):
            if isinstance(result, CleanedGroup):
                kept += result.counts.records_kept
                if result.files is not None:
                    remove_cleaned(self._disk, plan.folder, result.files.base_offset, plan.unique)
        cpu, seconds = time.process_time() - cpu_began, time.monotonic() - began
        if not kept:
            raise BenchError("cleaning kept no records")
        megabytes = self._plain_bytes / 1e6
        return {
            "megabytes_per_second": megabytes / cpu,
            "cpu_seconds_per_gigabyte": cpu / megabytes * 1e3,
            "seconds": seconds,
        }

    def _plan(self) -> CleaningPlan:
        log = self._log
        found = cleanable(log, clean_offset=0, stable_offset=log.end_offset, wall_ms=0)
        plan = make_plan(log, found, unique="bench", wall_ms=0, key_map_bytes_max=KEY_MAP_BYTES)
        assert plan is not None
        return plan


class BesideCompactionRounds:
    """A paced producer alone, and beside a broker that compacts another topic continuously."""

    def __init__(
        self,
        broker: MeasuredBroker,
        client: ReplayClient,
        *,
        topic: str,
        total_bytes: int,
        seconds: float,
        metrics: tuple[str, int] | None = None,
    ) -> None:
        """Prepare the rounds. `metrics` is the address of the broker's metrics page, for the duration of loop turns."""
        self._broker = broker
        self._metrics = metrics
        self._client = client
        self._topic = topic
        self._total_bytes = total_bytes
        self._load = replace(PACED, seconds=seconds)
        self._count = 0

    def __call__(self) -> Round:
        if not self._count:
            _fill(self._broker.address, self._table, self._total_bytes)
        alone = self._produce()
        turns_before = self._turns()
        compacting = _Compacting(self._broker.address, self._table)
        try:
            beside = self._produce()
        finally:
            passes = compacting.end()
        if not passes:
            raise BenchError("no compaction ran during the round")
        alone_p99, beside_p99 = alone.p99_us(), beside.p99_us()
        found = {"alone_p99_us": alone_p99, "beside_p99_us": beside_p99, "p99_ratio": beside_p99 / alone_p99}
        if turns_before:
            found["loop_p99_ms"] = percentile(difference(self._turns(), turns_before), 0.99) * 1000
        return found

    def _turns(self) -> Histogram:
        if self._metrics is None:
            return []
        try:
            return histogram(read_page(*self._metrics), LOOP_TURNS)
        except MetricsUnavailable as error:
            raise BenchError(str(error)) from None

    @property
    def _table(self) -> str:
        return f"{self._topic}-table"

    def _produce(self) -> ReplayReport:
        self._count += 1
        topic, address = f"{self._topic}-{self._count}", self._broker.address
        frames = prepare_topic(address, topic, self._load)
        report = self._client.exchange(
            address, frames, depth=self._load.depth, seconds=self._load.seconds, interval_us=PACED_INTERVAL_US
        )
        check_arrival(self._client, address, topic, self._load, report)
        return report


class _Compacting:
    """Starts one compaction pass after another; every key exists once, so each pass reads the whole log."""

    INTERVAL_SECONDS = 0.5

    def __init__(self, address: str, topic: str) -> None:
        self._address = address
        self._topic = topic
        self._over = threading.Event()
        self._asked = 0
        self._thread = threading.Thread(target=self._ask, name="compacting")
        self._thread.start()

    def end(self) -> int:
        """Stop, and return the number of passes that were started."""
        self._over.set()
        self._thread.join()
        return self._asked

    def _ask(self) -> None:
        resource = ConfigResource(ResourceType.TOPIC, self._topic)
        with Admin(self._address) as admin:
            while not self._over.is_set():
                change = ConfigChange(ConfigOperation.SET, "headrace.compact.request", str(time.monotonic()))
                (outcome,) = admin.alter_configs({resource: [change]}).values()
                self._asked += not outcome.error
                self._over.wait(self.INTERVAL_SECONDS)


def _fill(address: str, topic: str, total_bytes: int) -> None:
    record_bytes = 200
    records = total_bytes // record_bytes
    create_topics(address, [topic], partitions=1, configs=COMPACTED)
    with BenchConnection(address) as link:
        for batch in _keyed_batches(records, record_bytes, keys=records, compression=Compression.NONE):
            part = produce.ProduceRequestPartition(index=0, records=bytes(batch))
            data = produce.ProduceRequestTopic(name=topic, partition_data=(part,))
            request = produce.ProduceRequest(acks=1, timeout_ms=SEND_TIMEOUT_MS, topic_data=(data,))
            answer = link.call(produce, request, PRODUCE_VERSION)
            if answer.responses[0].partition_responses[0].error_code:
                raise BenchError("the topic to be compacted cannot be filled")


def _keyed_batches(records: int, record_bytes: int, *, keys: int, compression: int) -> "itertools.chain[bytearray]":
    per_batch = max(BATCH_BYTES // record_bytes, 1)
    filler = b"some text that compresses a little, as messages do; " * (record_bytes // 40 + 1)

    def batch(first: int) -> bytearray:
        numbers = range(first, min(first + per_batch, records))
        rows = ((b"key-%09d" % (number % keys), b"%012d" % number) for number in numbers)
        return build_batch(
            [NewRecord(0, key, (head + filler)[: record_bytes - len(key)]) for key, head in rows],
            compression=compression,
        )

    return itertools.chain(map(batch, range(0, records, per_batch)))


def _open_log(disk: RealDisk, folder: Path) -> PartitionLog:
    return PartitionLog.open(
        disk,
        str(folder),
        TopicPartition("cleaning", 0),
        TopicId(bytes(16)),
        LogConfig(compact=True, segment_bytes=SEGMENT_BYTES, preallocate=False),
        recovery_point=0,
        start_offset=0,
        clean_shutdown=False,
        wall_ms=0,
    )
