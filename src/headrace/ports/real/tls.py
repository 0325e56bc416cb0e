"""TLS of listeners by OpenSSL: keys and certificates, and the server's side of a connection.

OpenSSL encrypts and decrypts in memory, and the bytes travel through the Transport inside. Bytes that wait in memory
are bounded: what was received by TLS_RECEIVED_BYTES_MAX, what was encrypted by TLS_SENT_BYTES_MAX of plain bytes.
"""

import os
import ssl
from collections.abc import Callable, Sequence
from typing import Any

from headrace.model.configs.tls import ClientAuth, TlsConfig
from headrace.model.limits import (
    TLS_CONTROL_BYTES_MAX,
    TLS_HANDSHAKE_BYTES_MAX,
    TLS_RECEIVED_BYTES_MAX,
    TLS_SENT_BYTES_MAX,
)
from headrace.ports.disk import Buffer, FileRange
from headrace.ports.network import ServerTls, ServerTlsTransport, TlsRefused, Transport
from headrace.ports.real.tls_stores import Stores, load_stores, read_stores

_RECORD_BYTES = (16 << 10) + 512
"""The most bytes of a TLS record: 16 KiB and what encryption adds."""


_VERIFY = {
    ClientAuth.NONE: ssl.CERT_NONE,
    ClientAuth.REQUESTED: ssl.CERT_OPTIONAL,
    ClientAuth.REQUIRED: ssl.CERT_REQUIRED,
}


class OpenSslServer:
    """One SSLContext, and the buffers that its connections share."""

    def __init__(self, config: TlsConfig, stores: Stores) -> None:
        self.made_of = (config, stores)
        self._context = context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_COMPRESSION | ssl.OP_CIPHER_SERVER_PREFERENCE
        context.verify_mode = _VERIFY[config.client_auth]
        load_stores(context, config, stores)
        self._received = memoryview(bytearray(TLS_RECEIVED_BYTES_MAX))
        self._read = memoryview(bytearray(TLS_SENT_BYTES_MAX))

    def wrap(self, transport: Transport, buffered: Callable[[], object]) -> ServerTlsTransport:
        return _Connection(transport, self._context, self._received, self._read, buffered)


def server_tls(config: TlsConfig, former: ServerTls | None) -> ServerTls:
    """Read keys and certificates; return `former` if neither they nor the configs have changed."""
    stores = read_stores(config)
    if isinstance(former, OpenSslServer) and former.made_of == (config, stores):
        return former
    return OpenSslServer(config, stores)


