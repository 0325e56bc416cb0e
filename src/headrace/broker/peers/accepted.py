"""Connections of other nodes at the CONTROLLER listener: how many may exist, and how long each may stay unknown."""

from collections.abc import Callable
from functools import partial
from typing import Protocol

from headrace.broker.net.connection import Connection
from headrace.broker.peers.refusals import RefusalLog
from headrace.broker.peers.session import PeerSession
from headrace.broker.timers import Timers
from headrace.core.peers.handshake import NONCE_BYTES, Acceptor, PeerIdentity
from headrace.model.access import node_principal
from headrace.model.ids import NodeId
from headrace.model.limits import PEER_CONNECTIONS_PER_NODE_MAX, PEER_HANDSHAKE_MS_MAX, PEERS_UNAUTHENTICATED_MAX
from headrace.ports.entropy import Entropy


class ConnectionCloser(Protocol):
    def close(self, connection: Connection) -> None: ...


class AcceptedPeers:
    def __init__(
        self,
        *,
        identity: PeerIdentity,
        key: bytes,
        loop: ConnectionCloser,
        timers: Timers,
        entropy: Entropy,
        refusals: RefusalLog,
        introduced: Callable[[PeerIdentity], None],
    ) -> None:
        """`introduced` is called for every node that has authenticated."""
        self._identity = identity
        self._key = key
        self._loop = loop
        self._timers = timers
        self._entropy = entropy
        self._refusals = refusals
        self._introduced = introduced
        self._unknown: dict[Connection, None] = {}
        self._known: dict[NodeId, list[Connection]] = {}

    def admit(self, connection: Connection) -> bool:
        """Begin the handshake of a new connection; the oldest of too many that have not authenticated is closed.

        A node authenticates within milliseconds, so it gets through however many connections only wait.
        """
        if len(self._unknown) >= PEERS_UNAUTHENTICATED_MAX:
            self._loop.close(next(iter(self._unknown)))
        handshake = Acceptor(self._identity, self._key, self._entropy.random_bytes(NONCE_BYTES))
        connection.peer = PeerSession(handshake, partial(self._decided, connection))
        self._unknown[connection] = None
        self._timers.after(PEER_HANDSHAKE_MS_MAX, lambda: self._check(connection))
        return True

    def closed(self, connection: Connection) -> None:
        self._unknown.pop(connection, None)
        peer = connection.peer.identity if connection.peer is not None else None
        if peer is not None and connection in (known := self._known.get(peer.node_id, [])):
            known.remove(connection)

    def _check(self, connection: Connection) -> None:
        if connection in self._unknown:
            self._refuse(connection, f"it did not authenticate within {PEER_HANDSHAKE_MS_MAX // 1000} s")
            self._loop.close(connection)

    def _decided(self, connection: Connection, session: PeerSession) -> None:
        self._unknown.pop(connection, None)
        peer = session.identity
        if peer is None:
            connection.closing = True  # once it has the response
            if session.refusal:
                self._refuse(connection, session.refusal)
            return
        connection.principal = node_principal(peer.node_id)
        self._refusals.accepted(connection.peer_host)
        known = self._known.setdefault(peer.node_id, [])
        known.append(connection)
        if len(known) > PEER_CONNECTIONS_PER_NODE_MAX:
            self._loop.close(known[0])
        self._introduced(peer)

    def _refuse(self, connection: Connection, reason: str) -> None:
        self._refusals.refused(connection.peer_host, reason)
