"""Producer ids of one broker: blocks are requested ahead, and a controller that is gone for a while is asked again."""

import pytest

from headrace.broker.cluster.producer_ids import BLOCK_RETRY_MS, IDS_LEFT_MIN, ProducerIds
from headrace.broker.cluster.proposal import Proposal, ProposalFailed
from headrace.broker.timers import Timers
from headrace.core.controller.commands import PRODUCER_IDS_PER_BLOCK, ProducerIdBlock
from headrace.model.errors import ErrorCode
from headrace.sim.clock import VirtualClock, VirtualTime

NODE = 3
NOT_CONTROLLER = ProposalFailed(ErrorCode.NOT_CONTROLLER, "the controller has changed")


class FakeController:
    """Answers when the test says so."""

    def __init__(self):
        self.asked: list[Proposal] = []
        self.next_id = 0

    def allocate_producer_ids(self, node_id):
        assert node_id == NODE
        self.asked.append(Proposal())
        return self.asked[-1]

    def allocate(self):
        first, self.next_id = self.next_id, self.next_id + PRODUCER_IDS_PER_BLOCK
        self.asked.pop().complete(ProducerIdBlock(first, self.next_id))

    def fail(self):
        self.asked.pop().complete(NOT_CONTROLLER)


class Harness:
    def __init__(self):
        self.time = VirtualTime()
        self.timers = Timers(VirtualClock(self.time))
        self.controller = FakeController()
        self.ids = ProducerIds(self.controller, NODE, self.timers)
        self.given = []

    def pass_time(self, duration_ms):
        self.time.advance(duration_ms)
        self.timers.run_due(self.timers.now_ms())


@pytest.fixture
def harness():
    return Harness()


def test_ids_of_a_block_are_given_in_order(harness):
    assert harness.ids.take() is None
    harness.ids.wait(harness.given.append)
    harness.ids.wait(harness.given.append)
    assert len(harness.controller.asked) == 1
    harness.controller.allocate()
    assert harness.given == [0, 1]
    assert harness.ids.take() == 2


def test_the_next_block_is_requested_before_the_last_id_is_given(harness):
    harness.ids.give(lambda _id: None)
    harness.controller.allocate()
    while harness.ids.take() < PRODUCER_IDS_PER_BLOCK - IDS_LEFT_MIN - 2:
        assert not harness.controller.asked
    harness.ids.take()
    assert len(harness.controller.asked) == 1
    harness.controller.allocate()
    taken = [harness.ids.take() for _ in range(IDS_LEFT_MIN + 1)]
    assert taken == list(range(PRODUCER_IDS_PER_BLOCK - IDS_LEFT_MIN, PRODUCER_IDS_PER_BLOCK + 1))
    assert not harness.controller.asked


def test_ids_are_given_while_there_is_no_controller(harness):
    harness.ids.give(lambda _id: None)
    harness.controller.allocate()
    while harness.ids.take() < PRODUCER_IDS_PER_BLOCK - IDS_LEFT_MIN - 1:
        pass
    harness.controller.fail()
    assert harness.ids.take() == PRODUCER_IDS_PER_BLOCK - IDS_LEFT_MIN
    assert not harness.controller.asked, "a pause comes first"
    harness.pass_time(BLOCK_RETRY_MS)
    assert len(harness.controller.asked) == 1
    harness.controller.allocate()
    while (taken := harness.ids.take()) < PRODUCER_IDS_PER_BLOCK:
        assert taken is not None


def test_a_request_that_waits_fails_with_the_controller_and_the_next_one_is_served(harness):
    harness.ids.wait(harness.given.append)
    harness.controller.fail()
    assert [outcome.code for outcome in harness.given] == [ErrorCode.COORDINATOR_NOT_AVAILABLE]
    harness.ids.wait(harness.given.append)
    harness.pass_time(BLOCK_RETRY_MS)
    harness.controller.allocate()
    assert harness.given[1:] == [0]


def test_more_requests_than_a_block_has_ids_are_served_from_the_next_block(harness):
    for _ in range(PRODUCER_IDS_PER_BLOCK + 10):
        harness.ids.wait(harness.given.append)
    harness.controller.allocate()
    harness.controller.allocate()
    assert harness.given == list(range(PRODUCER_IDS_PER_BLOCK + 10))
