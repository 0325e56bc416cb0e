"""Mutual proof that two nodes hold the key of the same cluster, decided without I/O.

The initiator opens the connection and sends a hello; the acceptor answers with a challenge. Each of the two has a fresh
nonce and says who its sender is. Then the initiator sends its proof, and the acceptor answers with its own: a MAC with
the cluster key over the sender's role, the hello and the challenge. Roles make a proof useless when it is sent back to
its author, nonces when it is sent again later. The key itself is never sent.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from hashlib import sha256
from hmac import compare_digest, digest
from typing import Any

from headrace.model.errors import ErrorCode, error_name
from headrace.model.ids import NodeId
from headrace.wire.messages.authenticate_peer import (
    AuthenticatePeerRequest,
    AuthenticatePeerRequestHello,
    AuthenticatePeerResponse,
    AuthenticatePeerResponseChallenge,
    encode_request,
    encode_response,
)

NONCE_BYTES = 32
PEER_VERSION_MIN = 1
PEER_VERSION_MAX = 1
"""The versions of the protocol between nodes that this release speaks."""

PORT_MAX = 65_535
HOST_LENGTH_MAX = 255

_INITIATOR = b"headrace peer initiator"
_ACCEPTOR = b"headrace peer acceptor"


class HandshakeState(StrEnum):
    AWAITING_HELLO = "Awaiting hello"
    AWAITING_CHALLENGE = "Awaiting challenge"
    AWAITING_PROOF = "Awaiting proof"
    AUTHENTICATED = "Authenticated"
    REFUSED = "Refused"


class HandshakeEvent(StrEnum):
    HELLO = "the hello is acceptable"
    CHALLENGE = "the challenge is acceptable"
    PROOF = "the proof is right"
    REFUSAL = "one of the nodes refuses the other"


TRANSITIONS: Mapping[tuple[HandshakeState, HandshakeEvent], HandshakeState] = {
    (HandshakeState.AWAITING_HELLO, HandshakeEvent.HELLO): HandshakeState.AWAITING_PROOF,
    (HandshakeState.AWAITING_CHALLENGE, HandshakeEvent.CHALLENGE): HandshakeState.AWAITING_PROOF,
    (HandshakeState.AWAITING_PROOF, HandshakeEvent.PROOF): HandshakeState.AUTHENTICATED,
    (HandshakeState.AWAITING_HELLO, HandshakeEvent.REFUSAL): HandshakeState.REFUSED,
    (HandshakeState.AWAITING_CHALLENGE, HandshakeEvent.REFUSAL): HandshakeState.REFUSED,
    (HandshakeState.AWAITING_PROOF, HandshakeEvent.REFUSAL): HandshakeState.REFUSED,
}
"""An acceptor begins with AWAITING_HELLO, an initiator with AWAITING_CHALLENGE."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PeerIdentity:
    """A node as it introduces itself: its ids, and the endpoint of its CONTROLLER listener."""

    node_id: NodeId
    directory_id: bytes
    cluster_id: str
    host: str
    port: int
    min_version: int = PEER_VERSION_MIN
    max_version: int = PEER_VERSION_MAX


@dataclass(frozen=True, slots=True, kw_only=True)
class HandshakeRefused:
    """The handshake failed; `message` says why, and what an operator should do."""

    code: ErrorCode
    message: str
    is_self: bool = False
    """True if the node has connected to itself, which is no error of the operator."""


