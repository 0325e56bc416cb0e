"""The log `__cluster_metadata-0`: appends records, replays them, and is shortened by snapshots.

Batches carry the term as their leader epoch; the term grows at every start. Replay reads the newest intact snapshot
and the log after it. The log start and snapshots never move beyond what is committed.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from headrace.broker.cluster.metadata_batches import append_changes, read_metadata_batches
from headrace.broker.cluster.snapshots import SnapshotName, drop_old_snapshots, newest_whole_snapshot, write_snapshot
from headrace.core.controller.image import MetadataImage
from headrace.core.controller.names import CLUSTER_METADATA_TOPIC
from headrace.core.controller.records import Record
from headrace.log.config import LogConfig
from headrace.log.errors import LogError
from headrace.log.open_files import OpenFiles
from headrace.log.partition_log import PartitionLog
from headrace.log.recovery import RecoveryReport
from headrace.log.work import Work
from headrace.model.ids import TopicId, TopicPartition
from headrace.ports.disk import Disk
from headrace.wire.errors import CorruptBatch, ProtocolError
from headrace.wire.records.builder import BatchBuilder
from headrace.wire.records.header import HEADER

METADATA_PARTITION = TopicPartition(CLUSTER_METADATA_TOPIC, 0)
METADATA_TOPIC_ID = TopicId(bytes(15) + b"\x01")
"""The id that Kafka reserves for it."""

SEGMENT_BYTES = 4 << 20
SNAPSHOT_INTERVAL_BYTES = 4 << 20
"""Bytes appended before the next snapshot, which limits what a start has to replay."""

RECORDS_PER_BATCH_MAX = 32_768
REPLAY_READ_BYTES = 1 << 20

_CONFIG = LogConfig(
    segment_bytes=SEGMENT_BYTES,
    delete=False,  # only a snapshot allows old segments to be deleted
    retention_ms=-1,
    file_delete_delay_ms=0,
    preallocate=False,
    max_message_bytes=1 << 30,
)


class MetadataDamaged(Exception):
    """The cluster's metadata cannot be read from this folder; the message says what to do."""

    def __init__(self, folder: str, reason: str) -> None:
        super().__init__(
            f"the cluster's metadata in {folder} is damaged: {reason}; restore the folder from a copy, "
            "or look at it with `headrace log verify`"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """The image on disk, and what opening it had to repair or leave out."""

    image: MetadataImage
    recovered: RecoveryReport
    damaged_snapshots: Sequence[str]


class MetadataLog:
    def __init__(
        self,
        log: PartitionLog,
        *,
        term: int,
        snapshot_offset: int,
        snapshot_interval_bytes: int,
    ) -> None:
        self._log = log
        self._disk = log.disk
        self.folder = log.path
        self.term = term
        self._snapshot_offset = snapshot_offset
        self._snapshot_interval_bytes = snapshot_interval_bytes
        self._bytes_since_snapshot = 0
        self._snapshot_in_flight = False

    @classmethod
    def open(
        cls,
        disk: Disk,
        log_directory: str,
        *,
        recovery_point: int = 0,
        clean_shutdown: bool = False,
        wall_ms: int,
        snapshot_interval_bytes: int = SNAPSHOT_INTERVAL_BYTES,
    ) -> tuple["MetadataLog", Replay]:
        """Open the log and replay it. Everything replayed is synced before it returns, so it stays committed."""
        folder = f"{log_directory}/{METADATA_PARTITION}"
        is_new = not disk.exists(folder)
        disk.make_directory(folder)
        if is_new:
            disk.sync_directory(log_directory)
        return cls._open_folder(
            disk,
            folder,
            recovery_point=recovery_point,
            clean_shutdown=clean_shutdown and not is_new,
            wall_ms=wall_ms,
            snapshot_interval_bytes=snapshot_interval_bytes,
            truncate_to=None,
        )

    @classmethod
    def _open_folder(
        cls,
        disk: Disk,
        folder: str,
        *,
        recovery_point: int,
        clean_shutdown: bool,
        wall_ms: int,
        snapshot_interval_bytes: int,
        truncate_to: int | None,
    ) -> tuple["MetadataLog", Replay]:
        try:
            found = newest_whole_snapshot(disk, folder)
            name, image, damaged = found or (SnapshotName(0, 0), MetadataImage(), [])
            log = PartitionLog.open(
                disk,
                folder,
                METADATA_PARTITION,
                METADATA_TOPIC_ID,
                _CONFIG,
                recovery_point=recovery_point,
                start_offset=name.end_offset,
                clean_shutdown=clean_shutdown,
                wall_ms=wall_ms,
                files=OpenFiles(disk),
            )
            if truncate_to is not None:
                log.truncate_to(truncate_to)
            if (work := log.flush_work()) is not None and (put_off := work.run_inline()) is not None:
                raise put_off.error
            if log.bases[0] > name.end_offset:
                raise CorruptBatch(f"offsets {name.end_offset} to {log.bases[0]} are in no snapshot and no segment")
            metadata_log = cls(
                log,
                term=max(log.epochs.latest, name.term) + 1,
                snapshot_offset=name.end_offset,
                snapshot_interval_bytes=snapshot_interval_bytes,
            )
            metadata_log._replay_tail(image)
        except (ProtocolError, LogError) as wrong:
            raise MetadataDamaged(folder, str(wrong)) from wrong
        return metadata_log, Replay(image=image, recovered=log.recovered, damaged_snapshots=damaged)

    def _replay_tail(self, image: MetadataImage) -> None:
        log = self._log
        while (part := log.read(image.version, REPLAY_READ_BYTES, log.end_offset, True)) is not None:
            content = self._disk.read(part.file, part.length, part.position)
            self._bytes_since_snapshot += len(content)
            for record in read_metadata_batches(content, first_offset=image.version):
                image.apply(record)
        if image.version != log.end_offset:
            raise CorruptBatch(f"the log ends at offset {log.end_offset}, its records at {image.version}")

    def reopened(self, *, end_offset: int, wall_ms: int) -> tuple["MetadataLog", Replay]:
        """Replay from disk after a failed append, without anything appended from `end_offset` on.

        The term stays, because no reader has seen what was cut.
        """
        self._log.close(clean=False)
        again, replay = self._open_folder(
            self._disk,
            self.folder,
            recovery_point=self._log.recovery_point,
            clean_shutdown=False,
            wall_ms=wall_ms,
            snapshot_interval_bytes=self._snapshot_interval_bytes,
            truncate_to=end_offset,
        )
        again.term = self.term
        return again, replay

    # Appends

    @property
    def end_offset(self) -> int:
        return self._log.end_offset

    @property
    def recovery_point(self) -> int:
        """Offset below which everything is synced. A checkpoint keeps it: damage below it is not a torn end."""
        return self._log.recovery_point

    @property
    def failed(self) -> bool:
        return self._log.failed

    @property
    def is_synced(self) -> bool:
        """True if everything appended is synced."""
        return self._log.synced_offset >= self._log.end_offset

    def begin(self, *, metadata_version: int, wall_ms: int) -> "Append":
        """Begin to collect records, which are written together."""
        return Append(self.term, metadata_version=metadata_version, wall_ms=wall_ms)

    def append(self, begun: "Append") -> int:
        """Write the records as one batch (or several, if there are very many), and return the new end of the log.

        A transient OSError is undone; any other fails this log.
        """
        for batch in begun.batches():
            self._log.stage(memoryview(batch), HEADER.unpack_from(batch), self.term, begun.wall_ms)
            self._bytes_since_snapshot += len(batch)
        self._log.write_staged()
        return self._log.end_offset

    def sync_work(self) -> Work | None:
        """Return work that syncs everything appended; None if it is synced or cannot be synced now (`is_synced`)."""
        work = self._log.flush_work()
        if work is None:
            return None
        files = self._log.files

        def sync_metadata() -> object:
            return work.run()

        def done(result: object, error: BaseException | None) -> None:
            work.done(result, error)
            files.close_idle()

        return Work(sync_metadata, done)

    # Snapshots

    @property
    def snapshot_due(self) -> bool:
        return self._bytes_since_snapshot >= self._snapshot_interval_bytes and not self._snapshot_in_flight

    def snapshot_work(
        self, committed: MetadataImage, *, end_offset: int, wall_ms: int, ended: Callable[[BaseException | None], None]
    ) -> Work:
        """Write a snapshot of what is committed below `end_offset`, then delete what it replaces."""
        disk, folder = self._disk, self.folder
        name = SnapshotName(end_offset, self.term)
        image = committed.copy()
        self._snapshot_in_flight = True
        self._bytes_since_snapshot = 0

        def snapshot_metadata() -> None:
            write_snapshot(disk, folder, name, image, wall_ms)
            drop_old_snapshots(disk, folder)

        def done(_result: object, error: BaseException | None) -> None:
            self._snapshot_in_flight = False
            if error is None:
                self._log.advance_start(self._snapshot_offset)
                self._snapshot_offset = end_offset
            ended(error)

        return Work(snapshot_metadata, done)

    def tidy_work(self, wall_ms: int) -> Work | None:
        """Return work that deletes segments replaced by snapshots; None when there is none left."""
        return self._log.retention_work(wall_ms, self._snapshot_offset)

    def close(self, *, clean: bool = True) -> None:
        self._log.close(clean=clean)
        self._log.files.close_all()


class Append:
    """Records to be appended: encoded as they are added, some of very many at a time."""

    def __init__(self, term: int, *, metadata_version: int, wall_ms: int) -> None:
        self._term = term
        self._metadata_version = metadata_version
        self.wall_ms = wall_ms
        self._builder = BatchBuilder()
        self._built: list[bytearray] = []

    def add(self, changes: Sequence[Record]) -> None:
        if self._builder.count + len(changes) > RECORDS_PER_BATCH_MAX:
            self._build()
        append_changes(self._builder, changes, metadata_version=self._metadata_version, wall_ms=self.wall_ms)

    def _build(self) -> None:
        if self._builder.count:
            self._built.append(self._builder.build(base_offset=0, leader_epoch=self._term))
            self._builder = BatchBuilder()

    def batches(self) -> list[bytearray]:
        self._build()
        return self._built
