"""Builds a node from a config and five ports.

`Node` is the whole broker on the ports that it is given; calling `turn` again and again runs it. `startup.py` takes a
new node to the point where it serves, and `process.py` runs one in a process of its own.
"""

import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from headrace.broker.api.dispatch import Dispatcher
from headrace.broker.audit_log import AuditLog
from headrace.broker.broker import RunningBroker
from headrace.broker.cluster.controller_host import ControllerHost
from headrace.broker.cluster.lost_peers import LostPeers
from headrace.broker.cluster.metadata_log import METADATA_PARTITION, MetadataLog, Replay
from headrace.broker.cluster.quorum import MetadataQuorum
from headrace.broker.compaction import Compactor
from headrace.broker.descriptors import UNLIMITED, DescriptorShares, shares
from headrace.broker.helper_lanes import LaneWatch
from headrace.broker.housekeeping import Housekeeping
from headrace.broker.listeners import Listeners
from headrace.broker.log_directories import LogDirectories, open_directories
from headrace.broker.logs import NodeLogger
from headrace.broker.metrics import Family, Metrics
from headrace.broker.net.connection_limits import ConnectionLimits
from headrace.broker.net.handshakes import Handshakes
from headrace.broker.net.loop import Loop
from headrace.broker.net.scrape import ScrapeServer
from headrace.broker.net.tls_reload import TlsReload
from headrace.broker.partitions.table import PartitionTable
from headrace.broker.scrub import Scrubber
from headrace.broker.startup import Startup
from headrace.broker.storage import StorageWatch
from headrace.broker.timers import Timers
from headrace.core.controller.promotion import may_be_promoted
from headrace.core.controller.settings import ControllerSettings
from headrace.core.raft.ids import DirectoryId, ReplicaKey
from headrace.core.raft.messages import Message
from headrace.log.checkpoints import encode_uuid
from headrace.log.directory import LogDirectory
from headrace.log.open_files import OpenFiles
from headrace.model.configs.values import BrokerConfig
from headrace.model.ids import NodeId
from headrace.ports.bundle import Ports

if TYPE_CHECKING:
    from headrace.broker.audit_notes import AuditNotes
    from headrace.broker.peers.events import PeerEvent
    from headrace.broker.peers.peer_network import PeerNetwork


