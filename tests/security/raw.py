"""A connection that sends requests of SASL in any order."""

import itertools
import socket
import struct

from headrace.wire.apis import ApiKey, codec, is_flexible
from headrace.wire.messages import sasl_authenticate, sasl_handshake

from .stock import WAIT_MS


class Raw:
    def __init__(self, address, source="127.0.0.1"):
        host, port = address.split(":")
        self.socket = socket.create_connection((host, int(port)), source_address=(source, 0))
        self.socket.settimeout(WAIT_MS / 1000)
        self.numbers = itertools.count(1)

    def send(self, key, version, body):
        header = struct.pack(">hhih", key, version, next(self.numbers), -1) + (
            b"\0" if is_flexible(key, version) else b""
        )
        self.socket.sendall(struct.pack(">i", len(header) + len(body)) + header + body)

    def ask(self, key, version, request):
        self.send(key, version, codec(key).encode_request(request, version))
        frame = self.read()
        start = 5 if is_flexible(key, version) else 4
        return codec(key).decode_response(memoryview(frame), start, len(frame), version)

    def read(self):
        (size,) = struct.unpack(">i", self._exactly(4))
        return self._exactly(size)

    def _exactly(self, size):
        found = b""
        while len(found) < size:
            chunk = self.socket.recv(size - len(found))
            if not chunk:
                raise EOFError
            found += chunk
        return found

    def is_closed(self):
        try:
            return self.socket.recv(1) == b""
        except ConnectionResetError:
            return True

    def handshake(self, mechanism="PLAIN"):
        return self.ask(ApiKey.SASL_HANDSHAKE, 1, sasl_handshake.SaslHandshakeRequest(mechanism=mechanism))

    def authenticate(self, message):
        self.send_message(message)
        return self.read_message()

    def send_message(self, message):
        request = sasl_authenticate.SaslAuthenticateRequest(auth_bytes=message)
        self.send(ApiKey.SASL_AUTHENTICATE, 2, codec(ApiKey.SASL_AUTHENTICATE).encode_request(request, 2))

    def read_message(self):
        frame = self.read()
        return codec(ApiKey.SASL_AUTHENTICATE).decode_response(memoryview(frame), 5, len(frame), 2)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()
