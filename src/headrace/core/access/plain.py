"""The broker's side of PLAIN (RFC 4616): the client sends its password, so PLAIN should be used with TLS only."""

from collections.abc import Mapping
from hashlib import sha256
from hmac import compare_digest

from headrace.core.access.sasl import LoginFailed, Proved

MESSAGE_BYTES_MAX = 8 << 10


class PlainLogin:
    """One login, against the users and passwords of the config."""

    def __init__(self, passwords: Mapping[str, str]) -> None:
        self._passwords = passwords
        self.user = ""

    def receive(self, message: bytes) -> Proved:
        """Return the client's name; raise LoginFailed."""
        parts = message.split(b"\0")
        if len(message) > MESSAGE_BYTES_MAX or len(parts) != 3:
            raise LoginFailed("the message of PLAIN is malformed")
        try:
            authorized, user, password = (part.decode() for part in parts)
        except UnicodeDecodeError:
            raise LoginFailed("the message of PLAIN is not UTF-8") from None
        self.user = user
        if not user or not password:
            raise LoginFailed("the message of PLAIN has no user or no password")
        if authorized and authorized != user:
            raise LoginFailed("a user asks to act as another one")
        known = self._passwords.get(user)
        # Digests have the same length, so that the time of the comparison tells nothing about the password.
        is_right = compare_digest(_digest(password), _digest(known or ""))
        if known is None or not is_right:
            raise LoginFailed("wrong user or password")
        return Proved(user)


def _digest(text: str) -> bytes:
    return sha256(text.encode()).digest()
