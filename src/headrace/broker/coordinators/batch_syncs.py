"""Syncs of batch commits, which make them survive the loss of power on topics that do not sync by themselves.

Each step is on the disk before the next one begins: the loan of an id; the coordinator's record that its writer writes
to a partition; the rows of all writers that the commit names; the record of the commit; the markers, and at the same
time the response; the records that the writers have ended. The rows are synced by the leaders of their partitions,
which also say in which boot of their operating system they did so.
"""

from collections.abc import Callable, Collection, Sequence
from typing import Any, Protocol

from headrace.broker.cluster.proposal import Proposal, ProposalFailed
from headrace.broker.coordinators.host import CoordinatorHost
from headrace.broker.partition_syncs import sync_partitions
from headrace.broker.peers.requests import PeerFailure
from headrace.broker.services import CoordinatorServices, PeerServices
from headrace.core.transactions.records import LeaderBoot, Partition
from headrace.model.errors import ErrorCode
from headrace.model.ids import NO_NODE, NodeId
from headrace.wire.apis import ApiKey
from headrace.wire.messages.sync_partitions import (
    SyncPartitionsRequest,
    SyncPartitionsRequestTopic,
    SyncPartitionsResponse,
)

PARTITIONS_PER_SYNC_REQUEST_MAX = 1_000
SYNC_REQUEST_TIMEOUT_MS = 30_000

NOT_SYNCED = ProposalFailed(
    ErrorCode.COORDINATOR_NOT_AVAILABLE, "the commit was not synced in time and its outcome is unknown: try again"
)
ROWS_NOT_SYNCED = ProposalFailed(
    ErrorCode.COORDINATOR_NOT_AVAILABLE, "rows of the batch could not be synced: try again"
)

_VERSION = 0

SyncedPartitions = dict[Partition, LeaderBoot | None]
"""The leader that has synced each partition; None for a deleted partition."""


class BatchSyncServices(CoordinatorServices, PeerServices, Protocol):
    """Serves the syncs: the leaders of partitions, here and on other brokers."""


class _Syncing:
    """The syncs of one commit that are under way."""

    def __init__(self, then: Callable[[SyncedPartitions | None], None]) -> None:
        self._then = then
        self._missing = 1
        """Parts that have not ended: the leaders that are asked, and the caller that is asking them."""
        self._failed = False
        self.synced: SyncedPartitions = {}

    def begin_part(self) -> None:
        self._missing += 1

    def end_part(self, *, ok: bool = True) -> None:
        self._missing -= 1
        self._failed = self._failed or not ok
        if not self._missing:
            self._then(None if self._failed else self.synced)


class BatchSyncs:
    def __init__(self, services: BatchSyncServices, leader: LeaderBoot) -> None:
        """`leader` is this broker."""
        self._services = services
        self._leader = leader

    def sync_partitions(
        self, partitions: Collection[Partition], then: Callable[[SyncedPartitions | None], None]
    ) -> None:
        """Have the leaders sync these partitions up to their current end; `then` gets None if one of them did not.

        The image must have reached the metadata offset of the transactions: what it does not show then is deleted.
        """
        syncing = _Syncing(then)
        by_leader: dict[NodeId, list[Partition]] = {}
        for partition in sorted(partitions):
            state = self._services.image.partition(*partition)
            if state is None:
                syncing.synced[partition] = None
            else:
                by_leader.setdefault(state.leader, []).append(partition)
        without_leader = by_leader.pop(NO_NODE, [])
        for node_id, led in by_leader.items():
            if node_id == self._services.node_id:
                self._sync_here(led, syncing)
            else:
                for first in range(0, len(led), PARTITIONS_PER_SYNC_REQUEST_MAX):
                    self._sync_there(node_id, led[first : first + PARTITIONS_PER_SYNC_REQUEST_MAX], syncing)
        syncing.end_part(ok=not without_leader)

    def _sync_here(self, led: Sequence[Partition], syncing: _Syncing) -> None:
        def ended(errors: dict[Partition, ErrorCode]) -> None:
            syncing.synced.update(dict.fromkeys(led, self._leader))
            syncing.end_part(ok=not any(errors.values()))

        syncing.begin_part()
        sync_partitions(self._services.partitions, led, ended)

    def _sync_there(self, node_id: NodeId, led: Sequence[Partition], syncing: _Syncing) -> None:
        def answered(response: object) -> None:
            if isinstance(response, PeerFailure):
                syncing.end_part(ok=False)
                return
            assert isinstance(response, SyncPartitionsResponse)
            ok = {
                (topic.name, each.partition_index)
                for topic in response.topics
                for each in topic.partitions
                if not each.error_code
            }
            syncing.synced.update(dict.fromkeys(led, LeaderBoot(node_id, response.boot_id)))
            syncing.end_part(ok=ok.issuperset(led))

        syncing.begin_part()
        self._services.peers.send(
            node_id,
            ApiKey.SYNC_PARTITIONS,
            _VERSION,
            _request(led, self._services.image.version),
            timeout_ms=SYNC_REQUEST_TIMEOUT_MS,
            then=answered,
        )

    def sync_coordinator(self, host: CoordinatorHost[Any, Any] | None, then: Callable[[bool], None]) -> None:
        """Call `then` when all committed records of the coordinator are synced."""
        if host is None:
            then(False)
            return
        partition, end_offset = host.partition, int(host.partition.role.high_watermark)
        if partition.serves and partition.log.synced_offset >= end_offset:
            then(True)
        else:
            self._services.partitions.syncs.when_synced(partition, end_offset, then)

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


def _request(partitions: Sequence[Partition], metadata_offset: int) -> SyncPartitionsRequest:
    topics: dict[str, list[int]] = {}
    for topic, index in partitions:
        topics.setdefault(topic, []).append(index)
    return SyncPartitionsRequest(
        metadata_offset=metadata_offset,
        topics=tuple(
            SyncPartitionsRequestTopic(name=name, partition_indexes=tuple(indexes)) for name, indexes in topics.items()
        ),
    )
