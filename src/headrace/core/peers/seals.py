"""Seal the cluster key for a node that joins: authenticated encryption, by the package cryptography."""

from typing import TYPE_CHECKING

import msgspec

from headrace.core.peers.invitation import SharedSecret, sealing_key

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

SEAL_NONCE_BYTES = 12


class NoCryptography(Exception):
    """The package that seals is not installed."""

    def __init__(self) -> None:
        super().__init__(
            "invitations need the package cryptography: install headrace[auth] on both nodes, or copy the file "
            "cluster.key instead"
        )


class BadSeal(Exception):
    """The sealed bytes were changed, or sealed under another key."""


def seal(one_time_key: bytes, shared: SharedSecret, *, invitation_id: bytes, join_nonce: bytes, nonce: bytes) -> bytes:
    """Return the nonce and the encrypted content, bound to the invitation and to the request of the new node."""
    assert len(nonce) == SEAL_NONCE_BYTES
    content = msgspec.msgpack.encode(shared)
    return nonce + _cipher(one_time_key).encrypt(nonce, content, invitation_id + join_nonce)


def unseal(one_time_key: bytes, sealed: bytes, *, invitation_id: bytes, join_nonce: bytes) -> SharedSecret:
    cipher = _cipher(one_time_key)
    from cryptography.exceptions import InvalidTag

    try:
        content = cipher.decrypt(sealed[:SEAL_NONCE_BYTES], sealed[SEAL_NONCE_BYTES:], invitation_id + join_nonce)
        return msgspec.msgpack.decode(content, type=SharedSecret)
    except (InvalidTag, ValueError, msgspec.MsgspecError) as error:
        raise BadSeal("the response of the inviting node was changed on its way") from error


def _cipher(one_time_key: bytes) -> "ChaCha20Poly1305":
    try:
        from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
    except ImportError:
        raise NoCryptography from None
    return ChaCha20Poly1305(sealing_key(one_time_key))
