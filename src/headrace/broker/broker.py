"""The broker's parts, put together: partitions, committed metadata, controller, coordinators and ports.

Handlers and coordinators see it only through the protocols of `services.py`.
"""

from collections.abc import Callable, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING

from headrace.broker.access import Access
from headrace.broker.access_changes import AccessChanges
from headrace.broker.audit_log import AuditLog
from headrace.broker.authentication import Authentication
from headrace.broker.client_connections import ClientConnections
from headrace.broker.client_quotas import ClientQuotas
from headrace.broker.cluster.cluster_member import ClusterMember
from headrace.broker.cluster.controller_host import ControllerHost
from headrace.broker.cluster.linearizable_reads import LinearizableReads
from headrace.broker.cluster.producer_id_blocks import ProducerIdBlocks
from headrace.broker.cluster.producer_ids import ProducerIds
from headrace.broker.coordinators.groups import Groups
from headrace.broker.coordinators.host import Runtime
from headrace.broker.coordinators.replay import ReplayQueue
from headrace.broker.coordinators.transactions import Transactions
from headrace.broker.delegation_tokens import DelegationTokens
from headrace.broker.health import take_health
from headrace.broker.logs import NodeLogger
from headrace.broker.lookups import Lookups
from headrace.broker.metadata_changes import RecentChanges
from headrace.broker.metrics import Metrics
from headrace.broker.partitions.fetch_sessions import FetchSessions
from headrace.broker.partitions.replica import Replica
from headrace.broker.partitions.scan_leases import ScanLeases
from headrace.broker.partitions.table import PartitionTable
from headrace.broker.peers.requests import NoPeers, PeerRequests
from headrace.broker.produce.stages import ProduceStages
from headrace.broker.replication.fault_reports import FaultReporter
from headrace.broker.replication.partition_replication import PartitionReplication
from headrace.broker.replication.served_fetches import ServedFetches
from headrace.broker.timers import Timers
from headrace.broker.token_keys import TokenKeys
from headrace.broker.topic_metadata import TopicMetadata
from headrace.core.controller.commands import CreatableTopic
from headrace.core.controller.delta import MetadataDelta
from headrace.core.controller.image import MetadataImage
from headrace.core.controller.settings import ControllerSettings
from headrace.core.coordination.machine import Now
from headrace.log.open_files import OpenFiles
from headrace.model.configs.values import BrokerConfig
from headrace.model.ids import NodeId
from headrace.ports.bundle import Ports
from headrace.ports.disk import FileRange
from headrace.ports.spawner import Lane

if TYPE_CHECKING:
    from headrace.broker.peers.controller_requests import ControllerRequests
    from headrace.broker.peers.invitations import Invitations


