"""Runs the life cycle of this broker: sends its registration and heartbeats to whichever controller is active.

The active controller may be this node itself, as in a cluster of one, or a peer. A request that fails is sent again to
the controller that is active then. The response to a request is ignored once a newer one is sent.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from headrace.broker.cluster.controller_host import ControllerHost
from headrace.broker.cluster.membership import Membership
from headrace.broker.cluster.proposal import ProposalFailed
from headrace.broker.logs import NodeLogger
from headrace.broker.peers.requests import PeerRequests
from headrace.broker.timers import Timer, Timers
from headrace.core.controller.commands import BrokerHeartbeat, BrokerRegistration, BrokerState, NewBroker
from headrace.core.controller.delta import MetadataDelta
from headrace.core.controller.health import HealthReport
from headrace.core.controller.lifecycle import (
    AdmitClients,
    Beat,
    CatchUp,
    Effect,
    Fail,
    Lifecycle,
    LifecycleState,
    OpenPartitions,
    Register,
    Stopped,
    Wait,
    Warn,
)
from headrace.model.ids import NodeId
from headrace.wire.apis import ApiKey

REGISTRATION_VERSION = 4
HEARTBEAT_VERSION = 1

REQUEST_TIMEOUT_MS = 2_000
"""The time for a response to a registration or heartbeat. After it, the request is sent again."""

CONTROLLED_SHUTDOWN_MS_MAX = 2_000
"""Time for the controller to let a broker stop. After it, the broker stops and is fenced when its session ends."""

DUPLICATE_SESSIONS = 1.5
"""A process with the same node id that still has a session after this many session timeouts is alive."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LifecycleHooks:
    """The parts of the node that the life cycle drives."""

    lacks_logs: Callable[[], bool]
    """Tells whether logs are missing, which the registration has not said."""
    open_partitions: Callable[[], None]
    admit_clients: Callable[[], None]
    failed: Callable[[str], None]


