"""In-sync sets of the partitions that this node leads: checks of lag by time, and the changes that leaders ask for."""

from collections.abc import Callable
from functools import partial

from headrace.broker.cluster.isr_requests import IsrRequests
from headrace.broker.logs import NodeLogger
from headrace.broker.partitions.replica import Replica
from headrace.broker.partitions.table import PartitionTable
from headrace.broker.timers import Timers
from headrace.core.controller.commands import IsrChange, IsrMember, IsrResult
from headrace.core.replication.leader import Leader
from headrace.core.replication.role import ExpandIsr, ShrinkIsr
from headrace.model.errors import ErrorCode
from headrace.model.ids import NodeId

LAG_CHECKS_PER_LAG = 2
"""Checks in the time after which a follower is out of sync, as in Kafka."""


class InSyncSets:
    def __init__(
        self,
        *,
        node_id: NodeId,
        broker_epoch: Callable[[], int],
        requests: IsrRequests,
        partitions: PartitionTable,
        timers: Timers,
        logger: NodeLogger,
    ) -> None:
        self._node_id = node_id
        self._broker_epoch = broker_epoch
        self._requests = requests
        self._partitions = partitions
        self._timers = timers
        self._logger = logger

    def start(self) -> None:
        """Check the lag of followers from now on, again and again."""
        self._timers.after(self._partitions.config.replica_lag_ms_max / LAG_CHECKS_PER_LAG, self._check)

    def _check(self) -> None:
        now_ms = self._timers.now_ms()
        for replica in tuple(self._partitions):
            role = replica.role
            if isinstance(role, Leader) and len(role.replicas) > 1:
                replica.execute(role.check_lag(now_ms))
        self.start()

    def change(self, replica: Replica, change: ShrinkIsr | ExpandIsr) -> None:
        role = replica.role
        assert isinstance(role, Leader)
        epochs = zip(change.isr, change.broker_epochs, strict=True)
        members = tuple(
            IsrMember(node, self._broker_epoch() if node == self._node_id else epoch) for node, epoch in epochs
        )
        asked = IsrChange(replica.topic_id, replica.index, role.leader_epoch, change.partition_epoch, members)
        self._logger.info(
            "a follower fell behind and leaves the in-sync set"
            if isinstance(change, ShrinkIsr)
            else "a follower has caught up and joins the in-sync set",
            partition=f"{replica.topic}-{replica.index}",
            isr=",".join(map(str, change.isr)),
        )
        self._requests.alter(asked, partial(self._answered, replica, role, change.partition_epoch))

    def _answered(self, replica: Replica, role: Leader, partition_epoch: int, result: IsrResult) -> None:
        """Take a change back that was certainly not made. After any other error the metadata shows what was made.

        A response for an earlier partition epoch says nothing about the present request.
        """
        is_current = replica.role is role and role.partition_epoch == partition_epoch
        if is_current and result.error is ErrorCode.INELIGIBLE_REPLICA:
            replica.execute(role.isr_change_refused())
