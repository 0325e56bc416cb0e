"""Makes the batches of epochs survive the loss of power, on topics that sync nothing by themselves.

The order of a batch, each step on the device before the next one begins: the coordinator's record that a member writes
to a partition, and with it that the member is lent; the rows of all members that a commit names; the record of the
commit; the markers, and beside them the answer; the records that the members have ended.
"""

from collections.abc import Callable, Iterable
from typing import Any

from headrace.broker.cluster.proposal import Proposal, ProposalFailed
from headrace.broker.coordinators.host import CoordinatorHost
from headrace.broker.partitions.table import PartitionTable
from headrace.core.transactions.records import Partition
from headrace.model.errors import ErrorCode

NOT_SYNCED = ProposalFailed(
    ErrorCode.COORDINATOR_NOT_AVAILABLE, "it was not synced to the disk in time: try again, it may be committed"
)
ROWS_NOT_SYNCED = ProposalFailed(
    ErrorCode.COORDINATOR_NOT_AVAILABLE, "rows of the batch could not be synced to the disk: try again"
)


class EpochSyncs:
    def __init__(self, partitions: PartitionTable) -> None:
        self._partitions = partitions

    def sync_partitions(self, partitions: Iterable[Partition], then: Callable[[bool], None]) -> None:
        """Call `then` when these partitions are synced up to what they hold now; those of deleted topics are left."""
        table = self._partitions
        found = [table.partition_of(table.by_name.get(topic.encode()), index) for topic, index in partitions]
        led = [partition for partition in found if not isinstance(partition, ErrorCode)]
        unsynced = [partition for partition in led if partition.log.synced_offset < partition.log.staged_end_offset]
        is_missing = any(isinstance(each, ErrorCode) and each is not _UNKNOWN for each in found)
        if is_missing or not unsynced:
            then(not is_missing)
            return
        results: list[bool] = []

        def synced(ok: bool) -> None:
            results.append(ok)
            if len(results) == len(unsynced):
                then(all(results))

        for partition in unsynced:
            table.syncs.when_synced(partition, partition.log.staged_end_offset, synced)

    def sync_coordinator(self, host: CoordinatorHost[Any, Any] | None, then: Callable[[bool], None]) -> None:
        """Call `then` when everything that the coordinator has committed is synced."""
        if host is None:
            then(False)
            return
        partition, end_offset = host.partition, int(host.partition.leader.high_watermark)
        if not partition.offline and partition.log.synced_offset >= end_offset:
            then(True)
        else:
            self._partitions.syncs.when_synced(partition, end_offset, then)

    def held(self, proposal: Proposal[Any], host_now: Callable[[], CoordinatorHost[Any, Any] | None]) -> Proposal[Any]:
        """The outcome of the proposal, held until the coordinator's records are synced."""
        answered: Proposal[Any] = Proposal()

        def known(outcome: object) -> None:
            if isinstance(outcome, ProposalFailed):
                answered.complete(outcome)
                return
            self.sync_coordinator(host_now(), lambda ok: answered.complete(outcome if ok else NOT_SYNCED))

        proposal.then(known)
        return answered


_UNKNOWN = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
