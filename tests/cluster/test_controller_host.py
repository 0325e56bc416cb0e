"""Proposals: answered in a later turn, after the sync, or failed as a whole."""

from collections import Counter
from collections.abc import Callable, Sequence

import pytest

from headrace.broker.cluster import controller_host
from headrace.broker.cluster.metadata_log import MetadataLog
from headrace.broker.cluster.producer_ids import ProducerIds
from headrace.broker.cluster.proposal import Proposal, ProposalFailed
from headrace.broker.cluster.topic_ids import new_topic_id
from headrace.broker.timers import Timers
from headrace.core.controller.changes import ChangeBuilder
from headrace.core.controller.commands import ControllerDecision, CreatableTopic, TopicResult, TopicToDelete
from headrace.core.controller.controller import Controller
from headrace.core.controller.records import ConfigRecord, Record, ResourceKind
from headrace.core.controller.settings import ControllerSettings
from headrace.core.raft.settings import WRITES_PENDING_MAX, RaftSettings
from headrace.model.errors import ErrorCode
from headrace.model.ids import ProducerId
from headrace.sim.entropy import SeededEntropy
from headrace.sim.faults import DEVICE_ERROR, DISK_FULL
from headrace.sim.world import VirtualMachine
from tests.cluster.nodes import METADATA_FOLDER, NODE, TURNS_MAX, ClusterNode, new_machine, topic_names

SYNC = "sync_metadata"
ELECTION_MS_MAX = 2 * RaftSettings().election_timeout_ms
ORDERS = (ResourceKind.TOPIC, "orders")
UNWRITABLE = ConfigRecord(*ORDERS, "retention.ms", "\ud800")


def failure(proposal: Proposal[tuple[TopicResult, ...]]) -> ProposalFailed:
    assert isinstance(proposal.outcome, ProposalFailed)
    return proposal.outcome


