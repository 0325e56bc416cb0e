"""AlterPartition between nodes: what a leader asks for, sends again, and gets from the active controller."""

from types import SimpleNamespace
from typing import Any

import pytest

from headrace.broker.cluster.isr_requests import CHANGES_PER_REQUEST_MAX, RETRY_MS, IsrRequests
from headrace.broker.cluster.proposal import Proposal, ProposalFailed
from headrace.broker.timers import Timers
from headrace.core.controller.commands import CreatableTopic, IsrChange, IsrMember, IsrResult, IsrResults
from headrace.core.controller.settings import ControllerSettings
from headrace.model.errors import ErrorCode
from headrace.model.ids import NodeId, TopicId
from headrace.wire.apis import ApiKey
from headrace.wire.messages.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionRequestBrokerState,
    AlterPartitionRequestPartition,
    AlterPartitionRequestTopic,
    AlterPartitionResponse,
    AlterPartitionResponsePartition,
    AlterPartitionResponseTopic,
)
from tests.cluster.pairs import TWO, Pair
from tests.transactions.fake_peers import BROKEN, FakePeers

HERE, OTHER = NodeId(1), NodeId(2)
UNKNOWN_CODE = 30_000
TOPIC = TopicId(b"t" * 16)


# At the active controller


@pytest.fixture
def pair():
    pair = Pair()
    pair.controller.configure(ControllerSettings(replication_factor_max=3))
    return pair


def create(pair):
    new = CreatableTopic(name="orders", assignments=[(0, [TWO, HERE])])
    proposal = pair.controller.create_topics([new])
    pair.peers.run_until(lambda: proposal.outcome is not None)
    assert not proposal.outcome[0].error, proposal.outcome
    return pair.image.topics["orders"].topic_id


def alter(pair, topic_id, epoch, *, members, broker_id=2, partition_epoch=0, leader_epoch=0):
    partition = AlterPartitionRequestPartition(
        partition_index=0,
        leader_epoch=leader_epoch,
        partition_epoch=partition_epoch,
        new_isr_with_epochs=tuple(
            AlterPartitionRequestBrokerState(broker_id=node, broker_epoch=node_epoch) for node, node_epoch in members
        ),
    )
    topic = AlterPartitionRequestTopic(topic_id=topic_id, partitions=(partition,))
    request = AlterPartitionRequest(broker_id=broker_id, broker_epoch=epoch, topics=(topic,))
    return pair.ask(ApiKey.ALTER_PARTITION, 3, request)


def test_a_leader_changes_its_in_sync_set_and_the_image_has_it_with_the_answer(pair):
    epoch = pair.start()
    topic_id = create(pair)
    (topic,) = alter(pair, topic_id, epoch, members=[(2, epoch)]).topics
    (partition,) = topic.partitions
    assert topic.topic_id == topic_id
    assert (partition.error_code, partition.leader_id, partition.isr) == (ErrorCode.NONE, 2, (2,))
    assert (partition.leader_epoch, partition.partition_epoch) == (0, 1)
    assert pair.image.topics["orders"].partitions[0].isr == (2,)
    (topic,) = alter(pair, topic_id, epoch, members=[(2, epoch)]).topics
    assert topic.partitions[0].error_code == ErrorCode.INVALID_UPDATE_VERSION


def test_a_leader_asks_in_its_own_name_alone(pair):
    epoch = pair.start()
    topic_id = create(pair)
    own = pair.image.brokers[HERE].broker_epoch
    refused = alter(pair, topic_id, own, members=[(1, own)], broker_id=1)
    assert (refused.error_code, refused.topics) == (ErrorCode.CLUSTER_AUTHORIZATION_FAILED, ())
    stale = alter(pair, topic_id, epoch - 1, members=[(2, epoch)])
    assert (stale.error_code, stale.topics) == (ErrorCode.STALE_BROKER_EPOCH, ())


# At the leader


class Controller:
    """The part of ControllerHost that a leader asks."""

    def __init__(self, active):
        self.active_controller = active
        self.offline = None
        self.asked: list[tuple[Any, Proposal[Any]]] = []

    def alter_isrs(self, alteration):
        proposal: Proposal[Any] = Proposal()
        self.asked.append((alteration, proposal))
        return proposal


class Leader:
    def __init__(self, active=OTHER):
        self.now_ms = 0.0
        self.timers = Timers(SimpleNamespace(monotonic_ms=lambda: self.now_ms))
        self.peers = FakePeers()
        self.controller = Controller(active)
        self.epoch = 17
        self.requests = IsrRequests(
            node_id=HERE,
            broker_epoch=lambda: self.epoch,
            controller=self.controller,
            peers=self.peers,
            timers=self.timers,
        )
        self.results: list[IsrResult] = []

    def alter(self, partition, *, partition_epoch=5, node_epoch=17):
        member = IsrMember(HERE, node_epoch)
        self.requests.alter(IsrChange(TOPIC, partition, 3, partition_epoch, (member,)), self.results.append)

    def turn(self):
        """Run what is due until nothing waits for the next turn."""
        self.timers.run_due(self.now_ms)
        while self.timers.wait_ms(self.now_ms) == 0:
            self.timers.run_due(self.now_ms)

    def wait(self, milliseconds):
        self.now_ms += milliseconds
        self.turn()


