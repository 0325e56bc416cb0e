"""The replicas of this node that it cannot use as it should, and their repair: they are copied from the leader again.

Nothing is given up before the controller has taken the replica out of the in-sync and the eligible set: until then this
node may have the only copy of a record.
"""

from collections.abc import Iterator
from typing import NamedTuple

from headrace.broker.logs import NodeLogger
from headrace.broker.partitions.replica import Replica
from headrace.broker.partitions.table import PartitionTable
from headrace.broker.replication.followed_logs import FollowedLogs
from headrace.core.controller.replica_faults import ReplicaFault
from headrace.core.replication.follower import Follower
from headrace.model.ids import Offset, TopicId


class LocalFault(NamedTuple):
    topic: str
    topic_id: TopicId
    partition: int
    fault: ReplicaFault
    replica: Replica | None
    """None if its log could not be opened."""


class FaultyReplicas:
    def __init__(self, partitions: PartitionTable, logs: FollowedLogs, logger: NodeLogger) -> None:
        self._partitions = partitions
        self._logs = logs
        self._logger = logger

    def find(self) -> Iterator[LocalFault]:
        """Iterate over all of them; cheap while there are none."""
        table = self._partitions
        full = {directory.path for directory in table.directories if directory.space.full}
        if full or table.failed_directories:
            for replica in tuple(table):
                home = table.home_of(replica)
                if replica.offline:
                    yield _of(replica, ReplicaFault.FAILED)
                elif home is not None and home.path in full:
                    yield _of(replica, ReplicaFault.FULL)
        for replica in table.damaged_replicas():
            yield _of(replica, ReplicaFault.FAILED if replica.has_lost_end else ReplicaFault.DAMAGED)
        for closed in table.opener.closed():
            fault = ReplicaFault.FULL if closed.passing else ReplicaFault.FAILED
            yield LocalFault(closed.local.name, closed.local.topic_id, closed.number, fault, None)

    def repair(self, faulty: LocalFault) -> None:
        """Copy from the leader what this node lacks. Call it when the replica is neither in sync nor eligible."""
        replica = faulty.replica
        if replica is None:
            self._partitions.opener.begin_again(faulty.topic_id, faulty.partition)
            return
        if replica.has_lost_end and not replica.offline:
            self._partitions.excuse_lost_end(replica)
            return
        role = replica.role
        if faulty.fault is ReplicaFault.DAMAGED and isinstance(role, Follower) and not role.is_truncating:
            damaged = replica.log.damaged_offset
            assert damaged is not None
            self._logger.warning(
                "a damaged replica is cut where the damage begins, and copied from its leader again",
                partition=f"{replica.topic}-{replica.index}",
                offset=damaged,
                end=replica.log.end_offset,
                leader=role.leader,
            )
            self._logs.cut(replica, role.give_up_from(Offset(damaged)))

    def keep(self, faulty: LocalFault) -> None:
        """Use a replica that lost its end as it is, because no other one has more."""
        if faulty.replica is not None and faulty.replica.has_lost_end and not faulty.replica.offline:
            self._partitions.excuse_lost_end(faulty.replica)


def _of(replica: Replica, fault: ReplicaFault) -> LocalFault:
    return LocalFault(replica.topic, replica.topic_id, replica.index, fault, replica)
