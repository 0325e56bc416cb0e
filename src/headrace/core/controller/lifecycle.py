"""The life cycle of a broker in its cluster: register, catch up, be unfenced, serve, and shut down. No I/O.

The host passes in what happened and carries out the effects: it sends one request to the active controller at a time,
opens the partitions when the metadata image has reached the registration, and admits clients when the image shows the
broker unfenced. Nothing is opened, renamed or created before that.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from headrace.core.controller.commands import BrokerRegistration, BrokerState
from headrace.model.errors import ErrorCode

RETRY_MS = 100
"""The pause before a failed request is sent again, for example because no controller is active."""

CATCH_UP_MS = 50
"""The interval between the heartbeats of a broker that waits to be unfenced."""

NO_BROKER_EPOCH = -1


class LifecycleState(StrEnum):
    INITIAL = "initial"
    CATCHING_UP = "catching up"
    FENCED = "fenced"
    UNFENCED = "unfenced"
    CONTROLLED_SHUTDOWN = "controlled shutdown"
    STOPPED = "stopped"
    FAILED = "failed"


class LifecycleEvent(StrEnum):
    REGISTERED = "the controller has registered the broker"
    REFUSED = "the controller refuses the registration for good"
    REACHED = "the image has reached the registration"
    LACKING = "logs of this broker are missing"
    UNFENCED = "the image shows the broker unfenced"
    FENCED = "the image shows the broker fenced"
    STALE = "the controller does not know the broker epoch"
    STOPPING = "the node stops"
    RELEASED = "the controller lets the broker stop, or does not answer in time"


_S, _E = LifecycleState, LifecycleEvent

TRANSITIONS: Mapping[tuple[LifecycleState, LifecycleEvent], LifecycleState] = {
    (_S.INITIAL, _E.REGISTERED): _S.CATCHING_UP,
    (_S.INITIAL, _E.REFUSED): _S.FAILED,
    (_S.INITIAL, _E.STOPPING): _S.STOPPED,
    (_S.CATCHING_UP, _E.REACHED): _S.FENCED,
    (_S.CATCHING_UP, _E.LACKING): _S.INITIAL,
    (_S.CATCHING_UP, _E.STALE): _S.INITIAL,
    (_S.CATCHING_UP, _E.STOPPING): _S.CONTROLLED_SHUTDOWN,
    (_S.FENCED, _E.UNFENCED): _S.UNFENCED,
    (_S.FENCED, _E.STALE): _S.INITIAL,
    (_S.FENCED, _E.STOPPING): _S.CONTROLLED_SHUTDOWN,
    (_S.UNFENCED, _E.FENCED): _S.FENCED,
    (_S.UNFENCED, _E.STALE): _S.INITIAL,
    (_S.UNFENCED, _E.STOPPING): _S.CONTROLLED_SHUTDOWN,
    (_S.CONTROLLED_SHUTDOWN, _E.STALE): _S.STOPPED,
    (_S.CONTROLLED_SHUTDOWN, _E.RELEASED): _S.STOPPED,
}
"""A state ignores the events for which it has no row."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Register:
    """Send a registration; `previous_epoch` is the broker epoch that this process had before."""

    previous_epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Beat:
    """Send a heartbeat."""

    broker_epoch: int
    wants_fence: bool
    wants_shut_down: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    """Call `resume` after this time."""

    delay_ms: float


@dataclass(frozen=True, slots=True, kw_only=True)
class CatchUp:
    """Call `reached` when the image contains the registration, which is at this offset."""

    broker_epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenPartitions:
    """Open the partitions of this broker: the image says which they are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AdmitClients:
    """Serve clients from now on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Warn:
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Fail:
    """Stop the node: it cannot be a broker of this cluster."""

    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Stopped:
    """The broker may stop: the controller has taken its partitions away from it."""


Effect = Register | Beat | Wait | CatchUp | OpenPartitions | AdmitClients | Warn | Fail | Stopped

_FINAL_REFUSALS = frozenset(
    {
        ErrorCode.INCONSISTENT_CLUSTER_ID,
        ErrorCode.UNSUPPORTED_VERSION,
        ErrorCode.INVALID_REGISTRATION,
        ErrorCode.POLICY_VIOLATION,
    }
)


