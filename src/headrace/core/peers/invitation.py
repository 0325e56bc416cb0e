"""An invitation to join a cluster: the token that an operator carries to the new node, and the proof that it is used.

The token has a one-time key. The new node proves that it knows the key, and gets the cluster key sealed under it, so
that an observer of the network learns neither.
"""

import base64
import binascii
from hashlib import sha256
from hmac import compare_digest, digest
from typing import Annotated

import msgspec

ONE_TIME_KEY_BYTES = 32
INVITATION_ID_BYTES = 16
JOIN_NONCE_BYTES = 32
TOKEN_LENGTH_MAX = 1_000
PREFIX = "headrace-join-"

_PROOF = b"headrace join proof"
_SEAL = b"headrace join seal"


class BadToken(ValueError):
    """The text is not a token of `headrace cluster invite`."""


class Invitation(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """`expiry_ms` is a time of the inviting node's wall clock."""

    host: str
    port: Annotated[int, msgspec.Meta(ge=1, le=65_535)]
    invitation_id: Annotated[bytes, msgspec.Meta(min_length=INVITATION_ID_BYTES, max_length=INVITATION_ID_BYTES)]
    one_time_key: Annotated[bytes, msgspec.Meta(min_length=ONE_TIME_KEY_BYTES, max_length=ONE_TIME_KEY_BYTES)]
    expiry_ms: int

    def __repr__(self) -> str:
        return f"Invitation({self.host!r}, {self.port}, ***)"


class SharedSecret(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """The content that is sealed for the new node."""

    cluster_id: str
    secret: bytes

    def __repr__(self) -> str:
        return f"SharedSecret({self.cluster_id!r}, ***)"


def token_of(invitation: Invitation) -> str:
    return PREFIX + base64.urlsafe_b64encode(msgspec.msgpack.encode(invitation)).decode().rstrip("=")


def read_token(text: str) -> Invitation:
    """Raise BadToken with advice if the text is not a whole token."""
    text = text.strip()
    if text.startswith(PREFIX) and len(text) <= TOKEN_LENGTH_MAX:
        content = text.removeprefix(PREFIX)
        try:
            content_bytes = base64.urlsafe_b64decode(content + "=" * (-len(content) % 4))
            return msgspec.msgpack.decode(content_bytes, type=Invitation)
        except (binascii.Error, ValueError, msgspec.MsgspecError):
            pass
    raise BadToken(f"the token is not complete: copy the whole line that headrace cluster invite prints ({PREFIX}...)")


def join_proof(one_time_key: bytes, invitation_id: bytes, nonce: bytes) -> bytes:
    """Return the proof that the sender of a nonce knows the one-time key."""
    return digest(one_time_key, _PROOF + invitation_id + nonce, sha256)


def is_proof(proof: bytes, one_time_key: bytes, invitation_id: bytes, nonce: bytes) -> bool:
    return len(nonce) == JOIN_NONCE_BYTES and compare_digest(proof, join_proof(one_time_key, invitation_id, nonce))


def sealing_key(one_time_key: bytes) -> bytes:
    """Return the key under which the cluster key is sealed: another one than that of the proof."""
    return digest(one_time_key, _SEAL, sha256)
