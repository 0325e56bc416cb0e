"""The other end of a connection at the CONTROLLER listener: unknown until it has authenticated."""

from collections.abc import Callable

from headrace.core.peers.handshake import Acceptor, PeerIdentity
from headrace.wire.messages.authenticate_peer import AuthenticatePeerRequest, AuthenticatePeerResponse


class PeerSession:
    __slots__ = ("_decided", "_handshake", "requests_unanswered")

    def __init__(self, handshake: Acceptor, decided: Callable[["PeerSession"], None]) -> None:
        """`decided` is called when the peer has authenticated or was refused."""
        self._handshake = handshake
        self._decided = decided
        self.requests_unanswered = 0

    @property
    def identity(self) -> PeerIdentity | None:
        """The peer, once it has authenticated."""
        return self._handshake.peer

    @property
    def refusal(self) -> str | None:
        """The reason why the peer was refused; empty if it is this node itself."""
        refusal = self._handshake.refusal
        return None if refusal is None else "" if refusal.is_self else refusal.message

    def authenticate(self, request: AuthenticatePeerRequest) -> AuthenticatePeerResponse:
        response = self._handshake.receive(request)
        if self.identity is not None or self.refusal is not None:
            self._decided(self)
        return response
