"""Syncs of batch commits, which make them survive the loss of power on topics that do not sync by themselves.

Each step is on the disk before the next one begins: the coordinator's record that a writer writes to a partition, and
with it the loan of its id; the rows of all writers that the commit names; the record of the commit; the markers, and
at the same time the response; the records that the writers have ended.
"""

from collections.abc import Callable, Iterable
from typing import Any

from headrace.broker.cluster.proposal import Proposal, ProposalFailed
from headrace.broker.coordinators.host import CoordinatorHost
from headrace.broker.partitions.table import PartitionTable
from headrace.core.transactions.records import Partition
from headrace.model.errors import ErrorCode

NOT_SYNCED = ProposalFailed(
    ErrorCode.COORDINATOR_NOT_AVAILABLE, "the commit was not synced in time and its outcome is unknown: try again"
)
ROWS_NOT_SYNCED = ProposalFailed(
    ErrorCode.COORDINATOR_NOT_AVAILABLE, "rows of the batch could not be synced: try again"
)


class BatchSyncs:
    def __init__(self, partitions: PartitionTable) -> None:
        self._partitions = partitions

    def sync_partitions(self, partitions: Iterable[Partition], then: Callable[[bool], None]) -> None:
        """Call `then` when these partitions are synced up to their current end; deleted topics are skipped."""
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
        """Call `then` when all committed records of the coordinator are synced."""
        if host is None:
            then(False)
            return
        partition, end_offset = host.partition, int(host.partition.role.high_watermark)
        if partition.serves and partition.log.synced_offset >= end_offset:
            then(True)
        else:
            self._partitions.syncs.when_synced(partition, end_offset, then)

    def held(self, proposal: Proposal[Any], host_now: Callable[[], CoordinatorHost[Any, Any] | None]) -> Proposal[Any]:
        """Return a proposal that completes with the same outcome once the coordinator's records are synced."""
        synced: Proposal[Any] = Proposal()

        def known(outcome: object) -> None:
            if isinstance(outcome, ProposalFailed):
                synced.complete(outcome)
                return
            self.sync_coordinator(host_now(), lambda ok: synced.complete(outcome if ok else NOT_SYNCED))

        proposal.then(known)
        return synced


_UNKNOWN = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
