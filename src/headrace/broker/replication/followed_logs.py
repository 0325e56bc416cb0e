"""Changes of the logs of followed partitions: batches as their leader stamped them, and cuts where logs differ."""

from collections.abc import Callable, Mapping

from headrace.broker.metrics import Metrics
from headrace.broker.partitions.replica import Replica
from headrace.broker.partitions.table import PartitionTable
from headrace.broker.timers import Timers
from headrace.core.replication.role import AdvanceStart, RestartAt, TruncateTo
from headrace.ports.clock import Clock
from headrace.ports.disk import FileHandle
from headrace.ports.spawner import Spawner

HELPER_LOOK_MS = 10
"""Interval at which a cut checks whether helpers, or responses in the making, still use the log."""
START_CHECKPOINT_MS = 1_000
"""The time within which the starts of logs that leaders have moved are written together."""
CUT_RETRY_MS = 1_000
"""Wait before a cut that found no disk space or no file descriptor is continued."""


class FollowedLogs:
    def __init__(
        self,
        partitions: PartitionTable,
        *,
        clock: Clock,
        spawner: Spawner,
        timers: Timers,
        metrics: Metrics,
        close_senders: Callable[[Mapping[FileHandle, int]], None],
    ) -> None:
        """`close_senders` closes the connections with unsent ranges beyond these positions of these files."""
        self._partitions = partitions
        self._timers = timers
        self._close_senders = close_senders
        self._clock = clock
        self._spawner = spawner
        self._metrics = metrics
        self._is_checkpoint_due = False

    def append(self, replica: Replica, records: memoryview) -> None:
        """Append what the leader has sent.

        Raises RefusedBatch if it does not continue the log, or OSError when the disk cannot take it now.
        """
        log, wall_ms = replica.log, self._clock.wall_ms()
        end_offset, appended_bytes = log.end_offset, log.appended_bytes
        try:
            log.replicated.append(
                (records,),
                wall_ms,
                leader_epoch_max=replica.role.leader_epoch,
                gaps=replica.config.cleanup_compact,
            )
        except OSError as error:
            self._partitions.partition_error(replica, error)
            raise
        finally:
            self._metrics.records_replicated += log.end_offset - end_offset
            self._metrics.bytes_replicated += log.appended_bytes - appended_bytes
            replica.unseen_bytes += log.appended_bytes - appended_bytes
            self._partitions.active[replica] = None
        self._partitions.start_due_work(replica, wall_ms)

    def advance_start(self, replica: Replica, start: AdvanceStart) -> None:
        """Remove what the leader has removed. It is written to disk soon: deleted records must not return."""
        replica.log.advance_start(start.offset)
        if not self._is_checkpoint_due:
            self._is_checkpoint_due = True
            self._timers.after(START_CHECKPOINT_MS, self._checkpoint)

    def _checkpoint(self) -> None:
        self._is_checkpoint_due = False
        self._partitions.checkpoint()

    def cut(self, replica: Replica, cut: TruncateTo | RestartAt) -> None:
        """Have a helper truncate the log, or begin it again. The replica takes its role again when that is done."""
        replica.begin_cut()
        self._try_to_cut(replica, cut)

    def _try_to_cut(self, replica: Replica, cut: TruncateTo | RestartAt) -> None:
        log = replica.log
        if replica.offline or log.closed or log.failed:
            return  # it is opened again by a start, or its topic is deleted
        begin = log.start_offset if isinstance(cut, RestartAt) else cut.offset
        if log.has_work or log.truncation.is_read_from(begin):
            self._timers.after(HELPER_LOOK_MS, lambda: self._try_to_cut(replica, cut))
            return
        self._close_senders(log.truncation.cut_files(begin))
        work = log.truncation.restart(cut.offset) if isinstance(cut, RestartAt) else log.truncation.work(cut.offset)
        if work is None:
            self._partitions.retake_role(replica)
            return

        def done(result: object, error: BaseException | None) -> None:
            work.done(result, error)
            if log.failed:
                return  # reported already; without its log the replica copies nothing until the next start
            if log.is_truncating:  # out of space or descriptors
                if error is not None:
                    self._partitions.partition_error(replica, error)
                self._timers.after(CUT_RETRY_MS, lambda: self._try_to_cut(replica, cut))
            else:
                self._partitions.retake_role(replica)

        self._spawner.submit(work.run, done)
