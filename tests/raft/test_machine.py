"""Single rules of a Raft machine, each without the others."""

import pytest

from headrace.core.raft import settings as limits
from headrace.core.raft.effects import Committed, ReadAllowed, RequestRefusal, RequestRefused
from headrace.core.raft.entries import HardState, LogEntry, StateSnapshot, Stored
from headrace.core.raft.events import AddVoter, DeadlinePassed, Propose, Read, Received, RemoveVoter, Synced
from headrace.core.raft.ids import Index, Term
from headrace.core.raft.log import LogDamaged, RaftLog
from headrace.core.raft.machine import RaftMachine
from headrace.core.raft.messages import AppendRequest, SnapshotRequest, VoteRequest, VoteResponse
from headrace.core.raft.roles import TRANSITIONS, Role, RoleEvent
from headrace.core.raft.settings import RaftSettings
from tests.raft.harness import Harness, key

ME, OTHER, THIRD = key("1"), key("2"), key("3")
FOUNDERS = StateSnapshot(voters=(ME, OTHER, THIRD))


def machine(stored=None, **options):
    stored = stored or Stored(snapshot=FOUNDERS)
    return RaftMachine(me=ME, stored=stored, draw=lambda bound: 0, now_ms=0, **options)


def vote_request(**changes):
    fields = {"source": OTHER, "to": ME, "term": Term(1), "last_term": Term(0), "last_index": Index(0)}
    return Received(message=VoteRequest(**(fields | changes)))


def append_request(**changes):
    fields = {
        "source": OTHER,
        "to": ME,
        "term": Term(1),
        "previous_term": Term(0),
        "previous_index": Index(0),
        "commit_index": Index(0),
        "round": 0,
    }
    return Received(message=AppendRequest(**(fields | changes)))


def entry(index, term):
    return LogEntry(index=Index(index), term=Term(term), payload=b"x")


def leader(**options):
    harness = Harness(**options)
    harness.elect(1)
    harness.take_outcomes()
    return harness


# Order of effects


def test_a_candidate_with_a_slow_disk_waits_for_its_vote_instead_of_starting_more_elections():
    alone = machine(Stored(snapshot=StateSnapshot(voters=(ME,))))
    write = alone.step(DeadlinePassed(), 0).write
    for _ in range(5):  # several election timeouts pass before the sync
        assert alone.step(DeadlinePassed(), alone.next_deadline_ms()).write is None
    alone.step(Synced(number=write.number), alone.state.now_ms)
    assert alone.state.role is Role.LEADER
    assert alone.state.term == 1


def test_a_vote_can_be_sent_only_after_the_write_that_holds_it():
    effects = machine().step(vote_request(), 0)
    assert effects.send == ()
    assert effects.write.hard_state == HardState(term=Term(1), voted_for=OTHER)
    assert [message.granted for message in effects.write.then_send] == [True]


def test_entries_are_acknowledged_only_after_their_write():
    effects = machine().step(append_request(entries=(entry(1, 1),)), 0)
    assert effects.send == ()
    assert effects.write.append == (entry(1, 1),)
    assert [message.index for message in effects.write.then_send] == [1]


def test_a_response_without_changes_of_its_own_waits_for_earlier_writes():
    replica = machine()
    first = replica.step(append_request(entries=(entry(1, 1),)), 0)
    heartbeat = replica.step(append_request(previous_index=Index(1), previous_term=Term(1)), 1)
    assert heartbeat.send == ()
    assert heartbeat.write.number == first.write.number + 1
    assert heartbeat.write.append == ()
    replica.step(Synced(number=heartbeat.write.number), 2)
    assert replica.step(append_request(previous_index=Index(1), previous_term=Term(1)), 3).write is None


def test_a_candidate_that_has_not_synced_its_vote_does_not_count_it():
    replica = machine(Stored(snapshot=StateSnapshot(voters=(ME, OTHER))))
    replica.step(DeadlinePassed(), 1_000)
    asked = replica.step(
        Received(message=VoteResponse(source=OTHER, to=ME, term=Term(1), granted=True, pre_vote=True)), 1_001
    )
    granted = Received(message=VoteResponse(source=OTHER, to=ME, term=Term(1), granted=True))
    replica.step(granted, 1_002)
    assert replica.state.role is Role.CANDIDATE
    replica.step(Synced(number=asked.write.number), 1_003)
    assert replica.state.role is Role.LEADER


def test_answers_come_with_the_committed_entries_they_depend_on():
    harness = leader(voters=1)
    replica = harness[1].machine
    effects = replica.step(Propose(ticket="t", payloads=(b"a", b"b")), harness.now_ms)
    assert effects.outcomes == ()
    done = replica.step(Synced(number=effects.write.number), harness.now_ms)
    assert [each.payload for each in done.committed] == [b"a", b"b"]
    assert done.outcomes == (Committed(ticket="t", index=Index(3)),)


# Votes