class BrokerLifecycle:
    def __init__(
        self,
        *,
        node_id: NodeId,
        controller: ControllerHost,
        membership: Membership,
        peers: PeerRequests,
        timers: Timers,
        logger: NodeLogger,
        health: Callable[[], HealthReport],
        heartbeat_interval_ms: float,
        session_timeout_ms: float,
    ) -> None:
        """`health` reports what the node has seen since the last call."""
        self._node_id = node_id
        self._health = health
        self._controller = controller
        self._membership = membership
        self._peers = peers
        self._timers = timers
        self._logger = logger
        self._machine = Lifecycle(
            heartbeat_interval_ms=heartbeat_interval_ms, duplicate_wait_ms=DUPLICATE_SESSIONS * session_timeout_ms
        )
        self._requests = 0
        """The number of the newest request; the response to an older one is ignored."""
        self._wait: Timer | None = None
        self._stopped: list[Callable[[], None]] = []

    @property
    def state(self) -> LifecycleState:
        return self._machine.state

    @property
    def broker_epoch(self) -> int:
        return self._machine.broker_epoch

    def begin(self, describe: Callable[[int], NewBroker], hooks: LifecycleHooks) -> None:
        """Register. `describe` returns the registration for a previous broker epoch of this process."""
        self._describe = describe
        self._hooks = hooks
        self._execute(self._machine.begin())

    def stop(self, then: Callable[[], None]) -> None:
        """Ask the controller to take this broker's partitions away; call back when it has, or after a limited time."""
        self._stopped.append(then)
        is_alone = all(node_id == self._node_id for node_id in self._controller.image.brokers)
        self._timers.after(CONTROLLED_SHUTDOWN_MS_MAX, lambda: self._execute(self._machine.released()))
        self._execute(self._machine.stop(is_alone=is_alone))

    # Effects

    def _execute(self, effects: tuple[Effect, ...]) -> None:
        for effect in effects:
            match effect:
                case Register():
                    self._register(effect.previous_epoch)
                case Beat():
                    self._beat(effect)
                case Wait():
                    self._wait_for(effect.delay_ms)
                case CatchUp():
                    epoch = effect.broker_epoch
                    self._controller.when_applied(epoch + 1, partial(self._reached, epoch))
                case OpenPartitions():
                    self._hooks.open_partitions()
                    self._controller.subscribe(self._image_changed)
                case AdmitClients():
                    self._hooks.admit_clients()
                case Warn():
                    self._logger.warning(effect.message)
                case Fail():
                    self._hooks.failed(effect.message)
                case Stopped():
                    stopped, self._stopped = self._stopped, []
                    for call in stopped:
                        call()

    def _wait_for(self, delay_ms: float) -> None:
        self._cancel_wait()
        self._wait = self._timers.after(delay_ms, self._resume)

    def _cancel_wait(self) -> None:
        if self._wait is not None:
            self._timers.cancel(self._wait)
            self._wait = None

    def _resume(self) -> None:
        self._wait = None
        self._execute(self._machine.resume())

    def _reached(self, broker_epoch: int) -> None:
        self._execute(self._machine.reached(broker_epoch, lacks_logs=self._hooks.lacks_logs()))
        self._follow_registration()

    def _image_changed(self, delta: MetadataDelta) -> None:
        if delta.brokers_changed:
            self._follow_registration()

    def _follow_registration(self) -> None:
        broker = self._controller.image.brokers.get(self._node_id)
        if broker is not None:
            changed = self._machine.image_changed(broker_epoch=broker.broker_epoch, is_fenced=broker.fenced)
            self._execute(changed)

    # Requests

    def _next_request(self) -> int:
        self._cancel_wait()
        self._requests += 1
        return self._requests

    @property
    def _remote(self) -> NodeId | None:
        """The peer to send to; None if this node is, or may become, the active controller."""
        active = self._controller.active_controller
        return None if active == self._node_id else active

    def _register(self, previous_epoch: int) -> None:
        number = self._next_request()
        new = self._describe(previous_epoch)
        remote = self._remote
        if remote is None:
            self._membership.register(new).then(partial(self._registered, number))
            return
        from headrace.broker.cluster import registration_messages as messages  # a single node starts without it

        self._peers.send(
            remote,
            ApiKey.BROKER_REGISTRATION,
            REGISTRATION_VERSION,
            messages.registration_request(new),
            timeout_ms=REQUEST_TIMEOUT_MS,
            then=lambda response: self._registered(number, messages.registration_result(response)),
        )

    def _registered(self, number: int, outcome: BrokerRegistration | ProposalFailed) -> None:
        if number != self._requests:
            return
        if isinstance(outcome, ProposalFailed):
            self._unanswered()
        else:
            self._execute(self._machine.registered(outcome, self._timers.now_ms()))

    def _beat(self, beat: Beat) -> None:
        number = self._next_request()
        heartbeat = BrokerHeartbeat(
            node_id=self._node_id,
            broker_epoch=beat.broker_epoch,
            metadata_offset=self._controller.image.version - 1,
            wants_fence=beat.wants_fence,
            wants_shut_down=beat.wants_shut_down,
            health=self._health(),
        )
        remote = self._remote
        if remote is None:
            self._membership.heartbeat(heartbeat).then(partial(self._beat_answered, number))
            return
        from headrace.broker.cluster import registration_messages as messages

        self._peers.send(
            remote,
            ApiKey.BROKER_HEARTBEAT,
            HEARTBEAT_VERSION,
            messages.heartbeat_request(heartbeat),
            timeout_ms=REQUEST_TIMEOUT_MS,
            then=lambda response: self._beat_answered(number, messages.state_result(response)),
        )

    def _beat_answered(self, number: int, outcome: BrokerState | ProposalFailed) -> None:
        if number != self._requests:
            return
        if isinstance(outcome, ProposalFailed):
            self._unanswered()
        else:
            self._execute(self._machine.beat_answered(outcome))

    def _unanswered(self) -> None:
        if self._controller.offline is not None:
            return  # the node stops, because its metadata log cannot be used any more
        self._execute(self._machine.unanswered())
