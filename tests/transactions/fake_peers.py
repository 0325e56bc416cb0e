"""Peers in memory: requests pass through their codecs and wait until the test answers them."""

from typing import Any, NamedTuple

from headrace.broker.peers.requests import PeerFailure
from headrace.model.errors import ErrorCode
from headrace.wire.apis import codec

BROKEN = PeerFailure(code=ErrorCode.NETWORK_EXCEPTION, message="the connection broke", reset=True)


class SentRequest(NamedTuple):
    node_id: int
    api_key: int
    version: int
    message: Any
    timeout_ms: float
    then: Any

    def answer(self, response):
        """Answer with a message of the API, or with a PeerFailure."""
        if not isinstance(response, PeerFailure):
            api = codec(self.api_key)
            body = api.encode_response(response, self.version)
            response = api.decode_response(body, 0, len(body), self.version)
        self.then(response)


class FakePeers:
    def __init__(self):
        self.sent: list[SentRequest] = []
        """Requests without an answer."""

    def send(self, node_id, api_key, version, request, *, timeout_ms, then):
        api = codec(api_key)
        body = api.encode_request(request, version)
        message = api.decode_request(body, 0, len(body), version)
        assert message == request
        self.sent.append(SentRequest(node_id, api_key, version, message, timeout_ms, then))

    def post(self, node_id, message):
        raise AssertionError("coordinators post no Raft messages")

    def take(self) -> SentRequest:
        """Take the only request that has no answer."""
        (sent,) = self.sent
        self.sent.clear()
        return sent