class Node:
    def __init__(
        self,
        config: BrokerConfig,
        ports: Ports,
        *,
        host_name: str = "localhost",
        descriptors_max: int = UNLIMITED,
        write_log: Callable[[str], object] = sys.stderr.write,
    ) -> None:
        """Open the log directories, put the parts together, bind the listeners and begin to start.

        `host_name` is advertised to clients where a listener is bound to all addresses of the machine.
        `descriptors_max` is the number of files and sockets that the process may have open.
        """
        self.config = config
        self._ports = ports
        self.metrics = Metrics()
        self.logger = NodeLogger(
            clock=ports.clock,
            write=write_log,
            format=config.log_format,
            level=config.log_level,
            node=config.node_id,
        )
        self.ready = False
        """True once clients are admitted."""
        self.stopping = False
        self._has_left = False
        """True once the controlled shutdown has ended."""
        self.failed = False
        """True if the node cannot continue: it could not start, or the directory with the metadata failed."""
        self._timers = Timers(ports.clock)
        self._descriptors_max = descriptors_max
        self._files = OpenFiles(ports.disk, self._shares(config).log_files_max)
        self._listeners = Listeners(ports.network, config.security_protocols, client_auth=config.tls.client_auth)
        self._peers: PeerNetwork | None = None
        """Connections with the other nodes; None on a node without a listener for them."""
        self.scrape_port: int | None = None
        self._scrapes: ScrapeServer | None = None
        self._directories: LogDirectories | None = None
        self._audit_notes: AuditNotes | None = None
        try:
            self._directories = open_directories(config, ports.disk, ports.entropy, self._files, self.logger)
            self._compose(self._directories)
            self._bind()
        except BaseException:
            self._release()
            raise
        self._start_up(self._directories, host_name)

    # Composition

    def _compose(self, directories: LogDirectories) -> None:
        self.cluster_id = directories.cluster_id
        self.quorum, replay = self._open_quorum(directories.home)
        controller = self._controller(directories.home, replay)
        self._peers = self._peer_network()
        partitions = self._partition_table(directories)
        self.broker = RunningBroker(
            config=self.config,
            ports=self._ports,
            cluster_id=self.cluster_id,
            controller=controller,
            partitions=partitions,
            files=self._files,
            timers=self._timers,
            metrics=self.metrics,
            logger=self.logger,
            peers=None if self._peers is None else self._peers.links,
            fetch_links=None if self._peers is None else self._peers.fetch_links,
        )
        self._compose_audit()
        self.loop = self._loop()
        self._compose_tls()
        self.broker.client_connections.after = self.loop.connections.clients_after
        self.broker.client_connections.open = self.loop.connections.of_clients
        self._compose_background_tasks(partitions)
        self.quorum.disk.on_no_room = lambda: self._storage.no_room(directories.home)
        controller.refusal_of_new_partitions = self.broker.refusal_of_new_partitions
        if self._peers is not None:
            self.broker.deliver_raft = self._peers.raft_receiver(self.quorum.deliver)
        self.broker.on_configured = self._configured
        self.broker.on_many_files = self._housekeeping.close_idle_files
        self.broker.replication.close_senders = self.loop.close_senders

    def _open_quorum(self, home: LogDirectory) -> tuple[MetadataQuorum, Replay]:
        """Open the metadata log, which is in the first directory, and this node's replica of the metadata quorum."""
        ports, cluster = self._ports, self.config.cluster
        me = ReplicaKey(NodeId(self.config.node_id), DirectoryId(encode_uuid(home.directory_id)))
        log, replay = MetadataLog.open(
            ports.disk,
            home.path,
            me=me,
            founds=cluster.is_controller and not cluster.peers,
            recovery_point=home.recovery_points.get(METADATA_PARTITION, 0),
            clean_shutdown=home.clean_shutdown,
            wall_ms=ports.clock.wall_ms(),
        )
        quorum = MetadataQuorum(
            log,
            replay,
            me=me,
            spawner=ports.spawner,
            timers=self._timers,
            clock=ports.clock,
            entropy=ports.entropy,
            may_vote=cluster.is_controller,
            send=self._send_raft,
            notice=self.logger.warning,
        )
        quorum.voter_target = cluster.controllers_target
        quorum.host_of = self._host_of
        quorum.may_promote = lambda node_id: may_be_promoted(self.broker.image, node_id)
        return quorum, replay

    def _host_of(self, node_id: NodeId) -> str | None:
        registered = self.broker.image.brokers.get(node_id)
        return None if registered is None else registered.host

    def _controller(self, home: LogDirectory, replay: Replay) -> ControllerHost:
        ports = self._ports
        controller = ControllerHost(
            self.quorum,
            replay,
            settings=ControllerSettings.of(self.config),
            spawner=ports.spawner,
            clock=ports.clock,
            entropy=ports.entropy,
            notice=self.logger.warning,
        )
        controller.subscribe(
            lambda _delta: home.recovery_points.update({METADATA_PARTITION: controller.recovery_point})
        )
        controller.on_offline = self._metadata_failed
        controller.next_turn = self._timers.next_turn
        return controller

    def _peer_network(self) -> "PeerNetwork | None":
        cluster = self.config.cluster
        if cluster.listener is None:
            return None
        from headrace.broker.peers.peer_network import PeerNetwork  # a standalone node starts without it

        return PeerNetwork(
            cluster,
            ports=self._ports,
            timers=self._timers,
            logger=self.logger,
            image=lambda: self.broker.image,
        )

    def _send_raft(self, message: Message) -> None:
        if self._peers is not None:
            self._peers.send_raft(message)

    def _partition_table(self, directories: LogDirectories) -> PartitionTable:
        def directory_failed(directory: LogDirectory) -> None:
            if directory is directories.home:
                self._metadata_failed()

        return PartitionTable(
            node_id=NodeId(self.config.node_id),
            config=self.config,
            directories=directories.opened,
            missing_directories=directories.missing,
            clock=self._ports.clock,
            spawner=self._ports.spawner,
            timers=self._timers,
            metrics=self.metrics,
            logger=self.logger,
            on_state_changed=lambda: self.broker.topic_metadata.clear(),
            on_directory_failed=directory_failed,
        )

    def _loop(self) -> Loop:
        config, ports = self.config, self._ports
        dispatcher = Dispatcher(self.broker)
        loop = Loop(
            network=ports.network,
            clock=ports.clock,
            disk=ports.disk,
            spawner=ports.spawner,
            timers=self._timers,
            metrics=self.metrics,
            logger=self.logger,
            limits=self._connection_limits(config),
            frame_bytes_max=config.frame_bytes_max,
            large_frames_bytes_max=config.total_inflight_bytes_max,
            held_bytes_max=config.connection_inflight_bytes_max,
            handle_frame=dispatcher.handle_frame,
            handle_repeat=dispatcher.handle_repeat,
            check_large_frame=dispatcher.check_large_frame,
            begin_turn=self.broker.begin_turn,
            end_turn=self.broker.end_turn,
        )
        dispatcher.keeper = loop.receiver
        self.broker.client_quotas.connections = loop.throttle
        return loop

    def _compose_audit(self) -> None:
        config, ports, broker = self.config.audit, self._ports, self.broker
        if not config.folder:
            return
        from headrace.broker.audit_notes import AuditNotes  # most nodes have no audit log

        log = broker.audit_log = AuditLog(
            config,
            node_id=self.config.node_id,
            disk=ports.disk,
            spawner=ports.spawner,
            timers=self._timers,
            clock=ports.clock,
            logger=self.logger,
        )
        self._audit_notes = AuditNotes(log, ports.clock)
        broker.access.on_refused = self._audit_notes.refused

    def _compose_tls(self) -> None:
        """Read keys and certificates, if a listener for clients has TLS."""
        config, ports = self.config, self._ports
        if not any(config.security_protocols[listener.name].uses_tls for listener in config.listeners):
            return
        handshakes = self._listeners.handshakes = Handshakes(
            ports.network.server_tls(config.tls),
            config.tls.rules(),
            network=ports.network,
            timers=self._timers,
            clock=ports.clock,
            metrics=self.metrics,
            logger=self.logger,
        )
        if self._audit_notes is not None:
            handshakes.on_login = self._audit_notes.tls_login
        TlsReload(
            handshakes,
            config=lambda: self.broker.config.tls,
            network=ports.network,
            spawner=ports.spawner,
            timers=self._timers,
            logger=self.logger,
        ).start()

    def _compose_background_tasks(self, partitions: PartitionTable) -> None:
        ports, timers, logger = self._ports, self._timers, self.logger
        self._storage = StorageWatch(
            table=partitions,
            spawner=ports.spawner,
            timers=timers,
            logger=logger,
            on_no_room=lambda: self._housekeeping.make_room(),
        )
        self._lanes = LaneWatch(spawner=ports.spawner, timers=timers, logger=logger)
        self._scrubber = Scrubber(
            table=partitions, disk=ports.disk, spawner=ports.spawner, timers=timers, clock=ports.clock, logger=logger
        )
        self._housekeeping = Housekeeping(
            table=partitions,
            files=self._files,
            files_in_use=self.loop.connections.files_in_use,
            clock=ports.clock,
            timers=timers,
        )
        self.compactor = Compactor(table=partitions, ports=ports, timers=timers, logger=logger)

    def _configured(self, config: BrokerConfig) -> None:
        """Apply dynamic configs that changed."""
        self.loop.clients.limits = self._connection_limits(config)
        self._set_connection_rates(config)

    def _set_connection_rates(self, config: BrokerConfig) -> None:
        limits = config.connections
        self.loop.throttle.rates.configure(
            limits.rate_max,
            limits.listener_rate_max,
            window_s=config.quota_window_s,
            now_ms=self._ports.clock.monotonic_ms(),
        )

    def _connection_limits(self, config: BrokerConfig) -> ConnectionLimits:
        return ConnectionLimits(
            connections_max=self._shares(config).connections_max,
            connections_per_host_max=config.connections.per_address_max,
            host_overrides=config.connections.overrides,
            listener_connections_max=config.connections.listener_count_max,
            idle_ms_max=config.connections_idle_ms_max,
            slow_ms_max=config.slow_client_timeout_ms,
        )

    def _shares(self, config: BrokerConfig) -> DescriptorShares:
        return shares(
            self._descriptors_max, open_files_max=config.open_files_max, connections_max=config.connections.count_max
        )

    def _bind(self) -> None:
        self._listeners.bind(self.config.listeners)
        if self._peers is not None:
            self._peers.bind()
        if self.config.metrics_address is not None:
            self._scrapes = ScrapeServer(
                loop=self.loop,
                network=self._ports.network,
                timers=self._timers,
                render=lambda: self.metrics.render((self._families(),)),
            )
            self.scrape_port = self._scrapes.listen(*self.config.metrics_address)

    def _start_up(self, directories: LogDirectories, host_name: str) -> None:
        """Begin the start-up, which ends in a later turn."""
        if self._peers is not None and directories.cluster_key is not None:
            self.broker.invitations = self._peers.invitations(directories.cluster_key, host_name)
            metadata = self.broker.topic_metadata
            lost = LostPeers(self.broker.timers, lost=metadata.peer_lost, returned=metadata.peer_returned)
            self._peers.links.subscribe(self._peer_event)
            for links in (self._peers.links, self._peers.fetch_links):
                links.subscribe(lost.peer_event)
            self._peers.start(
                self.loop,
                node_id=NodeId(self.config.node_id),
                directory_id=directories.home.directory_id,
                key=directories.cluster_key,
                host_name=host_name,
            )
        self.broker.controller.start()
        if not self.config.cluster.is_broker:
            self._started()  # a node that is only a controller stores no partitions, and does not register as a broker
            return
        Startup(
            broker=self.broker,
            loop=self.loop,
            listeners=self._listeners,
            cluster_endpoint=None if self._peers is None else self._peers.endpoint(host_name),
            host_name=host_name,
            background=(self._storage, self._lanes, self._scrubber, self._housekeeping),
            compactor=self.compactor,
            clean_shutdown=directories.clean_shutdown,
            on_ready=self._started,
            on_failed=self._start_failed,
        ).begin()

    def _peer_event(self, event: "PeerEvent") -> None:
        assert self._peers is not None
        self.quorum.know_peers(tuple(peer.node_id for peer in self._peers.links.connected()))
        self.broker.membership.peer_event(event)

    def _started(self) -> None:
        self.ready = True

    def _start_failed(self) -> None:
        self.failed = True

    # Running

    @property
    def addresses(self) -> list[str]:
        """The HOST:PORT to which each listener is bound."""
        return self._listeners.addresses

    def turn(self, timeout_ms: float = 0.0) -> None:
        self.loop.turn(timeout_ms)

    def wake(self) -> None:
        """Make a turn that waits return; may be called from another thread or a signal handler."""
        self._ports.network.wake()

    def _metadata_failed(self) -> None:
        if not self.failed:
            self.failed = True
            self.logger.error(
                "the metadata directory cannot be used any more and the broker stops; repair the disk, free space if "
                "it is full, or restore the directory from a copy, and start the broker again",
                directory=self.config.log_dirs[0],
            )

    # Stopping

    def begin_stop(self) -> None:
        """Leave the cluster, then admit no new clients and let waiting requests finish.

        Clients are served until then: those of partitions that have moved learn here who leads them.
        """
        if not self.stopping:
            self.stopping = True
            self.broker.lifecycle.stop(self._left_cluster)

    def _left_cluster(self) -> None:
        """Hand over the leadership of the metadata quorum, so that another controller is active at once."""
        if self.broker.controller.is_active and len(self.quorum.voters) > 1:
            self.quorum.transfer_leadership(lambda _outcome: self._stop_serving())
        else:
            self._stop_serving()

    def _stop_serving(self) -> None:
        self._has_left = True
        self.loop.begin_stop()
        self.broker.begin_stop()

    @property
    def drained(self) -> bool:
        """True once every client has its responses, and the controller has moved the leadership away."""
        return self._has_left and not self.loop.connections.owe_responses()

    def close(self) -> None:
        """Write, sync and mark everything, so that the next start need not scan. Call between turns."""
        self.loop.close_listeners()
        if self._peers is not None:
            self._peers.links.close()
            self._peers.fetch_links.close()
        self.loop.close_connections()
        self._ports.spawner.close()
        self._scrubber.close()
        if self.broker.audit_log is not None:
            self.broker.audit_log.close()
        if self.ready and not self.failed:
            assert self._directories is not None
            unclean = None if self._close_metadata() else self._directories.home
            self.broker.partitions.checkpoints.close(unclean=unclean)
        self._release()

    def _close_metadata(self) -> bool:
        """Close the metadata log, and return whether the next start can trust it without a scan."""
        try:
            self.broker.controller.close()
        except OSError as error:
            self.logger.error("the metadata log was not closed cleanly", cause=error)
            return False
        return True

    def _release(self) -> None:
        if self._scrapes is not None:
            self._scrapes.close()
        self._listeners.close()
        if self._peers is not None:
            self._peers.close()
        if self._directories is not None:
            self._directories.close()
        self._ports.network.close()

    # Metrics

    def _families(self) -> Iterator[Family]:
        """Yield the metrics that are read from the parts of the node when they are scraped."""
        broker = self.broker
        yield Family("headrace_partitions", "gauge", "Partitions on this node.", (((), len(broker.partitions)),))
        yield Family(
            "headrace_partitions_led",
            "gauge",
            "Partitions on this node that it leads.",
            (((), sum(partition.serves for partition in broker.partitions)),),
        )
        yield from broker.replication.families()
        yield from broker.groups.families()
        yield from broker.transactions.families()
        yield from broker.scans.families()
        yield from self.compactor.families()
        yield from self._storage.families()
        yield from self._lanes.families()
        yield from broker.lookups.families()
        yield from self._scrubber.families()
        if broker.audit_log is not None:
            yield from broker.audit_log.families()
        if self._peers is not None:
            yield from self._peers.links.families()
        yield Family("headrace_fetch_sessions", "gauge", "Open fetch sessions.", (((), len(broker.fetch_sessions)),))
        yield Family(
            "headrace_log_size_bytes",
            "gauge",
            "Bytes of a partition's log on disk.",
            (
                ((("topic", partition.topic), ("partition", str(partition.index))), partition.log.size_bytes)
                for partition in tuple(broker.partitions)
            ),
        )
        yield Family(
            "headrace_log_end_offset",
            "gauge",
            "The offset the next record of a partition gets.",
            (
                ((("topic", partition.topic), ("partition", str(partition.index))), partition.log.end_offset)
                for partition in tuple(broker.partitions)
            ),
        )
