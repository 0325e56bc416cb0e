"""The composition root: a config and five ports become a node, and a node becomes a process.

`Node` is the whole broker on whatever ports it is given; calling `turn` again and again is all it takes to run it.
`run` is the process around it: real ports, signals, and the order of the end.
"""

import base64
import os
import signal
import sys
from collections.abc import Callable, Iterator
from errno import ENOENT
from functools import partial
from types import FrameType

from headrace.broker.access import OPEN_LISTENER, OPEN_LISTENER_ADVICE, open_listeners
from headrace.broker.api.dispatch import Dispatcher
from headrace.broker.broker import Broker
from headrace.broker.cluster.controller_host import ControllerHost
from headrace.broker.cluster.metadata_log import METADATA_PARTITION, MetadataLog
from headrace.broker.cluster.proposal import ProposalFailed
from headrace.broker.compaction import Compactor
from headrace.broker.config_warnings import ConfigWarnings
from headrace.broker.descriptors import UNLIMITED, DescriptorShares, shares
from headrace.broker.helper_lanes import LaneWatch
from headrace.broker.housekeeping import Housekeeping
from headrace.broker.logs import NodeLogger
from headrace.broker.metrics import Family, Metrics
from headrace.broker.net.loop import ConnectionLimits, Loop
from headrace.broker.net.scrape import ScrapeServer
from headrace.broker.partitions.table import PartitionTable
from headrace.broker.scrub import Scrubber
from headrace.broker.storage import StorageWatch
from headrace.broker.timers import Timers
from headrace.core.controller.commands import BrokerRegistration
from headrace.core.controller.records import Endpoint
from headrace.core.controller.settings import ControllerSettings
from headrace.log.directory import LogDirectory, read_meta_properties
from headrace.log.errors import CorruptFile
from headrace.log.known_directories import missing, read_known, write_known
from headrace.log.open_files import OpenFiles
from headrace.model.configs.listeners import Listener as ListenerConfig
from headrace.model.configs.listeners import address_text
from headrace.model.configs.values import BrokerConfig
from headrace.model.ids import NodeId
from headrace.ports.bundle import Ports
from headrace.ports.disk import Disk
from headrace.ports.entropy import Entropy
from headrace.ports.network import Listener

UUID_BYTES = 16
PLAINTEXT = "PLAINTEXT"
METADATA_RETRY_MS = 200
"""How long changes of metadata wait when there is no room or no file descriptor to commit them."""
HELPER_TURN_S = 0.0005
"""How long a helper thread keeps the interpreter while the loop wants it. Python's own is 5 ms, which every request
would wait while a helper opens records."""

