"""The broker's side of SCRAM (RFC 5802, RFC 7677), without channel binding.

The broker keeps neither the password nor what is needed to log in with it. A user that does not exist goes through the
same steps, with a salt that is always the same, and fails at the end.
"""

import re
from base64 import b64decode, b64encode
from binascii import Error as Base64Error
from hashlib import sha256, sha512
from hmac import compare_digest, digest
from typing import NamedTuple, Protocol

from headrace.core.access.sasl import Challenge, LoginFailed, Proved
from headrace.model.access import ScramMechanism

ITERATIONS_MIN = 4_096
ITERATIONS_MAX = 16_384
"""Kafka's limits. More iterations would cost clients time at every connection."""

NONCE_BYTES = 18
SALT_BYTES = 16
MESSAGE_BYTES_MAX = 8 << 10
USER_LENGTH_MAX = 255
"""Characters of a user's name."""

_CLIENT_FIRST = re.compile(
    r"(?P<gs2>[ny],(?:a=(?P<authzid>[^,]+))?,)"
    r"(?P<bare>n=(?P<user>(?:[^,=]|=2C|=3D)+),r=(?P<nonce>[\x21-\x2b\x2d-\x7e]+)(?P<extensions>(?:,[a-zA-Z]=?[^,]*)*))",
    re.DOTALL,
)
_CLIENT_FINAL = re.compile(
    r"(?P<without_proof>c=(?P<binding>[A-Za-z0-9+/=]+),r=(?P<nonce>[\x21-\x2b\x2d-\x7e]+)(?:,[a-zA-Z]=[^,]*)*)"
    r",p=(?P<proof>[A-Za-z0-9+/=]+)"
)


MECHANISMS = {mechanism.label: mechanism for mechanism in ScramMechanism}


class StoredCredential(NamedTuple):
    """The keys that the broker has instead of a password."""

    salt: bytes
    stored_key: bytes
    server_key: bytes
    iterations: int

    def __repr__(self) -> str:
        return f"StoredCredential(iterations={self.iterations})"


def credential_of(mechanism: ScramMechanism, salt: bytes, salted_password: bytes, iterations: int) -> StoredCredential:
    """Return the credential of a salted password."""
    name = mechanism.hash_name
    client_key = digest(salted_password, b"Client Key", name)
    return StoredCredential(salt, _hash(name, client_key), digest(salted_password, b"Server Key", name), iterations)


