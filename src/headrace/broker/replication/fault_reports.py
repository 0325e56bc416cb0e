"""Reports replicas that this broker cannot use as it should, until the active controller has excluded them.

A report names the leader epoch of each partition. The decision begins another one if records may be missing; a replica
is repaired when this node sees it outside both sets in a newer epoch than that of its report.
"""

from collections.abc import Callable

from headrace.broker.cluster.controller_host import ControllerHost
from headrace.broker.cluster.membership import Membership
from headrace.broker.peers.requests import PeerRequests
from headrace.broker.replication.faulty_replicas import FaultyReplicas, LocalFault
from headrace.broker.timers import Timers
from headrace.core.controller.partition_states import PartitionState
from headrace.core.controller.replica_faults import (
    FAULTS_PER_REQUEST_MAX,
    FaultyReplica,
    ReplicaFault,
    may_be_replaced,
)
from headrace.model.ids import NO_NODE, NodeId, TopicId
from headrace.wire.apis import ApiKey

CHECK_INTERVAL_MS = 1_000
"""Interval of checks for faulty replicas, and of reports that repeat."""
REPORT_TIMEOUT_MS = 2_000


class FaultReporter:
    def __init__(
        self,
        *,
        node_id: NodeId,
        broker_epoch: Callable[[], int],
        controller: ControllerHost,
        membership: Membership,
        peers: PeerRequests,
        replicas: FaultyReplicas,
        timers: Timers,
    ) -> None:
        self._node_id = node_id
        self._broker_epoch = broker_epoch
        self._controller = controller
        self._membership = membership
        self._peers = peers
        self._replicas = replicas
        self._timers = timers
        self._epochs: dict[tuple[TopicId, int], int] = {}
        """The leader epochs of the faulty replicas when they were last seen in one of the sets, or first reported."""
        self._is_due = False

    def start(self) -> None:
        """Look for faulty replicas now, and repeatedly from now on."""
        self._look()
        self._timers.after(CHECK_INTERVAL_MS, self.start)

    def look_soon(self) -> None:
        """Look at the beginning of the next turn, because a fault was found."""
        if not self._is_due:
            self._is_due = True
            self._timers.next_turn(self._look)

    def _look(self) -> None:
        self._is_due = False
        epochs, self._epochs = self._epochs, {}
        to_report: list[FaultyReplica] = []
        for each in self._replicas.find():
            state = self._controller.image.partition(each.topic, each.partition)
            if state is not None and self._node_id in state.replicas:
                key = (each.topic_id, each.partition)
                epoch = self._epochs[key] = self._handle(each, state, epochs.get(key, state.leader_epoch), to_report)
                assert epoch <= state.leader_epoch
        if to_report:
            self._send(to_report[:FAULTS_PER_REQUEST_MAX])

    def _handle(self, faulty: LocalFault, state: PartitionState, epoch: int, to_report: list[FaultyReplica]) -> int:
        """Report, repair or wait; return the leader epoch that the report names."""
        is_needed = self._node_id == state.leader or self._node_id in (*state.isr, *state.elr)
        if is_needed and not may_be_replaced(state, self._node_id, faulty.fault):
            self._replicas.keep(faulty)
        elif is_needed or (faulty.fault is not ReplicaFault.FULL and epoch == state.leader_epoch):
            epoch = state.leader_epoch
            to_report.append(FaultyReplica(faulty.topic_id, faulty.partition, epoch, faulty.fault))
        elif faulty.fault is not ReplicaFault.FULL and state.leader != NO_NODE:
            self._replicas.repair(faulty)
        return epoch

    def _send(self, faulty: list[FaultyReplica]) -> None:
        active, epoch = self._controller.active_controller, self._broker_epoch()
        if self._controller.is_active:
            self._membership.replica_faults(self._node_id, epoch, faulty)
        elif active is not None and active != self._node_id:
            from headrace.wire.messages.report_replica_faults import (  # a sound node needs none
                ReportReplicaFaultsRequest,
                ReportReplicaFaultsRequestPartition,
            )

            request = ReportReplicaFaultsRequest(
                broker_id=self._node_id,
                broker_epoch=epoch,
                partitions=tuple(
                    ReportReplicaFaultsRequestPartition(
                        topic_id=each.topic_id,
                        partition_index=each.partition,
                        leader_epoch=each.leader_epoch,
                        fault=each.fault,
                    )
                    for each in faulty
                ),
            )
            self._peers.send(
                active,
                ApiKey.REPORT_REPLICA_FAULTS,
                0,
                request,
                timeout_ms=REPORT_TIMEOUT_MS,
                then=lambda _response: None,
            )
