"""The metadata log on disk: replay, torn ends, snapshots, damage, and power cuts at random."""

from contextlib import suppress
from errno import ENOSPC

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.broker.cluster.metadata_log import METADATA_PARTITION, METADATA_TOPIC_ID, MetadataDamaged
from headrace.broker.cluster.proposal import ProposalFailed
from headrace.broker.cluster.quorum_state import save_quorum_state
from headrace.broker.cluster.snapshots import SnapshotName, list_snapshots, write_snapshot
from headrace.core.controller.commands import TopicToDelete
from headrace.core.controller.image import MetadataImage
from headrace.core.controller.records import FeatureLevelRecord, Record, TopicRecord, encode_record
from headrace.core.raft.entries import HardState
from headrace.log.config import LogConfig
from headrace.log.partition_log import PartitionLog
from headrace.model.ids import TopicId
from headrace.sim.world import CutOff, VirtualMachine
from headrace.wire.records.builder import NewRecord, build_batch
from headrace.wire.records.header import HEADER, LEADER_EPOCH
from headrace.wire.records.reader import batches
from tests.cluster.nodes import ME, METADATA_FOLDER, NODE, ClusterNode, new_machine, topic_names

SMALL_INTERVAL_BYTES = 2_000


def only_segment(machine: VirtualMachine) -> str:
    (name,) = [name for name in machine.disk.list_directory(METADATA_FOLDER) if name.endswith(".log")]
    return f"{METADATA_FOLDER}/{name}"


def overwrite(machine: VirtualMachine, path: str, position: int, content: bytes) -> None:
    file = machine.disk.open(path)
    size = machine.disk.size(file)
    machine.disk.write_vector(file, [content], position if position >= 0 else size + position)
    machine.disk.close(file)


class TestReplay:
    @pytest.mark.parametrize("clean", [True, False])
    def test_a_new_start_finds_what_was_committed(self, clean: bool) -> None:
        machine = new_machine()
        node = ClusterNode(machine)
        node.created("a", "b")
        node.settle(node.host.delete_topics([TopicToDelete(name="a")]))
        live = node.host.image
        if clean:
            node.host.close()
            machine.stopped()
        else:
            machine.kill()
        again = ClusterNode(machine, register=False, clean_shutdown=clean)
        assert again.host.image == live
        assert again.host.image.version == live.version + 1, "the first entry of the new term has no records"

    def test_batches_carry_the_term(self) -> None:
        machine = new_machine()
        ClusterNode(machine)
        machine.kill()
        ClusterNode(machine)
        path = only_segment(machine)
        file = machine.disk.open(path)
        content = machine.disk.read(file, machine.disk.size(file), 0)
        terms = [HEADER.unpack_from(batch)[LEADER_EPOCH] for batch in batches(content)]
        assert terms == [1, 1, 1, 1, 2, 2, 2]  # voters, founded, registered, unfenced; voters, registered, unfenced

    def test_a_torn_end_is_cut_off(self) -> None:
        machine = new_machine()
        node = ClusterNode(machine)
        node.created("a")
        node.created("b")
        machine.kill()
        path = only_segment(machine)
        file = machine.disk.open(path)
        machine.disk.truncate(file, machine.disk.size(file) - 3)
        machine.disk.close(file)
        again = ClusterNode(machine)
        assert topic_names(again.host.image) == ["a"]
        assert again.replay.recovered.cut_bytes > 0
        again.created("b")
        machine.kill()
        assert topic_names(ClusterNode(machine).host.image) == ["a", "b"]

    def test_damage_below_the_recovery_point_is_not_taken_for_a_torn_end(self) -> None:
        machine = new_machine()
        node = ClusterNode(machine)
        node.created("a")
        node.created("b")
        recovery_point = node.host.recovery_point
        assert recovery_point == node.host.image.version
        machine.kill()
        overwrite(machine, only_segment(machine), -3, b"\xff")
        with pytest.raises(MetadataDamaged, match="restore the folder from a copy"):
            ClusterNode(machine, recovery_point=recovery_point)

    def test_damage_after_a_clean_stop_is_reported(self) -> None:
        machine = new_machine()
        node = ClusterNode(machine)
        node.created("a")
        node.host.close()
        machine.stopped()
        overwrite(machine, only_segment(machine), 100, b"\xff\xff\xff")
        with pytest.raises(MetadataDamaged):
            ClusterNode(machine, clean_shutdown=True)