def mock_credential(
    mechanism: ScramMechanism, user: str, secret: bytes, like: StoredCredential | None
) -> StoredCredential:
    """Return a credential that no password fits, the same at every attempt and on every broker.

    It has the iterations and the length of salt of `like`, a credential of the cluster.
    """
    name = mechanism.hash_name
    noise = digest(secret, f"{mechanism.label}\0{user}".encode(), name)
    length, iterations = (SALT_BYTES, ITERATIONS_MIN) if like is None else (len(like.salt), like.iterations)
    salt = b"".join(digest(noise, part.to_bytes(4), "sha256") for part in range(length // 32 + 1))[:length]
    return StoredCredential(salt, digest(noise, b"stored", name), noise, iterations)


class TokenLogin(NamedTuple):
    """The way in which a client logs in with a delegation token."""

    credential: StoredCredential
    owner: str
    remaining_ms: float
    """The time until the token expires."""


class ScramTokens(Protocol):
    """The delegation tokens of the cluster."""

    @property
    def are_served(self) -> bool: ...
    def login(self, mechanism: ScramMechanism, token_id: str) -> TokenLogin | None: ...
    def mock(self, mechanism: ScramMechanism, token_id: str) -> StoredCredential:
        """Return a credential for a token that does not exist."""


class ScramUsers(Protocol):
    """The users of the cluster."""

    def credential(self, mechanism: ScramMechanism, user: str) -> StoredCredential | None: ...
    def mock(self, mechanism: ScramMechanism, user: str) -> StoredCredential:
        """Return a credential for a user that does not exist."""


class ScramLogin:
    """One login."""

    def __init__(
        self, mechanism: ScramMechanism, users: ScramUsers, *, nonce: str, tokens: ScramTokens | None = None
    ) -> None:
        self._mechanism = mechanism
        self._users = users
        self._tokens = tokens
        self._server_nonce = nonce
        self.user = ""
        self._proved: Proved | None = None
        """The outcome of the right proof; None for a user or token that does not exist."""
        self._credential: StoredCredential | None = None
        self._nonce = self._binding = self._said = ""

    def receive(self, message: bytes) -> Challenge | Proved:
        """Return the next message to the client, or its name; raise LoginFailed."""
        if len(message) > MESSAGE_BYTES_MAX:
            raise LoginFailed("a message of SCRAM is too long")
        try:
            text = message.decode()
        except UnicodeDecodeError:
            raise LoginFailed("a message of SCRAM is not UTF-8") from None
        return self._begin(text) if self._credential is None else self._finish(text, self._credential)

    def _begin(self, text: str) -> Challenge:
        found = _CLIENT_FIRST.fullmatch(text)
        if found is None:
            raise LoginFailed("the first message of SCRAM is malformed, or asks for channel binding")
        self.user = _plain_name(found["user"])
        if len(self.user) > USER_LENGTH_MAX:
            raise LoginFailed("the user's name is too long")
        if found["authzid"] is not None and _plain_name(found["authzid"]) != self.user:
            raise LoginFailed("a user asks to act as another one")
        if any(part.startswith("m=") for part in found["extensions"].split(",")):
            raise LoginFailed("the client demands an extension of SCRAM")
        by_token = "tokenauth=true" in found["extensions"].split(",")
        self._credential = used = self._token_credential() if by_token else self._user_credential()
        self._nonce = found["nonce"] + self._server_nonce
        self._binding = b64encode(found["gs2"].encode()).decode()
        first = f"r={self._nonce},s={b64encode(used.salt).decode()},i={used.iterations}"
        self._said = f"{found['bare']},{first}"
        return Challenge(first.encode())

    def _user_credential(self) -> StoredCredential:
        known = self._users.credential(self._mechanism, self.user)
        if known is None:
            return self._users.mock(self._mechanism, self.user)
        self._proved = Proved(self.user)
        return known

    def _token_credential(self) -> StoredCredential:
        """Return the credential of the token whose id the client gives as its name (KIP-48)."""
        if self._tokens is None or not self._tokens.are_served:
            raise LoginFailed("delegation tokens are not served: delegation.token.secret.key is not set")
        token = self._tokens.login(self._mechanism, self.user)
        if token is None:
            return self._tokens.mock(self._mechanism, self.user)
        self._proved = Proved(token.owner, lifetime_ms=token.remaining_ms, by_token=True)
        return token.credential

    def _finish(self, text: str, credential: StoredCredential) -> Proved:
        found = _CLIENT_FINAL.fullmatch(text)
        if found is None:
            raise LoginFailed("the final message of SCRAM is malformed")
        if found["binding"] != self._binding:
            raise LoginFailed("the client changed its channel binding")
        if not compare_digest(found["nonce"], self._nonce):
            raise LoginFailed("the client changed the nonce")
        try:
            proof = b64decode(found["proof"], validate=True)
        except Base64Error:
            raise LoginFailed("the proof is not base64") from None
        name = self._mechanism.hash_name
        said = f"{self._said},{found['without_proof']}".encode()
        signature = digest(credential.stored_key, said, name)
        if len(proof) != len(signature):
            raise LoginFailed("the proof has the wrong length")
        client_key = bytes(one ^ other for one, other in zip(proof, signature, strict=True))
        is_right = compare_digest(_hash(name, client_key), credential.stored_key)
        if not is_right or self._proved is None:
            raise LoginFailed("wrong user or password")
        final = digest(credential.server_key, said, name)
        return self._proved._replace(message=f"v={b64encode(final).decode()}".encode())


def _hash(name: str, content: bytes) -> bytes:
    return (sha256 if name == "sha256" else sha512)(content).digest()


def _plain_name(text: str) -> str:
    return text.replace("=2C", ",").replace("=3D", "=")
