"""Sessions of brokers on the active controller: a broker is alive while its heartbeats arrive in time. No I/O.

A session belongs to a broker epoch. It ends when no heartbeat arrives for the session timeout, or at once when there is
evidence that the process is gone. Time counts only while the controller runs: a controller that was paused finds the
heartbeats of that time unread, and must not take them for missing.
"""

from typing import NamedTuple

from headrace.model.ids import NodeId

CHECKS_PER_TIMEOUT = 6
"""The controller checks its sessions this often within a session timeout."""


class BrokerSession(NamedTuple):
    node_id: NodeId
    broker_epoch: int


class BrokerSessions:
    def __init__(self, timeout_ms: float) -> None:
        self.timeout_ms = timeout_ms
        self._deadlines: dict[NodeId, tuple[int, float]] = {}
        """Broker epoch and deadline, the earliest deadline first: all sessions have the same timeout."""
        self._checked_ms: float | None = None

    @property
    def check_interval_ms(self) -> float:
        return self.timeout_ms / CHECKS_PER_TIMEOUT

    def open(self, session: BrokerSession, now_ms: float) -> None:
        """Begin a full session: at a registration, at a heartbeat, or for a broker that a new controller finds."""
        self._deadlines.pop(session.node_id, None)
        self._deadlines[session.node_id] = (session.broker_epoch, now_ms + self.timeout_ms)

    def close(self, session: BrokerSession) -> None:
        if self.has(session):
            del self._deadlines[session.node_id]

    def clear(self) -> None:
        """Forget every session, because this controller is not active any more."""
        self._deadlines.clear()
        self._checked_ms = None

    def has(self, session: BrokerSession) -> bool:
        """Return whether this epoch has a session; a session of another epoch does not count."""
        epoch, _ = self._deadlines.get(session.node_id, (None, 0.0))
        return epoch == session.broker_epoch

    def is_live(self, node_id: NodeId) -> bool:
        """Return whether any process with this node id has a session."""
        return node_id in self._deadlines

    def expired(self, now_ms: float) -> list[BrokerSession]:
        """Remove and return the sessions that are over. Call it every `check_interval_ms`."""
        if self._checked_ms is not None:
            self._excuse_pause(now_ms - self._checked_ms)
        self._checked_ms = now_ms
        over = [
            BrokerSession(node_id, epoch)
            for node_id, (epoch, deadline) in self._deadlines.items()
            if deadline <= now_ms
        ]
        for session in over:
            del self._deadlines[session.node_id]
        return over

    def _excuse_pause(self, elapsed_ms: float) -> None:
        """Extend every session by the time in which the controller did not run."""
        if elapsed_ms >= 2 * self.check_interval_ms:
            paused_ms = elapsed_ms - self.check_interval_ms
            for node_id, (epoch, deadline) in self._deadlines.items():
                self._deadlines[node_id] = (epoch, deadline + paused_ms)

    def gone(self, session: BrokerSession, *, refused: bool) -> bool:
        """End the session of a process if the evidence suffices, and return whether it did.

        A refused connection shows that no process listens at the broker's address any more. A connection that was
        reset shows nothing by itself: the network, or a machine between the two, may have done it. Evidence about an
        earlier epoch says nothing about the process that registered since.
        """
        if not refused or not self.has(session):
            return False
        del self._deadlines[session.node_id]
        return True
