"""The log `__cluster_metadata-0` on disk: appends entries of the metadata quorum, and is shortened by snapshots.

The entry with index i is the record at offset i - 1, and its term is the leader epoch of its batch. Opening reads the
newest intact snapshot and the entries after it; which of those are committed is for the quorum to decide.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from headrace.broker.cluster.metadata_batches import entry_batch, read_entries
from headrace.broker.cluster.quorum_state import load_quorum_state, save_quorum_state
from headrace.broker.cluster.snapshot_transfer import (
    SnapshotPart,
    finish_installation,
    install_received,
    read_part,
    write_chunk,
)
from headrace.broker.cluster.snapshots import (
    LoadedSnapshot,
    SnapshotName,
    drop_old_snapshots,
    newest_whole_snapshot,
    write_snapshot,
)
from headrace.core.controller.image import MetadataImage
from headrace.core.controller.names import CLUSTER_METADATA_TOPIC
from headrace.core.raft.effects import SnapshotChunk
from headrace.core.raft.entries import EntryKind, HardState, LogEntry, StateSnapshot, Stored
from headrace.core.raft.ids import Index, ReplicaKey, Term, Voters, voter_set
from headrace.log.config import LogConfig
from headrace.log.errors import LogError
from headrace.log.open_files import OpenFiles
from headrace.log.partition_log import PartitionLog
from headrace.log.recovery import RecoveryReport
from headrace.log.work import Work
from headrace.model.ids import TopicId, TopicPartition
from headrace.ports.disk import Disk
from headrace.wire.errors import CorruptBatch, ProtocolError
from headrace.wire.records.header import HEADER

METADATA_PARTITION = TopicPartition(CLUSTER_METADATA_TOPIC, 0)
METADATA_TOPIC_ID = TopicId(bytes(15) + b"\x01")
"""The id that Kafka reserves for it."""

SEGMENT_BYTES = 4 << 20
SNAPSHOT_INTERVAL_BYTES = 4 << 20
"""Bytes appended before the next snapshot, which limits what a start has to replay."""

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
            f"the cluster's metadata in {folder} is damaged: {reason}; restore the folder from a copy, look at it with "
            "`headrace log verify`, or, if the cluster has other controllers, let the node join again with an empty "
            "data folder"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """The durable state of the replica, the image of its snapshot, and what opening had to repair or leave out."""

    image: MetadataImage
    stored: Stored
    recovered: RecoveryReport
    damaged_snapshots: Sequence[str]


class MetadataLog:
    def __init__(self, log: PartitionLog, *, snapshot_offset: int, snapshot_interval_bytes: int) -> None:
        self._log = log
        self._disk = log.disk
        self.folder = log.path
        self._snapshot_offset = snapshot_offset
        self._snapshot_interval_bytes = snapshot_interval_bytes
        self._bytes_since_snapshot = 0
        self._snapshot_in_flight = False

    # Opening

    @classmethod
    def open(
        cls,
        disk: Disk,
        log_directory: str,
        *,
        me: ReplicaKey,
        founds: bool = True,
        recovery_point: int = 0,
        clean_shutdown: bool = False,
        wall_ms: int,
        snapshot_interval_bytes: int = SNAPSHOT_INTERVAL_BYTES,
    ) -> tuple["MetadataLog", Replay]:
        """Open the log. Everything in it is synced before this returns.

        With `founds` an empty folder is a new cluster, whose only voter is `me`; otherwise it is that of an observer.
        """
        folder = f"{log_directory}/{METADATA_PARTITION}"
        is_new = not disk.exists(folder)
        if is_new and recovery_point:
            raise MetadataDamaged(folder, f"it is missing, although it held entries up to offset {recovery_point}")
        disk.make_directory(folder)
        if is_new:
            disk.sync_directory(log_directory)
        try:
            finish_installation(disk, folder)
            found = newest_whole_snapshot(disk, folder)
            snapshot, damaged = found or (LoadedSnapshot(SnapshotName(0, 0), MetadataImage(), ()), [])
            log = _open_partition_log(
                disk,
                folder,
                recovery_point=recovery_point,
                start_offset=snapshot.name.end_offset,
                clean_shutdown=clean_shutdown and not is_new,
                wall_ms=wall_ms,
            )
            metadata_log = cls(
                log, snapshot_offset=snapshot.name.end_offset, snapshot_interval_bytes=snapshot_interval_bytes
            )
            entries = metadata_log._read_entries()
            stored = _stored(disk, folder, snapshot, entries, me=me, founds=founds)
        except (ProtocolError, LogError) as wrong:
            raise MetadataDamaged(folder, str(wrong)) from wrong
        replay = Replay(image=snapshot.image, stored=stored, recovered=log.recovered, damaged_snapshots=damaged)
        return metadata_log, replay

    def _read_entries(self) -> tuple[LogEntry, ...]:
        """Return every entry above the snapshot."""
        log, due = self._log, self._snapshot_offset
        if log.bases[0] > due:
            raise CorruptBatch(f"offsets {due} to {log.bases[0]} are in no snapshot and no segment")
        entries: list[LogEntry] = []
        while (part := log.read(due, REPLAY_READ_BYTES, log.end_offset, True)) is not None:
            content = self._disk.read(part.file, part.length, part.position)
            self._bytes_since_snapshot += len(content)
            entries += read_entries(content, first_offset=due)
            due = entries[-1].index
        if due != log.end_offset:
            raise CorruptBatch(f"the log ends at offset {log.end_offset}, its records at {due}")
        return tuple(entries)

    def reopen(self, *, end_offset: int, wall_ms: int) -> None:
        """Open the log again after a failed append, without anything appended from `end_offset` on."""
        self._log.close(clean=False)
        try:
            self._log = _open_partition_log(
                self._disk,
                self.folder,
                recovery_point=self._log.recovery_point,
                start_offset=self._snapshot_offset,
                clean_shutdown=False,
                wall_ms=wall_ms,
                truncate_to=end_offset,
            )
        except LogError as wrong:
            raise MetadataDamaged(self.folder, str(wrong)) from wrong
        if self._log.end_offset != end_offset:
            raise MetadataDamaged(self.folder, f"the log was cut at offset {self._log.end_offset}")

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

    def append(self, entries: Sequence[LogEntry], wall_ms: int) -> None:
        """Write the entries, which begin at the end of the log.

        A transient OSError is undone; any other fails this log.
        """
        for entry in entries:
            batch = entry_batch(entry, wall_ms)
            self._log.stage(memoryview(batch), HEADER.unpack_from(batch), entry.term, wall_ms)
            self._bytes_since_snapshot += len(batch)
        self._log.write_staged()
        assert not entries or self._log.end_offset == entries[-1].index, "entries and offsets of the log differ"

    @property
    def has_work(self) -> bool:
        """Return whether a helper works on the files of the log."""
        return self._log.has_work

    def truncation_work(self, end_offset: int) -> Work | None:
        """Return work that removes every entry from this offset on; None if there is none. Call it without
        `has_work`.
        """
        return self._log.truncation.work(end_offset)

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

    def save_work(self, hard_state: HardState, done: Callable[[object, BaseException | None], None]) -> Work:
        """Return work that makes the term and the vote durable."""
        disk, folder = self._disk, self.folder

        def save_metadata_vote() -> None:
            save_quorum_state(disk, folder, hard_state)

        return Work(save_metadata_vote, done)

    # Snapshots

    @property
    def snapshot_due(self) -> bool:
        return self._bytes_since_snapshot >= self._snapshot_interval_bytes and not self._snapshot_in_flight

    def snapshot_work(
        self,
        committed: MetadataImage,
        *,
        term: Term,
        voters: Voters,
        wall_ms: int,
        ended: Callable[[BaseException | None], None],
    ) -> Work:
        """Write a snapshot of the committed image, whose last entry has this term, then delete what it replaces."""
        disk, folder = self._disk, self.folder
        name = SnapshotName(committed.version, term)
        image = committed.copy()
        self._snapshot_in_flight = True
        self._bytes_since_snapshot = 0

        def snapshot_metadata() -> None:
            write_snapshot(disk, folder, name, image, voters=voters, wall_ms=wall_ms)
            drop_old_snapshots(disk, folder)

        def done(_result: object, error: BaseException | None) -> None:
            self._snapshot_in_flight = False
            if error is None:
                self._snapshot_written(name)
            ended(error)

        return Work(snapshot_metadata, done)

    def _snapshot_written(self, name: SnapshotName) -> None:
        if name.end_offset > self._snapshot_offset:  # otherwise a newer one was installed meanwhile
            self._log.advance_start(self._snapshot_offset)
            self._snapshot_offset = name.end_offset

    def read_chunk(self, end_offset: int, position: int, bytes_max: int) -> SnapshotPart | None:
        """Return a part of the snapshot with this end offset; None if it is gone. Runs in a helper."""
        return read_part(self._disk, self.folder, end_offset, position, bytes_max)

    def write_chunk(self, chunk: SnapshotChunk) -> None:
        """Write a chunk of a snapshot that arrives from the leader."""
        write_chunk(self._disk, self.folder, chunk.position, chunk.chunk)

    def install(self, snapshot: StateSnapshot) -> bytes:
        """Put the received snapshot in place of all others and return its bytes. Runs in a helper.

        From here on the log before it is invalid; `begin_after` removes it, or the next start does.
        """
        return install_received(self._disk, self.folder, SnapshotName(snapshot.index, snapshot.term))

    def begin_after(self, snapshot: StateSnapshot, wall_ms: int) -> None:
        """Begin an empty log after the installed snapshot."""
        self._log.close(clean=False)
        try:
            finish_installation(self._disk, self.folder)
            self._log = _open_partition_log(
                self._disk,
                self.folder,
                recovery_point=0,
                start_offset=snapshot.index,
                clean_shutdown=False,
                wall_ms=wall_ms,
            )
        except LogError as wrong:
            raise MetadataDamaged(self.folder, str(wrong)) from wrong
        self._snapshot_offset = snapshot.index
        self._bytes_since_snapshot = 0

    def tidy_work(self, wall_ms: int) -> Work | None:
        """Return work that deletes segments replaced by snapshots; None when there is none left."""
        return self._log.retirement.work(wall_ms, self._snapshot_offset)

    def close(self, *, clean: bool = True) -> None:
        self._log.close(clean=clean)
        self._log.files.close_all()


def _open_partition_log(
    disk: Disk,
    folder: str,
    *,
    recovery_point: int,
    start_offset: int,
    clean_shutdown: bool,
    wall_ms: int,
    truncate_to: int | None = None,
) -> PartitionLog:
    log = PartitionLog.open(
        disk,
        folder,
        METADATA_PARTITION,
        METADATA_TOPIC_ID,
        _CONFIG,
        recovery_point=recovery_point,
        start_offset=start_offset,
        clean_shutdown=clean_shutdown,
        wall_ms=wall_ms,
        files=OpenFiles(disk),
    )
    if truncate_to is not None and (work := log.truncation.work(truncate_to)) is not None:
        work.run_inline()
    if (work := log.flush_work()) is not None and (put_off := work.run_inline()) is not None:
        raise put_off.error
    return log


def _stored(
    disk: Disk, folder: str, snapshot: LoadedSnapshot, entries: tuple[LogEntry, ...], *, me: ReplicaKey, founds: bool
) -> Stored:
    hard_state = load_quorum_state(disk, folder)
    voters = snapshot.voters
    if not voters and not any(entry.kind is EntryKind.VOTERS for entry in entries):
        is_empty = not entries and not snapshot.name.end_offset
        if _is_sole_voter(hard_state, me, is_empty=is_empty, founds=founds):
            voters = voter_set(me)
    elif hard_state is None:
        raise CorruptBatch("quorum-state, the file with the vote of this node, is missing")
    last_term = snapshot.name.term
    for entry in entries:
        if entry.term < last_term:
            raise CorruptBatch(f"the entry at offset {entry.index - 1} has the term {entry.term} after {last_term}")
        last_term = entry.term
    if hard_state is not None and last_term > hard_state.term:
        raise CorruptBatch(f"an entry has the term {last_term}, but quorum-state has the term {hard_state.term}")
    position = StateSnapshot(index=Index(snapshot.name.end_offset), term=Term(snapshot.name.term), voters=voters)
    return Stored(hard_state=hard_state or HardState(), snapshot=position, entries=entries)


def _is_sole_voter(hard_state: HardState | None, me: ReplicaKey, *, is_empty: bool, founds: bool) -> bool:
    """Return whether a folder that names no voters is that of a cluster with one voter.

    It is, if the node founds a cluster, or if an earlier release without a quorum wrote the folder.
    A replica that another one sends entries to has its term on disk before the first of them, and no vote for itself.
    """
    if hard_state is None:
        return founds or not is_empty
    return hard_state.voted_for == me or (founds and is_empty)
