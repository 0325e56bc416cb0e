"""Three controller hosts on one quorum: elections, replication, joining, promotion and snapshots."""

import pytest

from headrace.broker.cluster.metadata_log import MetadataDamaged, MetadataLog
from headrace.broker.cluster.proposal import ProposalFailed
from headrace.broker.cluster.snapshots import list_snapshots
from headrace.core.raft.effects import Committed, Outcome, ReadAllowed, RequestRefused, Transferred
from headrace.core.raft.ids import Index, Term, voter_set
from headrace.core.raft.messages import SnapshotRequest, VoteRequest, VoteResponse
from headrace.model.errors import ErrorCode
from headrace.sim.world import CutOff
from tests.cluster.quorum_nodes import METADATA_FOLDER, QuorumCluster

SMALL_INTERVAL_BYTES = 1_500


class TestFounding:
    def test_nodes_join_as_observers_and_are_promoted_in_pairs(self) -> None:
        cluster = QuorumCluster()
        cluster.node(1).boot()
        cluster.leader()
        cluster.node(2).boot()
        cluster.run_for(5_000)
        assert cluster.node(1).quorum.voters == (cluster.node(1).key,), "two voters tolerate no more than one"
        assert [(state.key.node_id, state.is_voter) for state in cluster.node(1).quorum.replicas()] == [
            (1, True),
            (2, False),
        ]
        cluster.node(3).boot()
        cluster.run_until(lambda: cluster.has_voters(3))
        assert cluster.node(1).host.is_active

    def test_no_more_are_promoted_than_the_target(self) -> None:
        cluster = QuorumCluster(5, target=3).boot()
        cluster.run_for(5_000)
        assert cluster.has_voters(3)
        cluster.create("orders")
        cluster.settle()
        assert cluster.node(5).topics == ["orders"], "observers apply what is committed"

    def test_a_node_that_does_not_found_waits_for_a_leader(self) -> None:
        cluster = QuorumCluster()
        cluster.node(2).boot()
        cluster.node(3).boot()
        cluster.run_for(10_000)
        for node in cluster.running:
            assert not node.host.is_active
            assert node.host.active_controller is None
            assert node.quorum.voters == ()
        refused = cluster.node(2).create("orders")
        outcome = cluster.outcome(refused)
        assert isinstance(outcome, ProposalFailed)
        assert outcome.code is ErrorCode.NOT_CONTROLLER

    def test_voters_spread_over_hosts_that_appear_later(self) -> None:
        cluster = QuorumCluster(5)
        hosts = {1: "a", 2: "a", 3: "a", 4: "b", 5: "c"}
        for node_id in (1, 2, 3):
            cluster.node(node_id).boot()
            cluster.node(node_id).quorum.host_of = hosts.get
        cluster.run_until(lambda: cluster.has_voters(3))
        for node_id in (4, 5):
            cluster.node(node_id).boot()
            cluster.node(node_id).quorum.host_of = hosts.get

        def spread() -> bool:
            voters = cluster.leader().quorum.voters
            return len(voters) == 3 and {hosts[voter.node_id] for voter in voters} == {"a", "b", "c"}

        cluster.run_until(spread)
        cluster.run_for(5_000)
        assert spread(), "and then it stays"


class TestReplication:
    def test_a_change_reaches_every_node_and_its_subscribers(self) -> None:
        cluster = QuorumCluster().boot()
        cluster.create("orders")
        cluster.settle()
        for node in cluster.running:
            assert node.topics == ["orders"]
            assert [topic.name for delta in node.deltas for topic in delta.topics_created] == ["orders"]

    def test_when_applied_calls_once_the_image_is_there(self) -> None:
        cluster = QuorumCluster().boot()
        cluster.settle()
        follower = cluster.node(2)
        reached: list[int] = []
        due = follower.host.image.version + 1
        follower.host.when_applied(due - 1, lambda: reached.append(-1))
        follower.host.when_applied(due, lambda: reached.append(follower.host.image.version))
        assert reached == [-1]
        cluster.create("orders")
        cluster.settle()
        assert reached == [-1, due]

    def test_a_follower_refuses_and_names_the_controller(self) -> None:
        cluster = QuorumCluster().boot()
        leader = cluster.leader()
        follower = next(node for node in cluster.running if node is not leader)
        outcome = cluster.outcome(follower.create("orders"))
        assert isinstance(outcome, ProposalFailed)
        assert outcome.code is ErrorCode.NOT_CONTROLLER
        assert f"the active controller is node {leader.node_id}" in outcome.message
        assert follower.host.active_controller == leader.node_id

    def test_nothing_is_committed_without_a_majority(self) -> None:
        cluster = QuorumCluster().boot()
        leader = cluster.leader()
        others = {node.node_id for node in cluster.running if node is not leader}
        cluster.cut = {*others}
        proposal = leader.create("orders")
        cluster.run_for(500)
        assert proposal.outcome is None
        assert leader.topics == []
        cluster.run_for(3_000)
        assert isinstance(proposal.outcome, ProposalFailed), "a leader without a quorum resigns"
        assert proposal.outcome.code is ErrorCode.NOT_CONTROLLER
        assert leader.quorum.leaderless_since_ms is not None


