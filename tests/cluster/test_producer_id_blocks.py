"""Blocks of producer ids for a broker that is not the active controller; the test plays the controller."""

from types import SimpleNamespace
from typing import Any

import pytest

from headrace.broker.cluster.producer_id_blocks import ProducerIdBlocks
from headrace.broker.cluster.proposal import Proposal, ProposalFailed
from headrace.core.controller.commands import ProducerIdBlock
from headrace.model.errors import ErrorCode
from headrace.wire.apis import ApiKey
from headrace.wire.messages.allocate_producer_ids import AllocateProducerIdsResponse
from tests.transactions.fake_peers import BROKEN, FakePeers

HERE, OTHER = 1, 2
BLOCK = ProducerIdBlock(0, 1_000)


class Controller:
    """The part of ControllerHost that allocates blocks."""

    def __init__(self, active):
        self.active_controller = active
        self.is_active = active == HERE
        self.image = SimpleNamespace(brokers={HERE: SimpleNamespace(broker_epoch=17)})

    def allocate_producer_ids(self, node_id):
        assert node_id == HERE
        proposal: Proposal[Any] = Proposal()
        proposal.complete(BLOCK)
        return proposal


@pytest.mark.parametrize("active", [HERE, None], ids=["this node is active", "none is known"])
def test_a_block_of_this_node_needs_no_request(active):
    peers = FakePeers()
    assert ProducerIdBlocks(Controller(active), peers).allocate_producer_ids(HERE).outcome == BLOCK
    assert not peers.sent


@pytest.fixture
def asked():
    peers = FakePeers()
    proposal = ProducerIdBlocks(Controller(OTHER), peers).allocate_producer_ids(HERE)
    return peers.take(), proposal


def test_another_node_that_is_active_allocates_the_block(asked):
    request, proposal = asked
    assert (request.node_id, request.api_key) == (OTHER, ApiKey.ALLOCATE_PRODUCER_IDS)
    assert (request.message.broker_id, request.message.broker_epoch) == (HERE, 17)
    assert proposal.outcome is None
    request.answer(AllocateProducerIdsResponse(producer_id_start=3_000, producer_id_len=1_000))
    assert proposal.outcome == ProducerIdBlock(3_000, 4_000)


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (BROKEN, ErrorCode.NETWORK_EXCEPTION),
        (AllocateProducerIdsResponse(error_code=ErrorCode.NOT_CONTROLLER), ErrorCode.NOT_CONTROLLER),
        (AllocateProducerIdsResponse(error_code=ErrorCode.STALE_BROKER_EPOCH), ErrorCode.STALE_BROKER_EPOCH),
        (AllocateProducerIdsResponse(producer_id_start=5, producer_id_len=0), ErrorCode.UNKNOWN_SERVER_ERROR),
    ],
)
def test_a_block_that_was_not_allocated_fails(asked, answer, error):
    request, proposal = asked
    request.answer(answer)
    assert isinstance(proposal.outcome, ProposalFailed)
    assert proposal.outcome.code is error