class TestCommit:
    def test_the_answer_comes_in_a_later_turn_and_after_the_image(self) -> None:
        node = ClusterNode(new_machine())
        seen: list[tuple[bool, ErrorCode]] = []

        def answered(outcome: tuple[TopicResult, ...] | ProposalFailed) -> None:
            assert not isinstance(outcome, ProposalFailed)
            seen.append(("orders" in node.host.image.topics, outcome[0].error))

        proposal = node.create("orders")
        proposal.then(answered)
        assert proposal.outcome is None
        assert not node.host.image.topics, "nothing is shown before it is committed"
        node.settle(proposal)
        assert seen == [(True, ErrorCode.NONE)]
        assert [topic.name for topic in node.deltas[-1].topics_created] == ["orders"]

    def test_a_callback_added_late_is_called_at_once(self) -> None:
        node = ClusterNode(new_machine())
        proposal = node.create("orders")
        node.settle(proposal)
        outcomes: list[object] = []
        proposal.then(outcomes.append)
        assert outcomes == [proposal.outcome]

    def test_a_delayed_commit_delays_the_answer_but_not_the_next_decision(self) -> None:
        machine = new_machine()
        node = ClusterNode(machine)
        machine.spawner.hold(name_contains=SYNC)
        first, again = node.create("orders"), node.create("orders")
        check = node.host.create_topics([CreatableTopic(name="orders")], validate_only=True)
        for _ in range(20):
            node.turn()
        assert (first.outcome, again.outcome, check.outcome) == (None, None, None)
        assert not node.host.image.topics
        machine.spawner.release()
        node.settle(check)
        assert isinstance(first.outcome, tuple)
        assert isinstance(again.outcome, tuple)
        assert isinstance(check.outcome, tuple)
        assert first.outcome[0].error is ErrorCode.NONE
        assert again.outcome[0].error is ErrorCode.TOPIC_ALREADY_EXISTS, "it was decided on what was appended"
        assert check.outcome[0].error is ErrorCode.TOPIC_ALREADY_EXISTS

    def test_many_proposals_share_a_sync(self) -> None:
        machine = new_machine()
        node = ClusterNode(machine)
        syncs = 0

        def count(operation: str, path: str) -> None:
            nonlocal syncs
            syncs += operation == "data_sync" and path.endswith(".log")

        machine.disk.on_operation = count
        proposals = [node.create(f"topic-{number}") for number in range(50)]
        node.settle(proposals[-1])
        assert all(isinstance(proposal.outcome, tuple) for proposal in proposals)
        assert syncs <= 2
        assert len(node.host.image.topics) == 50

    def test_more_than_the_quorum_takes_at_once_are_committed_one_after_the_other(self) -> None:
        machine = new_machine()
        node = ClusterNode(machine)
        machine.spawner.hold(name_contains=SYNC)
        proposals = [node.create(f"topic-{number}") for number in range(WRITES_PENDING_MAX * 4)]
        for _ in range(20):
            node.turn()
        machine.spawner.release()
        node.settle(proposals[-1])
        assert all(isinstance(proposal.outcome, tuple) for proposal in proposals)
        assert topic_names(node.host.image) == [f"topic-{number}" for number in range(WRITES_PENDING_MAX * 4)]

    def test_a_proposal_without_records_is_answered_later_too(self) -> None:
        node = ClusterNode(new_machine())
        deltas = len(node.deltas)
        proposal = node.host.delete_topics([TopicToDelete(name="nowhere")])
        assert proposal.outcome is None
        node.settle(proposal)
        assert isinstance(proposal.outcome, tuple)
        assert proposal.outcome[0].error is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert len(node.deltas) == deltas

    def test_too_many_at_once_are_refused(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(controller_host, "PROPOSALS_PENDING_MAX", 3)
        machine = new_machine()
        node = ClusterNode(machine)
        machine.spawner.hold(name_contains=SYNC)
        for number in range(3):
            node.create(f"topic-{number}")
        refused = node.create("one-too-many")
        assert refused.outcome is None
        node.settle(refused)
        assert failure(refused).code is ErrorCode.REQUEST_TIMED_OUT

    def test_settings_count_from_the_next_proposal_on(self) -> None:
        node = ClusterNode(new_machine())
        node.host.configure(ControllerSettings(default_partition_count=7))
        proposal = node.host.create_topics([CreatableTopic(name="orders")])
        node.settle(proposal)
        assert len(node.host.image.topics["orders"].partitions) == 7


class TestFailure:
    def test_a_failed_append_fails_its_proposal_and_the_next_one_works(self) -> None:
        machine = new_machine()
        node = ClusterNode(machine)
        node.created("before")
        machine.spawner.hold(name_contains=SYNC)
        earlier = node.create("earlier")
        machine.disk.faults.fail("write_vector", code=DISK_FULL, path_contains=METADATA_FOLDER)
        failed = node.create("failed")
        later = node.create("later")
        assert (earlier.outcome, failed.outcome, later.outcome) == (None, None, None)
        machine.spawner.release()
        node.settle(later)
        assert failure(failed).code is ErrorCode.KAFKA_STORAGE_ERROR
        assert isinstance(earlier.outcome, tuple)
        assert isinstance(later.outcome, tuple)
        assert topic_names(node.host.image) == ["before", "earlier", "later"]
        assert node.host.offline is None
        machine.kill()
        assert topic_names(ClusterNode(machine).host.image) == ["before", "earlier", "later"]

    def test_what_a_failed_append_tore_is_not_read_again(self) -> None:
        """Half of the batch got to the disk before it was full."""
        machine = new_machine()
        node = ClusterNode(machine)
        node.created("before")
        machine.disk.faults.short_writes_one_in = 1
        machine.disk.faults.fail("write_vector", code=DISK_FULL, path_contains=METADATA_FOLDER, skip=1)
        failed = node.create("failed")
        machine.disk.faults.short_writes_one_in = 0
        node.settle(failed)
        assert failure(failed).code is ErrorCode.KAFKA_STORAGE_ERROR
        node.created("failed")
        machine.kill()
        assert topic_names(ClusterNode(machine).host.image) == ["before", "failed"]

    def test_if_the_log_cannot_be_opened_again_the_controller_goes_offline(self) -> None:
        machine = new_machine()
        node = ClusterNode(machine)
        machine.spawner.hold(name_contains=SYNC)
        earlier = node.create("earlier")
        machine.disk.faults.fail("write_vector", code=DEVICE_ERROR, path_contains=METADATA_FOLDER)
        machine.disk.faults.fail("list_directory")
        failed = node.create("failed")
        machine.spawner.release()
        node.settle(failed)
        node.settle()
        assert failure(failed).code is failure(earlier).code is ErrorCode.KAFKA_STORAGE_ERROR
        assert node.host.offline is not None

    def test_a_failed_sync_fails_all_that_wait_and_takes_the_log_offline(self) -> None:
        machine = new_machine()
        node = ClusterNode(machine)
        node.created("before")
        machine.disk.faults.fail("data_sync", path_contains=METADATA_FOLDER)
        proposals = [node.create("one"), node.create("two")]
        assert [proposal.outcome for proposal in proposals] == [None, None]
        node.settle()
        assert {failure(proposal).code for proposal in proposals} == {ErrorCode.KAFKA_STORAGE_ERROR}
        assert topic_names(node.host.image) == ["before"], "what is committed can still be read"
        after = node.create("three")
        assert after.outcome is None
        node.settle(after)
        assert failure(after).code is ErrorCode.KAFKA_STORAGE_ERROR
        assert "restart the broker" in failure(after).message
        assert any("could not be synced" in notice for notice in node.notices)

    def test_a_sync_that_fails_for_no_fault_of_the_disk_is_repeated(self) -> None:
        machine = new_machine()
        node = ClusterNode(machine)
        node.created("before")
        machine.spawner.fail_next(RuntimeError("no helper took it"), name_contains=SYNC)
        node.created("after")
        assert node.host.offline is None
        machine.cut_power()
        assert topic_names(ClusterNode(machine).host.image) == ["before", "after"]

    def test_a_lost_leadership_fails_what_waits_with_an_unknown_outcome(self) -> None:
        machine = new_machine()
        node = ClusterNode(machine)
        term = node.host.term
        machine.spawner.hold(name_contains=SYNC)
        proposal = node.create("orders")
        node.lose_leadership()
        machine.spawner.release()
        node.settle(proposal)
        assert failure(proposal).code is ErrorCode.NOT_CONTROLLER
        node.pass_time(ELECTION_MS_MAX)
        node.settle()
        assert node.host.is_active, "a single voter is elected again"
        assert node.host.term > term
        assert topic_names(node.host.image) == ["orders"], "the entry was in the log"
        again = node.create("orders")
        node.settle(again)
        assert isinstance(again.outcome, tuple)
        assert again.outcome[0].error is ErrorCode.TOPIC_ALREADY_EXISTS

    def test_one_whose_sync_cannot_even_be_prepared_gets_one_error(self, monkeypatch: pytest.MonkeyPatch) -> None:
        node = ClusterNode(new_machine())
        monkeypatch.setattr(MetadataLog, "sync_work", lambda log: None)
        monkeypatch.setattr(MetadataLog, "failed", True)
        proposal = node.create("orders")
        node.settle()
        assert failure(proposal).code is ErrorCode.KAFKA_STORAGE_ERROR
        assert node.host.offline is not None

    def test_a_record_that_cannot_be_written_delays_nothing_else(self) -> None:
        node = ClusterNode(new_machine())
        with pytest.raises(UnicodeEncodeError):
            node.host.propose(lambda controller: ControllerDecision((UNWRITABLE,), ()))
        node.created("orders")


class SteppedNode(ClusterNode):
    """Work of the next turn is done once in each."""

    def __init__(self, machine: VirtualMachine) -> None:
        self._calls: list[Callable[[], None]] = []
        super().__init__(machine)
        self.host.next_turn = self._calls.append

    def turn(self, timeout_ms: float = 0.0) -> None:
        calls, self._calls[:] = tuple(self._calls), ()
        for call in calls:
            call()
        super().turn()

    def turn_until_known(self, proposal: Proposal[tuple[TopicResult, ...]]) -> None:
        for _ in range(TURNS_MAX):
            if proposal.outcome is not None:
                return
            self.turn()
        raise AssertionError("it is not answered")

    def create_wide(self) -> Proposal[tuple[TopicResult, ...]]:
        return self.host.create_topics([CreatableTopic(name="wide", partition_count=WIDE)])


WIDE = 95
PER_TURN = 10


class TestManyRecords:
    """A change of more records than a turn has time for: prepared over several, shown as a whole."""

    @pytest.fixture(autouse=True)
    def small_turns(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(controller_host, "RECORDS_PER_TURN", PER_TURN)

    def test_a_limited_number_per_turn_and_those_behind_wait(self, monkeypatch: pytest.MonkeyPatch) -> None:
        machine = new_machine()
        node = SteppedNode(machine)
        done = Counter[str]()
        add, apply = ChangeBuilder.add, Controller.apply

        def counted_add(begun: ChangeBuilder, changes: Sequence[Record]) -> None:
            done["encoded"] += len(changes)
            add(begun, changes)

        def counted_apply(controller: Controller, record: Record) -> None:
            done["applied"] += 1
            apply(controller, record)

        monkeypatch.setattr(ChangeBuilder, "add", counted_add)
        monkeypatch.setattr(Controller, "apply", counted_apply)
        _wide, again, later = node.create_wide(), node.create("wide"), node.create("later")
        turns = 0
        while later.outcome is None:
            before = done.copy()
            node.turn()
            turns += 1
            shown = node.host.image.topics.get("wide")
            assert shown is None or len(shown.partitions) == WIDE, "a part of it is shown"
            assert done["encoded"] - before["encoded"] <= PER_TURN + 3
            assert done["applied"] - before["applied"] <= PER_TURN + 3
        assert turns >= 2 * (WIDE // PER_TURN)
        assert isinstance(again.outcome, tuple)
        assert again.outcome[0].error is ErrorCode.TOPIC_ALREADY_EXISTS, "it was decided behind the first one"
        machine.kill()
        image = ClusterNode(machine).host.image
        assert topic_names(image) == ["wide", "later"]
        assert len(image.topics["wide"].partitions) == WIDE

    def test_a_crash_in_the_middle_leaves_nothing_of_it(self) -> None:
        left = set()
        for turns in range(25):
            machine = new_machine(turns)
            node = SteppedNode(machine)
            wide = node.create_wide()
            for _ in range(turns):
                node.turn()
            machine.kill()
            found = ClusterNode(machine).host.image.topics.get("wide")
            left.add(0 if found is None else len(found.partitions))
            assert found is not None or wide.outcome is None
        assert left == {0, WIDE}

    def test_a_full_disk_fails_it_and_not_those_behind(self) -> None:
        machine = new_machine()
        node = SteppedNode(machine)
        machine.disk.faults.fail("write_vector", code=DISK_FULL, path_contains=METADATA_FOLDER)
        wide, later = node.create_wide(), node.create("later")
        node.turn_until_known(later)
        assert failure(wide).code is ErrorCode.KAFKA_STORAGE_ERROR
        assert topic_names(node.host.image) == ["later"]

    @pytest.mark.parametrize(("turns", "in_log"), [(1, []), (5, []), (8, []), (14, ["wide"])])
    def test_a_lost_leadership_forgets_it_unless_it_is_in_the_log(self, turns: int, in_log: list[str]) -> None:
        machine = new_machine()
        node = SteppedNode(machine)
        machine.spawner.hold(name_contains=SYNC)
        earlier = node.create("earlier")
        wide, later = node.create_wide(), node.create("later")
        for _ in range(turns):
            node.turn()
        node.lose_leadership()
        machine.spawner.release()
        node.turn_until_known(earlier)
        node.pass_time(ELECTION_MS_MAX)
        node.turn_until_known(later)
        assert failure(earlier).code is failure(wide).code is ErrorCode.NOT_CONTROLLER
        assert topic_names(node.host.image) == ["earlier", *in_log, "later"], "the last was not decided yet"

    def test_a_failed_sync_fails_also_what_waits(self) -> None:
        machine = new_machine()
        node = SteppedNode(machine)
        machine.disk.faults.fail("data_sync", path_contains=METADATA_FOLDER)
        earlier = node.create("earlier")
        wide, later = node.create_wide(), node.create("later")
        for each in (earlier, wide, later):
            node.turn_until_known(each)
        assert {failure(each).code for each in (earlier, wide, later)} == {ErrorCode.KAFKA_STORAGE_ERROR}
        assert node.host.offline is not None

    def test_a_fault_of_ours_in_the_middle_of_one_delays_no_other(self) -> None:
        """Neither those behind it, nor, if it is in one of those, the others."""
        node = SteppedNode(new_machine())

        def fail(_controller: Controller) -> ControllerDecision[tuple[TopicResult, ...]]:
            raise ValueError("a fault of ours")

        records = (*(ConfigRecord(*ORDERS, "retention.ms", "1") for _ in range(PER_TURN)), UNWRITABLE)
        failing: list[Proposal[tuple[TopicResult, ...]]] = [
            node.host.propose(lambda controller: ControllerDecision(records, ())),
            node.host.propose(fail),
        ]
        later = [node.create("one"), node.create("two")]
        for error in (UnicodeEncodeError, ValueError):
            with pytest.raises(error):
                node.turn()
        for each in (*failing, *later):
            node.turn_until_known(each)
        assert [failure(each).code for each in failing] == [ErrorCode.UNKNOWN_SERVER_ERROR] * 2
        assert topic_names(node.host.image) == ["one", "two"]


class TestStart:
    def test_the_term_and_the_leader_epochs_grow(self) -> None:
        machine = new_machine()
        node = ClusterNode(machine)
        node.created("orders")
        before = node.host.image.topics["orders"].partitions[1]
        term = node.host.term
        machine.kill()
        node = ClusterNode(machine)
        after = node.host.image.topics["orders"].partitions[1]
        assert node.host.term == term + 1
        # The registration of the new process takes the leadership away, and the unfencing gives it back.
        assert (after.leader, after.leader_epoch) == (before.leader, before.leader_epoch + 2)
        assert node.host.image.topics["orders"].topic_id == node.replay.image.topics["orders"].topic_id

    def test_clients_get_the_registration(self) -> None:
        node = ClusterNode(new_machine())
        assert [endpoint.port for _, endpoint in node.host.image.endpoints("PLAINTEXT")] == [9093]
        assert [delta.brokers_changed for delta in node.deltas] == [False, True, True]


class TestProducerIds:
    def test_blocks_are_fetched_when_needed_and_never_given_twice(self) -> None:
        machine = new_machine()
        node = ClusterNode(machine)
        ids = ProducerIds(node.host, NODE, Timers(machine.clock))
        given: list[ProducerId | ProposalFailed] = []
        assert ids.take() is None
        for _ in range(1_500):
            ids.wait(given.append)
        assert given == []
        node.settle()
        assert given == list(range(1_500))
        assert ids.take() == 1_500
        machine.kill()
        node = ClusterNode(machine)
        ids = ProducerIds(node.host, NODE, Timers(machine.clock))
        ids.wait(given.append)
        node.settle()
        assert given[-1] == 2_000, "what was left of the last block is not given again"


def test_topic_ids_are_random_uuids_that_no_tool_takes_for_an_option() -> None:
    entropy = SeededEntropy(3)
    drawn = [new_topic_id(entropy) for _ in range(2_000)]
    assert len(set(drawn)) == 2_000
    assert all(topic_id[6] >> 4 == 4 and topic_id[8] >> 6 == 2 and topic_id[0] >> 2 != 62 for topic_id in drawn)
