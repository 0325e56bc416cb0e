"""Security from the config: TLS around a transport, and the SASL exchange of each connection. Used by all fronts."""

import ssl
from collections.abc import Callable, Sequence
from typing import Any

from headrace.client.config import ClientConfig
from headrace.client.core.authentication import OAuthBearerExchange, PlainExchange, SaslExchange, ScramExchange
from headrace.client.core.link import Security
from headrace.client.errors import AuthenticationFailed, InvalidArgument
from headrace.ports.disk import Buffer, FileRange
from headrace.ports.entropy import Entropy
from headrace.ports.network import Transport

RAW_BYTES = 64 * 1024
"""Bytes read from the network at a time; they never decrypt to more."""

PLAIN_BYTES_MAX = 16 * 1024
"""Bytes encrypted at a time: one TLS record."""


def make_security(config: ClientConfig, entropy: Entropy) -> Security:
    uses_tls = config.security_protocol in ("SSL", "SASL_SSL")
    context = _context(config) if uses_tls else None
    exchange = None
    if config.security_protocol.startswith("SASL"):
        exchange = _exchange_maker(config, entropy)
    if context is None:
        return Security(exchange=exchange)
    return Security(wrap=lambda transport, host: TlsTransport(transport, context, host), exchange=exchange)


def _context(config: ClientConfig) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=config.ssl_ca_location)
        context.check_hostname = config.ssl_check_hostname
        if config.ssl_certificate_location is not None:
            context.load_cert_chain(
                config.ssl_certificate_location, config.ssl_key_location, password=config.ssl_key_password
            )
    except (OSError, ssl.SSLError) as error:
        raise InvalidArgument(f"the certificates cannot be used: {error}; check the ssl_ settings") from error
    return context


def _exchange_maker(config: ClientConfig, entropy: Entropy) -> Callable[[], SaslExchange]:
    mechanism = config.sasl_mechanism
    if mechanism == "OAUTHBEARER":
        token = config.sasl_oauth_token
        if token is None:
            raise InvalidArgument("OAUTHBEARER needs sasl_oauth_token, a function that returns a token")
        return lambda: OAuthBearerExchange(token)
    username, password = config.sasl_username, config.sasl_password
    if username is None or password is None:
        raise InvalidArgument(f"{mechanism} needs sasl_username and sasl_password")
    if config.sasl_tokenauth and not mechanism.startswith("SCRAM"):
        raise InvalidArgument(f"delegation tokens log in by SCRAM: set sasl_mechanism, which is {mechanism}")

    def make() -> SaslExchange:
        if mechanism == "PLAIN":
            return PlainExchange(username, password)
        return ScramExchange(mechanism, username, password, entropy.random_bytes, by_token=config.sasl_tokenauth)

    return make


class TlsTransport:
    """A Transport that encrypts everything it passes to another one."""

    def __init__(self, inner: Transport, context: ssl.SSLContext, host: str) -> None:
        self.token = inner.token
        self.peer_address = inner.peer_address
        self._inner = inner
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_hostname=host)
        self._raw = memoryview(bytearray(RAW_BYTES))
        self._unsent = b""
        self._has_begun = self._is_secure = False

    def wants_send(self, has_more: bool) -> bool:
        return bool(self._unsent) or (has_more and (self._is_secure or not self._has_begun))

    def flush(self) -> None:
        """Send as many of the encrypted bytes as possible."""
        if self._outgoing.pending:
            self._unsent += self._outgoing.read()
        while self._unsent:
            try:
                self._unsent = self._unsent[self._inner.send(self._unsent) :]
            except BlockingIOError:
                return

    def send(self, buffer: Buffer, flags: int = 0, /) -> int:
        self._proceed()
        if not self._is_secure or self._unsent:
            raise BlockingIOError
        count = self._tls.write(memoryview(buffer)[:PLAIN_BYTES_MAX])
        self.flush()
        return count

    def recv_into(self, buffer: memoryview, /) -> int:
        """Return all bytes that were read from the network, because no event would announce the rest."""
        filled = 0
        while filled < len(buffer):
            try:
                if not self._is_secure:
                    self._proceed()
                if self._is_secure:
                    count: Any = self._tls.read(len(buffer) - filled, buffer[filled:])
                    if count == 0:
                        return filled
                    filled += count
                    continue
            except ssl.SSLWantReadError:
                pass
            except ssl.SSLZeroReturnError:
                return filled
            except ssl.SSLError as error:
                raise AuthenticationFailed(_trouble(self.peer_address, error)) from error
            self.flush()
            if len(buffer) - filled < RAW_BYTES or not self._take(has_some=filled > 0):
                return filled
        return filled

    def _take(self, *, has_some: bool) -> bool:
        """Read bytes from the network; return False when there are none for now, which is an error only at the first
        read.
        """
        try:
            count = self._inner.recv_into(self._raw)
        except BlockingIOError:
            if has_some:
                return False
            raise
        if count == 0:
            if not self._is_secure:
                raise OSError(
                    "the broker closed the connection during the TLS handshake; check that this listener uses TLS"
                )
            self._incoming.write_eof()
            return False
        self._incoming.write(self._raw[:count])
        return True

    def _proceed(self) -> None:
        """Continue the handshake as far as possible."""
        if self._is_secure:
            return
        self._has_begun = True
        try:
            self._tls.do_handshake()
            self._is_secure = True
        except ssl.SSLWantReadError:
            pass
        except ssl.SSLError as error:
            self.flush()
            raise AuthenticationFailed(_trouble(self.peer_address, error)) from error
        self.flush()

    def send_vector(self, buffers: Sequence[Buffer], /) -> int:
        return self.send(b"".join(bytes(each) for each in buffers))

    def send_range(self, part: FileRange, /) -> int:
        raise OSError("a client sends no files")

    def close(self) -> None:
        self._inner.close()


def _trouble(peer_address: str, error: ssl.SSLError) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return (
            f"the certificate of {peer_address} is not trusted ({error.verify_message}): set ssl_ca_location "
            "to the certificate of its authority"
        )
    return f"the TLS connection to {peer_address} failed ({error.reason or error}); check that this listener uses TLS"