class Initiator:
    """The side that opened the connection."""

    def __init__(
        self, identity: PeerIdentity, key: bytes, nonce: bytes, *, expected_node_id: NodeId | None = None
    ) -> None:
        """`expected_node_id` is the node that the caller wants to reach; None if the node at the address is unknown."""
        assert len(nonce) == NONCE_BYTES
        self.state = HandshakeState.AWAITING_CHALLENGE
        self._identity = identity
        self._key = key
        self._expected_node_id = expected_node_id
        self._hello = AuthenticatePeerRequestHello(**_fields(identity), nonce=nonce)
        self._challenge: AuthenticatePeerResponseChallenge | None = None

    def hello(self) -> AuthenticatePeerRequest:
        return AuthenticatePeerRequest(hello=self._hello)

    def receive(self, response: AuthenticatePeerResponse) -> AuthenticatePeerRequest | PeerIdentity | HandshakeRefused:
        """Return the next request, the identity of the authenticated peer, or the reason why there is none."""
        if response.error_code:
            code = ErrorCode(response.error_code) if response.error_code in _CODES else ErrorCode.UNKNOWN_SERVER_ERROR
            why = response.error_message or error_name(response.error_code)
            return self._refuse(HandshakeRefused(code=code, message=f"the peer refused this node: {why}"))
        if self.state is HandshakeState.AWAITING_CHALLENGE:
            return self._challenged(response.challenge)
        return self._proved(response.proof)

    def _challenged(
        self, challenge: AuthenticatePeerResponseChallenge | None
    ) -> AuthenticatePeerRequest | HandshakeRefused:
        if challenge is None:
            return self._refuse(_out_of_order("a challenge"))
        refusal = _refusal_of(challenge, self._identity)
        if refusal is None and compare_digest(challenge.nonce, self._hello.nonce):
            refusal = _refused(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "the peer sent this node's own nonce back")
        if refusal is None and self._expected_node_id not in (None, challenge.node_id):
            refusal = _refused(
                ErrorCode.INCONSISTENT_VOTER_SET,
                f"node {challenge.node_id} answers where node {self._expected_node_id} was expected; if a node got "
                "another address, restart it so that it registers the address",
            )
        if refusal is not None:
            return self._refuse(refusal)
        self._challenge = challenge
        self.state = TRANSITIONS[self.state, HandshakeEvent.CHALLENGE]
        return AuthenticatePeerRequest(proof=_proof(self._key, _INITIATOR, self._hello, challenge))

    def _proved(self, proof: bytes) -> PeerIdentity | HandshakeRefused:
        challenge = self._challenge
        if self.state is not HandshakeState.AWAITING_PROOF or challenge is None:
            return self._refuse(_out_of_order("nothing more"))
        if not compare_digest(proof, _proof(self._key, _ACCEPTOR, self._hello, challenge)):
            return self._refuse(_wrong_key(challenge.node_id))
        self.state = TRANSITIONS[self.state, HandshakeEvent.PROOF]
        return _identity(challenge)

    def _refuse(self, refusal: HandshakeRefused) -> HandshakeRefused:
        self.state = TRANSITIONS.get((self.state, HandshakeEvent.REFUSAL), HandshakeState.REFUSED)
        return refusal


class Acceptor:
    """The side whose listener accepted the connection."""

    def __init__(self, identity: PeerIdentity, key: bytes, nonce: bytes) -> None:
        assert len(nonce) == NONCE_BYTES
        self.state = HandshakeState.AWAITING_HELLO
        self.peer: PeerIdentity | None = None
        """The peer, once it has proved that it holds the key."""
        self.refusal: HandshakeRefused | None = None
        self._identity = identity
        self._key = key
        self._challenge = AuthenticatePeerResponseChallenge(**_fields(identity), nonce=nonce)
        self._hello: AuthenticatePeerRequestHello | None = None

    def receive(self, request: AuthenticatePeerRequest) -> AuthenticatePeerResponse:
        """Return the response; then `peer` or `refusal` may be set."""
        if self.state is HandshakeState.AWAITING_HELLO:
            return self._greeted(request.hello)
        return self._proved(request.proof)

    def _greeted(self, hello: AuthenticatePeerRequestHello | None) -> AuthenticatePeerResponse:
        refusal = _out_of_order("a hello") if hello is None else _refusal_of(hello, self._identity)
        if refusal is not None:
            return self._refuse(refusal)
        self._hello = hello
        self.state = TRANSITIONS[self.state, HandshakeEvent.HELLO]
        return AuthenticatePeerResponse(challenge=self._challenge)

    def _proved(self, proof: bytes) -> AuthenticatePeerResponse:
        hello = self._hello
        if self.state is not HandshakeState.AWAITING_PROOF or hello is None:
            return self._refuse(_out_of_order("nothing more"))
        if not compare_digest(proof, _proof(self._key, _INITIATOR, hello, self._challenge)):
            return self._refuse(_wrong_key(hello.node_id))
        self.state = TRANSITIONS[self.state, HandshakeEvent.PROOF]
        self.peer = _identity(hello)
        return AuthenticatePeerResponse(proof=_proof(self._key, _ACCEPTOR, hello, self._challenge))

    def _refuse(self, refusal: HandshakeRefused) -> AuthenticatePeerResponse:
        self.state = TRANSITIONS.get((self.state, HandshakeEvent.REFUSAL), HandshakeState.REFUSED)
        self.peer = None
        self.refusal = refusal
        return AuthenticatePeerResponse(error_code=refusal.code, error_message=refusal.message)


