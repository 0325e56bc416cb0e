"""One log directory: its lock, its identity, its checkpoints and the folders of its partitions."""

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress

from headrace.model.ids import TopicId, TopicPartition
from headrace.ports.disk import Disk
from headrace.ports.entropy import Entropy

from . import checkpoints, names, uptime
from .config import LogConfig
from .errors import CorruptFile, DamagedLog, MissingLog, WrongDirectory, WrongTopicId
from .files import make_directory_durably, read_whole, replace_file, unlink_if_present, write_atomically
from .open_files import OpenFiles
from .partition_log import PartitionLog
from .scan_links import remove_scans
from .space import Space
from .work import Work

_Offsets = tuple[dict[TopicPartition, int], dict[str, TopicId]]
"""Contents of a checkpoint: the offsets, and the ids of their topics."""

_CLEAN_SHUTDOWN_CONTENT = b'{"version":0,"brokerEpoch":-1}'


class LogDirectory:
    def __init__(
        self, disk: Disk, path: str, entropy: Entropy, files: OpenFiles, notice: Callable[[str], None]
    ) -> None:
        self.disk = disk
        self.path = path
        self.files = files
        self.notice = notice
        self.clean_shutdown = False
        self.directory_id = bytes(checkpoints.UUID_BYTES)
        self.recovery_points: dict[TopicPartition, int] = {}
        self.start_offsets: dict[TopicPartition, int] = {}
        self.high_watermarks: dict[TopicPartition, int] = {}
        self._topic_ids: dict[str, TopicId] = {}
        """Topic ids of the offsets: a topic may be deleted, and another one created with its name, before the next
        checkpoint.
        """
        self._entropy = entropy
        self._noted: dict[TopicPartition, tuple[int, int, int | None]] = {}
        """The state of each log as `checkpoint_work` last saw it."""
        self._unwritten = False
        """True if these offsets differ from the checkpoint files."""
        self._checkpointing = False
        self._checkpoint_again = False
        self.space = Space(disk, path)
        self.on_error: Callable[[LogDirectory, BaseException], None] = lambda directory, error: None
        """Called on the loop when work of the directory itself, not of one of its logs, fails."""
        self.uptime = uptime.DirectoryUptime()
        self._uptime_in_flight = False
        self._lock = disk.lock(f"{path}/{names.LOCK}")

    @classmethod
    def open(
        cls,
        disk: Disk,
        path: str,
        *,
        cluster_id: str,
        node_id: int,
        entropy: Entropy,
        files: OpenFiles | None = None,
        notice: Callable[[str], None] = lambda text: None,
    ) -> "LogDirectory":
        """Lock the directory (DiskLockHeld if another process has it), check its identity and read its checkpoints."""
        make_directory_durably(disk, path)
        directory = cls(disk, path, entropy, files if files is not None else OpenFiles(disk), notice)
        try:
            directory.space.prepare()
            directory._claim(cluster_id, node_id)
            directory.start_offsets, start_ids = directory._read_start_offsets()
        except (OSError, WrongDirectory):
            disk.close(directory._lock)
            raise
        directory.recovery_points, directory._topic_ids = directory._read_offsets(names.RECOVERY_POINTS)
        directory.high_watermarks, _ = directory._read_offsets(names.HIGH_WATERMARKS)
        directory._topic_ids = start_ids | directory._topic_ids
        directory.uptime = uptime.load(disk, path, notice)
        # The clean-shutdown marker describes the previous run only: it must be gone before this run can crash.
        directory.clean_shutdown = unlink_if_present(disk, f"{path}/{names.CLEAN_SHUTDOWN}")
        remove_scans(disk, path)
        for name in disk.list_directory(path):
            if name.endswith(names.TEMPORARY):
                disk.unlink(f"{path}/{name}")
        disk.sync_directory(path)
        return directory

    def _claim(self, cluster_id: str, node_id: int) -> None:
        path = f"{self.path}/{names.META_PROPERTIES}"
        if not self.disk.exists(path):
            if self.partitions():
                self.notice(f"{path} has vanished from a directory in use; creating it again with a new directory id")
            self.directory_id = self._entropy.random_bytes(checkpoints.UUID_BYTES)
            properties = {
                "version": "1",
                "cluster.id": cluster_id,
                "node.id": str(node_id),
                "directory.id": checkpoints.encode_uuid(self.directory_id),
            }
            write_atomically(self.disk, path, checkpoints.encode_properties(properties))
            return
        try:
            found = read_meta_properties(self.disk, self.path)
            self.directory_id = checkpoints.decode_uuid(found["directory.id"])
        except (CorruptFile, KeyError) as error:
            raise WrongDirectory(f"{path} cannot be read ({error}); restore it or choose another directory") from error
        for key, wanted in (("cluster.id", cluster_id), ("node.id", str(node_id))):
            if found.get(key) != wanted:
                raise WrongDirectory(
                    f"{self.path} belongs to {key} {found.get(key)!r}, but this node has {wanted!r}; choose "
                    "another directory, or start the node that owns it"
                )

    def _read_offsets(self, name: str) -> _Offsets:
        """Read a checkpoint; a missing or damaged one counts as empty, and recovery scans the segments instead."""
        try:
            return self._decoded(name) or ({}, {})
        except CorruptFile as error:
            self.notice(f"{self.path}/{name}: {error}; continuing without it")
            return {}, {}

    def _read_start_offsets(self) -> _Offsets:
        """Read the start offsets from the checkpoint or its copy. If both are lost, deleted records would become
        visible again.
        """
        damages: list[str] = []
        for name in (names.START_OFFSETS, names.START_OFFSETS_COPY):
            try:
                found = self._decoded(name)
            except CorruptFile as error:
                damages.append(f"{self.path}/{name}: {error}")
                continue
            if found is not None:
                if damages:
                    self.notice(f"{damages[0]}; using its copy {name} instead")
                    self._unwritten = True
                return found
        if damages:
            raise WrongDirectory(
                f"{'; '.join(damages)}. No other file records which offsets were deleted: restore "
                f"{names.START_OFFSETS} or {names.START_OFFSETS_COPY} from a backup, or accept that deleted "
                f"records return and run: headrace log repair {self.path}"
            )
        return {}, {}

    def _decoded(self, name: str) -> _Offsets | None:
        """Decode a file; None if it does not exist."""
        try:
            content = read_whole(self.disk, f"{self.path}/{name}", checkpoints.CHECKPOINT_BYTES_MAX)
        except FileNotFoundError:
            return None
        return checkpoints.decode_offsets(content), checkpoints.decode_topic_ids(content)

    # Partitions

    def partitions(self) -> list[TopicPartition]:
        found = (names.parse_partition_folder(name) for name in self.disk.list_directory(self.path))
        return [
            topic_partition
            for topic_partition in found
            if topic_partition is not None and self.disk.is_directory(f"{self.path}/{topic_partition}")
        ]

    def holds(self, topic_partition: TopicPartition, topic_id: TopicId) -> bool:
        """Return whether the partition's folder belongs to this topic, not to an earlier one of the same name."""
        path = f"{self.path}/{topic_partition}/{names.PARTITION_METADATA}"
        try:
            content = read_whole(self.disk, path, checkpoints.PROPERTIES_BYTES_MAX)
            return checkpoints.decode_partition_metadata(content) == topic_id
        except (FileNotFoundError, CorruptFile):
            return False

    def open_log(
        self,
        topic_partition: TopicPartition,
        topic_id: TopicId,
        config: LogConfig,
        *,
        wall_ms: int,
        sync_name: bool = True,
    ) -> PartitionLog:
        """Open the partition's log, creating it if absent; the folder of another topic id is set aside, never adopted.

        A helper thread may call this for partitions that are not in use yet. A caller that opens many passes
        `sync_name=False` and calls `sync_names` once.
        """
        is_new = not self.disk.exists(f"{self.path}/{topic_partition}")
        if self._topic_ids.get(topic_partition.topic, topic_id) != topic_id:
            self._forget_offsets(topic_partition)  # they belong to an earlier topic of this name
        elif is_new and self.recovery_points.get(topic_partition, 0) > self.start_offsets.get(topic_partition, 0):
            raise MissingLog(f"{self.path}/{topic_partition}", self.recovery_points[topic_partition])
        try:
            log = self._open_log(topic_partition, topic_id, config, wall_ms, is_new=is_new)
        except WrongTopicId as error:
            self.notice(str(error))
            self.set_aside(topic_partition)
            is_new = True
            log = self._open_log(topic_partition, topic_id, config, wall_ms, is_new=True)
        if is_new and sync_name:
            self.sync_names()
        return log

    def sync_names(self) -> None:
        self.disk.sync_directory(self.path)

    def set_aside(self, topic_partition: TopicPartition) -> None:
        """Rename a folder that belongs to no partition of this broker, so that the operator can examine it."""
        self._set_aside(topic_partition, "belongs to no partition of this broker")

    def _set_aside(self, topic_partition: TopicPartition, reason: str) -> None:
        unique = self._entropy.random_bytes(checkpoints.UUID_BYTES).hex()
        stray = names.retired_folder(topic_partition, unique, names.STRAY_FOLDER)
        self.notice(f"{self.path}/{topic_partition} {reason}; kept as {stray}")
        self.disk.rename(f"{self.path}/{topic_partition}", f"{self.path}/{stray}")
        self._forget_offsets(topic_partition)

    def begin_again(self, topic_partition: TopicPartition) -> None:
        """Make room for an empty log of a partition whose log cannot be opened, or is missing."""
        if self.disk.exists(f"{self.path}/{topic_partition}"):
            self._set_aside(topic_partition, "cannot be opened, and its records are copied from the leader again")
        else:
            self._forget_offsets(topic_partition)

    def _open_log(
        self, topic_partition: TopicPartition, topic_id: TopicId, config: LogConfig, wall_ms: int, *, is_new: bool
    ) -> PartitionLog:
        folder = f"{self.path}/{topic_partition}"
        log = PartitionLog.open(
            self.disk,
            folder,
            topic_partition,
            topic_id,
            config,
            recovery_point=self.recovery_points.get(topic_partition, 0),
            start_offset=self.start_offsets.get(topic_partition, 0),
            clean_shutdown=self.clean_shutdown and not is_new,
            wall_ms=wall_ms,
            high_watermark=self.high_watermarks.get(topic_partition, 0),
            files=self.files,
            uptime=self.uptime,
        )
        stopped_at = self.start_offsets.get(topic_partition) if self.clean_shutdown and not is_new else None
        if stopped_at is not None and log.bases[0] > stopped_at and not self.disk.exists(f"{folder}/{names.REPAIRED}"):
            log.close(clean=False)
            raise DamagedLog(
                folder, 0, f"it began at offset {stopped_at} when it was closed, but now begins at {log.bases[0]}"
            )
        if log.recovered.damage:
            self.notice(
                f"{folder}: removed {log.recovered.cut_bytes} bytes after offset {log.end_offset} "
                f"({log.recovered.damage})"
            )
        return log

    def delete_folder(self, topic_partition: TopicPartition) -> Work | None:
        """Rename the folder of a closed log at once and return the work that removes it, due after the delete delay;
        None if there is no folder.
        """
        unique = self._entropy.random_bytes(checkpoints.UUID_BYTES).hex()
        target = f"{self.path}/{names.retired_folder(topic_partition, unique, names.DELETE_FOLDER)}"
        try:
            self.disk.rename(f"{self.path}/{topic_partition}", target)
        except FileNotFoundError:
            return None
        self._forget_offsets(topic_partition)
        return self._removal(target)

    def leftover_removals(self) -> list[Work]:
        """Return work that removes folders whose deletion an earlier run did not finish."""
        found = self.disk.list_directory(self.path)
        return [self._removal(f"{self.path}/{name}") for name in found if name.endswith(names.DELETE_FOLDER)]

    def _removal(self, folder: str) -> Work:
        disk, parent, notice = self.disk, self.path, self.notice

        def run() -> None:
            for name in disk.list_directory(folder):
                disk.unlink(f"{folder}/{name}")
            disk.remove_directory(folder)
            disk.sync_directory(parent)

        def done(_result: object, error: BaseException | None) -> None:
            if error is not None:
                notice(f"{folder} cannot be removed: {error}; retrying at the next start")
                self.on_error(self, error)

        return Work(run, done)

    def _forget_offsets(self, topic_partition: TopicPartition) -> None:
        for offsets in (self.recovery_points, self.start_offsets, self.high_watermarks):
            offsets.pop(topic_partition, None)
        self._noted.pop(topic_partition, None)
        self._unwritten = True

    # Checkpoints and closing

    def checkpoint_work(
        self,
        logs: Iterable[PartitionLog],
        high_watermarks: Mapping[TopicPartition, int],
        *,
        again: Callable[[], None] = lambda: None,
    ) -> Work | None:
        """Return work that writes the checkpoints outside the loop; None if they have not changed.

        One write runs at a time, so an older one never replaces a newer one. Also None while a write is running:
        `again` is called when it ends. After a failed write the next call retries.
        """
        self._note(logs, high_watermarks)
        if self._checkpointing:
            self._checkpoint_again = self._unwritten
            return None
        return self._checkpoint_work(again) if self._unwritten else None

    def _note(self, logs: Iterable[PartitionLog], high_watermarks: Mapping[TopicPartition, int]) -> None:
        for log in logs:
            topic_partition = log.topic_partition
            seen = (log.recovery_point, log.start_offset, high_watermarks.get(topic_partition))
            if self._noted.get(topic_partition) == seen:
                continue
            self._noted[topic_partition], self._unwritten = seen, True
            self.recovery_points[topic_partition], self.start_offsets[topic_partition], high_watermark = seen
            self._topic_ids[topic_partition.topic] = log.topic_id
            if high_watermark is not None:
                self.high_watermarks[topic_partition] = high_watermark

    def _checkpoint_work(self, again: Callable[[], None]) -> Work:
        topics = {topic_partition.topic for topic_partition in self.recovery_points}
        self._topic_ids = {topic: found for topic, found in self._topic_ids.items() if topic in topics}
        files = [
            (f"{self.path}/{name}", checkpoints.encode_offsets(offsets, self._topic_ids))
            for name, offsets in (
                (names.RECOVERY_POINTS, self.recovery_points),
                (names.START_OFFSETS_COPY, self.start_offsets),
                (names.START_OFFSETS, self.start_offsets),
                (names.HIGH_WATERMARKS, self.high_watermarks),
            )
        ]
        disk, path = self.disk, self.path
        self._checkpointing, self._unwritten, self._checkpoint_again = True, False, False

        def run() -> None:
            for name, content in files:
                replace_file(disk, name, content)
            disk.sync_directory(path)

        def done(_result: object, error: BaseException | None) -> None:
            self._checkpointing = False
            if error is not None:
                self._unwritten = True
                self.notice(f"the checkpoints of {path} cannot be written; retrying: {error}")
                self.on_error(self, error)
            elif self._checkpoint_again:
                again()

        return Work(run, done)

    def uptime_work(self) -> Work | None:
        """Return work that writes the uptime outside the loop; None while a write is running."""
        if self._uptime_in_flight:
            return None
        self._uptime_in_flight = True
        disk, path, notice, uptime_ms = self.disk, self.path, self.notice, self.uptime.ms

        def done(_result: object, error: BaseException | None) -> None:
            self._uptime_in_flight = False
            if error is not None:
                notice(f"the uptime of {path} cannot be written: {error}")
                self.on_error(self, error)

        return Work(lambda: uptime.save(disk, path, uptime_ms), done)

    def checkpoint(self, logs: Iterable[PartitionLog], high_watermarks: Mapping[TopicPartition, int]) -> None:
        """Write the checkpoints in place, as when closing."""
        uptime.save(self.disk, self.path, self.uptime.ms)
        self._note(logs, high_watermarks)
        self._checkpoint_work(lambda: None).run_inline()

    def mark_clean(self) -> None:
        """Write the clean-shutdown marker after all logs are closed and checkpointed: the next start need not scan
        them.
        """
        write_atomically(self.disk, f"{self.path}/{names.CLEAN_SHUTDOWN}", _CLEAN_SHUTDOWN_CONTENT)

    def close(self) -> None:
        """Release the files and the lock; call this when no work is in flight."""
        self.files.close_all()
        with suppress(OSError):  # otherwise the next start does it
            remove_scans(self.disk, self.path)
        self.disk.close(self._lock)


def read_meta_properties(disk: Disk, path: str) -> dict[str, str]:
    """Return the contents of the directory's meta.properties; raises CorruptFile or FileNotFoundError."""
    content = read_whole(disk, f"{path}/{names.META_PROPERTIES}", checkpoints.PROPERTIES_BYTES_MAX)
    return checkpoints.decode_properties(content)