class RunningBroker:
    def __init__(
        self,
        *,
        config: BrokerConfig,
        ports: Ports,
        cluster_id: str,
        controller: ControllerHost,
        partitions: PartitionTable,
        files: OpenFiles,
        timers: Timers,
        metrics: Metrics,
        logger: NodeLogger,
        peers: PeerRequests | None = None,
        fetch_links: PeerRequests | None = None,
    ) -> None:
        self.config = config
        self.clock = ports.clock
        self.turn_wall_ms = self.clock.wall_ms()
        """The wall clock at the beginning of this turn, which all of its Produce requests use."""
        self.turn_now: Now | None = None
        """The time of this turn for coordinators; None until the first of them asks for it (`now_of_turn`)."""
        self.disk = ports.disk
        self.entropy = ports.entropy
        self.spawner = ports.spawner
        self.cluster_id = cluster_id
        self.node_id = NodeId(config.node_id)
        self.controller = controller
        self.peers = peers or NoPeers(timers)
        """The other nodes of the cluster."""
        self.partitions = partitions
        self._files = files
        self.timers = timers
        self.metrics = metrics
        self.logger = logger
        member = self._compose_member()
        self.membership = member.membership
        self.lifecycle = member.lifecycle
        self.log_end_reporter = member.log_end_reporter
        self.replication = partitions.replication = self._compose_replication(ports, fetch_links or NoPeers(timers))
        self.fault_reporter = self._compose_fault_reporter()
        partitions.on_fault = self.fault_reporter.look_soon
        self.served_fetches = ServedFetches(self)
        self.on_configured: Callable[[BrokerConfig], None] = lambda config: None
        self.invitations: Invitations | None = None
        """Invitations to join the cluster; None on a node without a listener for other nodes."""
        self.deliver_raft: Callable[[NodeId, bytes], None] = lambda source, message: None
        """Called with the Raft messages of other nodes."""
        self.on_many_files: Callable[[], None] = lambda: None
        """Called between turns while far more log files are open than the limit allows."""
        self.audit_log: AuditLog | None = None
        """None without headrace.audit.dir; set before clients are admitted."""
        self.access = Access(config.access, lambda: self.image.access_rules)
        self.client_quotas = ClientQuotas(
            image=lambda: self.image, config=lambda: self.config, clock=ports.clock, metrics=metrics
        )
        controller.subscribe(lambda delta: self.client_quotas.follow_image() if delta.quotas_changed else None)
        self.delegation_tokens = self._compose_delegation_tokens()
        self.delegation_tokens.start()
        controller.subscribe(lambda delta: self.delegation_tokens.changed() if delta.tokens_changed else None)
        self.authentication = self._compose_authentication(ports)
        self.fetch_sessions = FetchSessions(ports.clock, ports.entropy, sessions_max=config.fetch_sessions_max)
        self.metadata_changes = RecentChanges(ports.clock)
        self.client_connections = ClientConnections(partitions, self.fetch_sessions)
        self.topic_metadata = TopicMetadata(partitions, self, self.node_id)
        self.linearizable_reads = LinearizableReads(controller, node_id=self.node_id, peers=self.peers, timers=timers)
        self.producer_ids = ProducerIds(ProducerIdBlocks(controller, self.peers), self.node_id, timers)
        replays = ReplayQueue(files=files, spawner=ports.spawner, timers=timers)
        runtime = Runtime(ports.clock, timers, logger, replays)
        self.groups = Groups(self, runtime)
        self.transactions = Transactions(self, runtime)
        self.scans = self._compose_scans(ports)
        self.access_changes = AccessChanges(self.access, self.client_connections, self.scans, timers)
        controller.subscribe(lambda delta: self.access_changes.rules_changed() if delta.rules_changed else None)
        self.produce = self._compose_produce()
        self.lookups = Lookups(ports.spawner, timers)
        partitions.on_led = self._partition_led

    def _compose_member(self) -> ClusterMember:
        return ClusterMember(
            config=lambda: self.config,
            cluster_id=self.cluster_id,
            controller=self.controller,
            peers=self.peers,
            timers=self.timers,
            logger=self.logger,
            log_end_of=self.partitions.log_end_of,
            health=partial(take_health, self.metrics, self.partitions, self.spawner),
        )

    def _compose_delegation_tokens(self) -> DelegationTokens:
        return DelegationTokens(
            self.config.sasl.tokens,
            tokens=lambda: self.image.tokens,
            remove_expired=self.controller.remove_expired_tokens,
            clock=self.clock,
            timers=self.timers,
        )

    def _compose_authentication(self, ports: Ports) -> Authentication:
        return Authentication(
            image=lambda: self.image,
            config=lambda: self.config.sasl,
            token_keys=partial(TokenKeys, ports=ports, timers=self.timers, logger=self.logger),
            delegation_tokens=self.delegation_tokens,
            clock=self.clock,
            entropy=self.entropy,
            metrics=self.metrics,
            logger=self.logger,
        )

    def _compose_scans(self, ports: Ports) -> ScanLeases:
        return ScanLeases(
            partitions=self.partitions,
            ports=ports,
            timers=self.timers,
            logger=self.logger,
            kept_bytes_max=lambda: self.config.scan_held_bytes_max,
            may_scan=self.access.may_scan,
        )

    def _compose_fault_reporter(self) -> FaultReporter:
        return FaultReporter(
            node_id=self.node_id,
            broker_epoch=lambda: self.lifecycle.broker_epoch,
            controller=self.controller,
            membership=self.membership,
            peers=self.peers,
            replicas=self.replication.faulty,
            timers=self.timers,
        )

    def _compose_replication(self, ports: Ports, fetch_links: PeerRequests) -> PartitionReplication:
        return PartitionReplication(
            node_id=self.node_id,
            broker_epoch=lambda: self.lifecycle.broker_epoch,
            controller=self.controller,
            peers=self.peers,
            fetch_links=fetch_links,
            partitions=self.partitions,
            ports=ports,
            timers=self.timers,
            metrics=self.metrics,
            logger=self.logger,
        )

    def _compose_produce(self) -> ProduceStages:
        return ProduceStages(
            partitions=self.partitions,
            metadata=self,
            transactions=self.transactions,
            access=self.access,
            quotas=self.client_quotas,
            metrics=self.metrics,
            spawner=self.spawner,
            timers=self.timers,
            turn=self,
        )

    @cached_property
    def controller_requests(self) -> "ControllerRequests":
        """The way of requests to the active controller, when it is another node."""
        from headrace.broker.peers.controller_requests import ControllerRequests  # a standalone node never needs it

        return ControllerRequests(self.controller, node_id=self.node_id, peers=self.peers, timers=self.timers)

    @property
    def image(self) -> MetadataImage:
        """The committed metadata, which clients see."""
        return self.controller.image

    def image_changed(self, delta: MetadataDelta) -> None:
        """Pass a committed change of metadata on to every part that depends on it."""
        self.topic_metadata.clear()
        if delta.broker_configs_changed:
            self.take_dynamic_configs()
        self.partitions.apply(delta, self.image)
        if delta.topics_deleted:
            self.groups.topics_deleted(topic.name for topic in delta.topics_deleted)
        self.metadata_changes.image_changed(delta, self.image.version)

    def take_dynamic_configs(self) -> None:
        """Apply the dynamic broker configs of the committed metadata, at the start and whenever they change."""
        self.config = self.config.with_dynamic(
            cluster=self.image.cluster_configs(), broker=self.image.broker_configs(self.node_id)
        )
        self.partitions.config = self.config
        self.controller.configure(ControllerSettings.of(self.config))
        self.fetch_sessions.sessions_max = self.config.fetch_sessions_max
        self.on_configured(self.config)

    def refusal_of_new_partitions(self) -> str | None:
        """Return why no partition can be created now; None if one can, or if another broker may have space."""
        directories = self.partitions.directories
        if any(not directory.space.full for directory in directories):
            return None
        others = (broker for node_id, broker in self.image.brokers.items() if node_id != self.node_id)
        if any(broker.takes_partitions for broker in others):
            return None
        free = ", ".join(f"{directory.path} has {directory.space.free_bytes} bytes free" for directory in directories)
        return (
            f"the log directories are full ({free or 'none is left'}; headrace.disk.free.min.bytes is "
            f"{self.config.disk_free_bytes_min}): delete records or topics, or free space"
        )

    def create_topics(self, topics: Sequence[CreatableTopic], then: Callable[[], None]) -> None:
        """Create topics that a client refers to; the client sees the result in the metadata."""
        if not self.controller.is_active:
            self.controller_requests.create_topics(topics, lambda: self.partitions.when_ready(then))
            return
        proposal = self.controller.create_topics(topics)
        proposal.then(lambda _outcome: self.partitions.when_ready(then))

    def when_hot(self, ranges: Sequence[FileRange], then: Callable[[], None]) -> None:
        """Call back when the ranges can be sent without making the loop wait for the disk."""
        is_hot = self.disk.is_hot
        cold = [part for part in ranges if not is_hot(part.file, part.position, part.length)]
        if not cold:
            then()
            return
        disk = self.disk

        def read_ahead() -> None:
            for part in cold:
                disk.read_ahead(*part)

        def done(_result: None, _error: BaseException | None) -> None:
            try:
                then()  # a failed read happens again when the response is sent, and is handled there
            finally:
                self.unpin(ranges)

        self.pin(ranges)  # the ranges that are hot have to wait as well
        self.spawner.submit(read_ahead, done, Lane.READ)

    def pin(self, ranges: Sequence[FileRange]) -> None:
        """Keep the files of the ranges open until a response that is sent from them is complete."""
        for part in ranges:
            self._files.pin(part.file)

    def unpin(self, ranges: Sequence[FileRange]) -> None:
        for part in ranges:
            self._files.unpin(part.file)

    def _partition_led(self, partition: Replica) -> None:
        self.groups.partition_led(partition)
        self.transactions.partition_led(partition)

    def begin_stop(self) -> None:
        """Reject group members that wait for other members; requests that wait for the disk are still answered."""
        self.groups.begin_stop()
        self.transactions.begin_stop()
        self.scans.begin_stop()

    def now_of_turn(self) -> Now:
        """Return one time for all commits of this turn, which is cheaper than one for each."""
        now = self.turn_now = Now(self.clock.monotonic_ms(), self.turn_wall_ms)
        return now

    def begin_turn(self) -> None:
        self.turn_wall_ms = self.clock.wall_ms()
        self.turn_now = None
        if self._files.is_far_above:
            self.on_many_files()

    def end_turn(self) -> None:
        self.partitions.end_turn()
        if self.served_fetches.woken:
            self.served_fetches.end_turn()
