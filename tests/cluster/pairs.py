"""A controller in a simulated world, and a peer as which a test speaks to it."""

from typing import Any

from headrace.broker.cluster.registration_messages import heartbeat_request, registration_request
from headrace.broker.peers.requests import PeerFailure
from headrace.core.controller.commands import BrokerHeartbeat
from headrace.model.ids import NodeId
from headrace.wire.apis import ApiKey
from tests.core.controllers import new_broker
from tests.peers.nodes import KEY, PeerWorld

TWO = NodeId(2)


class Pair:
    """A controller, and the link of a second node over which the test speaks as that broker."""

    def __init__(self):
        self.peers = PeerWorld()
        self.one, self.two = self.peers.pair()
        self.peers.run_until(lambda: self.one.node.ready)
        self.controller = self.one.node.broker.controller

    @property
    def image(self):
        return self.controller.image

    def ask(self, api_key, version, request):
        answers: list[Any] = []
        self.two.links.send(NodeId(1), api_key, version, request, timeout_ms=5_000, then=answers.append)
        self.peers.run_until(lambda: answers)
        (answer,) = answers
        assert not isinstance(answer, PeerFailure), answer
        return answer

    def register(self, *, broker_id=2, **fields):
        endpoint = self.two.node._peers.endpoint(self.two.host)
        new = new_broker(broker_id, **{"cluster_id": KEY.cluster_id, "endpoints": [endpoint]} | fields)
        return self.ask(ApiKey.BROKER_REGISTRATION, 4, registration_request(new))

    def beat(self, epoch, *, node_id=TWO, **fields):
        offset = {"metadata_offset": self.image.version - 1} | fields
        beat = BrokerHeartbeat(node_id=node_id, broker_epoch=epoch, **offset)
        return self.ask(ApiKey.BROKER_HEARTBEAT, 1, heartbeat_request(beat))

    def start(self):
        epoch = self.register().broker_epoch
        assert not self.beat(epoch).is_fenced
        return epoch
