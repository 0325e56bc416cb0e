"""Blocks of producer ids from the active controller, which is on this node or on another one."""

from headrace.broker.cluster.controller_host import ControllerHost
from headrace.broker.cluster.proposal import Proposal, ProposalFailed
from headrace.broker.peers.requests import PeerFailure, PeerRequests
from headrace.core.controller.commands import ProducerIdBlock
from headrace.model.errors import ErrorCode, error_code, error_name
from headrace.model.ids import NodeId, ProducerId
from headrace.wire.apis import ApiKey
from headrace.wire.messages.allocate_producer_ids import AllocateProducerIdsRequest, AllocateProducerIdsResponse

ALLOCATION_TIMEOUT_MS = 5_000

_VERSION = 0
_NO_EPOCH = -1


class ProducerIdBlocks:
    def __init__(self, controller: ControllerHost, peers: PeerRequests) -> None:
        self._controller = controller
        self._peers = peers

    def allocate_producer_ids(self, node_id: NodeId) -> Proposal[ProducerIdBlock]:
        """Allocate a block for this node; the proposal fails with a retriable error while there is no controller."""
        active = self._controller.active_controller
        if self._controller.is_active or active is None or active == node_id:
            return self._controller.allocate_producer_ids(node_id)
        broker = self._controller.image.brokers.get(node_id)
        allocated: Proposal[ProducerIdBlock] = Proposal()
        self._peers.send(
            active,
            ApiKey.ALLOCATE_PRODUCER_IDS,
            _VERSION,
            AllocateProducerIdsRequest(
                broker_id=node_id, broker_epoch=_NO_EPOCH if broker is None else broker.broker_epoch
            ),
            timeout_ms=ALLOCATION_TIMEOUT_MS,
            then=lambda response: allocated.complete(_block(response)),
        )
        return allocated


def _block(response: object) -> ProducerIdBlock | ProposalFailed:
    if isinstance(response, PeerFailure):
        return ProposalFailed(response.code, response.message)
    assert isinstance(response, AllocateProducerIdsResponse)
    if response.error_code:
        name = error_name(response.error_code)
        return ProposalFailed(error_code(response.error_code), f"the controller allocated no producer ids: {name}")
    first, count = response.producer_id_start, response.producer_id_len
    if first < 0 or count <= 0:
        return ProposalFailed(ErrorCode.UNKNOWN_SERVER_ERROR, "the controller allocated an empty block of producer ids")
    return ProducerIdBlock(ProducerId(first), ProducerId(first + count))
