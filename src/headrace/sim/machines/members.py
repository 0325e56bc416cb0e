"""A broker on a Raft replica: its life cycle, and the controller while the replica leads. Pure machines, no ports."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple, Protocol

from headrace.core.controller.commands import (
    BrokerHeartbeat,
    BrokerRegistration,
    BrokerState,
    ControllerDecision,
    IsrAlteration,
    NewBroker,
)
from headrace.core.controller.controller import Controller
from headrace.core.controller.features import SUPPORTED_FEATURES
from headrace.core.controller.image import MetadataImage
from headrace.core.controller.lifecycle import (
    Beat,
    CatchUp,
    Effect,
    Fail,
    Lifecycle,
    OpenPartitions,
    Register,
    Wait,
)
from headrace.core.controller.records import Endpoint, Record
from headrace.core.controller.recoveries import LogEnd, LogEndReports
from headrace.core.controller.sessions import BrokerSession, BrokerSessions
from headrace.core.controller.settings import ControllerSettings
from headrace.core.raft.entries import LogEntry, StateSnapshot
from headrace.core.raft.events import Propose
from headrace.core.raft.leadership import Leadership
from headrace.model.ids import NodeId
from headrace.sim.machines.agenda import Agenda
from headrace.sim.machines.links import LinkNetwork
from headrace.sim.machines.replica import SimulatedReplica

CLUSTER_ID = "cluster-of-machines"
SESSION_MS = 1_000
HEARTBEAT_MS = 150
DUPLICATE_WAIT_MS = 20_000
REQUEST_MS_MAX = 500
RECONNECT_MS = 20
REPORT_MS_MAX = 800
"""The longest time between a refused connection and the report of it to the controller."""

Reply = Callable[[Any], None]


class MemberObserver(Protocol):
    """Checks that observe what brokers and controllers do."""

    def opened(self, member: "SimulatedMember") -> None: ...

    def fences(self, controller: "SimulatedMember", session: BrokerSession) -> None: ...

    def failed(self, member: "SimulatedMember", message: str) -> None: ...


class ReportedLogEnds(NamedTuple):
    """Log ends of replicas on a broker, for partitions without a replica that is known to have every record."""

    node_id: NodeId
    broker_epoch: int
    ends: list[LogEnd]


Content = NewBroker | BrokerHeartbeat | IsrAlteration | ReportedLogEnds


class _Request(NamedTuple):
    number: int
    content: NewBroker | BrokerHeartbeat


class SimulatedMember:
    def __init__(
        self,
        replica: SimulatedReplica,
        *,
        agenda: Agenda,
        links: LinkNetwork,
        changes: dict[bytes, tuple[Record, ...]],
        observer: MemberObserver,
        member_of: Callable[[int], "SimulatedMember"],
        draw: Callable[[int], int],
    ) -> None:
        self.replica = replica
        self._agenda = agenda
        self._links = links
        self._changes = changes
        """The records of every proposal, by its payload."""
        self._observer = observer
        self._member_of = member_of
        self._draw = draw
        self.image = MetadataImage()
        self.lifecycle = Lifecycle(heartbeat_interval_ms=HEARTBEAT_MS, duplicate_wait_ms=DUPLICATE_WAIT_MS)
        self.controller: Controller | None = None
        self.sessions = BrokerSessions(SESSION_MS)
        self.beats: dict[BrokerSession, float] = {}
        """When this controller last took a heartbeat, by its own clock."""
        self._leadership: Leadership | None = None
        self._waiting: list[tuple[int, Reply, Any]] = []
        """Responses that wait for the commit of an entry, by its index."""
        self._request: _Request | None = None
        self._requests = 0
        self._waits = 0
        self._catching_up: int | None = None
        self.settings = ControllerSettings()
        self.boot_id = ""
        self.log_ends = LogEndReports()
        self.on_started: Callable[[], None] = lambda: None
        self.on_applied: Callable[[Sequence[Record]], None] = lambda records: None
        """Called with the records of each entry before they are applied, and with none after them."""

    @property
    def node_id(self) -> NodeId:
        return NodeId(self.replica.node_id)

    @property
    def is_running(self) -> bool:
        return self.replica.machine is not None

    def later(self, delay_ms: float, action: Callable[[], None]) -> None:
        """Run an action of this process after some time, unless the process has ended by then."""
        boots = self.replica.boots

        def run() -> None:
            if self.is_running and self.replica.boots == boots:
                action()

        self._agenda.add(delay_ms, lambda: self.replica.when_running(run))

    # The process and its state

    def started(self) -> None:
        self._rebuild(self.replica.disk.stored.snapshot.index)
        self.lifecycle = Lifecycle(heartbeat_interval_ms=HEARTBEAT_MS, duplicate_wait_ms=DUPLICATE_WAIT_MS)
        self._request = self._catching_up = None
        self.on_started()
        self._carry_out(self.lifecycle.begin())

    def ended(self) -> None:
        self._resign()

    def restored(self, snapshot: StateSnapshot) -> None:
        self._rebuild(snapshot.index)

    def _rebuild(self, index: int) -> None:
        self.image = MetadataImage()
        for payload in self.replica.applied:
            self._apply(self.image, payload)
        self.image.version = index

    def _apply(self, image: MetadataImage, payload: bytes) -> None:
        for record in self._changes.get(payload, ()):
            image.apply(record)

    def applied(self, entry: LogEntry) -> None:
        self.on_applied(self._changes.get(entry.payload, ()))
        self._apply(self.image, entry.payload)
        self.image.version = entry.index
        self.on_applied(())
        self._follow_image()

    def _follow_image(self) -> None:
        if self._catching_up is not None and self.image.version > self._catching_up:
            epoch, self._catching_up = self._catching_up, None
            self._carry_out(self.lifecycle.reached(epoch))
        own = self.image.brokers.get(self.node_id)
        if own is not None:
            self._carry_out(self.lifecycle.image_changed(broker_epoch=own.broker_epoch, is_fenced=own.fenced))

    # The life cycle

    def _carry_out(self, effects: tuple[Effect, ...]) -> None:
        for effect in effects:
            match effect:
                case Register():
                    self._ask(self._registration(effect.previous_epoch))
                case Beat():
                    self._ask(self._heartbeat(effect))
                case Wait():
                    self._waits += 1
                    self.later(effect.delay_ms, partial(self._resume, self._waits))
                case CatchUp():
                    self._catching_up = effect.broker_epoch
                    self._follow_image()
                case OpenPartitions():
                    self._observer.opened(self)
                case Fail():
                    self._observer.failed(self, effect.message)
                case _:
                    pass

    def _resume(self, wait: int) -> None:
        if wait == self._waits:
            self._carry_out(self.lifecycle.resume())

    def _registration(self, previous_epoch: int) -> NewBroker:
        node = self.node_id
        return NewBroker(
            node_id=node,
            cluster_id=CLUSTER_ID,
            incarnation=self.replica.boots.to_bytes(16, "big"),
            endpoints=[Endpoint("PLAINTEXT", f"host{node}", 9092, "PLAINTEXT")],
            rack=None,
            host=f"host{node}",
            features=SUPPORTED_FEATURES,
            metadata_directory=self.replica.key.directory_id.encode(),
            previous_epoch=previous_epoch,
            boot_id=self.boot_id,
        )

    def _heartbeat(self, beat: Beat) -> BrokerHeartbeat:
        return BrokerHeartbeat(
            node_id=self.node_id,
            broker_epoch=beat.broker_epoch,
            metadata_offset=self.image.version - 1,
            wants_fence=beat.wants_fence,
            wants_shut_down=beat.wants_shut_down,
        )

    def _ask(self, content: NewBroker | BrokerHeartbeat) -> None:
        """Send a request to the active controller; one at a time."""
        if self._request is not None:
            return
        self._waits += 1  # the next request follows the response
        machine = self.replica.machine
        leader = machine.state.leader if machine is not None else None
        if leader is None:
            self.later(0, lambda: self._carry_out(self.lifecycle.unanswered()))
            return
        self._requests += 1
        request = self._request = _Request(self._requests, content)
        to = self._member_of(leader.node_id)
        self._links.send_once(self.node_id, to.node_id, partial(to.take, content, partial(self._answer, request)))
        self.later(REQUEST_MS_MAX, partial(self._answered, request, None))

    def _answer(self, request: _Request, response: Any) -> None:
        """Take a response that has arrived."""
        self.replica.when_running(partial(self._answered, request, response))

    def _answered(self, request: _Request, response: Any) -> None:
        if self._request is not request or not self.is_running:
            return
        self._request = None
        match response:
            case BrokerRegistration():
                self._carry_out(self.lifecycle.registered(response, self.replica.local_ms()))
            case BrokerState():
                self._carry_out(self.lifecycle.beat_answered(response))
            case _:
                self._carry_out(self.lifecycle.unanswered())

    # The controller

    def settled(self) -> None:
        """Follow the replica: become the active controller, or cease to be, and release committed responses."""
        machine = self.replica.machine
        leadership = machine.leadership if machine is not None else None
        active = leadership if leadership is not None and leadership.is_committed else None
        if active is not self._leadership:
            self._resign()
            if active is not None:
                self._activate(active)
        self._release()

    def _activate(self, leadership: Leadership) -> None:
        self._leadership = leadership
        self.controller = Controller(self.image.copy(), self.settings)
        self.controller.image.version = self.image.version
        self._propose(self.controller.found_cluster(), lambda _response: None)
        for broker in list(self.image.brokers.values()):
            if not broker.fenced and broker.node_id != self.node_id:
                session = BrokerSession(broker.node_id, broker.broker_epoch)
                self.sessions.open(session, self.replica.local_ms())
                self._connect_again(session)
        self._check_sessions(leadership)

    def _resign(self) -> None:
        self._leadership = self.controller = None
        self.sessions = BrokerSessions(SESSION_MS)
        self.beats.clear()
        self._waiting.clear()
        self.log_ends.clear()

    def _release(self) -> None:
        applied = self.image.version
        due = [each for each in self._waiting if each[0] <= applied]
        self._waiting = [each for each in self._waiting if each[0] > applied]
        for _, reply, response in due:
            reply(response)

    def take(self, content: Content, answer: Reply) -> None:
        """Take a request that has arrived, if the process runs; the response travels back."""
        sender = content.node_id

        def reply(response: Any) -> None:
            self._links.send_once(self.node_id, sender, partial(answer, response))

        self.replica.when_running(partial(self._decide, content, reply))

    def _decide(self, content: Content, reply: Reply) -> None:
        machine = self.replica.machine
        if machine is None:
            return
        if self.controller is None:
            reply(None)
            return
        self.controller.image.version = machine.state.log.last_index
        if isinstance(content, NewBroker):
            is_live = self.sessions.is_live(content.node_id)
            decision = self.controller.register_broker(content, cluster_id=CLUSTER_ID, session_is_live=is_live)
            self._propose(decision, partial(self._registered, self._leadership, content.node_id, reply))
        elif isinstance(content, IsrAlteration):
            self._propose(self.controller.alter_isrs(content), reply)
        elif isinstance(content, ReportedLogEnds):
            self.log_ends.add(self.controller.image, *content)
            self._propose(self.controller.recover(self.log_ends), reply)
        else:
            self._take_beat(content)
            self._propose(self.controller.heartbeat(content), reply)

    def _registered(
        self, leadership: Leadership | None, node_id: NodeId, reply: Reply, registration: BrokerRegistration
    ) -> None:
        if not registration.error and leadership is self._leadership:
            self.sessions.open(BrokerSession(node_id, registration.broker_epoch), self.replica.local_ms())
        reply(registration)

    def _take_beat(self, beat: BrokerHeartbeat) -> None:
        assert self.controller is not None
        broker = self.controller.image.brokers.get(beat.node_id)
        if broker is not None and broker.broker_epoch == beat.broker_epoch:
            session = BrokerSession(beat.node_id, beat.broker_epoch)
            self.sessions.open(session, self.replica.local_ms())
            self.beats[session] = self.replica.local_ms()

    def propose(self, decide: Callable[[Controller], ControllerDecision[Any]], reply: Reply) -> None:
        """Let a client change the metadata, if this is the active controller."""
        if self.controller is not None:
            self._propose(decide(self.controller), reply)

    def _propose(self, decision: ControllerDecision[Any], reply: Reply) -> None:
        """Append the records and apply them at once; the response waits until all that it saw is committed."""
        controller = self.controller
        assert controller is not None
        if decision.records:
            payload = b"c%d.%d.%d" % (self.node_id, self.replica.boots, len(self._changes))
            machine = self.replica.machine
            assert machine is not None
            index = machine.state.log.last_index + 1
            self._changes[payload] = decision.records
            self.replica.submit(Propose(ticket=payload.decode(), payloads=(payload,)))
            if machine.state.log.last_index < index or self.controller is not controller:
                return  # refused or deposed: the sender asks again
            for record in decision.records:
                controller.apply(record)
            controller.image.version = index
        self._waiting.append((controller.image.version, reply, decision.response))
        self._release()

    # Sessions

    def _check_sessions(self, leadership: Leadership) -> None:
        if leadership is not self._leadership:
            return
        for session in self.sessions.expired(self.replica.local_ms()):
            if session.node_id != self.node_id:
                self._fence(session)
        self.later(self.sessions.check_interval_ms, partial(self._check_sessions, leadership))

    def _fence(self, session: BrokerSession) -> None:
        if self.controller is not None:
            self._observer.fences(self, session)
            self._propose(self.controller.fence_broker(session.node_id, session.broker_epoch), lambda _response: None)

    # Evidence that a process is gone

    def connection_reset(self, peer: "SimulatedMember") -> None:
        """Note that the connection to a peer broke, and connect again."""
        broker = self.image.brokers.get(peer.node_id) if self.is_running else None
        if broker is not None:
            session = BrokerSession(broker.node_id, broker.broker_epoch)
            self._end_if_gone(session, refused=False)
            self.later(RECONNECT_MS, partial(self._connect_again, session))

    def _connect_again(self, session: BrokerSession) -> None:
        """Connect to a peer; a host without the process refuses, and the controller hears of it a while later."""
        peer = self._member_of(session.node_id)

        def refused() -> None:
            self.later(self._draw(REPORT_MS_MAX), partial(self._report, session))

        def arrive() -> None:
            if not peer.is_running:
                self._links.send_once(peer.node_id, self.node_id, partial(self.replica.when_running, refused))

        self._links.send_once(self.node_id, peer.node_id, arrive)

    def _report(self, session: BrokerSession) -> None:
        machine = self.replica.machine
        leader = machine.state.leader if machine is not None else None
        if leader is not None:
            controller = self._member_of(leader.node_id)
            hint = partial(controller._end_if_gone, session, refused=True)
            self._links.send_once(self.node_id, controller.node_id, partial(controller.replica.when_running, hint))

    def _end_if_gone(self, session: BrokerSession, *, refused: bool) -> None:
        if self.controller is not None and self.sessions.gone(session, refused=refused):
            self._fence(session)
