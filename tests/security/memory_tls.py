"""A TLS client and the broker's side of TLS, joined in memory."""

import ssl

from headrace.model.configs import BrokerConfig
from headrace.ports.network import TlsRefused
from headrace.ports.real.tls import server_tls

PIECE = 16 << 10


class Wire:
    """The transport below TLS: bytes go to and from the client of the test, at most `room` of them at a time."""

    token = 7
    peer_address = "10.0.0.7:1234"

    def __init__(self):
        self.to_broker = bytearray()
        self.to_client = bytearray()
        self.room = 1 << 30
        self.ended = self.closed = False

    def recv_into(self, buffer):
        if not self.to_broker:
            if self.ended:
                return 0
            raise BlockingIOError
        taken = self.to_broker[: len(buffer)]
        del self.to_broker[: len(taken)]
        buffer[: len(taken)] = taken
        return len(taken)

    def send(self, buffer, flags=0):
        taken = bytes(buffer[: self.room])
        if not taken:
            raise BlockingIOError
        self.room -= len(taken)
        self.to_client += taken
        return len(taken)

    def close(self):
        self.closed = True


class Client:
    """A TLS client in memory."""

    def __init__(self, context, host="localhost"):
        self.incoming, self.outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = context.wrap_bio(self.incoming, self.outgoing, server_hostname=host)

    def take(self, wire):
        self.incoming.write(wire.to_client)
        wire.to_client.clear()

    def give(self, wire, piece=1 << 30):
        wire.to_broker += self.outgoing.read(piece)

    def shake(self):
        try:
            self.tls.do_handshake()
        except ssl.SSLWantReadError:
            return False
        return True

    def read(self):
        found = bytearray()
        try:
            while chunk := self.tls.read(PIECE):
                found += chunk
        except ssl.SSLWantReadError:
            pass
        return bytes(found)


def broker_tls(authority, client_auth="none", **more):
    return server_tls(BrokerConfig.from_texts(authority.configs(client_auth, **more)).tls, None)


def client_context(authority, name=None, *, version=None, trusts=True):
    context = ssl.create_default_context(cafile=authority.ca if trusts else None)
    if version is not None:
        context.minimum_version = context.maximum_version = version
    if name is not None:
        context.load_cert_chain(authority.certificate(name), authority.key(name))
    return context


def connected(tls, context, *, piece=1 << 30):
    """A connection whose handshake is over, with the calls to read again."""
    wire, client, again = Wire(), Client(context), []
    connection = tls.wrap(wire, lambda: again.append(True))
    done = False
    for _ in range(20_000):
        ready = client.shake()
        client.give(wire, piece)
        if wire.to_broker or not done:
            done = connection.handshake()
        client.take(wire)
        if done and ready and not wire.to_broker:
            return connection, wire, client, again
    raise AssertionError("the handshake does not end")


def refusal(tls, context=None, content=b"", host="localhost", ends=True):
    """The reason for which a handshake is refused; without a context only `content` is sent, and the stream may end."""
    wire, client = Wire(), Client(context, host) if context is not None else None
    connection = tls.wrap(wire, lambda: None)
    wire.to_broker += content
    wire.ended = client is None and ends
    for _ in range(10):
        if client is not None:
            try:
                client.shake()
            except ssl.SSLError:
                wire.ended = True
            client.give(wire)
        try:
            connection.handshake()
        except TlsRefused as refused:
            return str(refused)
        if client is not None:
            client.take(wire)
    raise AssertionError("the client was admitted")
