"""One partition that this node leads: appends of a turn, their acknowledgement, and who waits for the next record.

Within a turn the batches of many requests are staged and written by one call; the answers are sealed before the
write and sent after it. Only an answer that must wait longer than its turn (for an fsync, for followers), or
whose write fails, is touched again.

Batches of a transaction are taken when the transaction is open here, or when its coordinator has said that this
partition belongs to it; `verification` keeps what was said.
"""

from collections.abc import Callable, Mapping
from typing import Protocol

from headrace.broker.net.connection import Answer
from headrace.broker.partitions.acknowledgements import AckWaits, patch_error
from headrace.broker.partitions.codecs import STORED_CODECS, Stored, stored_on_loop
from headrace.broker.partitions.keys import Keyless, keyless_on_loop
from headrace.broker.partitions.soundness import (
    Validation,
    must_walk,
    records_error_on_loop,
    validation_of,
    walk_free_bytes,
)
from headrace.broker.partitions.verification import Verifications
from headrace.broker.timers import Timers
from headrace.core.replication.leader import Leader
from headrace.log.errors import DamagedLog, SequenceRejected
from headrace.log.partition_log import PartitionLog
from headrace.log.space import Space
from headrace.model.configs.values import TopicConfig
from headrace.model.errors import ErrorCode
from headrace.model.ids import NO_TIMESTAMP, Offset, TopicId
from headrace.wire.compiled import has_request_helper
from headrace.wire.errors import InflationLimit
from headrace.wire.produce import OpenedRecords
from headrace.wire.records.compression import Compression
from headrace.wire.records.header import (
    ATTRIBUTES,
    BASE_TIMESTAMP,
    COMPRESSION_MASK,
    HEADER,
    HEADER_SIZE,
    MAX_TIMESTAMP,
    PRODUCER_ID,
    RECORD_COUNT,
    TRANSACTIONAL_BIT,
    HeaderFields,
)
from headrace.wire.records.markers import Marker, control_batch
from headrace.wire.records.validation import check_produced

ACKS_ALL = -1
NO_APPEND_TIME = -1
ENOUGH_FOR_ANYONE_BYTES = 1 << 31
NOTHING_OPENED: Mapping[int, OpenedRecords] = {}

_NONE = ErrorCode.NONE
_INVALID_RECORD = ErrorCode.INVALID_RECORD
_unpack_header = HEADER.unpack_from


class FetchWaiter(Protocol):
    """A parked fetch: told of every byte that became readable, it counts until it has enough."""

    def readable(self, partition: "LedPartition", new_bytes: int) -> None: ...


class LedTopic:
    """The partitions of one topic, by number; None where one is still being opened, or could not be."""

    __slots__ = ("closed", "deleted", "name", "partitions", "topic_id")

    def __init__(self, name: str, topic_id: TopicId) -> None:
        self.name = name
        self.topic_id = topic_id
        self.partitions: list[LedPartition | None] = []
        self.closed: dict[int, ErrorCode] = {}
        """Those that could not be opened, and what a client is told of them."""
        self.deleted = False

    def partition(self, index: int) -> "LedPartition | ErrorCode":
        """One that can be used, or the error a client gets for it."""
        if not 0 <= index < len(self.partitions):
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        partition = self.partitions[index]
        if partition is None:
            return self.closed.get(index, ErrorCode.LEADER_NOT_AVAILABLE)
        return partition.offline_error if partition.offline else partition