class TestElection:
    @pytest.mark.parametrize("power", [False, True])
    def test_another_node_takes_over_and_nothing_acknowledged_is_lost(self, power: bool) -> None:
        cluster = QuorumCluster().boot()
        cluster.create("before")
        old = cluster.leader()
        old.kill(power=power)
        new = cluster.leader()
        assert new is not old
        assert new.topics == ["before"]
        cluster.create("after")
        old.boot()
        cluster.settle()
        assert old.topics == ["before", "after"]
        assert not old.host.is_active

    def test_a_leader_that_was_cut_off_forgets_what_it_did_not_commit(self) -> None:
        cluster = QuorumCluster().boot()
        old = cluster.leader()
        cluster.cut = {old.node_id}
        lost = [old.create(f"lost-{number}") for number in range(5)]
        new = cluster.leader()
        assert new is not old
        cluster.create("kept")
        cluster.run_until(lambda: all(proposal.outcome is not None for proposal in lost))
        assert {proposal.outcome.code for proposal in lost if isinstance(proposal.outcome, ProposalFailed)} == {
            ErrorCode.NOT_CONTROLLER
        }
        cluster.cut = set()
        cluster.settle()
        for node in cluster.running:
            assert node.topics == ["kept"]
        cluster.run_for(500)  # what others have committed is applied before it is on this node's disk
        old.kill()
        old.boot()
        assert not [entry for entry in old.replay.stored.entries if b"lost" in entry.payload], "they left its disk too"
        cluster.settle()
        assert old.topics == ["kept"]

    def test_a_change_that_waits_for_an_elected_node_fails_if_another_takes_over_first(self) -> None:
        """In the simulator a heartbeat of a broker to itself waited for ever, and the broker stayed fenced."""
        cluster = QuorumCluster().boot()
        cluster.leader().kill()
        cluster.run_until(lambda: any(node.quorum.is_electing_itself for node in cluster.running))
        elected = next(node for node in cluster.running if node.quorum.is_electing_itself)
        assert not elected.host.is_active
        cluster.cut = {elected.node_id}
        proposal = elected.create("orders")
        cluster.run_until(lambda: proposal.outcome is not None)
        assert isinstance(proposal.outcome, ProposalFailed)
        assert proposal.outcome.code is ErrorCode.NOT_CONTROLLER

    def test_the_leadership_can_be_transferred(self) -> None:
        cluster = QuorumCluster().boot()
        old = cluster.leader()
        outcomes: list[Outcome] = []
        old.quorum.transfer_leadership(outcomes.append)
        cluster.run_until(lambda: bool(outcomes))
        assert isinstance(outcomes[0], Transferred)
        cluster.run_until(lambda: cluster.active not in (None, old))

    def test_all_nodes_restart_with_what_they_had(self) -> None:
        cluster = QuorumCluster().boot()
        cluster.create("orders")
        cluster.settle()
        term = cluster.leader().host.term
        for node in cluster.running:
            node.kill(power=True)
        for node in cluster.nodes.values():
            node.boot()
        assert cluster.leader().host.term > term
        cluster.settle()
        assert cluster.node(3).topics == ["orders"]


class TestReads:
    def test_a_leader_answers_a_read_after_a_round_and_a_follower_refuses(self) -> None:
        cluster = QuorumCluster().boot()
        cluster.create("orders")
        leader = cluster.leader()
        outcomes: list[Outcome] = []
        leader.quorum.read(outcomes.append)
        assert not outcomes, "a majority has to answer first"
        cluster.run_until(lambda: bool(outcomes))
        assert isinstance(outcomes[0], ReadAllowed)
        assert leader.host.image.version >= outcomes[0].index
        follower = next(node for node in cluster.running if node is not leader)
        follower.quorum.read(outcomes.append)
        assert isinstance(outcomes[1], RequestRefused)
        assert outcomes[1].leader == leader.node_id


