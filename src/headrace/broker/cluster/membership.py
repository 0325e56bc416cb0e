"""Members of the cluster as the active controller sees them: registrations, heartbeats, and sessions that end.

A new active controller gives every unfenced broker a full session and probes it at once: a broker that died together
with the former controller is not missed for a whole session.
"""

from collections.abc import Sequence
from functools import partial

from headrace.broker.cluster.controller_host import ControllerHost
from headrace.broker.cluster.proposal import Proposal, ProposalFailed
from headrace.broker.cluster.replica_care import ReplicaCare
from headrace.broker.logs import NodeLogger
from headrace.broker.peers.events import PeerEvent, PeerLost, PeerRefused
from headrace.broker.peers.requests import PeerFailure, PeerRequests
from headrace.broker.timers import Timers
from headrace.core.controller.commands import (
    BrokerHeartbeat,
    BrokerRegistration,
    BrokerResult,
    BrokerState,
    NewBroker,
)
from headrace.core.controller.health import BrokerHealths, HealthReport
from headrace.core.controller.recoveries import LogEnd, LogEndReports
from headrace.core.controller.replica_faults import FaultyReplica
from headrace.core.controller.sessions import BrokerSession, BrokerSessions
from headrace.core.controller.shutdowns import ControlledShutdowns
from headrace.model.ids import NodeId
from headrace.wire.apis import ApiKey
from headrace.wire.messages.api_versions import ApiVersionsRequest

PROBE_TIMEOUT_MS = 2_000
REPORT_TIMEOUT_MS = 2_000


