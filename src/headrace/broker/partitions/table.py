"""All partitions of this node: found by topic name or id, opened and deleted as the metadata image changes.

The end of a turn is here: every partition that was appended to writes once, and what can be promised then is.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence

from headrace.broker.logs import NodeLogger
from headrace.broker.metrics import Metrics
from headrace.broker.partitions.leader import LedPartition, LedTopic
from headrace.broker.timers import Timers
from headrace.core.controller.delta import MetadataDelta
from headrace.core.controller.image import MetadataImage, PartitionState, TopicImage
from headrace.core.controller.names import CLUSTER_METADATA_TOPIC
from headrace.core.replication.leader import Leader
from headrace.log.config import LogConfig
from headrace.log.directory import LogDirectory
from headrace.log.errors import DamagedLog
from headrace.log.partition_log import PartitionLog
from headrace.log.work import Work
from headrace.model.configs.values import BrokerConfig, TopicConfig
from headrace.model.errors import ErrorCode
from headrace.model.ids import NodeId, Offset, TopicPartition
from headrace.ports.clock import Clock
from headrace.ports.spawner import Spawner

PREALLOCATION_BYTES_MIN = 4 << 20


class PartitionTable:
    def __init__(
        self,
        *,
        node_id: NodeId,
        config: BrokerConfig,
        directories: Sequence[LogDirectory],
        clock: Clock,
        spawner: Spawner,
        timers: Timers,
        metrics: Metrics,
        logger: NodeLogger,
        on_state_changed: Callable[[], None],
        on_directory_failed: Callable[[LogDirectory], None],
    ) -> None:
        self._node_id = node_id
        self.config = config
        self.directories = list(directories)
        self.failed_directories: list[str] = []
        self._clock = clock
        self._spawner = spawner
        self._timers = timers
        self._metrics = metrics
        self._logger = logger
        self._on_state_changed = on_state_changed
        self._on_directory_failed = on_directory_failed
        self.by_name: dict[bytes, LedTopic] = {}
        self.by_id: dict[bytes, LedTopic] = {}
        self._homes: dict[LedPartition, LogDirectory] = {}
        self._held: dict[str, int] = {directory.path: 0 for directory in directories}
        self._found: dict[TopicPartition, LogDirectory] = {}
        self._touched: list[LedPartition] = []
        self.active: dict[LedPartition, None] = {}
        """Partitions appended to since housekeeping last looked."""
        self._checkpointed = -1
        self._opening = False
        self._after_opening: deque[Callable[[], None]] = deque()
        """Openings and what waits for them, in order: one at a time, so that a folder has one user at a time."""

    # Finding

    def partition_of(self, topic: LedTopic | None, index: int) -> LedPartition | ErrorCode:
        """A partition by number, or the error a client gets for it."""
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if topic is None else topic.partition(index)

    def __iter__(self) -> Iterator[LedPartition]:
        return iter(self._homes)

    def __len__(self) -> int:
        return len(self._homes)

    def by_directory(self) -> Iterator[tuple[str, list[LedPartition]]]:
        for directory in self.directories:
            yield directory.path, [partition for partition, home in self._homes.items() if home is directory]

    # Following the metadata image

    def open_all(self, image: MetadataImage) -> None:
        """At the start: every partition the image gives to this node, recovered before anyone is let in."""
        for directory in self.directories:
            for topic_partition in directory.partitions():
                self._found[topic_partition] = directory
            for work in directory.leftover_removals():
                self._spawner.submit(*work)
        for topic in image.topics.values():
            led = self._add_topic(topic)
            config = self.config.topic_view(image.topic_configs(topic.name))
            for index, state in enumerate(topic.partitions):
                topic_partition = TopicPartition(topic.name, index)
                directory = self._home_of(topic_partition)
                self._found.pop(topic_partition, None)
                try:
                    log = self._open_log(led, index, directory, config)
                except DamagedLog as error:
                    self._logger.error("a partition is damaged and stays closed", reason=str(error))
                else:
                    self._lead(led, index, state, log, directory, config)
        for topic_partition, directory in self._found.items():
            if topic_partition.topic != CLUSTER_METADATA_TOPIC:
                directory.put_aside(topic_partition)
        for directory in self.directories:
            directory.sync_names()
        self._found.clear()

    def apply(self, delta: MetadataDelta, image: MetadataImage) -> None:
        """A committed change: partitions come, go, change their epoch or their configs."""
        for topic in delta.topics_deleted:
            self._delete_topic(topic)
        for topic in delta.topics_created:
            led = self._add_topic(topic)
            self._open_later(led, list(enumerate(topic.partitions)), image)
        grown: dict[str, list[tuple[int, PartitionState]]] = {}
        for name, index in delta.partitions_added:
            grown.setdefault(name, []).append((index, image.topics[name].partitions[index]))
        for name, added in grown.items():
            led = self.by_name[name.encode()]
            led.partitions.extend([None] * len(added))
            self._open_later(led, added, image)
        for name in delta.topic_configs_changed:
            self.configure_topic(name, image)

    def configure_topic(self, name: str, image: MetadataImage) -> None:
        config = self.config.topic_view(image.topic_configs(name))
        log_config = self._log_config(config)
        for partition in self.by_name[name.encode()].partitions:
            if partition is not None:
                partition.log.configure(log_config)
                partition.configure(config)

    def when_ready(self, call: Callable[[], None]) -> None:
        """Call when every partition that is to be opened by now can be used."""
        self._after_opening.append(call)
        self._open_next()

    def _open_next(self) -> None:
        while self._after_opening and not self._opening:
            self._after_opening.popleft()()

    def _add_topic(self, topic: TopicImage) -> LedTopic:
        led = LedTopic(topic.name, topic.topic_id)
        led.partitions = [None] * len(topic.partitions)
        self.by_name[topic.name.encode()] = led
        self.by_id[topic.topic_id] = led
        return led

    def _home_of(self, topic_partition: TopicPartition) -> LogDirectory:
        """Where its folder is, or the directory that holds the fewest partitions."""
        found = self._found.get(topic_partition)
        if found is None:
            found = min(self.directories, key=lambda directory: self._held[directory.path])
        self._held[found.path] += 1
        return found

    def _open_later(self, led: LedTopic, added: list[tuple[int, PartitionState]], image: MetadataImage) -> None:
        """Folders are made and synced by a helper; until it is done the partitions are None."""
        config = self.config.topic_view(image.topic_configs(led.name))
        homes = [self._home_of(TopicPartition(led.name, index)) for index, _ in added]

        def run() -> list[PartitionLog]:
            logs = [self._open_log(led, index, home, config) for (index, _), home in zip(added, homes, strict=True)]
            for home in dict.fromkeys(homes):
                home.sync_names()
            return logs

        def done(logs: list[PartitionLog] | None, error: BaseException | None) -> None:
            self._opening = False
            if logs is None:
                self._logger.error("partitions cannot be created", topic=led.name, cause=error)
            elif self.by_id.get(led.topic_id) is not led:
                for log, home in zip(logs, homes, strict=True):  # the topic was deleted meanwhile
                    self._delete_log(log, home, delay_ms=0)
            else:
                current = self.config.topic_view(image.topic_configs(led.name))  # it may have changed meanwhile
                for (index, state), home, log in zip(added, homes, logs, strict=True):
                    log.configure(self._log_config(current))
                    self._lead(led, index, state, log, home, current)
            self._on_state_changed()
            self._open_next()

        def begin() -> None:
            self._opening = True
            self._spawner.submit(run, done)

        self._after_opening.append(begin)
        self._open_next()

    def _open_log(self, led: LedTopic, index: int, directory: LogDirectory, config: TopicConfig) -> PartitionLog:
        return directory.open_log(
            TopicPartition(led.name, index),
            led.topic_id,
            self._log_config(config),
            wall_ms=self._clock.wall_ms(),
            sync_name=False,
        )

    def _lead(
        self,
        led: LedTopic,
        index: int,
        state: PartitionState,
        log: PartitionLog,
        directory: LogDirectory,
        config: TopicConfig,
    ) -> None:
        log.begin_epoch(state.leader_epoch)
        leader = Leader(
            node=self._node_id,
            leader_epoch=state.leader_epoch,
            partition_epoch=state.partition_epoch,
            replicas=state.replicas,
            isr=state.isr,
            log_end=Offset(log.end_offset),
            flushed=Offset(log.recovery_point),
            high_watermark=Offset(directory.high_watermarks.get(log.topic_partition, log.start_offset)),
            flush_before_commit=config.flush_messages == 1,
            min_insync_replicas=config.min_insync_replicas,
            now_ms=self._clock.monotonic_ms(),
        )
        partition = LedPartition(
            topic=led.name,
            index=index,
            topic_id=led.topic_id,
            log=log,
            leader=leader,
            config=config,
            timers=self._timers,
            touched=self._touched,
            on_failure=self._partition_failed,
        )
        log.on_flushed = lambda end_offset: self._flushed(partition, end_offset)
        log.on_failed = lambda error: self._partition_failed(partition, error)
        led.partitions[index] = partition
        self._homes[partition] = directory
        if directory not in self.directories:
            partition.take_offline(ErrorCode.KAFKA_STORAGE_ERROR)
        elif log.recovery_point < log.end_offset:
            self.flush(partition)

    def _delete_topic(self, topic: TopicImage) -> None:
        led = self.by_name.pop(topic.name.encode())
        del self.by_id[topic.topic_id]
        for partition in led.partitions:
            if partition is not None:
                partition.take_offline(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
                directory = self._homes.pop(partition)
                self._held[directory.path] -= 1
                self.active.pop(partition, None)
                self._delete_log(partition.log, directory, delay_ms=partition.config.file_delete_delay_ms)

    def _delete_log(self, log: PartitionLog, directory: LogDirectory, *, delay_ms: int) -> None:
        """Out of the way at once, off the disk after the delay; a directory that failed is not touched again."""
        if directory not in self.directories:
            log.close(clean=False)
            return
        try:
            work = directory.delete_log(log)
        except OSError as error:
            self._directory_failed(directory, log.path, error)
            return
        self._timers.after(delay_ms, lambda: self._spawner.submit(*work))

    # The turn

    def end_turn(self) -> None:
        """One write per partition that was appended to, then the flushes that are due."""
        touched = self._touched
        if not touched:
            return
        wall_ms = self._clock.wall_ms()
        active = self.active
        metrics = self._metrics
        for partition in touched:
            log = partition.log
            end_offset, appended_bytes = log.end_offset, log.appended_bytes
            partition.end_turn()
            metrics.records_appended += log.end_offset - end_offset
            metrics.bytes_appended += log.appended_bytes - appended_bytes
            active[partition] = None
            if log.flush_due(wall_ms):
                self.flush(partition)
        touched.clear()

    def flush(self, partition: LedPartition) -> None:
        work = partition.log.flush_work()
        if work is not None:
            self._spawner.submit(*work)

    def _flushed(self, partition: LedPartition, end_offset: int) -> None:
        partition.log_flushed(end_offset)
        if partition.log.flush_due(self._clock.wall_ms()):
            self.flush(partition)

    def _partition_failed(self, partition: LedPartition, error: BaseException) -> None:
        directory = self._homes.get(partition)
        if directory is not None:  # else it was deleted meanwhile
            self._directory_failed(directory, partition.log.path, error)

    def _directory_failed(self, directory: LogDirectory, path: str, error: BaseException) -> None:
        """The disk's fault: its whole directory is offline from now on, nothing there is tried again as if clean."""
        self._logger.error("log directory failed", directory=directory.path, partition=path, cause=error)
        for held, home in self._homes.items():
            if home is directory:
                held.take_offline(ErrorCode.KAFKA_STORAGE_ERROR)
        self._on_state_changed()
        if directory in self.directories:
            self.directories.remove(directory)
            self.failed_directories.append(directory.path)
            self._on_directory_failed(directory)

    # Requests

    def advance_start(self, partition: LedPartition, offset: int) -> None:
        """DeleteRecords: readers that wait below the new start are told, and the checkpoint follows soon."""
        if offset > partition.log.start_offset:
            partition.log.advance_start(offset)
            partition.wake_all()
            self.checkpoint()

    # Keeping

    def checkpoint_if_moved(self) -> None:
        """Write the checkpoints when any recovery point, start or high watermark is another than last time."""
        moved = sum(
            partition.log.recovery_point + partition.log.start_offset + partition.leader.high_watermark
            for partition in self._homes
        )
        if moved != self._checkpointed:
            self._checkpointed = moved
            self.checkpoint()

    def checkpoint(self) -> None:
        for directory, logs, high_watermarks in self._by_home():
            self._spawner.submit(*directory.checkpoint_work(logs, high_watermarks))

    def _by_home(self) -> Iterator[tuple[LogDirectory, list[PartitionLog], dict[TopicPartition, int]]]:
        for directory in self.directories:
            held = [partition for partition, home in self._homes.items() if home is directory and not partition.offline]
            high_watermarks = {
                partition.log.topic_partition: int(partition.leader.high_watermark) for partition in held
            }
            yield directory, [partition.log for partition in held], high_watermarks

    def submit_all(self, works: Iterable[Work | None]) -> None:
        for work in works:
            if work is not None:
                self._spawner.submit(*work)

    def close(self) -> None:
        """Write and sync everything, leave the marker that nothing needs to be scanned, unlock."""
        for directory, logs, high_watermarks in self._by_home():
            for log in logs:
                log.close()
            directory.checkpoint(logs, high_watermarks)
            directory.mark_clean()

    def _log_config(self, config: TopicConfig) -> LogConfig:
        return LogConfig(
            segment_bytes=config.segment_bytes,
            segment_ms=min(config.segment_ms, config.max_compaction_lag_ms)
            if config.cleanup_compact
            else config.segment_ms,
            segment_index_bytes=config.segment_index_bytes,
            index_interval_bytes=config.index_interval_bytes,
            retention_ms=config.retention_ms,
            retention_bytes=config.retention_bytes,
            delete=config.cleanup_delete,
            compact=config.cleanup_compact,
            delete_retention_ms=config.delete_retention_ms,
            min_compaction_lag_ms=config.min_compaction_lag_ms,
            max_compaction_lag_ms=config.max_compaction_lag_ms,
            min_cleanable_dirty_ratio=config.min_cleanable_dirty_ratio,
            file_delete_delay_ms=config.file_delete_delay_ms,
            flush_messages=config.flush_messages,
            flush_ms=config.flush_ms,
            max_message_bytes=config.message_bytes_max,
            append_time=config.log_append_time,
            preallocate=self.config.preallocate_bytes > 0,
            preallocation_bytes_min=min(PREALLOCATION_BYTES_MIN, self.config.preallocate_bytes),
            preallocation_bytes_max=self.config.preallocate_bytes,
            unclean_tail_bytes_max=self.config.unclean_tail_bytes_max,
        )