class TestSnapshots:
    def filled(self, machine: VirtualMachine, count: int = 60, **options: int) -> ClusterNode:
        node = ClusterNode(machine, snapshot_interval_bytes=options.get("interval", SMALL_INTERVAL_BYTES))
        for number in range(count):
            node.created(f"topic-{number}")
        node.settle()
        return node

    def test_snapshots_are_written_and_old_ones_dropped(self) -> None:
        machine = new_machine()
        node = self.filled(machine)
        names = list_snapshots(machine.disk, METADATA_FOLDER)
        assert len(names) == 2
        assert f"{names[-1].end_offset:020d}-{node.host.term:010d}.checkpoint" in node.files()
        machine.kill()
        again = ClusterNode(machine, register=False)
        assert again.host.image == node.host.image
        assert again.host.image.version == node.host.image.version + 1

    def test_a_snapshot_alone_is_enough(self) -> None:
        machine = new_machine()
        node = self.filled(machine)
        machine.kill()
        newest = list_snapshots(machine.disk, METADATA_FOLDER)[-1]
        overwrite(machine, only_segment(machine), 0, b"\xff" * 61)  # the log before it is not needed any more
        again = ClusterNode(machine, register=False)
        assert again.replay.stored.snapshot.index == newest.end_offset
        assert not again.replay.stored.entries
        assert topic_names(again.host.image) == topic_names(node.host.image)[: len(again.host.image.topics)]

    def test_the_one_before_a_damaged_snapshot_serves(self) -> None:
        machine = new_machine()
        node = self.filled(machine)
        machine.kill()
        newest = list_snapshots(machine.disk, METADATA_FOLDER)[-1]
        overwrite(machine, f"{METADATA_FOLDER}/{newest.file_name}", 200, b"\xff")
        again = ClusterNode(machine, register=False)
        assert again.host.image == node.host.image
        assert "damaged and was passed over" in again.notices[0]

    def test_without_any_whole_snapshot_the_node_does_not_start_empty(self) -> None:
        machine = new_machine()
        self.filled(machine)
        machine.kill()
        for name in list_snapshots(machine.disk, METADATA_FOLDER):
            overwrite(machine, f"{METADATA_FOLDER}/{name.file_name}", 200, b"\xff")
        with pytest.raises(MetadataDamaged):
            ClusterNode(machine)

    def test_a_snapshot_under_another_name_is_refused(self) -> None:
        machine = new_machine()
        self.filled(machine)
        machine.kill()
        names = list_snapshots(machine.disk, METADATA_FOLDER)
        wrong = SnapshotName(names[-1].end_offset + 1, names[-1].term)
        machine.disk.rename(f"{METADATA_FOLDER}/{names[-1].file_name}", f"{METADATA_FOLDER}/{wrong.file_name}")
        again = ClusterNode(machine, register=False)
        assert any("does not begin with the header of its name" in notice for notice in again.notices)

    def test_a_snapshot_that_cannot_be_written_costs_nothing(self) -> None:
        machine = new_machine()
        node = ClusterNode(machine, snapshot_interval_bytes=SMALL_INTERVAL_BYTES)
        machine.spawner.fail_next(OSError(ENOSPC, "no space"), name_contains="snapshot_metadata")
        for number in range(60):
            node.created(f"topic-{number}")
        node.settle()
        assert any("snapshot could not be written" in notice for notice in node.notices)
        assert list_snapshots(machine.disk, METADATA_FOLDER), "it is tried again"
        machine.kill()
        assert ClusterNode(machine, register=False).host.image == node.host.image

    def test_segments_that_snapshots_replaced_are_removed(self, monkeypatch: pytest.MonkeyPatch) -> None:
        import headrace.broker.cluster.metadata_log as module
        from headrace.log.config import LogConfig

        small = LogConfig(segment_bytes=1_500, delete=False, file_delete_delay_ms=0, preallocate=False)
        monkeypatch.setattr(module, "_CONFIG", small)
        machine = new_machine()
        node = self.filled(machine)
        segments = [name for name in node.files() if name.endswith(".log")]
        assert 0 < int(segments[0][:20]) < node.host.image.version
        assert not [name for name in node.files() if name.endswith((".deleted", ".tmp"))]
        oldest_kept = list_snapshots(machine.disk, METADATA_FOLDER)[0]
        assert int(segments[0][:20]) <= oldest_kept.end_offset, "the older snapshot still has its tail"
        machine.kill()
        assert ClusterNode(machine, register=False).host.image == node.host.image


@settings(max_examples=150)
@given(
    seed=st.integers(0, 2**32),
    script=st.lists(st.sampled_from(["create", "delete", "turn", "kill", "power"]), min_size=5, max_size=40),
)
@pytest.mark.slow
def test_power_cuts_lose_nothing_that_was_answered(seed: int, script: list[str]) -> None:
    """And what was shown as committed never changes, whatever the disk kept of the rest."""
    machine = new_machine(seed)
    node = ClusterNode(machine, snapshot_interval_bytes=800)
    answered: dict[str, bytes | None] = {}
    in_doubt: set[str] = set()
    number = 0

    def track(name: str, wanted: bool) -> None:
        in_doubt.add(name)

        def told(outcome: object) -> None:
            assert not isinstance(outcome, ProposalFailed)
            assert isinstance(outcome, tuple)
            in_doubt.discard(name)
            answered[name] = bytes(outcome[0].topic_id) if wanted else None

        proposal = node.create(name) if wanted else node.host.delete_topics([TopicToDelete(name=name)])
        proposal.then(told)

    for verb in script:
        if verb == "create":
            number += 1
            track(f"topic-{number}", True)
        elif verb == "delete":
            names = [name for name, topic_id in answered.items() if topic_id is not None and name not in in_doubt]
            if names:
                track(names[0], False)
        elif verb == "turn":
            node.turn()
        else:
            shown = {name: topic.topic_id for name, topic in node.host.image.topics.items() if name not in in_doubt}
            term = node.host.term
            machine.kill() if verb == "kill" else machine.cut_power()
            node = ClusterNode(machine, register=False, snapshot_interval_bytes=800)
            found = {name: topic.topic_id for name, topic in node.host.image.topics.items()}
            for name, topic_id in answered.items():
                if name not in in_doubt:
                    assert found.get(name) == topic_id
            assert all(found.get(name) == topic_id for name, topic_id in shown.items())
            assert node.host.term >= term
            for name in in_doubt:  # either outcome is right, but from now on it is decided
                answered[name] = found.get(name)
            in_doubt.clear()
            node.settle(node.host.allocate_producer_ids(NODE))


