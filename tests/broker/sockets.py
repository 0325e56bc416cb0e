"""A strict client on a real socket: any error, any closed connection, any wrong byte fails its test."""

import socket
from typing import Any

from headrace.wire import frames
from headrace.wire.apis import ApiKey, codec
from headrace.wire.records.builder import NewRecord, build_batch
from tests.broker.virtual import fetch_request, produce_request, values_of

TIMEOUT_S = 20.0
TIMESTAMP = 1_700_000_000_000


def connect(bootstrap_servers):
    host, port = bootstrap_servers.rsplit(":", 1)
    return socket.create_connection((host.strip("[]"), int(port)), TIMEOUT_S)


class SocketClient:
    def __init__(self, bootstrap_servers):
        self.socket = connect(bootstrap_servers)
        self._correlation = 0

    def send(self, api_key, version, message):
        self._correlation += 1
        body = codec(api_key).encode_request(message, version)
        self.socket.sendall(frames.request_frame(api_key, version, self._correlation, "strict", body))
        return self._correlation, api_key, version

    def receive(self, asked):
        correlation, api_key, version = asked
        frame = self._exactly(int.from_bytes(self._exactly(4), "big"))
        answered, position = frames.read_response_header(frame, 0, len(frame), api_key=api_key, api_version=version)
        assert answered == correlation
        return codec(api_key).decode_response(frame, position, len(frame), version)

    def _exactly(self, size):
        received = bytearray()
        while len(received) < size:
            piece = self.socket.recv(min(size - len(received), 1 << 20))
            assert piece, "the broker closed the connection"
            received += piece
        return bytes(received)

    def ask(self, api_key, version, message):
        return self.receive(self.send(api_key, version, message))

    def produce(self, topic, *values, partition=0, **fields):
        content = bytes(build_batch([NewRecord(TIMESTAMP, None, value) for value in values], **fields))
        response = self.ask(ApiKey.PRODUCE, 9, produce_request([(topic, [(partition, content)])]))
        answer = response.responses[0].partition_responses[0]
        assert answer.error_code == 0, answer
        return answer.base_offset

    def fetch(self, topic, offset, *, partition=0, **options):
        response = self.ask(ApiKey.FETCH, 12, fetch_request([(topic, partition, offset)], **options))
        answer = response.responses[0].partitions[0]
        assert (response.error_code, answer.error_code) == (0, 0), answer
        return values_of(answer.records, offset)

    def close(self):
        self.socket.close()


def scrape(address):
    """The numbers of a metrics page by name; samples with labels are summed up."""
    with connect(address) as page:
        page.sendall(b"GET /metrics HTTP/1.1\r\nHost: test\r\n\r\n")
        text = b""
        while piece := page.recv(1 << 16):
            text += piece
    found: dict[Any, Any] = {}
    for line in text.decode().partition("\r\n\r\n")[2].splitlines():
        if line and not line.startswith("#"):
            name, _, value = line.rpartition(" ")
            name = name.partition("{")[0]
            found[name] = found.get(name, 0.0) + float(value)
    return found
