"""The client side of SASL: the first bytes to send, and the responses to the broker's challenges.

PLAIN, SCRAM (by scramp) and OAUTHBEARER. Each exchange serves one connection; nothing here waits or uses a socket.
"""

from collections.abc import Callable
from typing import Any, Protocol

from headrace.client.errors import AuthenticationFailed

NONCE_BYTES = 18


class SaslExchange(Protocol):
    mechanism: str

    def first(self) -> bytes: ...
    def respond(self, challenge: bytes) -> bytes | None:
        """Return the bytes to send next, or None when the exchange is over; raises AuthenticationFailed."""


class PlainExchange:
    mechanism = "PLAIN"

    def __init__(self, username: str, password: str) -> None:
        self._message = f"\0{username}\0{password}".encode()

    def first(self) -> bytes:
        return self._message

    def respond(self, challenge: bytes) -> bytes | None:
        return None


class ScramExchange:
    """Both sides prove that they know the password; neither sends it."""

    def __init__(
        self,
        mechanism: str,
        username: str,
        password: str,
        random_bytes: Callable[[int], bytes],
        *,
        by_token: bool = False,
    ) -> None:
        """With `by_token` the name is the id of a delegation token, and the password its proof (KIP-48)."""
        import scramp  # the import takes 20 ms, which only users of SCRAM pay

        self.mechanism = mechanism
        nonce = random_bytes(NONCE_BYTES).hex()
        self._client: Any = scramp.ScramClient([mechanism], username, password, c_nonce=nonce)
        self._error: type[Exception] = scramp.ScramException
        self._has_proven = False
        self._extension = ",tokenauth=true" if by_token else ""

    def first(self) -> bytes:
        message: str = self._client.get_client_first()
        self._client.client_first_bare += self._extension  # both sides sign it
        return f"{message}{self._extension}".encode()

    def respond(self, challenge: bytes) -> bytes | None:
        try:
            if self._has_proven:
                self._client.set_server_final(challenge.decode())
                return None
            self._client.set_server_first(challenge.decode())
            self._has_proven = True
            message: str = self._client.get_client_final()
        except (self._error, UnicodeDecodeError) as error:
            raise AuthenticationFailed(f"the broker did not prove that it knows the password: {error}") from error
        return message.encode()


class OAuthBearerExchange:
    mechanism = "OAUTHBEARER"

    def __init__(self, token: Callable[[], str]) -> None:
        self._token = token
        self._is_refused = False

    def first(self) -> bytes:
        try:
            token = self._token()
        except Exception as error:
            raise AuthenticationFailed(f"no token for OAUTHBEARER: sasl_oauth_token raised {error!r}") from error
        return f"n,,\x01auth=Bearer {token}\x01\x01".encode()

    def respond(self, challenge: bytes) -> bytes | None:
        """Handle a challenge: an empty one means success; any other describes the fault of the token, and the broker
        ends the exchange when the client has confirmed it (RFC 7628).
        """
        if self._is_refused:
            raise AuthenticationFailed(f"the broker refused the token: {challenge.decode(errors='replace')}")
        self._is_refused = bool(challenge)
        return b"\x01" if challenge else None