class Lifecycle:
    """The state of this broker; at most one request to the controller is under way."""

    def __init__(self, *, heartbeat_interval_ms: float, duplicate_wait_ms: float) -> None:
        """`duplicate_wait_ms` is the time in which the session of a process with the same node id should end."""
        self.state = LifecycleState.INITIAL
        self.broker_epoch = NO_BROKER_EPOCH
        self._heartbeat_interval_ms = heartbeat_interval_ms
        self._duplicate_wait_ms = duplicate_wait_ms
        self._duplicate_since_ms: float | None = None
        self._is_open = False
        self._is_admitted = False

    @property
    def is_over(self) -> bool:
        return self.state in (LifecycleState.STOPPED, LifecycleState.FAILED)

    def begin(self) -> tuple[Effect, ...]:
        return (Register(previous_epoch=self.broker_epoch),)

    def resume(self) -> tuple[Effect, ...]:
        """Send the next request after a wait."""
        match self.state:
            case LifecycleState.INITIAL:
                return (Register(previous_epoch=self.broker_epoch),)
            case LifecycleState.STOPPED | LifecycleState.FAILED:
                return ()
            case _:
                return (
                    Beat(
                        broker_epoch=self.broker_epoch,
                        wants_fence=self.state is LifecycleState.CATCHING_UP,
                        wants_shut_down=self.state is LifecycleState.CONTROLLED_SHUTDOWN,
                    ),
                )

    # Responses of the controller

    def unanswered(self) -> tuple[Effect, ...]:
        """Retry after a request that got no response, or that reached a node that is not the active controller."""
        return () if self.is_over else (Wait(delay_ms=RETRY_MS),)

    def registered(self, registration: BrokerRegistration, now_ms: float) -> tuple[Effect, ...]:
        if self.state is not LifecycleState.INITIAL:
            return ()
        if registration.error == ErrorCode.DUPLICATE_BROKER_REGISTRATION:
            return self._duplicate(registration.message or "", now_ms)
        if registration.error in _FINAL_REFUSALS:
            self._move(LifecycleEvent.REFUSED)
            return (Fail(message=registration.message or registration.error.name),)
        if registration.error:
            return (Wait(delay_ms=RETRY_MS),)
        self.broker_epoch = registration.broker_epoch
        self._duplicate_since_ms = None
        self._move(LifecycleEvent.REGISTERED)
        return (CatchUp(broker_epoch=self.broker_epoch), Wait(delay_ms=self._heartbeat_interval_ms))

    def _duplicate(self, message: str, now_ms: float) -> tuple[Effect, ...]:
        """Wait for the session of the other process to end, and give up after a while.

        The other process may have been dead for long: a registration that was under way when its sender was killed can
        reach the controller after that of the next process.
        """
        warning: tuple[Effect, ...] = ()
        if self._duplicate_since_ms is None:
            self._duplicate_since_ms = now_ms
            warning = (Warn(message=message),)
        if now_ms - self._duplicate_since_ms >= self._duplicate_wait_ms:
            self._move(LifecycleEvent.REFUSED)
            return (Fail(message=message),)
        return (*warning, Wait(delay_ms=RETRY_MS))

    def beat_answered(self, state: BrokerState) -> tuple[Effect, ...]:
        if self.is_over:
            return ()
        if state.error == ErrorCode.STALE_BROKER_EPOCH:
            self._move(LifecycleEvent.STALE)
            return (Stopped(),) if self.is_over else (Register(previous_epoch=self.broker_epoch),)
        if state.error:
            return (Wait(delay_ms=RETRY_MS),)
        if self.state is LifecycleState.CONTROLLED_SHUTDOWN:
            return self.released() if state.should_shut_down else (Wait(delay_ms=RETRY_MS),)
        waits = self.state is LifecycleState.FENCED and state.is_fenced
        return (Wait(delay_ms=CATCH_UP_MS if waits else self._heartbeat_interval_ms),)

    # The image

    def reached(self, broker_epoch: int, *, lacks_logs: bool = False) -> tuple[Effect, ...]:
        """Go on when the image contains the registration with this epoch: from here on it can be trusted.

        If the broker lacks logs that it should have by the image, it registers again, as one that has lost records.
        """
        if self.state is not LifecycleState.CATCHING_UP or broker_epoch != self.broker_epoch:
            return ()
        if lacks_logs and not self._is_open:
            self._move(LifecycleEvent.LACKING)
            self.broker_epoch = NO_BROKER_EPOCH
            return (Register(previous_epoch=NO_BROKER_EPOCH),)
        self._move(LifecycleEvent.REACHED)
        opening: tuple[Effect, ...] = () if self._is_open else (OpenPartitions(),)
        self._is_open = True
        return (*opening, *self.resume())

    def image_changed(self, *, broker_epoch: int, is_fenced: bool) -> tuple[Effect, ...]:
        """Follow this broker's own registration in the committed image."""
        if broker_epoch != self.broker_epoch:
            return ()
        if not self._move(LifecycleEvent.FENCED if is_fenced else LifecycleEvent.UNFENCED):
            return ()
        if self.state is LifecycleState.UNFENCED and not self._is_admitted:
            self._is_admitted = True
            return (AdmitClients(),)
        return ()

    # The end

    def stop(self, *, is_alone: bool) -> tuple[Effect, ...]:
        """Begin the controlled shutdown; a broker that is the whole cluster stops at once."""
        moved = self._move(LifecycleEvent.STOPPING)
        if self.state is LifecycleState.CONTROLLED_SHUTDOWN:
            if not moved:
                return ()
            return self.released() if is_alone else self.resume()
        return (Stopped(),)

    def released(self) -> tuple[Effect, ...]:
        """End the controlled shutdown: the controller agrees, or the time for it is over."""
        return (Stopped(),) if self._move(LifecycleEvent.RELEASED) else ()

    def _move(self, event: LifecycleEvent) -> bool:
        following = TRANSITIONS.get((self.state, event))
        if following is None:
            return False
        self.state = following
        return True
