"""Start-up of a node: register with the controller, be unfenced, recover the partitions, start background work, admit
clients.
"""

from collections.abc import Callable, Sequence
from typing import Protocol

from headrace.broker.broker import Broker
from headrace.broker.cluster.proposal import ProposalFailed
from headrace.broker.compaction import Compactor
from headrace.broker.config_warnings import ConfigWarnings
from headrace.broker.listeners import Listeners
from headrace.broker.net.loop import Loop
from headrace.core.controller.commands import BrokerHeartbeat, BrokerRegistration, BrokerState, NewBroker
from headrace.core.controller.features import SUPPORTED_FEATURES

INCARNATION_BYTES = 16


class BackgroundTask(Protocol):
    def start(self) -> None: ...


class Startup:
    """Takes a composed node to the point where it serves clients.

    `begin` returns at once. The rest runs in the turn in which the broker is unfenced.
    """

    def __init__(
        self,
        *,
        broker: Broker,
        loop: Loop,
        listeners: Listeners,
        host_name: str,
        background: Sequence[BackgroundTask],
        compactor: Compactor,
        clean_shutdown: bool,
        on_ready: Callable[[], None],
        on_unregistered: Callable[[], None],
        on_failed: Callable[[], None],
    ) -> None:
        """`on_unregistered` is called when the registration cannot be committed, `on_failed` on any other error."""
        self._broker = broker
        self._static_config = broker.config
        self._loop = loop
        self._listeners = listeners
        self._host_name = host_name
        self._background = background
        self._compactor = compactor
        self._clean_shutdown = clean_shutdown
        self._on_ready = on_ready
        self._on_unregistered = on_unregistered
        self._on_failed = on_failed

    def begin(self) -> None:
        """Found the cluster if it is new, and register with its controller."""
        broker, config = self._broker, self._static_config
        directories = broker.partitions.directories
        new = NewBroker(
            node_id=broker.node_id,
            cluster_id=broker.cluster_id,
            incarnation=broker.entropy.random_bytes(INCARNATION_BYTES),
            endpoints=self._listeners.endpoints(config.advertised_listeners, self._host_name),
            rack=config.rack,
            host=config.cluster.host or self._host_name,
            features=SUPPORTED_FEATURES,
            directories=tuple(directory.directory_id for directory in directories),
            is_controller=config.cluster.is_controller,
            metadata_directory=directories[0].directory_id,
        )
        broker.controller.found_cluster()
        broker.controller.register_broker(new, cluster_id=broker.cluster_id).then(self._registered)

    def _registered(self, outcome: BrokerRegistration | ProposalFailed) -> None:
        if isinstance(outcome, ProposalFailed):
            self._on_unregistered()
            return
        if outcome.error:
            self._broker.logger.error(f"broker cannot register: {outcome.message}")
            self._on_failed()
            return
        beat = BrokerHeartbeat(
            node_id=self._broker.node_id,
            broker_epoch=outcome.broker_epoch,
            metadata_offset=self._broker.image.version - 1,
        )
        self._broker.controller.heartbeat(beat).then(self._unfenced)

    def _unfenced(self, outcome: BrokerState | ProposalFailed) -> None:
        if isinstance(outcome, ProposalFailed):
            self._on_unregistered()
            return
        try:
            self.open_partitions()
            self._start_background_tasks()
            self._listeners.admit_clients(self._loop)
            self._listeners.warn_if_open(self._broker.logger)
            self._on_ready()
        except Exception as error:  # a node that cannot serve must stop and report why
            self._on_failed()
            self._broker.logger.error("broker cannot start: resolve the cause and start it again", cause=error)
            raise

    def open_partitions(self) -> None:
        """Open the partitions of this broker, and apply every change of metadata from now on.

        The image must have reached the offset of this broker's registration: with an older one, folders would be put
        aside that belong to this broker, and others would be created empty.
        """
        broker = self._broker
        broker.take_dynamic_configs()
        began_ms = broker.clock.monotonic_ms()
        broker.partitions.open_all(broker.image)
        self._log_recovery(broker.clock.monotonic_ms() - began_ms)
        self._follow_metadata()

    def _log_recovery(self, took_ms: float) -> None:
        count = len(self._broker.partitions)
        if count:
            noun = "partition" if count == 1 else "partitions"
            after = "after a clean stop" if self._clean_shutdown else "after an unclean stop"
            self._broker.logger.info(f"recovered {count} {noun} in {took_ms / 1000:.1f} s {after}")

    def _follow_metadata(self) -> None:
        broker = self._broker
        broker.controller.subscribe(broker.image_changed)
        warnings = ConfigWarnings(broker.image, broker.logger)
        warnings.started(self._static_config.layers.static)
        broker.controller.subscribe(warnings.image_changed)

    def _start_background_tasks(self) -> None:
        for task in self._background:
            task.start()
        self._compactor.start()
        self._broker.controller.subscribe(self._compactor.image_changed)
