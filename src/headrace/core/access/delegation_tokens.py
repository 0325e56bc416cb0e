"""Delegation tokens (KIP-48): their proofs, and the credentials with which a client logs in as the owner of one.

The metadata log has no proof of a token. It is a digest of the token's id with the secret that all nodes have in their
configs, and the password of the token's login by SCRAM.
"""

from base64 import b64encode
from collections.abc import Iterable
from hashlib import pbkdf2_hmac
from hmac import digest

from headrace.core.access.scram import (
    ITERATIONS_MIN,
    SALT_BYTES,
    StoredCredential,
    credential_of,
    mock_credential,
)
from headrace.model.access import ScramMechanism


class TokenIndex:
    """The tokens of the cluster by their proofs."""

    def __init__(self, secret: str) -> None:
        self._secret = secret.encode()
        self._by_proof: dict[bytes, str] = {}
        self._proofs: dict[str, bytes] = {}
        self._credentials: dict[tuple[str, ScramMechanism], StoredCredential] = {}
        """Credentials that were needed; each takes about a millisecond to compute."""

    def follow(self, token_ids: Iterable[str]) -> None:
        """Take over the tokens that exist now."""
        existing = set(token_ids)
        for token_id in self._proofs.keys() - existing:
            del self._by_proof[self._proofs.pop(token_id)]
            for mechanism in ScramMechanism:
                self._credentials.pop((token_id, mechanism), None)
        for token_id in existing - self._proofs.keys():
            proof = self.proof(token_id)
            self._proofs[token_id] = proof
            self._by_proof[proof] = token_id

    def proof(self, token_id: str) -> bytes:
        return digest(self._secret, token_id.encode(), "sha512")

    def find(self, proof: bytes) -> str | None:
        """Return the id of the token with this proof."""
        return self._by_proof.get(proof)

    def credential(self, mechanism: ScramMechanism, token_id: str) -> StoredCredential | None:
        """Return the credential of a token that exists."""
        if token_id not in self._proofs:
            return None
        found = self._credentials.get((token_id, mechanism))
        if found is None:
            password = b64encode(self._proofs[token_id])
            salt = digest(self._secret, f"{mechanism.label}\0{token_id}".encode(), "sha256")[:SALT_BYTES]
            salted = pbkdf2_hmac(mechanism.hash_name, password, salt, ITERATIONS_MIN)
            found = self._credentials[token_id, mechanism] = credential_of(mechanism, salt, salted, ITERATIONS_MIN)
        return found

    def mock(self, mechanism: ScramMechanism, token_id: str) -> StoredCredential:
        """Return a credential for a token that does not exist."""
        return mock_credential(mechanism, token_id, self._secret, None)
