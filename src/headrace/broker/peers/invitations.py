"""Invitations that this node has given and that were not used yet.

They are kept in memory, by the node that gave them: each can be used once, and none survives a restart, so an
invitation never works longer than its operator expects. The one-time key leaves the node only in the token.
"""

from collections.abc import Callable
from typing import NamedTuple

from headrace.core.controller.records import Endpoint
from headrace.core.peers.invitation import (
    INVITATION_ID_BYTES,
    ONE_TIME_KEY_BYTES,
    Invitation,
    SharedSecret,
    is_proof,
    token_of,
)
from headrace.core.peers.seals import SEAL_NONCE_BYTES, seal
from headrace.log.cluster_key import ClusterKey
from headrace.model.limits import INVITATION_MS_MAX, INVITATIONS_MAX
from headrace.ports.clock import Clock
from headrace.ports.entropy import Entropy
from headrace.wire.messages.join_cluster import JoinClusterRequest


class InvitationRefused(Exception):
    """The invitation cannot be given or used; the message says why."""


class NewInvitation(NamedTuple):
    token: str
    expiry_ms: int

    def __repr__(self) -> str:
        return f"NewInvitation(***, {self.expiry_ms})"


class Invitations:
    def __init__(
        self, key: ClusterKey, *, endpoint: Endpoint, clock: Clock, entropy: Entropy, log: Callable[[str], None]
    ) -> None:
        """`endpoint` is the CONTROLLER endpoint of this node, to which the new node connects."""
        self._key = key
        self._endpoint = endpoint
        self._clock = clock
        self._entropy = entropy
        self._log = log
        self._given: dict[bytes, Invitation] = {}

    def create(self, lifetime_ms: int) -> NewInvitation:
        self._forget_expired()
        if not 0 < lifetime_ms <= INVITATION_MS_MAX:
            raise InvitationRefused(
                f"an invitation is valid for 1 to {INVITATION_MS_MAX // 1000} seconds, not for {lifetime_ms / 1000:g}"
            )
        if len(self._given) >= INVITATIONS_MAX:
            raise InvitationRefused(f"{INVITATIONS_MAX} invitations were not used yet: wait until they expire")
        invitation = Invitation(
            self._endpoint.host,
            self._endpoint.port,
            self._entropy.random_bytes(INVITATION_ID_BYTES),
            self._entropy.random_bytes(ONE_TIME_KEY_BYTES),
            self._clock.wall_ms() + lifetime_ms,
        )
        self._given[invitation.invitation_id] = invitation
        return NewInvitation(token_of(invitation), invitation.expiry_ms)

    def redeem(self, request: JoinClusterRequest, peer: str) -> bytes:
        """Use an invitation: return the id and the key of the cluster, sealed for the node that has its token."""
        self._forget_expired()
        invitation = self._given.get(request.invitation_id)
        if invitation is None or not is_proof(
            request.proof, invitation.one_time_key, request.invitation_id, request.nonce
        ):
            raise InvitationRefused(
                "the invitation is not valid here: it was used, has expired, or the node was restarted since; create "
                "another with headrace cluster invite"
            )
        sealed = seal(
            invitation.one_time_key,
            SharedSecret(self._key.cluster_id, self._key.secret),
            invitation_id=request.invitation_id,
            join_nonce=request.nonce,
            nonce=self._entropy.random_bytes(SEAL_NONCE_BYTES),
        )
        del self._given[request.invitation_id]
        self._log(f"a node at {peer} has used an invitation and has the cluster key now")
        return sealed

    def _forget_expired(self) -> None:
        now_ms = self._clock.wall_ms()
        for invitation in [each for each in self._given.values() if each.expiry_ms <= now_ms]:
            del self._given[invitation.invitation_id]