_Introduction = AuthenticatePeerRequestHello | AuthenticatePeerResponseChallenge
_CODES = frozenset(int(code) for code in ErrorCode)


def _fields(identity: PeerIdentity) -> dict[str, Any]:
    return {name: getattr(identity, name) for name in PeerIdentity.__slots__}


def _identity(introduction: _Introduction) -> PeerIdentity:
    return PeerIdentity(
        node_id=NodeId(introduction.node_id),
        directory_id=introduction.directory_id,
        cluster_id=introduction.cluster_id,
        host=introduction.host,
        port=introduction.port,
        min_version=introduction.min_version,
        max_version=introduction.max_version,
    )


def _refusal_of(introduction: _Introduction, own: PeerIdentity) -> HandshakeRefused | None:
    """Return why a node with this introduction cannot be a peer, before any proof; None if it can."""
    node_id, low, high = introduction.node_id, introduction.min_version, introduction.max_version
    if (
        len(introduction.nonce) != NONCE_BYTES
        or node_id < 0
        or not 0 <= introduction.port <= PORT_MAX
        or len(introduction.host) > HOST_LENGTH_MAX
    ):
        return _refused(ErrorCode.INVALID_REQUEST, "the introduction of the node is malformed; use the same release")
    if low > own.max_version or high < own.min_version:
        return _refused(
            ErrorCode.UNSUPPORTED_VERSION,
            f"node {node_id} speaks versions {low} to {high} of the protocol between nodes and node {own.node_id} "
            f"versions {own.min_version} to {own.max_version}; upgrade the older of the two",
        )
    if introduction.cluster_id != own.cluster_id:
        return _refused(
            ErrorCode.INCONSISTENT_CLUSTER_ID,
            f"node {node_id} belongs to cluster {introduction.cluster_id!r} and node {own.node_id} to cluster "
            f"{own.cluster_id!r}; correct controller.quorum.bootstrap.servers, or start the node with an empty folder "
            "and a token of headrace cluster invite",
        )
    if node_id != own.node_id:
        return None
    if introduction.directory_id == own.directory_id:
        return HandshakeRefused(
            code=ErrorCode.DUPLICATE_BROKER_REGISTRATION, message="the node has connected to itself", is_self=True
        )
    return _refused(
        ErrorCode.DUPLICATE_BROKER_REGISTRATION,
        f"two nodes have the id {node_id}; give one of them another node.id and an empty folder",
    )


def _proof(
    key: bytes, role: bytes, hello: AuthenticatePeerRequestHello, challenge: AuthenticatePeerResponseChallenge
) -> bytes:
    """Return the MAC over the role of its author and everything that both sides have said before."""
    said = (
        encode_request(AuthenticatePeerRequest(hello=hello), 0),
        encode_response(AuthenticatePeerResponse(challenge=challenge), 0),
    )
    text = b"".join(len(part).to_bytes(4) + part for part in (role, *said))
    return digest(key, text, sha256)


def _refused(code: ErrorCode, message: str) -> HandshakeRefused:
    return HandshakeRefused(code=code, message=message)


def _out_of_order(expected: str) -> HandshakeRefused:
    return _refused(ErrorCode.ILLEGAL_SASL_STATE, f"the peer broke the order of the handshake: {expected} was expected")


def _wrong_key(node_id: int) -> HandshakeRefused:
    return _refused(
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
        f"node {node_id} could not prove that it has the key of this cluster; copy the file cluster.key of a node of "
        "the cluster into its first log directory, or let it join with a token of headrace cluster invite",
    )
