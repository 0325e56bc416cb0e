"""Replication of this node's partitions: its fetches as a follower, those it serves as a leader, and in-sync sets."""

from collections.abc import Callable, Iterator, Mapping

from headrace.broker.cluster.controller_host import ControllerHost
from headrace.broker.cluster.isr_requests import IsrRequests
from headrace.broker.logs import NodeLogger
from headrace.broker.metrics import Family, Metrics
from headrace.broker.net.connection import ResponseSlot
from headrace.broker.partitions.leader_hints import name_leaders
from headrace.broker.partitions.replica import Replica
from headrace.broker.partitions.replication_hooks import ReplicationHooks
from headrace.broker.partitions.table import PartitionTable
from headrace.broker.peers.requests import PeerRequests
from headrace.broker.replication.faulty_replicas import FaultyReplicas
from headrace.broker.replication.fetcher import Fetcher
from headrace.broker.replication.followed_logs import FollowedLogs
from headrace.broker.replication.in_sync_sets import InSyncSets
from headrace.broker.timers import Timers
from headrace.core.replication.follower import Follower
from headrace.core.replication.leader import Leader
from headrace.core.replication.role import ExpandIsr, ShrinkIsr
from headrace.model.ids import NodeId
from headrace.ports.bundle import Ports
from headrace.ports.disk import FileHandle
from headrace.wire.apis import ApiKey

CHECK_TIMEOUT_MS = 2_000
"""The time for a response to CheckRecords."""


class PartitionReplication(ReplicationHooks):
    def __init__(
        self,
        *,
        node_id: NodeId,
        broker_epoch: Callable[[], int],
        controller: ControllerHost,
        peers: PeerRequests,
        fetch_links: PeerRequests,
        partitions: PartitionTable,
        ports: Ports,
        timers: Timers,
        metrics: Metrics,
        logger: NodeLogger,
    ) -> None:
        """`fetch_links` are connections of their own: a fetch that waits must not delay what the quorum sends."""
        self._node_id = node_id
        self._broker_epoch = broker_epoch
        self._controller = controller
        self._peers = peers
        self._fetch_links = fetch_links
        self._partitions = partitions
        self._timers = timers
        self._logger = logger
        self.close_senders: Callable[[Mapping[FileHandle, int]], None] = lambda cut: None
        """Closes the connections that are being sent what a truncation removes; the node sets it."""
        self._logs = FollowedLogs(
            partitions,
            clock=ports.clock,
            spawner=ports.spawner,
            timers=timers,
            metrics=metrics,
            close_senders=lambda cut: self.close_senders(cut),
        )
        self.faulty = FaultyReplicas(partitions, self._logs, logger)
        self._in_sync = InSyncSets(
            node_id=node_id,
            broker_epoch=broker_epoch,
            requests=IsrRequests(
                node_id=node_id, broker_epoch=broker_epoch, controller=controller, peers=peers, timers=timers
            ),
            partitions=partitions,
            timers=timers,
            logger=logger,
        )
        self._fetchers: dict[NodeId, Fetcher] = {}
        """By leader: at most one for each other broker of the cluster."""
        self._fetcher_of: dict[Replica, Fetcher] = {}

    def start(self) -> None:
        """Begin the checks that depend on time."""
        self._in_sync.start()

    # Calls of replicas

    def role_changed(self, replica: Replica) -> None:
        fetcher = self._fetcher_of.pop(replica, None)
        if fetcher is not None:
            fetcher.remove(replica)
        role = replica.role
        if isinstance(role, Follower) and not replica.offline:
            fetcher = self._fetcher_of[replica] = self._fetcher(role.leader)
            fetcher.add(replica)

    def fetchable(self, replica: Replica) -> None:
        fetcher = self._fetcher_of.get(replica)
        if fetcher is not None:
            fetcher.fetch_soon(replica)

    def change_isr(self, replica: Replica, change: ShrinkIsr | ExpandIsr) -> None:
        self._in_sync.change(replica, change)

    def leader_missed(self, slot: ResponseSlot) -> None:
        name_leaders(slot, self._controller.image)

    def _fetcher(self, leader: NodeId) -> Fetcher:
        fetcher = self._fetchers.get(leader)
        if fetcher is None:
            fetcher = self._fetchers[leader] = Fetcher(
                leader,
                node_id=self._node_id,
                broker_epoch=self._broker_epoch,
                config=lambda: self._partitions.config,
                links=self._fetch_links,
                logs=self._logs,
                refused=self._refused,
                timers=self._timers,
                logger=self._logger,
            )
        return fetcher

    def _refused(self, replica: Replica) -> None:
        """Have the leader read the batch again that this node has refused: its copy may be damaged."""
        from headrace.wire.messages.check_records import CheckRecordsRequest  # sound replicas need none

        role = replica.role
        if isinstance(role, Follower):
            request = CheckRecordsRequest(
                topic_id=replica.topic_id,
                partition_index=replica.index,
                leader_epoch=role.leader_epoch,
                offset=role.log_end,
            )
            self._peers.send(
                role.leader,
                ApiKey.CHECK_RECORDS,
                0,
                request,
                timeout_ms=CHECK_TIMEOUT_MS,
                then=lambda _response: None,
            )

    # Metrics

    def families(self) -> Iterator[Family]:
        led = [replica.role for replica in self._partitions if isinstance(replica.role, Leader)]
        short = sum(len(role.isr) < len(role.replicas) for role in led)
        yield Family(
            "headrace_under_replicated_partitions",
            "gauge",
            "Partitions led by this node that have fewer in-sync replicas than replicas.",
            (((), short),),
        )
        yield Family(
            "headrace_under_min_isr_partitions",
            "gauge",
            "Partitions led by this node that have too few in-sync replicas for acks=all.",
            (((), sum(not role.acks_all_allowed for role in led)),),
        )
        yield Family(
            "headrace_replica_fetched_partitions",
            "gauge",
            "Partitions that this node copies, by their leader.",
            (((("leader", str(leader)),), len(fetcher)) for leader, fetcher in self._fetchers.items()),
        )