class Membership:
    def __init__(
        self,
        *,
        node_id: NodeId,
        cluster_id: str,
        controller: ControllerHost,
        session_timeout_ms: float,
        peers: PeerRequests,
        timers: Timers,
        logger: NodeLogger,
        replica_care: ReplicaCare,
    ) -> None:
        self._node_id = node_id
        self._cluster_id = cluster_id
        self._controller = controller
        self._sessions = BrokerSessions(session_timeout_ms)
        self._shutdowns = ControlledShutdowns()
        self._healths = BrokerHealths()
        self._log_ends = LogEndReports()
        self._peers = peers
        self._timers = timers
        self._logger = logger
        self._replica_care = replica_care
        self._activations = 0
        """Counts the times that this node became active; work that began under an earlier count has ended."""
        self._reset: dict[NodeId, int] = {}
        """The broker epochs of peers whose link was reset, until the next connection succeeds or fails."""
        controller.on_activity_changed = self._activity_changed

    # Activity

    def _activity_changed(self, is_active: bool) -> None:
        self._activations += 1
        self._sessions.clear()
        self._shutdowns.clear()
        self._healths.clear()
        self._log_ends.clear()
        self._replica_care.activity_changed()
        if is_active:
            self._controller.found_cluster()
            for broker in tuple(self._controller.image.brokers.values()):
                if not broker.fenced and broker.node_id != self._node_id:
                    self._find(BrokerSession(broker.node_id, broker.broker_epoch))
            self._check(self._activations)

    def _find(self, session: BrokerSession) -> None:
        """Begin a full session of a broker, and check that its process accepts connections."""
        self._sessions.open(session, self._timers.now_ms())
        self._peers.send(
            session.node_id,
            ApiKey.API_VERSIONS,
            0,
            ApiVersionsRequest(),
            timeout_ms=PROBE_TIMEOUT_MS,
            then=partial(self._probed, self._activations, session),
        )

    def _probed(self, activation: int, session: BrokerSession, outcome: object) -> None:
        if activation == self._activations and isinstance(outcome, PeerFailure):
            self._end_if_gone(session, refused=outcome.connection_refused)

    def _check(self, activation: int) -> None:
        """Fence the brokers whose sessions are over; repeat this while this node is active."""
        if activation != self._activations:
            return
        for session in self._sessions.expired(self._timers.now_ms()):
            if session.node_id != self._node_id:  # this process cannot be gone while it checks
                seconds = self._sessions.timeout_ms / 1000
                self._fence(session, f"broker {session.node_id} sent no heartbeat for {seconds:g} s and is fenced")
        self._replica_care.check()
        self._timers.after(self._sessions.check_interval_ms, partial(self._check, activation))

    def _fence(self, session: BrokerSession, message: str) -> None:
        self._logger.warning(message)
        self._controller.fence_broker(session.node_id, session.broker_epoch).then(partial(self._fenced, session))

    def _fenced(self, session: BrokerSession, outcome: BrokerResult | ProposalFailed) -> None:
        if isinstance(outcome, ProposalFailed) and self._controller.is_active and not self._sessions.has(session):
            self._sessions.open(session, self._timers.now_ms())  # decide again when this one is over

    # Requests of brokers

    def register(self, new: NewBroker) -> Proposal[BrokerRegistration]:
        registration = self._controller.register_broker(
            new, cluster_id=self._cluster_id, session_is_live=lambda: self._sessions.is_live(new.node_id)
        )
        answered: Proposal[BrokerRegistration] = Proposal()
        registration.then(partial(self._registered, new.node_id, answered))
        return answered

    def _registered(
        self,
        node_id: NodeId,
        answered: Proposal[BrokerRegistration],
        outcome: BrokerRegistration | ProposalFailed,
    ) -> None:
        if isinstance(outcome, BrokerRegistration) and not outcome.error and self._controller.is_active:
            self._sessions.open(BrokerSession(node_id, outcome.broker_epoch), self._timers.now_ms())
        answered.complete(outcome)

    def heartbeat(self, beat: BrokerHeartbeat) -> Proposal[BrokerState]:
        session = BrokerSession(beat.node_id, beat.broker_epoch)
        broker = self._controller.image.brokers.get(beat.node_id)
        if broker is not None and broker.broker_epoch == beat.broker_epoch and self._controller.is_active:
            self._sessions.open(session, self._timers.now_ms())
            self._shutdowns.heard(session, beat.metadata_offset)
            self._note_health(session, beat.health, is_impaired=broker.impaired)
        state = self._controller.heartbeat(
            beat, moves_are_seen=lambda: self._shutdowns.are_moves_seen(session, self._controller.image)
        )
        if not beat.wants_shut_down:
            return state
        answered: Proposal[BrokerState] = Proposal()
        state.then(partial(self._shuts_down, session, answered))
        return answered

    def _shuts_down(
        self, session: BrokerSession, answered: Proposal[BrokerState], outcome: BrokerState | ProposalFailed
    ) -> None:
        if isinstance(outcome, BrokerState) and not outcome.error and self._controller.is_active:
            if outcome.should_shut_down:
                self._sessions.close(session)
            else:
                self._shutdowns.moved(session, self._controller.image.version - 1)
        answered.complete(outcome)

    def _note_health(self, session: BrokerSession, report: HealthReport, *, is_impaired: bool) -> None:
        now_ms = self._timers.now_ms()
        impaired = self._healths.heard(session, report, is_impaired=is_impaired, now_ms=now_ms)
        if impaired is not None:
            proposal = self._controller.set_impaired(session.node_id, session.broker_epoch, impaired=impaired)
            proposal.then(partial(self._impaired, session.node_id, report, impaired))

    def _impaired(self, node_id: NodeId, report: HealthReport, impaired: bool, outcome: bool | ProposalFailed) -> None:
        if outcome is not True:
            return
        if impaired:
            self._logger.warning(f"broker {node_id} is impaired, and others lead its partitions: {report.text}")
        else:
            self._logger.info(f"broker {node_id} is not impaired any more")

    def unregister(self, node_id: NodeId) -> Proposal[BrokerResult]:
        return self._controller.unregister_broker(node_id)

    # Log ends

    def log_ends(self, node_id: NodeId, broker_epoch: int, ends: list[LogEnd]) -> None:
        """Take the log ends that a broker reports, and elect leaders where all have reported."""
        broker = self._controller.image.brokers.get(node_id)
        if broker is None or broker.broker_epoch != broker_epoch or not self._controller.is_active:
            return
        self._log_ends.add(self._controller.image, node_id, broker_epoch, ends)
        self._controller.recover(self._log_ends).then(self._recovered)

    def _recovered(self, outcome: tuple[str, ...] | ProposalFailed) -> None:
        for note in () if isinstance(outcome, ProposalFailed) else outcome:
            self._logger.warning(note)

    # Faulty replicas

    def replica_faults(self, node_id: NodeId, broker_epoch: int, faulty: Sequence[FaultyReplica]) -> None:
        """Take away what the broker cannot use; it repeats the report until its metadata shows the decision."""
        if self._controller.is_active:
            self._controller.exclude_faulty(node_id, broker_epoch, faulty)

    # Evidence that a process is gone

    def peer_event(self, event: PeerEvent) -> None:
        """Handle an event of a peer link: a reset followed by a refused connection shows that the process is gone."""
        match event:
            case PeerLost(reset=True):
                broker = self._controller.image.brokers.get(event.peer.node_id)
                if broker is not None:
                    self._reset[broker.node_id] = broker.broker_epoch
            case PeerRefused():
                epoch = self._reset.pop(event.node_id, None)
                if epoch is not None:
                    self._report(event.node_id, epoch)
            case _:
                self._reset.pop(event.peer.node_id, None)

    def _report(self, node_id: NodeId, broker_epoch: int) -> None:
        """Report it to the active controller. A lost report is not repeated, because the session will end anyway."""
        active = self._controller.active_controller
        if self._controller.is_active:
            self.broker_gone(node_id, broker_epoch)
        elif active is not None and active not in (node_id, self._node_id):
            from headrace.wire.messages.report_broker_gone import ReportBrokerGoneRequest  # a single node needs none

            self._peers.send(
                active,
                ApiKey.REPORT_BROKER_GONE,
                0,
                ReportBrokerGoneRequest(broker_id=node_id, broker_epoch=broker_epoch),
                timeout_ms=REPORT_TIMEOUT_MS,
                then=lambda _response: None,
            )

    def broker_gone(self, node_id: NodeId, broker_epoch: int) -> None:
        """Fence a broker epoch whose link was reset and whose address refuses connections."""
        if self._controller.is_active:
            self._end_if_gone(BrokerSession(node_id, broker_epoch), refused=True)

    def _end_if_gone(self, session: BrokerSession, *, refused: bool) -> None:
        if session.node_id != self._node_id and self._sessions.gone(session, refused=refused):
            self._fence(session, f"broker {session.node_id} refuses connections and is fenced")
