"""AddRaftVoter and RemoveRaftVoter: the voters of the metadata quorum change when an operator says so."""

import pytest

from headrace.log.checkpoints import decode_uuid
from headrace.model.errors import ErrorCode
from headrace.wire.apis import ApiKey
from headrace.wire.messages.add_raft_voter import AddRaftVoterRequest
from headrace.wire.messages.remove_raft_voter import RemoveRaftVoterRequest
from tests.cluster.three_brokers import Three
from tests.peers.nodes import CLIENT_PORT, PeerWorld
from tests.peers.test_listener import Caller

PROMOTION_MS = 10_000
"""Time in which a leader promotes every observer that it may."""
ONE_VOTER = {"settings": {"headrace.controllers.target": "1"}}


class Quorum:
    """A voter and an observer that is not promoted by itself."""

    def __init__(self):
        self.world = PeerWorld()
        self.one = self.world.node(1, **ONE_VOTER)
        self.world.run_until(lambda: self.one.node.ready)
        self.two = self.world.node(2, peers=[1], **ONE_VOTER)
        self.world.run_until(lambda: self.two.node.ready)
        self.directory = decode_uuid(self.two.node.quorum.me.directory_id)

    @property
    def voters(self):
        return [voter.node_id for voter in self.one.node.quorum.voters]

    def ask(self, key, request, *, node=None):
        return Caller(self.world, node or self.one, port=CLIENT_PORT, from_host="127.0.0.1").ask(key, 0, request)

    def add(self, *, voter_id=2, directory=None, cluster_id=None, node=None):
        request = AddRaftVoterRequest(
            cluster_id=cluster_id,
            timeout_ms=30_000,
            voter_id=voter_id,
            voter_directory_id=self.directory if directory is None else directory,
        )
        return self.ask(ApiKey.ADD_RAFT_VOTER, request, node=node)

    def remove(self, *, voter_id=2, directory=None):
        request = RemoveRaftVoterRequest(
            cluster_id=None,
            voter_id=voter_id,
            voter_directory_id=self.directory if directory is None else directory,
        )
        return self.ask(ApiKey.REMOVE_RAFT_VOTER, request)


@pytest.fixture
def quorum():
    return Quorum()


def test_an_observer_becomes_a_voter_and_an_observer_again(quorum):
    assert quorum.add().error_code == ErrorCode.NONE
    assert quorum.voters == [1, 2]
    assert quorum.add().error_code == ErrorCode.DUPLICATE_VOTER
    assert quorum.remove().error_code == ErrorCode.NONE
    assert quorum.voters == [1]
    gone = quorum.remove()
    assert (gone.error_code, gone.error_message) == (ErrorCode.VOTER_NOT_FOUND, "the replica is not a voter")


def test_a_broker_that_is_not_the_controller_forwards_the_request(quorum):
    assert quorum.add(node=quorum.two).error_code == ErrorCode.NONE
    assert quorum.voters == [1, 2]


def test_a_voter_is_a_node_with_its_directory(quorum):
    refused = quorum.add(directory=b"d" * 16)
    assert refused.error_code == ErrorCode.REQUEST_TIMED_OUT
    assert "has not caught up" in refused.error_message
    assert quorum.voters == [1]


def test_the_last_voter_stays(quorum):
    own = decode_uuid(quorum.one.node.quorum.me.directory_id)
    refused = quorum.remove(voter_id=1, directory=own)
    assert (refused.error_code, refused.error_message) == (
        ErrorCode.INVALID_REQUEST,
        "the last voter cannot be removed",
    )


def test_a_request_for_another_cluster_is_refused(quorum):
    refused = quorum.add(cluster_id="wine")
    assert refused.error_code == ErrorCode.INCONSISTENT_CLUSTER_ID
    assert quorum.voters == [1]


class Voters(Three):
    """Three brokers whose voters an operator changes."""

    def ids(self):
        active = self.cluster.controller()
        return [] if active is None else sorted(key.node_id for key in active[0].running.quorum.voters)

    def change(self, api_key, request, voter_id):
        directory = self.cluster.nodes[voter_id - 1].running.quorum.me.directory_id
        message = request(cluster_id=None, voter_id=voter_id, voter_directory_id=decode_uuid(directory))
        answer = self.ask(self.cluster.nodes[0], api_key, 0, message)
        assert answer.error_code == ErrorCode.NONE, answer.error_message

    def pass_time(self, duration_ms):
        end_ms = self.world.time.now_ms + duration_ms
        self.world.run_until(lambda: self.world.time.now_ms >= end_ms)


@pytest.mark.slow
def test_a_removed_voter_stays_an_observer_under_every_controller_until_it_is_added_again():
    three = Voters()
    three.change(ApiKey.REMOVE_RAFT_VOTER, RemoveRaftVoterRequest, 3)
    three.pass_time(PROMOTION_MS)
    assert three.ids() == [1, 2]
    active = three.cluster.controller()
    assert active is not None
    former, _ = active
    former.stop()
    former.boot()
    three.world.run_until(lambda: three.cluster.all_serve and three.cluster.controller() is not None)
    three.pass_time(PROMOTION_MS)
    assert three.ids() == [1, 2]
    three.change(ApiKey.ADD_RAFT_VOTER, AddRaftVoterRequest, 3)
    assert three.ids() == [1, 2, 3]
    three.change(ApiKey.REMOVE_RAFT_VOTER, RemoveRaftVoterRequest, 2)
    three.change(ApiKey.ADD_RAFT_VOTER, AddRaftVoterRequest, 2)
    assert three.ids() == [1, 2, 3]
