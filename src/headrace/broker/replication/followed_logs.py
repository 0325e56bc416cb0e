"""Changes of the logs of followed partitions: batches as their leader stamped them, and cuts where logs differ."""

from headrace.broker.metrics import Metrics
from headrace.broker.partitions.replica import Replica
from headrace.broker.partitions.table import PartitionTable
from headrace.core.replication.role import RestartAt, TruncateTo
from headrace.ports.clock import Clock
from headrace.ports.spawner import Spawner


class FollowedLogs:
    def __init__(self, partitions: PartitionTable, *, clock: Clock, spawner: Spawner, metrics: Metrics) -> None:
        self._partitions = partitions
        self._clock = clock
        self._spawner = spawner
        self._metrics = metrics

    def append(self, replica: Replica, records: memoryview) -> None:
        """Append what the leader has sent.

        Raises RefusedBatch if it does not continue the log, or OSError when the disk cannot take it now.
        """
        log, wall_ms = replica.log, self._clock.wall_ms()
        end_offset, appended_bytes = log.end_offset, log.appended_bytes
        try:
            log.append_replicated(
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
            self._partitions.active[replica] = None
        self._partitions.start_due_work(replica, wall_ms)

    def cut(self, replica: Replica, cut: TruncateTo | RestartAt) -> None:
        """Truncate the log, or begin it again. The replica takes its role again when that is done."""
        if isinstance(cut, RestartAt):
            replica.log.truncate_to(replica.log.start_offset)
            raise NotImplementedError(f"a log cannot begin at {cut.offset} yet")
        replica.log.truncate_to(cut.offset)
        self._partitions.retake_role(replica)
