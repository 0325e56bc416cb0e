"""This broker as a member of its cluster: its own life cycle, and what it does for all members as the controller."""

from collections.abc import Callable

from headrace.broker.cluster.broker_lifecycle import BrokerLifecycle
from headrace.broker.cluster.controller_host import ControllerHost
from headrace.broker.cluster.log_end_reports import LogEndOf, LogEndReporter
from headrace.broker.cluster.membership import Membership
from headrace.broker.cluster.replica_care import ReplicaCare
from headrace.broker.logs import NodeLogger
from headrace.broker.peers.requests import PeerRequests
from headrace.broker.timers import Timers
from headrace.core.controller.health import HealthReport
from headrace.core.controller.settings import ControllerSettings
from headrace.model.configs.values import BrokerConfig
from headrace.model.ids import NodeId


class ClusterMember:
    def __init__(
        self,
        *,
        config: Callable[[], BrokerConfig],
        cluster_id: str,
        controller: ControllerHost,
        peers: PeerRequests,
        timers: Timers,
        logger: NodeLogger,
        log_end_of: LogEndOf,
        health: Callable[[], HealthReport],
    ) -> None:
        """`config` returns the configs in force, of which some change while the broker runs."""
        timeouts = config().cluster
        node_id = NodeId(config().node_id)
        self.membership = Membership(
            node_id=node_id,
            cluster_id=cluster_id,
            controller=controller,
            session_timeout_ms=timeouts.session_timeout_ms,
            peers=peers,
            timers=timers,
            logger=logger,
            replica_care=ReplicaCare(
                controller=controller,
                timers=timers,
                logger=logger,
                settings=lambda: ControllerSettings.of(config()),
                balance_interval_ms=lambda: config().leader_balance_interval_ms,
            ),
        )
        self.lifecycle = BrokerLifecycle(
            node_id=node_id,
            controller=controller,
            membership=self.membership,
            peers=peers,
            timers=timers,
            logger=logger,
            health=health,
            heartbeat_interval_ms=timeouts.heartbeat_interval_ms,
            session_timeout_ms=timeouts.session_timeout_ms,
        )
        self.log_end_reporter = LogEndReporter(
            node_id=node_id,
            broker_epoch=lambda: self.lifecycle.broker_epoch,
            controller=controller,
            membership=self.membership,
            peers=peers,
            timers=timers,
            log_end_of=log_end_of,
        )