class TestVote:
    def test_a_damaged_or_missing_vote_is_refused(self) -> None:
        for damage in ("overwritten", "missing"):
            machine = new_machine()
            ClusterNode(machine).created("a")
            machine.kill()
            path = f"{METADATA_FOLDER}/quorum-state"
            if damage == "missing":
                machine.disk.unlink(path)
            else:
                overwrite(machine, path, 20, b"9")
            with pytest.raises(MetadataDamaged, match="quorum-state"):
                ClusterNode(machine)

    def test_an_entry_above_the_term_of_the_vote_is_refused(self) -> None:
        machine = new_machine()
        ClusterNode(machine).created("a")
        machine.kill()
        save_quorum_state(machine.disk, METADATA_FOLDER, HardState())
        with pytest.raises(MetadataDamaged, match="has the term 1, but quorum-state has the term 0"):
            ClusterNode(machine)

    def test_the_vote_is_durable_before_the_first_entry_of_its_term(self) -> None:
        """A power cut after any number of disk calls leaves a folder that can be started."""
        for calls in range(60):
            machine = new_machine(calls)
            machine.cut_off_after(calls, power=True)
            with suppress(CutOff):
                ClusterNode(machine)
            machine.disk.on_operation = None
            machine.cut_power()
            node = ClusterNode(machine)
            assert node.host.is_active


class TestEarlierReleases:
    def test_a_log_without_voters_becomes_a_quorum_of_one(self) -> None:
        """Records of several batches, as a release without a quorum wrote them, with and without a snapshot."""
        for snapshot in (False, True):
            machine = new_machine()
            write_earlier_folder(machine, snapshot=snapshot)
            node = ClusterNode(machine, register=False)
            assert node.host.is_active
            assert node.quorum.voters == (ME,)
            assert topic_names(node.host.image) == ["a", "b"]
            assert node.host.term == 4
            assert node.host.image.version == 5, "four records of the earlier release, and a voter set"
            machine.kill()
            ClusterNode(machine).created("c")
            machine.kill()
            again = ClusterNode(machine, register=False)
            assert topic_names(again.host.image) == ["a", "b", "c"]
            assert again.quorum.voters == (ME,)

    def test_it_can_be_started_again_after_a_crash_in_the_middle(self) -> None:
        for calls in range(40):
            machine = new_machine(calls)
            write_earlier_folder(machine, snapshot=bool(calls % 2))
            machine.cut_off_after(calls, power=True)
            with suppress(CutOff):
                ClusterNode(machine)
            machine.disk.on_operation = None
            machine.cut_power()
            assert topic_names(ClusterNode(machine).host.image) == ["a", "b"]


def write_earlier_folder(machine: VirtualMachine, *, snapshot: bool) -> None:
    """Four records in two batches of term 3; the first two may also be in a snapshot whose header has no voters."""
    topics = [TopicRecord(name, TopicId(name.encode() * 16)) for name in ("a", "b")]
    features: list[Record] = [FeatureLevelRecord("metadata.version", 25), FeatureLevelRecord("group.version", 1)]
    machine.disk.make_directory(METADATA_FOLDER)
    for folder in (".", "data"):
        machine.disk.sync_directory(folder)
    log = PartitionLog.open(
        machine.disk,
        METADATA_FOLDER,
        METADATA_PARTITION,
        METADATA_TOPIC_ID,
        LogConfig(),
        recovery_point=0,
        start_offset=0,
        clean_shutdown=False,
        wall_ms=0,
    )
    for group in (features, topics):
        batch = build_batch([NewRecord(0, None, encode_record(record)) for record in group])
        log.stage(memoryview(batch), HEADER.unpack_from(batch), 3, 0)
    log.write_staged()
    log.close()
    if snapshot:
        image = MetadataImage()
        for record in features:
            image.apply(record)
        write_snapshot(machine.disk, METADATA_FOLDER, SnapshotName(2, 3), image, voters=(), wall_ms=0)