class TestVoters:
    def test_a_voter_can_be_removed_and_added(self) -> None:
        cluster = QuorumCluster(target=1).boot()
        leader, other = cluster.node(1), cluster.node(2)
        outcomes: list[Outcome] = []
        cluster.settle()
        leader.quorum.add_voter(other.key, outcomes.append)
        cluster.run_until(lambda: len(outcomes) == 1)
        assert leader.quorum.voters == voter_set(leader.key, other.key)
        leader.quorum.add_voter(other.key, outcomes.append)
        leader.quorum.remove_voter(other.key, outcomes.append)
        cluster.run_until(lambda: len(outcomes) == 3)
        assert [type(outcome) for outcome in outcomes] == [Committed, RequestRefused, Committed]
        assert leader.quorum.voters == (leader.key,)

    def test_an_emptied_folder_joins_as_another_replica_that_replaces_the_old_one(self) -> None:
        cluster = QuorumCluster().boot()
        cluster.create("orders")
        lost = next(node for node in cluster.running if node is not cluster.leader())
        old_key = lost.key
        lost.kill()
        lost.wipe()
        cluster.sent.clear()
        lost.boot()
        assert lost.quorum.voters == (), "it knows nothing of its former self"
        cluster.run_until(lambda: cluster.has_voters(3))
        assert lost.key in cluster.leader().quorum.voters
        assert old_key not in cluster.leader().quorum.voters
        cluster.settle()
        assert lost.topics == ["orders"]
        votes = [message for message in cluster.sent if isinstance(message, VoteResponse | VoteRequest)]
        assert all(message.source != old_key for message in votes)

    def test_a_vote_of_the_old_identity_is_not_answered(self) -> None:
        cluster = QuorumCluster().boot()
        lost = cluster.node(3) if cluster.leader() is not cluster.node(3) else cluster.node(2)
        candidate = next(node for node in cluster.running if node not in (lost, cluster.leader()))
        old_key = lost.key
        lost.kill()
        lost.wipe()
        cluster.cut = {1, 2, 3}
        lost.boot()
        cluster.sent.clear()
        term = candidate.quorum.term
        lost.quorum.deliver(
            VoteRequest(
                source=candidate.key,
                to=old_key,
                term=Term(term + 1),
                last_term=term,
                last_index=Index(candidate.quorum.end_offset),
                forced=True,
            )
        )
        cluster.run_for(100)
        assert not [message for message in cluster.sent if isinstance(message, VoteResponse)]

    def test_a_missing_metadata_folder_is_refused(self) -> None:
        """Its node would vote again under an identity that has voted."""
        cluster = QuorumCluster().boot()
        node = cluster.node(2)
        point = node.host.recovery_point
        node.kill()
        for name in node.machine.disk.list_directory(METADATA_FOLDER):
            node.machine.disk.unlink(f"{METADATA_FOLDER}/{name}")
        node.machine.disk.remove_directory(METADATA_FOLDER)
        with pytest.raises(MetadataDamaged, match=r"missing.*empty data folder"):
            MetadataLog.open(node.machine.disk, "data", me=node.key, founds=False, recovery_point=point, wall_ms=0)


class TestSnapshots:
    def filled(self, **options: int) -> QuorumCluster:
        return QuorumCluster(snapshot_interval_bytes=SMALL_INTERVAL_BYTES, entries_kept_max=0, **options).boot()

    def test_a_node_that_lags_behind_the_log_gets_a_snapshot(self) -> None:
        cluster = self.filled()
        behind = next(node for node in cluster.running if node is not cluster.leader())
        cluster.create("early")
        cluster.settle()
        behind.kill()
        for number in range(40):
            cluster.create(f"topic-{number}")
        cluster.settle()
        behind.boot()
        cluster.settle()
        assert [
            message for message in cluster.sent if isinstance(message, SnapshotRequest) and message.to == behind.key
        ]
        assert behind.topics == ["early", *(f"topic-{number}" for number in range(40))]
        created = [topic.name for delta in behind.deltas for topic in delta.topics_created]
        assert sorted(created) == sorted(behind.topics), "subscribers learn of everything, once"
        assert list_snapshots(behind.machine.disk, METADATA_FOLDER)[0].end_offset > behind.replay.stored.snapshot.index
        behind.kill(power=True)
        behind.boot()
        cluster.settle()
        assert len(behind.topics) == 41

    def test_it_replaces_a_longer_log_of_a_leader_that_was_cut_off(self) -> None:
        cluster = self.filled()
        old = cluster.leader()
        cluster.cut = {old.node_id}
        for number in range(100):
            old.create(f"lost-{number}")
        cluster.run_until(lambda: cluster.active not in (None, old))
        for number in range(30):
            cluster.create(f"topic-{number}")
        assert cluster.leader().quorum.end_offset < old.quorum.end_offset
        cluster.cut = set()
        cluster.settle()
        assert any(isinstance(message, SnapshotRequest) and message.to == old.key for message in cluster.sent)
        assert len(old.topics) == 30
        cluster.create("more")
        cluster.settle()
        cluster.run_for(500)
        old.kill(power=True)
        old.boot()
        assert not [entry for entry in old.replay.stored.entries if b"lost" in entry.payload]
        cluster.settle()
        assert len(old.topics) == 31

    @pytest.mark.parametrize("calls", range(0, 60, 3))
    def test_a_crash_during_the_installation_leaves_a_folder_that_works(self, calls: int) -> None:
        cluster = self.filled(seed=calls)
        behind = next(node for node in cluster.running if node is not cluster.leader())
        behind.kill()
        for number in range(30):
            cluster.create(f"topic-{number}")
        cluster.settle()
        behind.boot()
        behind.machine.cut_off_after(calls, power=True)
        try:
            cluster.settle()
        except CutOff:
            behind.machine.disk.on_operation = None
            behind.kill(power=True)
            behind.boot()
            cluster.settle()
        assert len(behind.topics) == 30
        behind.machine.disk.on_operation = None
        behind.kill(power=True)
        behind.boot()
        cluster.settle()
        assert len(behind.topics) == 30
        assert cluster.leader().quorum.voters == voter_set(*(node.key for node in cluster.running))
