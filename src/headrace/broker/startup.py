"""Start-up of a broker: carries out the steps of its life cycle on the node.

The broker registers; when its metadata has reached the registration, it recovers its partitions; when the controller
has unfenced it, background work starts and clients are admitted.
"""

from collections.abc import Callable, Sequence
from typing import Protocol

from headrace.broker.broker import RunningBroker
from headrace.broker.cluster.broker_lifecycle import LifecycleHooks
from headrace.broker.compaction import Compactor
from headrace.broker.config_warnings import ConfigWarnings
from headrace.broker.listeners import Listeners
from headrace.broker.net.loop import Loop
from headrace.core.controller.commands import NewBroker
from headrace.core.controller.features import SUPPORTED_FEATURES
from headrace.core.controller.records import Endpoint
from headrace.model.ids import TopicPartition

INCARNATION_BYTES = 16
MISSING_NAMED_MAX = 3


class BackgroundTask(Protocol):
    def start(self) -> None: ...


class Startup:
    """Takes a composed node to the point where it serves clients.

    `begin` returns at once. The rest runs in the turns in which the broker is registered and unfenced.
    """

    def __init__(
        self,
        *,
        broker: RunningBroker,
        loop: Loop,
        listeners: Listeners,
        cluster_endpoint: Endpoint | None,
        host_name: str,
        background: Sequence[BackgroundTask],
        compactor: Compactor,
        clean_shutdown: bool,
        on_ready: Callable[[], None],
        on_failed: Callable[[], None],
    ) -> None:
        """`cluster_endpoint` is the address for other nodes; None on a node that has no listener for them."""
        self._broker = broker
        self._static_config = broker.config
        self._loop = loop
        self._listeners = listeners
        self._cluster_endpoint = cluster_endpoint
        self._host_name = host_name
        self._background = background
        self._compactor = compactor
        self._clean_shutdown = clean_shutdown
        self._on_ready = on_ready
        self._on_failed = on_failed
        self._has_lost_logs = False

    def begin(self) -> None:
        """Register with the active controller."""
        self._incarnation = self._broker.entropy.random_bytes(INCARNATION_BYTES)
        hooks = LifecycleHooks(
            lacks_logs=self._lacks_logs,
            open_partitions=lambda: self._attempt(self.open_partitions),
            admit_clients=lambda: self._attempt(self._admit_clients),
            failed=self._refused,
        )
        self._broker.lifecycle.begin(self._registration, hooks)

    def _registration(self, previous_epoch: int) -> NewBroker:
        broker, config = self._broker, self._static_config
        directories = broker.partitions.directories
        endpoints = self._listeners.endpoints(config.advertised_listeners, self._host_name)
        if self._cluster_endpoint is not None:
            endpoints.append(self._cluster_endpoint)
        return NewBroker(
            node_id=broker.node_id,
            cluster_id=broker.cluster_id,
            incarnation=self._incarnation,
            endpoints=endpoints,
            rack=config.rack,
            host=config.cluster.host or self._host_name,
            features=SUPPORTED_FEATURES,
            directories=tuple(directory.directory_id for directory in directories),
            is_controller=config.cluster.is_controller,
            metadata_directory=directories[0].directory_id,
            previous_epoch=previous_epoch,
            boot_id="" if self._has_lost_logs else broker.disk.boot_id(),
            closed_cleanly=self._clean_shutdown and not self._has_lost_logs,
        )

    def _lacks_logs(self) -> bool:
        """Return whether the folder of a replica is gone that counts as one with all records.

        The broker then registers as another process that may have lost records, so that its replicas leave the in-sync
        and the eligible sets before any of them could lead with an empty log.
        """
        if self._has_lost_logs or not (lacking := self._missing_logs()):
            return False
        self._has_lost_logs = True
        self._incarnation = self._broker.entropy.random_bytes(INCARNATION_BYTES)
        named = ", ".join(map(str, lacking[:MISSING_NAMED_MAX]))
        self._broker.logger.warning(
            f"{len(lacking)} replicas have no folder here, such as {named}: they are copied from other brokers"
        )
        return True

    def _missing_logs(self) -> list[TopicPartition]:
        """Return the replicas of this node that should have all committed records, by the image, and have no folder.

        Those of partitions with one replica are left out: they cannot be copied from anywhere.
        """
        image, node_id = self._broker.image, self._broker.node_id
        if not image.replicates:
            return []
        found = {partition for directory in self._broker.partitions.directories for partition in directory.partitions()}
        lacking = []
        for topic in image.topics.values():
            for index in topic.partitions.held_by(node_id):
                state, name = topic.partitions[index], TopicPartition(topic.name, index)
                if len(state.replicas) > 1 and node_id in (*state.isr, *state.elr) and name not in found:
                    lacking.append(name)
        return lacking

    def _refused(self, message: str) -> None:
        self._on_failed()
        self._broker.logger.error(f"the controller refuses this broker: {message}")

    def _attempt(self, step: Callable[[], None]) -> None:
        try:
            step()
        except Exception as error:  # a node that cannot serve must stop and report why
            self._on_failed()
            self._broker.logger.error("broker cannot start: resolve the cause and start it again", cause=error)
            raise

    def _admit_clients(self) -> None:
        self._start_background_tasks()
        self._broker.authentication.start()
        self._listeners.admit_clients(self._loop, self._broker.authentication.session)
        self._listeners.warn_if_open(self._broker.logger)
        self._on_ready()

    def open_partitions(self) -> None:
        """Open the partitions of this broker, and apply every change of metadata from now on.

        The image must have reached the offset of this broker's registration: with an older one, folders would be put
        aside that belong to this broker, and others would be created empty.
        """
        broker = self._broker
        broker.take_dynamic_configs()
        broker.client_quotas.follow_image()
        began_ms = broker.clock.monotonic_ms()
        broker.partitions.open_all(broker.image)
        broker.replication.start()
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
        broker.log_end_reporter.start()
        broker.fault_reporter.start()
        warnings = ConfigWarnings(broker.image, broker.logger)
        warnings.started(self._static_config.layers.static)
        broker.controller.subscribe(warnings.image_changed)

    def _start_background_tasks(self) -> None:
        for task in self._background:
            task.start()
        self._compactor.start()
        self._broker.controller.subscribe(self._compactor.image_changed)