def answer(*partitions, error=ErrorCode.NONE):
    parts = tuple(
        AlterPartitionResponsePartition(
            partition_index=index, error_code=error, leader_id=1, leader_epoch=3, isr=(1,), partition_epoch=6
        )
        for index in partitions
    )
    return AlterPartitionResponse(topics=(AlterPartitionResponseTopic(topic_id=TOPIC, partitions=parts),))


def asked(request):
    return [partition.partition_index for topic in request.message.topics for partition in topic.partitions]


def test_changes_of_a_turn_travel_in_one_request_and_later_ones_in_the_next():
    leader = Leader()
    leader.alter(0)
    leader.alter(1)
    assert not leader.peers.sent
    leader.turn()
    request = leader.peers.take()
    assert (request.node_id, request.api_key, asked(request)) == (OTHER, ApiKey.ALTER_PARTITION, [0, 1])
    assert (request.message.broker_id, request.message.broker_epoch) == (HERE, 17)
    (partition, _) = request.message.topics[0].partitions
    assert (partition.leader_epoch, partition.partition_epoch) == (3, 5)
    assert partition.new_isr_with_epochs == (AlterPartitionRequestBrokerState(broker_id=1, broker_epoch=17),)
    leader.alter(2)
    leader.turn()
    assert not leader.peers.sent
    request.answer(answer(0, 1))
    assert [(result.partition, result.error, result.isr) for result in leader.results] == [
        (0, ErrorCode.NONE, (1,)),
        (1, ErrorCode.NONE, (1,)),
    ]
    leader.turn()
    assert asked(leader.peers.take()) == [2]


@pytest.mark.parametrize(
    "failure",
    [
        BROKEN,
        AlterPartitionResponse(error_code=ErrorCode.NOT_CONTROLLER),
        AlterPartitionResponse(error_code=ErrorCode.REQUEST_TIMED_OUT),
        AlterPartitionResponse(error_code=ErrorCode.KAFKA_STORAGE_ERROR),
        AlterPartitionResponse(error_code=ErrorCode.UNKNOWN_SERVER_ERROR),
        AlterPartitionResponse(error_code=UNKNOWN_CODE),
    ],
    ids=[
        "broken link",
        "not the controller",
        "not committed in time",
        "no disk space at the controller",
        "a failure of the controller",
        "an error of a newer broker",
    ],
)
def test_a_change_of_unknown_outcome_is_asked_for_again(failure):
    leader = Leader()
    leader.alter(0)
    leader.alter(1)
    leader.turn()
    leader.peers.take().answer(failure)
    assert not leader.results
    leader.alter(1, partition_epoch=6)
    leader.turn()
    assert not leader.peers.sent
    leader.epoch = 18
    leader.wait(RETRY_MS)
    request = leader.peers.take()
    assert request.message.broker_epoch == 18
    epochs = {p.partition_index: p.partition_epoch for p in request.message.topics[0].partitions}
    assert epochs == {0: 5, 1: 6}  # the newer change of a partition replaces the older one
    request.answer(answer(0, 1))
    assert len(leader.results) == 2


def test_a_refused_request_refuses_each_of_its_changes():
    leader = Leader()
    leader.alter(0)
    leader.turn()
    leader.peers.take().answer(AlterPartitionResponse(error_code=ErrorCode.STALE_BROKER_EPOCH))
    assert [(result.partition, result.error) for result in leader.results] == [(0, ErrorCode.STALE_BROKER_EPOCH)]


def test_many_changes_are_cut_into_requests():
    leader = Leader()
    for partition in range(CHANGES_PER_REQUEST_MAX + 1):
        leader.alter(partition)
    leader.turn()
    request = leader.peers.take()
    assert len(asked(request)) == CHANGES_PER_REQUEST_MAX
    request.answer(answer(*asked(request)))
    leader.turn()
    assert asked(leader.peers.take()) == [CHANGES_PER_REQUEST_MAX]


def test_the_active_controller_asks_itself():
    leader = Leader(active=HERE)
    leader.alter(0)
    leader.turn()
    ((alteration, proposal),) = leader.controller.asked
    assert (alteration.node_id, alteration.broker_epoch, len(alteration.changes)) == (HERE, 17, 1)
    proposal.complete(ProposalFailed(ErrorCode.NOT_CONTROLLER, "another node is"))
    leader.wait(RETRY_MS)
    _, proposal = leader.controller.asked[1]
    proposal.complete(IsrResults(results=(IsrResult(TOPIC, 0, isr=(HERE,)),)))
    assert [result.isr for result in leader.results] == [(HERE,)]


def test_a_node_whose_metadata_failed_asks_nothing():
    leader = Leader(active=HERE)
    leader.controller.offline = "the disk is gone"
    leader.alter(0)
    leader.turn()
    assert not leader.controller.asked