class LedPartition:
    __slots__ = (
        "_acks",
        "_blamed",
        "_fetch_waiters",
        "_on_error",
        "_stable_offset",
        "_stable_waiters",
        "_takes_plain",
        "_timers",
        "_touched",
        "_unconfirmed",
        "_unseen_bytes",
        "_unstable_bytes",
        "codec",
        "config",
        "index",
        "leader",
        "log",
        "offline",
        "offline_error",
        "on_marker",
        "space",
        "topic",
        "topic_id",
        "touched",
        "validation",
        "verifications",
        "walk_free_bytes",
    )

    def __init__(
        self,
        *,
        topic: str,
        index: int,
        topic_id: TopicId,
        log: PartitionLog,
        space: Space,
        leader: Leader,
        config: TopicConfig,
        timers: Timers,
        touched: "list[LedPartition]",
        on_error: "Callable[[LedPartition, OSError | DamagedLog], None]",
    ) -> None:
        self.topic = topic
        self.index = index
        self.topic_id = topic_id
        self.log = log
        self.space = space
        """Of the directory the log lies in."""
        self.leader = leader
        self._take_config(config)
        self.offline = False
        self.offline_error = _NONE
        """Why: its directory failed, or its topic was deleted."""
        self._timers = timers
        self._touched = touched
        self.touched = False
        self._on_error = on_error
        self._blamed: list[int] = []
        self._unconfirmed: list[tuple[Answer, int, int, int, int]] = []
        self._acks = AckWaits(timers)
        self._fetch_waiters: dict[FetchWaiter, None] = {}
        self._stable_waiters: dict[FetchWaiter, None] = {}
        """Those that read no further than the last stable offset."""
        self._unseen_bytes = 0
        self._unstable_bytes = 0
        """Committed, but not to be seen by them yet."""
        self.verifications = Verifications(log)
        self.on_marker: Callable[[int, int, bool], None] | None = None
        """Told of every transaction marker that is staged: producer, its epoch, and whether it commits."""
        self._note_stability()
        self._stable_offset = leader.last_stable_offset

    # Produce

    def append(
        self,
        frame: memoryview,
        start: int,
        end: int,
        api_version: int,
        acks: int,
        wall_ms: int,
        has_transactional_id: bool = False,
        opened: Mapping[int, OpenedRecords] = NOTHING_OPENED,
    ) -> tuple[ErrorCode, int, int, int]:
        """Check one record set and stage it: (error, base offset, append time, offset behind its last record).

        Records that take long to open are taken only as `opened` (`broker.api.produce_opening`)."""
        if start < 0 or end - start < HEADER_SIZE:
            nothing = start < 0 or end <= start
            return _INVALID_RECORD if nothing else ErrorCode.CORRUPT_MESSAGE, -1, NO_APPEND_TIME, 0
        if self.offline:
            return self.offline_error, -1, NO_APPEND_TIME, 0
        if self.space.full:
            self.log.producers.turned_away(_unpack_header(frame[start:end]))
            return ErrorCode.KAFKA_STORAGE_ERROR, -1, NO_APPEND_TIME, 0
        if acks == ACKS_ALL and not self.leader.acks_all_allowed:
            self.log.producers.turned_away(_unpack_header(frame[start:end]))
            return ErrorCode.NOT_ENOUGH_REPLICAS, -1, NO_APPEND_TIME, 0
        batch = frame[start:end]
        fields: HeaderFields = _unpack_header(batch)
        config = self.config
        error = check_produced(batch, fields, api_version=api_version, max_message_bytes=config.message_bytes_max)
        if error is not _NONE:
            return error, -1, NO_APPEND_TIME, 0
        if config.log_append_time:
            append_time = wall_ms
        else:
            append_time = NO_APPEND_TIME
            # Per batch, from its header: the first and the largest timestamp.
            if fields[MAX_TIMESTAMP] - wall_ms > config.timestamp_after_ms_max or (
                wall_ms - fields[BASE_TIMESTAMP] > config.timestamp_before_ms_max
                and fields[BASE_TIMESTAMP] != NO_TIMESTAMP
            ):
                return ErrorCode.INVALID_TIMESTAMP, -1, NO_APPEND_TIME, 0
        if must_walk(self.validation, fields):
            try:
                error = self._records_error(batch, fields, opened.get(start))
            except InflationLimit:
                return self._refuse_unopened(fields)
            if error is not _NONE:
                return error, -1, NO_APPEND_TIME, 0
        if config.cleanup_compact:
            try:
                keyless = self._keyless(batch, opened.get(start))
            except InflationLimit:
                return self._refuse_unopened(fields)
            if keyless:
                self._blamed = keyless if isinstance(keyless, list) else []
                return _INVALID_RECORD, -1, NO_APPEND_TIME, 0
        log = self.log
        count = fields[RECORD_COUNT]
        if fields[PRODUCER_ID] >= 0:
            if fields[ATTRIBUTES] & TRANSACTIONAL_BIT or log.producers.open:
                error = self.verifications.refusal(fields, has_transactional_id=has_transactional_id)
                if error is not _NONE:
                    return error, -1, NO_APPEND_TIME, 0
            try:
                original = log.producers.admit(fields)
            except SequenceRejected as rejected:
                return rejected.error, -1, NO_APPEND_TIME, 0
            if original >= 0:
                if config.log_append_time:
                    append_time = log.producers.duplicate_timestamp
                return _NONE, original, append_time, original + count
        if self.codec is not None and fields[ATTRIBUTES] & COMPRESSION_MASK != self.codec:
            try:
                stored = self._stored(batch, fields, self.codec, opened.get(start))
            except InflationLimit:
                return self._refuse_unopened(fields)
            if stored is ErrorCode.NOT_ENOUGH_REPLICAS:
                return self._refuse_unopened(fields)
            if isinstance(stored, ErrorCode):
                return stored, -1, NO_APPEND_TIME, 0
            batch = memoryview(stored)
            fields = _unpack_header(batch)
        base_offset = log.stage(batch, fields, self.leader.leader_epoch, wall_ms)
        self._unseen_bytes += len(batch)
        return _NONE, base_offset, append_time, base_offset + count

    def append_next(self, batch: memoryview, fields: HeaderFields, acks: int, wall_ms: int) -> int:
        """HOT. Stage a plain batch (`validation.is_plain`) that follows the last one of its producer: its base offset.

        -1, and nothing is staged, for any other, and where a topic or the node wants more than that: `append` decides.
        """
        config, log, leader = self.config, self.log, self.leader
        producers = log.producers
        if (
            self.offline
            or self.space.full
            or (acks == ACKS_ALL and not leader.acks_all_allowed)
            or not self._takes_plain
            or len(batch) > config.message_bytes_max
            or fields[MAX_TIMESTAMP] - wall_ms > config.timestamp_after_ms_max
            or wall_ms - fields[BASE_TIMESTAMP] > config.timestamp_before_ms_max
            or producers.open
            or not (fields[PRODUCER_ID] < 0 or producers.advance(fields, log.staged_end_offset, wall_ms))
        ):
            return -1
        self._unseen_bytes += len(batch)
        return log.stage(batch, fields, leader.leader_epoch, wall_ms, True)

    def _records_error(self, batch: memoryview, fields: HeaderFields, opened: OpenedRecords | None) -> ErrorCode:
        if opened is not None and opened.records_error is not None:
            return opened.records_error
        return records_error_on_loop(batch, fields)

    def _keyless(self, batch: memoryview, opened: OpenedRecords | None) -> Keyless:
        if opened is not None and opened.keyless is not None:
            return opened.keyless
        return keyless_on_loop(batch, self.config.message_bytes_max)

    def _stored(
        self, batch: memoryview, fields: HeaderFields, codec: Compression, opened: OpenedRecords | None
    ) -> Stored:
        """The batch as the topic wants it; what a helper made is of no use where the config has changed since."""
        if opened is not None and opened.stored is not None and opened.codec == codec:
            return opened.stored
        return stored_on_loop(batch, fields, codec, self.config.message_bytes_max)

    def _refuse_unopened(self, fields: HeaderFields) -> tuple[ErrorCode, int, int, int]:
        """Its records take long to open and nobody has yet, which the long way of a request sees to."""
        self.log.producers.turned_away(fields)
        return ErrorCode.NOT_ENOUGH_REPLICAS, -1, NO_APPEND_TIME, 0

    def take_blamed(self) -> list[int]:
        """Which records of the batch refused last are to blame, by their places in it; empty when no single one is."""
        blamed, self._blamed = self._blamed, []
        return blamed

    def append_answered(
        self, batch: bytearray, fields: HeaderFields, wall_ms: int, answer: Answer, timeout_ms: int
    ) -> int:
        """HOT. As `append_own`, of a batch whose header is known and whose answer leaves when it is committed."""
        log = self.log
        end_offset = log.stage(memoryview(batch), fields, self.leader.leader_epoch, wall_ms) + fields[RECORD_COUNT]
        self._unseen_bytes += len(batch)
        if not self.touched:
            self.touched = True
            self._touched.append(self)
        self._unconfirmed.append((answer, end_offset, ACKS_ALL, 0, timeout_ms))
        return end_offset

    def append_own(self, batch: bytearray, wall_ms: int) -> int:
        """Stage a batch that this node made itself, of an internal topic: the offset behind its last record.

        Whoever appends so is one of the waiters: it is woken when the high watermark rises, and when the write failed.
        """
        view = memoryview(batch)
        fields: HeaderFields = _unpack_header(view)
        base_offset = self.log.stage(view, fields, self.leader.leader_epoch, wall_ms)
        self._staged_own(len(batch))
        return base_offset + fields[RECORD_COUNT]

    def append_marker(
        self,
        producer_id: int,
        producer_epoch: int,
        *,
        commit: bool,
        coordinator_epoch: int,
        transaction_version: int,
        wall_ms: int,
    ) -> ErrorCode | int:
        """Stage the end of a producer's transaction: the offset behind the marker, or why it may not be written.

        Whoever appends so waits as after `append_own`. An `ErrorCode` is an int too, so it is to be asked for first.
        """
        if self.offline:
            return self.offline_error
        if not self.leader.acks_all_allowed:
            return ErrorCode.NOT_ENOUGH_REPLICAS
        error = self.log.producers.refusal_of_marker(
            producer_id, producer_epoch, coordinator_epoch=coordinator_epoch, transaction_version=transaction_version
        )
        if error is not _NONE:
            return error
        batch = control_batch(
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            commit=commit,
            coordinator_epoch=coordinator_epoch,
            timestamp=wall_ms,
        )
        view, marker = memoryview(batch), Marker(commit, coordinator_epoch)
        offset = self.log.transactions.stage_marker(
            view, _unpack_header(view), marker, self.leader.leader_epoch, wall_ms
        )
        self.verifications.marker_came(producer_id, producer_epoch, transaction_version=transaction_version)
        self._staged_own(len(batch))
        if self.on_marker is not None:
            self.on_marker(producer_id, producer_epoch, commit)
        return offset + 1

    def _staged_own(self, size: int) -> None:
        self._unseen_bytes += size
        if not self.touched:
            self.touched = True
            self._touched.append(self)

    def confirm_later(self, answer: Answer, end_offset: int, acks: int, error_at: int, timeout_ms: int) -> None:
        """This turn's write decides the answer; with acks=all also the commit of everything below `end_offset`."""
        if not self.touched:
            self.touched = True
            self._touched.append(self)
        self._unconfirmed.append((answer, end_offset, acks, error_at, timeout_ms))

    def end_turn(self) -> None:
        """Write what was staged, move the high watermark, and let go who waited for that."""
        self.touched = False
        if self.offline:
            self.log.discard_staged()  # its directory failed earlier in this turn, and whoever waited was told
            return
        try:
            self.log.write_staged()
        except OSError as error:
            self._on_error(self, error)
            if self.log.failed:
                return
            self._refuse_unwritten()
        raised = self.leader.log_appended(Offset(self.log.end_offset))
        high_watermark = self.leader.high_watermark
        if high_watermark < self.log.end_offset:
            self._park_acks(high_watermark)
        self._unconfirmed.clear()
        if raised:
            self.high_watermark_raised()

    def _refuse_unwritten(self) -> None:
        """The log took back what the device had no room for, and goes on when there is some."""
        end_offset = self.log.end_offset
        for answer, needed, _, error_at, _ in self._unconfirmed:
            if needed > end_offset:
                patch_error(answer, error_at, ErrorCode.KAFKA_STORAGE_ERROR)
        self._unconfirmed = [entry for entry in self._unconfirmed if entry[1] <= end_offset]
        self.wake_all()

    def _park_acks(self, high_watermark: int) -> None:
        # With flush.messages=1 every acknowledgement waits for the sync, that of acks=1 too.
        synced = self.config.flush_messages == 1
        now_ms = self._timers.now_ms()
        for answer, end_offset, acks, error_at, timeout_ms in self._unconfirmed:
            if (acks == ACKS_ALL or (synced and acks)) and end_offset > high_watermark:
                self._acks.add(answer, end_offset, error_at, timeout_ms, now_ms)

    def high_watermark_raised(self) -> None:
        high_watermark = self.leader.high_watermark
        self._acks.committed(high_watermark)
        new_bytes, self._unseen_bytes = self._unseen_bytes, 0
        stable_bytes = new_bytes
        if self.log.producers.has_transactions or self._unstable_bytes:
            stable_bytes = self._stable_bytes(new_bytes)
        else:
            self._stable_offset = high_watermark
        if self._fetch_waiters:
            for waiter in tuple(self._fetch_waiters):
                waiter.readable(self, new_bytes)
        if stable_bytes and self._stable_waiters:
            for waiter in tuple(self._stable_waiters):
                waiter.readable(self, stable_bytes)

    def _stable_bytes(self, new_bytes: int) -> int:
        """How much more a reader of committed transactions may see, at most; 0 where the last stable offset stays."""
        self._note_stability()
        self._unstable_bytes += new_bytes
        stable_offset, unstable_bytes = self.leader.last_stable_offset, self._unstable_bytes
        if stable_offset <= self._stable_offset:
            return 0
        self._stable_offset = stable_offset
        if stable_offset == self.leader.high_watermark:
            self._unstable_bytes = 0
        return unstable_bytes

    def _note_stability(self) -> None:
        """Tell the leader where the oldest transaction begins that is not known to have ended."""
        first = self.log.producers.first_unstable_offset(self.leader.high_watermark)
        self.leader.first_unstable_offset = None if first is None else Offset(max(first, self.log.start_offset))

    def log_flushed(self, end_offset: int) -> None:
        if self.leader.log_flushed(Offset(end_offset)):
            self.high_watermark_raised()

    def take_offline(self, error: ErrorCode) -> None:
        """Nothing more is written or read here; whoever waits is told."""
        self.offline = True
        self.offline_error = error
        for answer, _, _, error_at, _ in self._unconfirmed:
            patch_error(answer, error_at, error)
        self._unconfirmed.clear()
        self._acks.fail(error)
        self.wake_all()

    # Fetch

    def add_waiter(self, waiter: FetchWaiter, *, stable: bool = False) -> None:
        """`stable`: only what is below the last stable offset counts for it."""
        (self._stable_waiters if stable else self._fetch_waiters)[waiter] = None

    def remove_waiter(self, waiter: FetchWaiter) -> None:
        self._fetch_waiters.pop(waiter, None)
        self._stable_waiters.pop(waiter, None)

    def wake_all(self) -> None:
        """What a parked fetch relies on has changed: let them all look again, and answer."""
        self._note_stability()
        for waiter in (*self._fetch_waiters, *self._stable_waiters):
            waiter.readable(self, ENOUGH_FOR_ANYONE_BYTES)

    def damage_found(self, damage: DamagedLog) -> None:
        """A reader came to bytes that are not a batch."""
        self._on_error(self, damage)

    def check_leader_epoch(self, current_leader_epoch: int) -> ErrorCode:
        """What a client believes about the leader, against what is so (KIP-320)."""
        if current_leader_epoch == -1 or current_leader_epoch == self.leader.leader_epoch:
            return _NONE
        if current_leader_epoch < self.leader.leader_epoch:
            return ErrorCode.FENCED_LEADER_EPOCH
        return ErrorCode.UNKNOWN_LEADER_EPOCH

    def _take_config(self, config: TopicConfig) -> None:
        self.config = config
        self.codec = STORED_CODECS.get(config.compression_type)
        """What batches are stored under; None for what producers choose."""
        self.validation = validation_of(config.validate_records)
        """How far batches are looked at. `read_repeat` has walked the uncompressed ones where it is compiled."""
        self.walk_free_bytes = walk_free_bytes(self.validation)
        self._takes_plain = (
            self.codec is None
            and not (config.log_append_time or config.cleanup_compact)
            and (
                self.validation is Validation.HEADER or (self.validation is not Validation.ALL and has_request_helper())
            )
        )
        """Whether batches go into the log as they come."""

    def configure(self, config: TopicConfig) -> None:
        self._take_config(config)
        raised = self.leader.configure(
            flush_before_commit=config.flush_messages == 1, min_insync_replicas=config.min_insync_replicas
        )
        if raised:
            self.high_watermark_raised()
