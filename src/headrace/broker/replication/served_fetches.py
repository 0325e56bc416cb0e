"""Fetches of followers at the leader: each gets what the leader's log has beyond its position, committed or not.

All fetches that appends have woken are answered at the end of the turn, when every partition has written, so that one
response has the records of all of them.
"""

from headrace.broker.net.connection import NO_RESPONSE_YET, Connection, PeerResponseSlot
from headrace.broker.replication.follower_session import FollowerSession, respond
from headrace.broker.services import FetchServices
from headrace.model.errors import ErrorCode
from headrace.model.ids import NodeId
from headrace.model.limits import REPLICA_FETCH_PARTITIONS_MAX
from headrace.wire.errors import ProtocolError
from headrace.wire.replica_fetch import NEW_SESSION, NO_SESSION, ReplicaFetchRequest


class ServedFetches:
    """The sessions of all followers: one of each connection, with at most one fetch that is not answered yet."""

    def __init__(self, services: FetchServices) -> None:
        self._services = services
        self._sessions: dict[Connection, FollowerSession] = {}
        self.woken: dict[FollowerSession, None] = {}
        """Sessions whose fetch may be answered at the end of this turn."""

    def begin(self, connection: Connection, request: ReplicaFetchRequest, correlation_id: int) -> None:
        """Answer a fetch when there is something to send; an earlier one of the connection waits no longer."""
        peer = connection.peer
        assert peer is not None
        assert peer.identity is not None
        if request.replica_id != peer.identity.node_id:
            raise ProtocolError(f"node {peer.identity.node_id} fetches as replica {request.replica_id}")
        if sum(len(positions) for _, positions in request.topics) > REPLICA_FETCH_PARTITIONS_MAX:
            raise ProtocolError(f"a follower's fetch has more than {REPLICA_FETCH_PARTITIONS_MAX} partitions")
        session = self._sessions.get(connection)
        if session is not None:
            session.finish()
        peer.requests_unanswered += 1
        slot = PeerResponseSlot(connection, None, NO_RESPONSE_YET)
        if request.session_epoch == NO_SESSION:
            respond(self._services, slot, correlation_id, ErrorCode.NONE, [])
            return
        if request.session_epoch == NEW_SESSION:
            follower = NodeId(request.replica_id)
            for other in [other for other in self._sessions.values() if other.follower == follower]:
                other.abandon()  # perhaps that of a connection whose end was not noticed
            session = FollowerSession(self, self._services, connection, follower)
            self._sessions[connection] = session
            connection.parked[session] = None
        elif session is None or session.next_epoch != request.session_epoch:
            respond(self._services, slot, correlation_id, ErrorCode.INVALID_FETCH_SESSION_EPOCH, [])
            return
        session.fetch(request, slot, correlation_id)

    def end_turn(self) -> None:
        while self.woken:
            session = next(iter(self.woken))
            del self.woken[session]
            session.end_turn()

    def left(self, session: FollowerSession, connection: Connection) -> None:
        self.woken.pop(session, None)
        if self._sessions.get(connection) is session:
            del self._sessions[connection]