@pytest.mark.parametrize(
    ("last_term", "last_index", "granted"), [(2, 1, True), (1, 2, True), (1, 3, True), (1, 1, False), (0, 9, False)]
)
def test_a_vote_needs_a_log_that_lacks_nothing(last_term, last_index, granted):
    replica = machine(Stored(snapshot=FOUNDERS, hard_state=HardState(term=Term(2)), entries=(entry(1, 1), entry(2, 1))))
    request = vote_request(term=Term(3), last_term=Term(last_term), last_index=Index(last_index))
    (response,) = replica.step(request, 0).write.then_send
    assert response.granted is granted


def test_a_replica_votes_once_in_a_term_and_remembers_it_over_a_restart():
    hard_state = machine().step(vote_request(), 0).write.hard_state
    again = machine(Stored(snapshot=FOUNDERS, hard_state=hard_state))
    assert not again.step(vote_request(source=THIRD), 0).send[0].granted
    assert again.step(vote_request(), 0).send[0].granted


def test_a_message_for_another_directory_of_this_node_is_ignored():
    replica = machine()
    effects = replica.step(vote_request(to=key("1/lost")), 0)
    assert (effects.send, effects.write) == ((), None)
    effects = replica.step(append_request(to=key("1/lost"), entries=(entry(1, 1),)), 0)
    assert (effects.send, effects.write) == ((), None)


def test_votes_of_replicas_outside_the_voter_set_do_not_count():
    replica = machine()
    replica.step(DeadlinePassed(), 1_000)
    for stranger in (key("2/b"), key("9")):
        response = VoteResponse(source=stranger, to=ME, term=Term(1), granted=True, pre_vote=True)
        replica.step(Received(message=response), 1_001)
    assert replica.state.role is Role.PROSPECTIVE


def test_a_replica_restarts_in_the_term_of_its_newest_entry():
    """The entries of a torn write reached the disk and its term did not."""
    replica = machine(Stored(snapshot=FOUNDERS, hard_state=HardState(term=Term(1)), entries=(entry(1, 3),)))
    assert replica.state.hard_state == HardState(term=Term(3))


def test_damaged_entries_are_refused_with_advice():
    with pytest.raises(LogDamaged, match="restore this replica's folder"):
        machine(Stored(snapshot=FOUNDERS, entries=(entry(1, 1), entry(3, 1))))


@pytest.mark.parametrize(
    "entries", [(entry(2, 1),), (entry(1, 2),), (entry(1, 1), entry(3, 1)), (entry(1, 1), entry(2, 0))]
)
def test_entries_that_no_leader_sends_are_dropped(entries):
    replica = machine()
    effects = replica.step(append_request(entries=entries), 0)
    assert effects.write.append == ()
    assert effects.write.then_send == ()
    assert replica.state.log.last_index == 0


# Limits


def test_proposals_above_the_limits_are_refused(monkeypatch):
    harness = leader()
    harness.cut([1], [2, 3])
    monkeypatch.setattr("headrace.core.raft.proposals.UNCOMMITTED_ENTRIES_MAX", 2)
    monkeypatch.setattr("headrace.core.raft.proposals.PROPOSAL_BYTES_MAX", 4)
    harness.step(1, Propose(ticket="large", payloads=(b"12345",)))
    harness.step(1, Propose(ticket="empty", payloads=()))
    for ticket in "abc":
        harness.step(1, Propose(ticket=ticket, payloads=(b"1",)))
    assert [(each.ticket, each.reason) for each in harness.take_outcomes()] == [
        ("large", RequestRefusal.TOO_LARGE),
        ("empty", RequestRefusal.TOO_LARGE),
        ("c", RequestRefusal.OVERLOADED),
    ]


def test_reads_above_the_limit_are_refused(monkeypatch):
    harness = leader()
    monkeypatch.setattr("headrace.core.raft.reads.READS_PENDING_MAX", 2)
    for ticket in "abc":
        harness.step(1, Read(ticket=ticket))
    assert harness.take_outcomes() == [RequestRefused(ticket="c", reason=RequestRefusal.OVERLOADED)]
    harness.deliver()
    assert [type(each) for each in harness.take_outcomes()] == [ReadAllowed, ReadAllowed]


def test_a_replica_whose_disk_is_stuck_drops_requests():
    replica = machine()
    for term in range(1, limits.WRITES_PENDING_MAX + 1):
        assert replica.step(vote_request(term=Term(term)), 0).write is not None
    assert replica.step(vote_request(term=Term(1_000)), 0).write is None
    assert replica.state.term == limits.WRITES_PENDING_MAX


def test_a_pipeline_waits_for_responses():
    harness = leader()
    harness.cut([1], [2, 3])
    harness.sent.clear()
    for number in range(limits.APPENDS_IN_FLIGHT_MAX + 5):
        harness.step(1, Propose(ticket=number, payloads=(b"x",)))
    to_second = [each for each in harness.sent if each.to == OTHER and each.entries]
    assert len(to_second) == limits.APPENDS_IN_FLIGHT_MAX


