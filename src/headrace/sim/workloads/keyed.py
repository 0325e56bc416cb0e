"""Clients of compacted topics: writers that own their keys, and readers that build the table of a partition."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from headrace.model.errors import ErrorCode
from headrace.sim.checkers.history import NO_GAP
from headrace.sim.checkers.keys import Key, KeyHistory, Shown
from headrace.sim.checkers.violation import require
from headrace.sim.clock import WALL_START_MS
from headrace.sim.context import RunContext
from headrace.sim.workloads import requests
from headrace.sim.workloads.client import Client
from headrace.sim.workloads.producers import HONEST_ERRORS
from headrace.wire.apis import ApiKey
from headrace.wire.records.builder import NewRecord, build_batch
from headrace.wire.records.header import BASE_OFFSET, LAST_OFFSET_DELTA
from headrace.wire.records.reader import batches, check_batch, records

KEYS = 12
RECORDS_MAX = 4
VALUE_BYTES = 8
FILLER_BYTES_MAX = 600
TOMBSTONE_ONE_IN = 6
PAUSE_MS_MAX, RETRY_MS_MAX = 120, 300
SCAN_PAUSE_MS_MAX = 1_500
FETCH_BYTES = (2_000, 20_000, 1 << 20)
RETRIED_ERRORS = (ErrorCode.REQUEST_TIMED_OUT, ErrorCode.KAFKA_STORAGE_ERROR)


class _Written(NamedTuple):
    history: KeyHistory
    content: bytes
    numbers: list[tuple[Key, int]]


class KeyedProducer(Client):
    """Idempotent, one batch at a time; unanswered batches are sent again."""

    def __init__(self, context: RunContext, name: str, histories: Callable[[], Sequence[KeyHistory]]) -> None:
        super().__init__(context, name)
        self._histories = histories
        self._producer_id = -1
        self._sequences: dict[KeyHistory, int] = {}
        self._unanswered: _Written | None = None
        self._waits = False
        self._next_ms = 0.0
        self.acknowledged = 0
        self._acknowledged_before = 0
        self._filler = self.entropy.random_bytes(FILLER_BYTES_MAX)

    def lost(self) -> None:
        self._waits = False

    def hurry(self) -> None:
        self._acknowledged_before = self.acknowledged

    def has_progressed(self) -> bool:
        return self.acknowledged > self._acknowledged_before

    @property
    def settled(self) -> bool:
        return self._unanswered is None

    def work(self) -> None:
        if self._waits or self.now_ms < self._next_ms:
            return
        if self._producer_id < 0:
            self._waits = True
            self.ask(ApiKey.INIT_PRODUCER_ID, requests.INIT_PRODUCER_ID, requests.new_producer(), self._identified)
        elif self._unanswered is not None:
            self._send(self._unanswered)
        elif not self.stopped and self._histories():
            self._unanswered = self._new_batch()
            self._send(self._unanswered)

    def _identified(self, response: Any) -> None:
        self._waits = False
        if response.error_code == ErrorCode.NONE:
            self._producer_id = response.producer_id
        else:
            self._next_ms = self.now_ms + self.entropy.below(RETRY_MS_MAX)

    def _new_batch(self) -> _Written:
        histories = self._histories()
        history = histories[self.entropy.below(len(histories))]
        timestamp = WALL_START_MS + int(self.now_ms)
        numbers: list[tuple[Key, int]] = []
        written: list[NewRecord] = []
        for _ in range(1 + self.entropy.below(RECORDS_MAX)):
            key = history.key(f"{self.name} {self.entropy.below(KEYS)}".encode())
            key.sent += 1
            numbers.append((key, key.sent))
            value = key.sent.to_bytes(VALUE_BYTES, "big") + self._filler[: self.entropy.below(FILLER_BYTES_MAX)]
            if self.entropy.one_in(TOMBSTONE_ONE_IN):
                key.tombstones.add(key.sent)
                written.append(NewRecord(timestamp, key.name, None))
            else:
                written.append(NewRecord(timestamp, key.name, value))
        sequence = self._sequences.get(history, 0)
        self._sequences[history] = sequence + len(written)
        content = build_batch(written, producer_id=self._producer_id, producer_epoch=0, base_sequence=sequence)
        return _Written(history, bytes(content), numbers)

    def _send(self, written: _Written) -> None:
        self._waits = True
        partition = written.history.partition

        def answered(response: Any) -> None:
            self._waits = False
            result = response.responses[0].partition_responses[0]
            if result.error_code:
                error = ErrorCode(result.error_code)
                require(error in RETRIED_ERRORS, HONEST_ERRORS, f"{error.name} for a batch of {self.name}")
                self._next_ms = self.now_ms + self.entropy.below(RETRY_MS_MAX)
                return
            for key, number in written.numbers:
                key.acknowledged = max(key.acknowledged, number)
            partition.reaches(result.base_offset + len(written.numbers))
            partition.promised_durable(result.base_offset + len(written.numbers), partition.topic.sync_level)
            self._unanswered = None
            self.acknowledged += 1
            self._next_ms = self.now_ms + self.entropy.below(PAUSE_MS_MAX)

        message = requests.produced(partition.topic.name, partition.index, written.content)
        self.ask(ApiKey.PRODUCE, requests.PRODUCE_BY_NAME, message, answered)


class Scan:
    """One read of a partition from its start to its end, which moves: a record that replaces another may be new."""

    def __init__(self, history: KeyHistory, *, at_rest: bool = False) -> None:
        self.history = history
        self._at_rest = at_rest
        self.offset = 0
        self.shown: Shown = {}
        self._due = history.acknowledged()

    def take(self, part: Any) -> bool:
        """Take a response; return whether it was the last one needed."""
        partition = self.history.partition
        for batch in batches(bytes(part.records or b"")):
            fields = check_batch(batch)
            for record in records(batch):
                if record.offset >= self.offset:
                    assert record.key is not None
                    value = None if record.value is None else int.from_bytes(record.value[:VALUE_BYTES], "big")
                    self.shown[bytes(record.key)] = value
            end = fields[BASE_OFFSET] + fields[LAST_OFFSET_DELTA] + 1
            require(end > self.offset, NO_GAP, f"{partition}: a batch ends at {end} where {self.offset} was expected")
            self.offset = end
        if self.offset < partition.known_end:
            return False
        self.history.check(self._due, self.shown, at_rest=self._at_rest)
        return True


class TableReader(Client):
    def __init__(self, context: RunContext, name: str, histories: Callable[[], Sequence[KeyHistory]]) -> None:
        super().__init__(context, name)
        self._histories = histories
        self._scan: Scan | None = None
        self._waits = False
        self._next_ms = 0.0
        self._scans = self._scans_before = 0

    def lost(self) -> None:
        self._waits = False

    def hurry(self) -> None:
        self._scans_before = self._scans

    def has_progressed(self) -> bool:
        return self._scans > self._scans_before

    def work(self) -> None:
        histories = self._histories()
        if self._waits or self.now_ms < self._next_ms or not histories:
            return
        if self._scan is None:
            self._scan = Scan(histories[self.entropy.below(len(histories))])
        scan = self._scan
        partition = scan.history.partition
        self._waits = True
        bytes_max = FETCH_BYTES[self.entropy.below(len(FETCH_BYTES))]
        wanted = requests.wanted_topic(partition.topic.name, [(partition.index, scan.offset)], bytes_max=bytes_max)

        def fetched(response: Any) -> None:
            self._waits = False
            part = response.responses[0].partitions[0]
            if part.error_code:
                error = ErrorCode(part.error_code)
                honest = error is ErrorCode.KAFKA_STORAGE_ERROR and self.excused
                require(honest, HONEST_ERRORS, f"{error.name} for a scan of {partition}")
                self._next_ms = self.now_ms + self.entropy.below(RETRY_MS_MAX)
            elif scan.take(part):
                self._scan = None
                self._scans += 1
                self._next_ms = self.now_ms + self.entropy.below(SCAN_PAUSE_MS_MAX)

        self.ask(ApiKey.FETCH, requests.FETCH_BY_NAME, requests.fetched([wanted], wait_ms=100), fetched)