class _Connection:
    __slots__ = (
        "_buffered",
        "_ended",
        "_incoming",
        "_inner",
        "_is_secure",
        "_outgoing",
        "_read",
        "_received",
        "_received_bytes",
        "_tls",
        "_uncredited",
        "_unsent",
        "certificate",
        "peer_address",
        "token",
    )

    def __init__(
        self,
        inner: Transport,
        context: ssl.SSLContext,
        received: memoryview,
        read: memoryview,
        buffered: Callable[[], object],
    ) -> None:
        self.token = inner.token
        self.peer_address = inner.peer_address
        self.certificate: bytes | None = None
        self._inner = inner
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_side=True)
        self._received = received
        self._read = read
        self._buffered = buffered
        self._received_bytes = 0
        self._is_secure = self._ended = False
        self._unsent = memoryview(b"")
        """Encrypted bytes that the network has not accepted."""
        self._uncredited = 0
        """Plain bytes of the caller that were encrypted and that `send` has not returned as sent yet."""

    # Handshake

    @property
    def wants_send(self) -> bool:
        return bool(self._unsent) or self._outgoing.pending > 0

    @property
    def has_buffered(self) -> bool:
        return self._is_secure and (self._ended or self._tls.pending() > 0 or self._incoming.pending > 0)

    def handshake(self) -> bool:
        if not self._is_secure:
            try:
                self._receive(_RECORD_BYTES)
            except BlockingIOError:
                pass
            self._proceed()
        return self._flush() and self._is_secure

    def _proceed(self) -> None:
        try:
            self._tls.do_handshake()
        except (ssl.SSLWantReadError, ssl.SSLEOFError, ssl.SSLZeroReturnError):
            if self._ended:
                raise TlsRefused("the client closed the connection during the handshake") from None
            if self._received_bytes > TLS_HANDSHAKE_BYTES_MAX:
                raise TlsRefused(f"the client sent more than {TLS_HANDSHAKE_BYTES_MAX} bytes of handshake") from None
            return
        except ssl.SSLError as error:
            self._flush()  # the alert tells the client the reason
            raise TlsRefused(_reason(error)) from None
        self._is_secure = True
        self.certificate = self._tls.getpeercert(binary_form=True)

    # Receiving

    def recv_into(self, buffer: memoryview, /) -> int:
        filled = self._decrypt(buffer)
        if filled < len(buffer) and not self._ended:
            try:
                self._receive(max(min(len(buffer) - filled, TLS_RECEIVED_BYTES_MAX), _RECORD_BYTES))
            except BlockingIOError:
                if not filled:
                    raise
                return filled
            filled += self._decrypt(buffer[filled:])
            if self._outgoing.pending and not self._uncredited:
                self._flush()  # such as the answer to a new key
            if self._outgoing.pending + len(self._unsent) > TLS_SENT_BYTES_MAX + TLS_CONTROL_BYTES_MAX:
                raise OSError("the client makes TLS answer and does not read the answers")
        if filled and self.has_buffered:
            self._buffered()
        elif not filled and not self._ended:
            raise BlockingIOError
        return filled

    def _receive(self, bytes_max: int) -> None:
        count = self._inner.recv_into(self._received[:bytes_max])
        if count:
            self._received_bytes += count
            self._incoming.write(self._received[:count])
        else:
            self._ended = True
            self._incoming.write_eof()

    def _decrypt(self, buffer: memoryview) -> int:
        """Fill the buffer with plain bytes as far as whole records have arrived."""
        filled, size, read = 0, len(buffer), self._tls.read
        try:
            while filled < size:
                count: Any = read(size - filled, buffer[filled:])  # with a buffer it returns a number
                if not count:
                    self._ended = True
                    break
                filled += count
        except ssl.SSLWantReadError:
            pass
        except (ssl.SSLZeroReturnError, ssl.SSLEOFError):
            self._ended = True
        return filled

    # Sending

    def send(self, buffer: Buffer, flags: int = 0, /) -> int:
        if not self._uncredited:
            self._await_room()
            self._encrypt(memoryview(buffer)[:TLS_SENT_BYTES_MAX])
        return self._credit()

    def send_vector(self, buffers: Sequence[Buffer], /) -> int:
        return self.send(b"".join(buffers))

    def send_range(self, part: FileRange, /) -> int:
        if not self._uncredited:
            self._await_room()
            room = self._read[: min(part.length, TLS_SENT_BYTES_MAX)]
            count = os.preadv(part.file, [room], part.position)
            if not count:
                return 0
            self._encrypt(room[:count])
        return self._credit()

    def _await_room(self) -> None:
        """Send what is encrypted already; raise BlockingIOError if the network does not accept all of it."""
        if not self._flush():
            raise BlockingIOError

    def _encrypt(self, plain: memoryview) -> None:
        at, size = 0, len(plain)
        while at < size:
            at += self._tls.write(plain[at:])
        self._uncredited = size

    def _credit(self) -> int:
        """Send encrypted bytes, and return how many plain bytes they stand for; the last one when all are sent.

        Encryption makes bytes more, never fewer, so that no more plain bytes are unsent than encrypted ones.
        """
        kept = 0 if self._flush() else max(1, min(self._uncredited, len(self._unsent) + self._outgoing.pending))
        sent = self._uncredited - kept
        self._uncredited = kept
        if not sent and kept:
            raise BlockingIOError
        return sent

    def _flush(self) -> bool:
        """Send encrypted bytes; return whether the network has accepted all of them."""
        while True:
            if not self._unsent:
                if not self._outgoing.pending:
                    return True
                self._unsent = memoryview(self._outgoing.read())
            try:
                sent = self._inner.send(self._unsent)
            except BlockingIOError:
                return False
            self._unsent = self._unsent[sent:]

    def close(self) -> None:
        try:
            if self._is_secure:
                self._tls.unwrap()
        except (ssl.SSLError, ValueError):
            pass  # it reports that the client has not said goodbye, which the broker does not wait for
        try:
            self._flush()
        except OSError:
            pass
        self._inner.close()


_NO_TLS = frozenset({"WRONG_VERSION_NUMBER", "HTTP_REQUEST", "HTTPS_PROXY_REQUEST", "UNKNOWN_PROTOCOL", "BAD_LENGTH"})
_NO_COMMON = frozenset({"UNSUPPORTED_PROTOCOL", "NO_SHARED_CIPHER", "NO_PROTOCOLS_AVAILABLE", "VERSION_TOO_LOW"})
_NOT_TRUSTED = frozenset(
    {
        "TLSV1_ALERT_UNKNOWN_CA",
        "SSLV3_ALERT_BAD_CERTIFICATE",
        "SSLV3_ALERT_CERTIFICATE_UNKNOWN",
        "SSLV3_ALERT_CERTIFICATE_EXPIRED",
    }
)


def _reason(error: ssl.SSLError) -> str:
    reason = error.reason or str(error)
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"the client's certificate is not accepted: {error.verify_message}"
    if reason in _NO_TLS:
        return "the client does not speak TLS: set security.protocol=SSL or SASL_SSL there"
    if reason in _NO_COMMON:
        return f"the client offers no version or cipher that the broker allows ({reason}): see ssl.enabled.protocols"
    if reason == "PEER_DID_NOT_RETURN_A_CERTIFICATE":
        return "the client presented no certificate, and ssl.client.auth=required"
    if reason in _NOT_TRUSTED:
        return (
            f"the client does not trust the broker's certificate ({reason}): give it the certificate of its authority"
        )
    return f"TLS failed ({reason})"