STOP_TURN_MS = 50
"""How often a stopping node looks whether its clients have their answers."""


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
        """`host_name` is what clients are told where a listener is bound to all addresses of the machine.

        `descriptors_max` is how many files and sockets the process may have open.
        """
        self.config = config
        self._host_name = host_name
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
        self.stopping = False
        self.failed = False
        """The directory of the metadata is lost: the node cannot go on."""
        self._timers = Timers(ports.clock)
        self._descriptors_max = descriptors_max
        self._files = OpenFiles(ports.disk, self._shares(config).log_files_max)
        self._listeners: list[tuple[ListenerConfig, list[Listener]]] = []
        self.scrape_port: int | None = None
        self._scrapes: ScrapeServer | None = None
        self._directories: list[LogDirectory] = []
        self._missing_directories: list[str] = []
        try:
            self._directories = self._open_directories()
            self._compose()
            self._bind()
        except BaseException:
            self._release()
            raise
        self._begin()

    # Composition

    def _open_directories(self) -> list[LogDirectory]:
        """The first holds the metadata and must be there; without another one, the rest is served."""
        disk, (home, *others) = self._ports.disk, self.config.log_dirs
        self.cluster_id = _cluster_id(disk, self._ports.entropy, self.config.log_dirs)
        opened: list[LogDirectory] = []
        try:
            opened.append(self._open_directory(home))
            known = read_known(disk, home) if others else {}
            lost = missing(disk, others, known)
            for path in others:
                try:
                    if path in lost:
                        raise FileNotFoundError(
                            ENOENT, "another directory was here at the last start; is it mounted?", path
                        )
                    opened.append(self._open_directory(path))
                except OSError as error:
                    self._missing_directories.append(path)
                    self.logger.error(
                        "a log directory is missing: its partitions are offline until it is repaired and the node "
                        "started again, or until it is taken out of log.dirs",
                        directory=path,
                        error=str(error),
                    )
            if others:
                write_known(disk, home, others, known, opened[1:])
        except BaseException:
            for directory in opened:
                directory.close()
            raise
        return opened

    def _open_directory(self, path: str) -> LogDirectory:
        return LogDirectory.open(
            self._ports.disk,
            path,
            cluster_id=self.cluster_id,
            node_id=self.config.node_id,
            entropy=self._ports.entropy,
            files=self._files,
            notice=self.logger.warning,
        )

    def _compose(self) -> None:
        config, ports = self.config, self._ports
        home = self._directories[0]
        controller = self._controller(home)
        partitions = PartitionTable(
            node_id=NodeId(config.node_id),
            config=config,
            directories=self._directories,
            missing_directories=self._missing_directories,
            clock=ports.clock,
            spawner=ports.spawner,
            timers=self._timers,
            metrics=self.metrics,
            logger=self.logger,
            on_state_changed=lambda: self.broker.topic_fragments.clear(),
            on_directory_failed=self._directory_failed,
        )
        self.broker = Broker(
            config=config,
            ports=ports,
            cluster_id=self.cluster_id,
            controller=controller,
            partitions=partitions,
            files=self._files,
            timers=self._timers,
            metrics=self.metrics,
            logger=self.logger,
        )
        dispatcher = Dispatcher(self.broker)
        self.loop = Loop(
            network=ports.network,
            clock=ports.clock,
            disk=ports.disk,
            spawner=ports.spawner,
            timers=self._timers,
            metrics=self.metrics,
            logger=self.logger,
            limits=self._connection_limits(config),
            frame_bytes_max=config.request_bytes_max,
            large_frames_bytes_max=config.total_inflight_bytes_max,
            held_bytes_max=config.connection_inflight_bytes_max,
            handle_frame=dispatcher.handle_frame,
            handle_repeat=dispatcher.handle_repeat,
            check_large_frame=dispatcher.check_large_frame,
            begin_turn=self.broker.begin_turn,
            end_turn=self.broker.end_turn,
        )
        dispatcher.keeper = self.loop.receiver
        self._storage = StorageWatch(
            table=partitions,
            spawner=ports.spawner,
            timers=self._timers,
            logger=self.logger,
            on_no_room=lambda: self._housekeeping.make_room(),
        )
        self._lanes = LaneWatch(spawner=ports.spawner, timers=self._timers, logger=self.logger)
        self._scrubber = Scrubber(
            table=partitions,
            disk=ports.disk,
            spawner=ports.spawner,
            timers=self._timers,
            clock=ports.clock,
            logger=self.logger,
        )
        controller.on_no_room = lambda: self._storage.no_room(home)
        controller.refusal_of_new_partitions = partitions.refusal_of_new
        self.broker.on_configured = self._configured
        self._housekeeping = Housekeeping(
            table=partitions,
            files=self._files,
            files_in_use=self.loop.files_in_use,
            clock=ports.clock,
            timers=self._timers,
        )
        self.broker.on_many_files = self._housekeeping.close_idle_files
        self.compactor = Compactor(table=partitions, ports=ports, timers=self._timers, logger=self.logger)

    def _controller(self, home: LogDirectory) -> ControllerHost:
        """The host of the metadata log, which lies in the first directory."""
        ports = self._ports
        log, replay = MetadataLog.open(
            ports.disk,
            home.path,
            recovery_point=home.recovery_points.get(METADATA_PARTITION, 0),
            clean_shutdown=home.clean_shutdown,
            wall_ms=ports.clock.wall_ms(),
        )
        controller = ControllerHost(
            log,
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
        controller.later = partial(self._timers.after, METADATA_RETRY_MS)
        controller.next_turn = self._timers.next_turn
        return controller

    def _configured(self, config: BrokerConfig) -> None:
        """Dynamic configs changed."""
        self.loop.limits = self._connection_limits(config)

    def _connection_limits(self, config: BrokerConfig) -> ConnectionLimits:
        return ConnectionLimits(
            connections_max=self._shares(config).connections_max,
            connections_per_host_max=config.connections_per_address_max,
            idle_ms_max=config.connections_idle_ms_max,
            slow_ms_max=config.slow_client_timeout_ms,
        )

    def _shares(self, config: BrokerConfig) -> DescriptorShares:
        return shares(
            self._descriptors_max, open_files_max=config.open_files_max, connections_max=config.connections_max
        )

    def _bind(self) -> None:
        """Take the addresses at once, so that a taken port is told at once; clients are let in when all is open."""
        for listener in self.config.listeners:
            self._listeners.append((listener, self._ports.network.listen(listener.host, listener.port)))
        if self.config.metrics_address is not None:
            self._scrapes = ScrapeServer(
                loop=self.loop,
                network=self._ports.network,
                timers=self._timers,
                render=lambda: self.metrics.render((self._families(),)),
            )
            self.scrape_port = self._scrapes.listen(*self.config.metrics_address)

    def _begin(self) -> None:
        """Register with the controller; its commit comes in a later turn."""
        registration = self.broker.controller.register_broker(
            self.broker.node_id,
            endpoints=[
                Endpoint(
                    listener.name,
                    self._host_name if advertised.any_host else advertised.host,
                    advertised.port or bound[0].port,
                    PLAINTEXT,
                )
                for (listener, bound), advertised in zip(self._listeners, self.config.advertised_listeners, strict=True)
            ],
            rack=self.config.rack,
            host=self._host_name,
        )
        registration.then(self._registered)

    def _registered(self, outcome: BrokerRegistration | ProposalFailed) -> None:
        if isinstance(outcome, ProposalFailed):
            self._metadata_failed()
            return
        try:
            self._serve()
        except Exception as error:  # a node that never listens is to end, and to say why
            self.failed = True
            self.logger.error("the node cannot start: free what it lacks, and start it again", cause=error)
            raise

    def _serve(self) -> None:
        """Recover the partitions, and let clients in."""
        self.broker.take_dynamic_configs()
        began_ms = self._ports.clock.monotonic_ms()
        self.broker.partitions.open_all(self.broker.image)
        self._log_recovery(began_ms)
        self.broker.controller.subscribe(self.broker.image_changed)
        warnings = ConfigWarnings(self.broker.image, self.logger)
        warnings.started(self.config.layers.static)
        self.broker.controller.subscribe(warnings.image_changed)
        self._storage.start()
        self._lanes.start()
        self._scrubber.start()
        self._housekeeping.start()
        self.compactor.start()
        self.broker.controller.subscribe(self.compactor.image_changed)
        for config, listeners in self._listeners:
            for listener in listeners:
                self.loop.add_listener(listener, config.name)
        self._announce_open_listeners()
        self.ready = True

    def _announce_open_listeners(self) -> None:
        found = open_listeners((listener.host, listener.port) for _, bound in self._listeners for listener in bound)
        if found:
            self.logger.warning(f"{', '.join(found)} is {OPEN_LISTENER}: {OPEN_LISTENER_ADVICE}")

    def _log_recovery(self, began_ms: float) -> None:
        count = len(self.broker.partitions)
        if count:
            seconds = (self._ports.clock.monotonic_ms() - began_ms) / 1000
            noun = "partition" if count == 1 else "partitions"
            was_clean = all(directory.clean_shutdown for directory in self._directories)
            after = "after a clean stop" if was_clean else "after an unclean stop"
            self.logger.info(f"recovered {count} {noun} in {seconds:.1f} s {after}")

    # Running

    @property
    def addresses(self) -> list[str]:
        """HOST:PORT of every listener, as bound."""
        return [address_text(config.host, bound[0].port) for config, bound in self._listeners]

    def turn(self, timeout_ms: float = 0.0) -> None:
        self.loop.turn(timeout_ms)

    def wake(self) -> None:
        """Make a turn that waits return; may be called from another thread or a signal handler."""
        self._ports.network.wake()

    # Ending

    def begin_stop(self) -> None:
        """Take no new clients, and let those that wait have their answers."""
        if not self.stopping:
            self.stopping = True
            self.loop.begin_stop()
            self.broker.begin_stop()

    @property
    def drained(self) -> bool:
        """Nothing is owed to a client any more."""
        return not self.loop.owes_answers

    def close(self) -> None:
        """Write, sync and mark everything; the next start need not scan. Call between turns."""
        self.loop.close_listeners()
        self.loop.close_connections()
        self._ports.spawner.close()
        self._scrubber.close()
        if self.ready and not self.failed:
            unclean = None if self._close_metadata() else self._directories[0]
            self.broker.partitions.close(unclean=unclean)
        self._release()

    def _close_metadata(self) -> bool:
        """Whether it was written down that nothing needs to be looked through at the next start."""
        try:
            self.broker.controller.close()
        except OSError as error:
            self.logger.error("the metadata log was not closed cleanly", cause=error)
            return False
        return True

    def _release(self) -> None:
        if self._scrapes is not None:
            self._scrapes.close()
        for _, bound in self._listeners:
            for listener in bound:
                listener.close()
        for directory in self._directories:
            directory.close()
        self._ports.network.close()

    # Trouble

    def _directory_failed(self, directory: LogDirectory) -> None:
        if directory is self._directories[0]:
            self._metadata_failed()

    def _metadata_failed(self) -> None:
        if not self.failed:
            self.failed = True
            self.logger.error(
                "the metadata directory cannot be used any more, this node stops; repair the disk, free space if it is "
                "full, or restore the directory from a copy, and start the node again",
                directory=self._directories[0].path,
            )

    def _families(self) -> Iterator[Family]:
        """What is counted where it lives rather than in the metrics."""
        broker = self.broker
        yield Family("headrace_partitions", "gauge", "Partitions on this node.", (((), len(broker.partitions)),))
        yield from broker.groups.families()
        yield from broker.transactions.families()
        yield from broker.scans.families()
        yield from self.compactor.families()
        yield from self._storage.families()
        yield from self._lanes.families()
        yield from broker.lookups.families()
        yield from self._scrubber.families()
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


def _cluster_id(disk: Disk, entropy: Entropy, log_dirs: tuple[str, ...]) -> str:
    """What the directories say, or a new one for a new cluster. One that cannot be read says so when it is opened."""
    for path in log_dirs:
        try:
            return read_meta_properties(disk, path)["cluster.id"]
        except (OSError, KeyError, CorruptFile):
            continue
    return base64.urlsafe_b64encode(entropy.random_bytes(UUID_BYTES)).decode().rstrip("=")


def real_ports() -> Ports:
    from headrace.ports.real.clock import RealClock
    from headrace.ports.real.disk import RealDisk
    from headrace.ports.real.entropy import RealEntropy
    from headrace.ports.real.network import RealNetwork
    from headrace.ports.real.spawner import ThreadSpawner

    network = RealNetwork()
    return Ports(RealClock(), RealDisk(), network, RealEntropy(), ThreadSpawner(network.wake, wake_on=network.wake_on))


def run(config: BrokerConfig, *, on_ready: Callable[[Node], None] = lambda node: None) -> int:
    """Run a broker in this process until a signal ends it; the exit status."""
    from headrace.broker.gc_policy import GcPolicy
    from headrace.ports.real.disk import raise_open_file_limit

    sys.setswitchinterval(HELPER_TURN_S)
    descriptors_max = raise_open_file_limit()
    node = Node(config, real_ports(), host_name=os.uname().nodename, descriptors_max=descriptors_max)
    _log_start(node)
    signals = 0

    def stop(_signal: int, _frame: FrameType | None) -> None:
        nonlocal signals
        signals += 1
        if signals > 1:
            os._exit(1)
        node.wake()

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    announced = False
    while not signals and not node.failed:
        node.turn(-1)
        if node.ready and not announced:
            announced = True
            on_ready(node)
            GcPolicy(timers=node.broker.timers, metrics=node.metrics).begin()
    return _end(node)


def _log_start(node: Node) -> None:
    from importlib.metadata import version

    from headrace.wire.compiled import has_request_helper

    node.logger.info(
        "broker starts",
        version=version("headrace"),
        data=", ".join(os.path.abspath(path) for path in node.config.log_dirs),
        listeners=", ".join(map(str, node.config.listeners)),
        helpers="compiled" if has_request_helper() else "pure Python",
        process=os.getpid(),
    )


def _end(node: Node) -> int:
    node.logger.info("broker stops")
    node.begin_stop()
    deadline_ms = node.broker.clock.monotonic_ms() + node.config.shutdown_timeout_ms
    while not node.failed and not node.drained and node.broker.clock.monotonic_ms() < deadline_ms:
        node.turn(STOP_TURN_MS)
    node.close()
    if not node.failed:
        node.logger.info("stopped cleanly")
    return 1 if node.failed else 0
