"""The replicas of this node: found by topic name or id, opened and deleted as the metadata image changes.

A node opens the partitions of which it is a replica. Of every other partition it knows only that it exists.

At the end of a turn, every partition with staged batches writes once, and responses whose records are committed are
sent.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial

from headrace.broker.logs import NodeLogger
from headrace.broker.metrics import Metrics
from headrace.broker.partitions.checkpoints import Checkpoints
from headrace.broker.partitions.flushes import Flushes
from headrace.broker.partitions.local_topic import LocalTopic
from headrace.broker.partitions.log_configs import log_config
from headrace.broker.partitions.log_opener import Opener, names_synced
from headrace.broker.partitions.record_checks import RecordChecks
from headrace.broker.partitions.replica import Replica
from headrace.broker.partitions.replication_hooks import NO_REPLICATION, ReplicationHooks
from headrace.broker.partitions.role_changes import RoleChanges
from headrace.broker.partitions.syncs import Syncs
from headrace.broker.timers import Timers
from headrace.core.controller.delta import MetadataDelta
from headrace.core.controller.image import MetadataImage
from headrace.core.controller.partition_states import PartitionState
from headrace.core.controller.replica_faults import ReplicaFault, may_be_replaced
from headrace.core.controller.topic_image import TopicImage
from headrace.core.replication.role import Idle
from headrace.log.config import LogConfig
from headrace.log.directory import LogDirectory
from headrace.log.errors import DamagedLog, is_full, is_transient
from headrace.log.partition_log import PartitionLog
from headrace.log.segment import Segment
from headrace.log.work import Work
from headrace.model.configs.values import BrokerConfig, TopicConfig
from headrace.model.errors import ErrorCode
from headrace.model.ids import NO_EPOCH, NO_NODE, NodeId, Offset, TopicPartition
from headrace.ports.clock import Clock
from headrace.ports.spawner import Lane, Spawner, call_all, raise_failures


class PartitionTable:
    def __init__(
        self,
        *,
        node_id: NodeId,
        config: BrokerConfig,
        directories: Sequence[LogDirectory],
        missing_directories: Sequence[str] = (),
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
        self._image = MetadataImage()
        """The committed metadata after the last change that was applied."""
        self.directories = list(directories)
        self.failed_directories: list[str] = list(missing_directories)
        """Directories that failed since the start, and those that could not be opened then."""
        self._clock = clock
        self._spawner = spawner
        self._timers = timers
        self._metrics = metrics
        self._logger = logger
        self.on_no_room: Callable[[LogDirectory], None] = lambda directory: None
        """Called for every write that failed because the directory was full."""
        self._on_state_changed = on_state_changed
        self._on_directory_failed = on_directory_failed
        self.on_led: Callable[[Replica], None] = lambda partition: None
        """Called for every partition that this node begins to lead."""
        self.replication: ReplicationHooks = NO_REPLICATION
        self.by_name: dict[bytes, LocalTopic] = {}
        self.by_id: dict[bytes, LocalTopic] = {}
        self._homes: dict[Replica, LogDirectory] = {}
        self._touched: list[Replica] = []
        self._recovered: set[Replica] = set()
        """Partitions whose unchecked tail is being flushed. The checkpoint after it spares the next start a scan."""
        self._flushes = Flushes(spawner)
        self._flush_again: list[Replica] = []
        """Partitions that were synced in this turn and appended to since that sync began."""
        self.on_fault: Callable[[], None] = lambda: None
        """Called when a replica cannot be used as it should from now on."""
        self._damaged: dict[Replica, None] = {}
        """Replicas in which damage was found; a dictionary serves as an ordered set."""
        self.active: dict[Replica, None] = {}
        """Partitions that were appended to since the last run of housekeeping."""
        self.syncs = Syncs(timers, self.flush)
        self._record_checks = RecordChecks(spawner=spawner, logger=logger, mark_damaged=self.mark_damaged)
        self._role_changes = RoleChanges(timers, self._change_partitions)
        self.opener = Opener(
            directories=self.directories,
            some_missing=lambda: bool(self.failed_directories),
            topic_config=self._topic_config,
            log_config=self._log_config,
            opened=self._opened,
            on_error=self.error,
            on_state_changed=on_state_changed,
            discard=lambda topic_partition, directory: self._delete_folder(topic_partition, directory, delay_ms=0),
            clock=clock,
            spawner=spawner,
            timers=timers,
            logger=logger,
        )
        for directory in self.directories:
            directory.on_error = lambda directory, error: self.error(directory, directory.path, error)
        self.checkpoints = Checkpoints(self.directories, self._homes, clock=clock, spawner=spawner, logger=logger)
        self.checkpoints.follow_uptime()

    # Finding

    def partition_of(self, topic: LocalTopic | None, index: int, leader_epoch: int = NO_EPOCH) -> Replica | ErrorCode:
        """Return the partition, or the error for a client that knows of this leader epoch."""
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if topic is None else topic.partition(index, leader_epoch)

    def home_of(self, partition: Replica) -> LogDirectory | None:
        """Return the log directory of a partition; None after its deletion."""
        return self._homes.get(partition)

    def __iter__(self) -> Iterator[Replica]:
        return iter(self._homes)

    def __len__(self) -> int:
        return len(self._homes)

    def by_directory(self) -> Iterator[tuple[str, list[Replica]]]:
        for directory in self.directories:
            yield directory.path, [partition for partition, home in self._homes.items() if home is directory]

    # Following the metadata image

    def open_all(self, image: MetadataImage) -> None:
        """Open and recover every partition that the image has on this node, before clients are served.

        Folders that do not belong to one of them are put aside, and missing ones are created. So the image must not be
        older than the registration of this broker.
        """
        self._image = image
        topics = ((self._add_topic(topic), topic.partitions.held_by(self._node_id)) for topic in image.topics.values())
        self.opener.open_all([(local, indexes) for local, indexes in topics if indexes])

    def apply(self, delta: MetadataDelta, image: MetadataImage) -> None:
        """Apply a committed change of metadata: create and delete partitions, change their roles and configs."""
        self._image = image
        for topic in delta.topics_deleted:
            self._delete_topic(topic)
        if delta.topics_deleted:
            self._sync_names()
        for topic in delta.topics_created:
            local = self._add_topic(topic)
            self.opener.open_later(local, topic.partitions.held_by(self._node_id))
        # A raised min.insync.replicas counts before an in-sync set below it: nothing may be committed in between.
        names = image.topics if delta.broker_configs_changed else delta.topic_configs_changed  # topics inherit them
        calls = [partial(self.configure_topic, name, image) for name in names]
        changed = (*delta.partitions_added, *delta.partitions_changed)
        call_all((*calls, lambda: self._role_changes.add(changed)))

    def _change_partitions(self, changed: Iterable[TopicPartition]) -> list[Exception]:
        """Give the replicas of this node their new roles, and open those that are new here."""
        new_here: dict[LocalTopic, list[int]] = {}
        failures: list[Exception] = []
        for name, index in changed:
            topic = self._image.topics.get(name)
            if topic is None or index >= len(topic.partitions):
                continue  # deleted since, or deleted and created again with fewer partitions
            local, states = self.by_name[name.encode()], topic.partitions
            local.partition_count = len(states)
            replica, state = local.replicas.get(index), states[index]
            try:
                if replica is not None:
                    self._take_state(replica, state)
                elif self._node_id in state.replicas and index not in local.unopened:
                    new_here.setdefault(local, []).append(index)
            except Exception as error:  # the other partitions still get their roles
                failures.append(error)
        for local, indexes in new_here.items():
            self.opener.open_later(local, indexes)
        return failures

    def configure_topic(self, name: str, image: MetadataImage) -> None:
        self._image = image
        replicas = self.by_name[name.encode()].replicas.values()
        if not replicas:
            return
        config = self._topic_config(name)
        of_logs = self._log_config(config)
        for replica in replicas:
            replica.log.configure(of_logs)
            replica.configure(config)

    def log_end_of(self, topic: str, index: int) -> tuple[int, int] | None:
        """Return the leader epoch of the last batch of a replica and its end offset; None if it is not open here."""
        local = self.by_name.get(topic.encode())
        replica = None if local is None else local.replicas.get(index)
        if replica is None or replica.offline:
            return None
        return replica.log.epochs.of_last_batch(replica.log.end_offset), replica.log.end_offset

    def when_ready(self, call: Callable[[], None]) -> None:
        """Call back when the roles follow the metadata, and every partition that is waiting to be opened can be used or
        is known to be closed.
        """
        self._role_changes.when_done(lambda: self.opener.when_ready(call))

    def failure_of(self, topic: str) -> str | None:
        """Return why a new topic's partitions could not be created; None when they can be used now or soon."""
        local = self.by_name.get(topic.encode())
        given_up = self.opener.given_up(local) if local is not None else 0
        if local is None or not given_up:
            return None
        return (
            f"{given_up} of the {local.partition_count} partitions of {topic} could not be created; see the broker's "
            "log for the reason. Repair the disk and restart the broker, or delete the topic"
        )

    def _add_topic(self, topic: TopicImage) -> LocalTopic:
        local = LocalTopic(topic.name, topic.topic_id, len(topic.partitions))
        self.by_name[topic.name.encode()] = local
        self.by_id[topic.topic_id] = local
        return local

    def _opened(
        self, local: LocalTopic, index: int, log: PartitionLog, directory: LogDirectory, config: TopicConfig
    ) -> None:
        """Begin to use a log. Its role follows the current metadata, not that of the moment when its opening began."""
        state = self._image.topics_by_id[local.topic_id].partitions[index]
        high_watermark = directory.high_watermarks.get(log.topic_partition, log.start_offset)
        replica = Replica(
            topic=local.name,
            index=index,
            topic_id=local.topic_id,
            log=log,
            space=directory.space,
            role=Idle(
                leader_epoch=state.leader_epoch,
                partition_epoch=state.partition_epoch,
                high_watermark=Offset(min(high_watermark, log.end_offset)),
            ),
            config=config,
            timers=self._timers,
            touched=self._touched,
            on_error=self.partition_error,
            hooks=self.replication,
        )
        log.on_flushed = lambda end_offset: self._flushed(replica, end_offset)
        log.on_failed = log.on_flush_deferred = partial(self.partition_error, replica)
        local.replicas[index] = replica
        self._homes[replica] = directory
        if directory not in self.directories:
            replica.take_offline(ErrorCode.KAFKA_STORAGE_ERROR)
        elif log.recovery_point < log.end_offset:
            self._recovered.add(replica)
            self.flush(replica)
        if high_watermark > log.end_offset and self._is_expected(local.name, index):
            self._end_was_lost(replica, high_watermark)
        self._take_state(replica, state)

    def _end_was_lost(self, replica: Replica, high_watermark: int) -> None:
        """Keep a replica that lost committed records at a crash from leading, as others have them."""
        self._logger.error(
            "committed records are missing at the end of a log; they are copied from its leader again",
            path=replica.log.path,
            end_offset=replica.log.end_offset,
            high_watermark=high_watermark,
        )
        replica.note_lost_end(is_lost=True)
        self._damaged[replica] = None
        self.on_fault()

    def excuse_lost_end(self, replica: Replica) -> None:
        """Use a replica again that lost records: they are copied, or no other one has them either."""
        replica.note_lost_end(is_lost=False)
        topic = self._image.topics_by_id.get(replica.topic_id)
        if topic is not None:
            self._take_state(replica, topic.partitions[replica.index])

    def _take_state(self, replica: Replica, state: PartitionState) -> None:
        """Give the replica the role that the metadata has for it."""
        if replica.offline:
            return
        was_leader, role = replica.serves, replica.role
        if was_leader and state.leader == self._node_id and state.leader_epoch == role.leader_epoch:
            replica.take_isr(state)
        elif state.leader == NO_NODE or self._node_id not in state.replicas or replica.being_cut:
            replica.resign(state)
        elif state.leader == self._node_id:
            replica.lead(self._node_id, state, replica_lag_ms_max=self.config.replica_lag_ms_max)
            if not was_leader:
                self.on_led(replica)
        else:
            replica.follow(state)
        if replica.role is not role:
            self.replication.role_changed(replica)

    def retake_role(self, replica: Replica) -> None:
        """Continue with a replica whose log was cut, in the role that the metadata has for it now."""
        replica.was_cut()
        topic = self._image.topics_by_id.get(replica.topic_id)
        if topic is not None:  # otherwise the replica is about to be deleted
            self._take_state(replica, topic.partitions[replica.index])

    def _delete_topic(self, topic: TopicImage) -> None:
        local = self.by_name.pop(topic.name.encode())
        del self.by_id[topic.topic_id]
        for topic_partition, directory in self.opener.forget(local):
            self._delete_folder(topic_partition, directory, delay_ms=0)
        self.opener.in_slices(self._delete_each(local))

    def _delete_each(self, local: LocalTopic) -> Iterator[None]:
        failures: list[Exception] = []
        for replica in local.replicas.values():
            try:
                self._delete_partition(replica)
            except Exception as error:  # the topic's other partitions are still deleted
                failures.append(error)
            yield
        raise_failures(failures)

    def _delete_partition(self, partition: Replica) -> None:
        try:
            partition.take_offline(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        finally:
            directory = self._homes.pop(partition)
            self.opener.released(directory)
            self.active.pop(partition, None)
            self._recovered.discard(partition)
            partition.log.close(clean=False)
            self.opener.leaves(partition.log)
            delay_ms = 0 if directory.space.full else partition.config.file_delete_delay_ms
            self._delete_folder(partition.log.topic_partition, directory, delay_ms=delay_ms)

    def _sync_names(self) -> None:
        """Sync the new names of deleted folders: after a power cut an old name would be a folder without a topic."""
        directories = tuple(self.directories)

        def synced(errors: list[OSError | None] | None, error: BaseException | None) -> None:
            for directory, failure in zip(directories, errors or [None] * len(directories), strict=True):
                if failure is not None and directory in self.directories:
                    self.error(directory, directory.path, failure)
            if error is not None:
                self._logger.error("deleted folders were not synced", cause=error)

        self.opener.in_background(lambda: [names_synced(directory) for directory in directories], synced)

    def _delete_folder(self, topic_partition: TopicPartition, directory: LogDirectory, *, delay_ms: int) -> None:
        """Rename the folder at once and remove it after the delay; leave a failed directory alone."""
        if directory not in self.directories:
            return
        try:
            work = directory.delete_folder(topic_partition)
        except OSError as error:
            self.error(directory, f"{directory.path}/{topic_partition}", error)
            return
        if work is not None:
            self._timers.after(delay_ms, lambda: self._spawner.submit(*work))

    # The turn

    def end_turn(self) -> None:
        """Write once per partition that was appended to, then start the flushes that are due."""
        touched = self._touched
        if touched:
            self._write_touched(touched)
        while self._flush_again:
            self.flush(self._flush_again.pop())
        self.syncs.end_turn()

    def _write_touched(self, touched: list[Replica]) -> None:
        wall_ms, began_ms = self._clock.wall_ms(), self._clock.monotonic_ms()
        active = self.active
        metrics = self._metrics
        for partition in touched:
            log = partition.log
            end_offset, appended_bytes = log.end_offset, log.appended_bytes
            partition.end_turn()
            metrics.records_appended += log.end_offset - end_offset
            metrics.bytes_appended += log.appended_bytes - appended_bytes
            active[partition] = None
            self.start_due_work(partition, wall_ms)
        metrics.peak_append_ms = max(metrics.peak_append_ms, self._clock.monotonic_ms() - began_ms)
        touched.clear()

    def start_due_work(self, partition: Replica, wall_ms: int) -> None:
        """Start the work for helpers that is due after an append."""
        log = partition.log
        if log.flush_due(wall_ms):
            self.flush(partition)
        work = None if partition.space.full else log.preallocation.work()
        if work is not None:
            self._spawner.submit(*work, Lane.SYNC)

    def flush(self, partition: Replica) -> None:
        self._flushes.begin(partition)

    def _flushed(self, partition: Replica, end_offset: int) -> None:
        partition.log_flushed(end_offset)
        if partition in self._recovered:
            self._recovered.remove(partition)
            if not self._recovered:
                self.checkpoint()
        if partition.log.flush_due(self._clock.wall_ms()):
            self._flush_again.append(partition)  # after this turn's write

    # Trouble

    def partition_error(self, partition: Replica, error: BaseException) -> None:
        directory = self._homes.get(partition)
        if directory is not None:  # otherwise it was deleted meanwhile
            self.error(directory, partition.log.path, error)

    def error(self, directory: LogDirectory, path: str, error: BaseException) -> None:
        """Handle a failure by its cause: wait for disk space, retry, report damage, or take the directory offline."""
        if is_full(error):
            self.on_no_room(directory)
        elif is_transient(error):
            self._logger.warning("out of disk space or file descriptors; retrying", path=path, error=str(error))
        elif isinstance(error, DamagedLog):
            self._logger.error("a segment is damaged", path=path, reason=str(error))
        else:
            self._directory_failed(directory, path, error)

    def mark_damaged(self, replica: Replica, segment: Segment, ranges: tuple[tuple[int, int], ...]) -> None:
        """Mark these positions of a segment as unreadable; none if it is whole again."""
        replica.mark_damaged(segment, ranges)
        if ranges:
            self._damaged[replica] = None
            self.on_fault()

    def check_records(self, replica: Replica, offset: int) -> None:
        """Read records again that a follower has refused as damaged."""
        self._record_checks.check(replica, offset)

    def damaged_replicas(self) -> list[Replica]:
        """Return the replicas that can be read but for damaged parts."""
        for replica in tuple(self._damaged):
            replica.review_damage()
            if replica.offline or not replica.is_damaged:
                del self._damaged[replica]
        return list(self._damaged)

    def _is_expected(self, topic: str, index: int) -> bool:
        """Return whether a replica should have records that others have too: an empty log must not take its place."""
        state = self._image.topics[topic].partitions[index]
        is_member = self._node_id in (*state.isr, *state.elr)
        return is_member and may_be_replaced(state, self._node_id, ReplicaFault.FAILED)

    def _directory_failed(self, directory: LogDirectory, path: str, error: BaseException) -> None:
        """Take the whole directory of a failed disk offline. Nothing in it is used again as if it were sound."""
        self._logger.error("log directory failed", directory=directory.path, partition=path, cause=error)
        for held, home in self._homes.items():
            if home is directory:
                held.take_offline(ErrorCode.KAFKA_STORAGE_ERROR)
        self._on_state_changed()
        if directory in self.directories:
            self.directories.remove(directory)
            self.failed_directories.append(directory.path)
            self._on_directory_failed(directory)
        self.on_fault()

    # Requests

    def advance_start(self, partition: Replica, offset: int) -> bool:
        """Delete the records below the offset, wake the fetches that wait, and return whether the start has moved.

        The caller writes the checkpoint afterwards, once for all partitions of its request.
        """
        if offset <= partition.log.start_offset:
            return False
        partition.log.advance_start(offset)
        partition.wake_all()
        return True

    # Keeping

    def checkpoint(self) -> None:
        """Write the checkpoints of directories in which a recovery point, log start or high watermark has moved."""
        self.checkpoints.write()

    def submit(self, work: Work | None) -> None:
        if work is not None:
            self._spawner.submit(*work)

    def _topic_config(self, name: str) -> TopicConfig:
        topic = self._image.topics.get(name)
        replicas = 1 if topic is None else topic.replication_factor
        return self.config.topic_view(self._image.topic_configs(name), replicas=replicas)

    def _log_config(self, topic: TopicConfig) -> LogConfig:
        return log_config(topic, self.config)