def test_a_follower_with_a_full_pipeline_gets_a_snapshot_when_its_entries_are_gone():
    harness = leader()
    harness.cut([1], [3])
    for number in range(limits.APPENDS_IN_FLIGHT_MAX + 5):
        harness.step(1, Propose(ticket=number, payloads=(b"x",)))
        harness.deliver()
    log = harness[1].state.log
    log.compact(harness[1].state.applied_index, entries_kept_max=0)
    harness.sent.clear()
    harness.tick(1)
    assert harness[1].machine.leadership.peers.progress[THIRD].snapshot == log.snapshot


def test_committed_entries_are_handed_out_in_slices(monkeypatch):
    monkeypatch.setattr("headrace.core.raft.state.COMMITTED_PER_STEP_MAX", 2)
    harness = leader(voters=1)
    harness.step(1, Propose(ticket="t", payloads=(b"1", b"2", b"3")))
    assert harness[1].applied == ["1", "2"]
    assert harness.take_outcomes() == []
    assert harness[1].machine.next_deadline_ms() <= harness.now_ms
    harness.tick(1)
    assert harness[1].applied == ["1", "2", "3"]
    assert len(harness.take_outcomes()) == 1


def test_a_chunk_above_the_limit_is_not_stored():
    chunk = bytes(limits.SNAPSHOT_CHUNK_BYTES_MAX + 1)
    snapshot = StateSnapshot(index=Index(5), term=Term(1), voters=(OTHER,))
    request = SnapshotRequest(
        source=OTHER, to=ME, term=Term(1), snapshot=snapshot, position=0, chunk=chunk, is_last=True
    )
    effects = machine().step(Received(message=request), 0)
    assert effects.write.snapshot_chunk is None
    assert effects.write.then_send[0].position == 0


def test_observers_above_the_limit_are_not_replicated_to(monkeypatch):
    monkeypatch.setattr("headrace.core.raft.replication.OBSERVERS_MAX", 1)
    harness = leader(voters=1, observers=3)
    harness.wait(5_000)
    assert len(harness[1].machine.leadership.peers.progress) <= 2


def test_a_silent_observer_is_forgotten():
    harness = leader(voters=1, observers=1)
    harness.wait(2_000)
    assert list(harness[1].machine.leadership.peers.progress) == [OTHER]
    harness.crash(2)
    harness.wait(limits.OBSERVER_SILENCE_TIMEOUTS * 1_000 + 500)
    assert not harness[1].machine.leadership.peers.progress


def test_an_election_timeout_below_two_heartbeats_is_refused():
    with pytest.raises(ValueError, match="at least twice the heartbeat"):
        RaftSettings(election_timeout_ms=100, heartbeat_ms=80)


# Voters


@pytest.mark.parametrize(
    ("event", "reason"),
    [
        (AddVoter(ticket="t", voter=key("2")), RequestRefusal.ALREADY_VOTER),
        (AddVoter(ticket="t", voter=key("2/b")), RequestRefusal.NODE_ID_IN_USE),
        (AddVoter(ticket="t", voter=key("9")), RequestRefusal.NOT_CAUGHT_UP),
        (RemoveVoter(ticket="t", voter=key("9")), RequestRefusal.NOT_VOTER),
    ],
)
def test_a_change_that_makes_no_sense_is_refused(event, reason):
    harness = leader()
    harness.step(1, event)
    assert harness.take_outcomes() == [RequestRefused(ticket="t", reason=reason)]


def test_the_last_voter_stays():
    harness = leader(voters=1)
    harness.step(1, RemoveVoter(ticket="t", voter=ME))
    assert harness.take_outcomes() == [RequestRefused(ticket="t", reason=RequestRefusal.LAST_VOTER)]


def test_a_follower_names_the_leader_when_it_refuses():
    harness = leader()
    harness.step(2, Propose(ticket="t", payloads=(b"x",)))
    assert harness.take_outcomes() == [RequestRefused(ticket="t", reason=RequestRefusal.NOT_LEADER, leader=1)]


def test_a_log_forgets_voters_that_are_truncated_and_keeps_those_of_its_snapshot():
    harness = leader()
    harness.step(1, RemoveVoter(ticket="t", voter=THIRD))
    log = harness[1].state.log
    assert log.voters == (ME, OTHER)
    log.truncate_from(Index(2))
    assert log.voters == (ME, OTHER, THIRD)
    log.compact(Index(1), entries_kept_max=0)
    assert log.snapshot == StateSnapshot(index=Index(1), term=Term(1), voters=(ME, OTHER, THIRD))


def test_a_committed_entry_is_never_truncated():
    replica = machine()
    replica.step(append_request(entries=(entry(1, 1),), commit_index=Index(1)), 0)
    with pytest.raises(AssertionError, match="is committed"):
        replica.state.truncate_from(Index(1))


def test_a_guess_below_the_base_asks_for_a_snapshot():
    """The base has a newer term than the follower's entry there: going on at the base would never end."""
    log = RaftLog(StateSnapshot(index=Index(8), term=Term(3)), (entry(9, 3),))
    assert log.guess(term=Term(2), index=Index(8)) == (0, 7)


# Roles


def test_every_role_is_reached_and_every_event_leads_somewhere():
    assert {*TRANSITIONS.values()} == {*Role}
    assert {event for _, event in TRANSITIONS} == {*RoleEvent}
