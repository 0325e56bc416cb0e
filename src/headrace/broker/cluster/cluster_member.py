"""This broker as a member of its cluster: its own life cycle, and what it does for all members as the controller."""

from headrace.broker.cluster.broker_lifecycle import BrokerLifecycle
from headrace.broker.cluster.controller_host import ControllerHost
from headrace.broker.cluster.membership import Membership
from headrace.broker.cluster.replica_care import ReplicaCare
from headrace.broker.logs import NodeLogger
from headrace.broker.peers.requests import PeerRequests
from headrace.broker.timers import Timers
from headrace.model.configs.values import BrokerConfig
from headrace.model.ids import NodeId


class ClusterMember:
    def __init__(
        self,
        *,
        config: BrokerConfig,
        cluster_id: str,
        controller: ControllerHost,
        peers: PeerRequests,
        timers: Timers,
        logger: NodeLogger,
        replica_care: ReplicaCare,
    ) -> None:
        node_id = NodeId(config.node_id)
        self.membership = Membership(
            node_id=node_id,
            cluster_id=cluster_id,
            controller=controller,
            session_timeout_ms=config.cluster.session_timeout_ms,
            peers=peers,
            timers=timers,
            logger=logger,
            replica_care=replica_care,
        )
        self.lifecycle = BrokerLifecycle(
            node_id=node_id,
            controller=controller,
            membership=self.membership,
            peers=peers,
            timers=timers,
            logger=logger,
            heartbeat_interval_ms=config.cluster.heartbeat_interval_ms,
            session_timeout_ms=config.cluster.session_timeout_ms,
        )
