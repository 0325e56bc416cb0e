"""The log directory: lock, identity, checkpoints, folders."""

import errno
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.log import checkpoints, names
from headrace.log.config import LogConfig
from headrace.log.directory import LogDirectory
from headrace.log.errors import CorruptFile, MissingLog, WrongDirectory
from headrace.log.inspect import repair
from headrace.log.leader_epochs import LeaderEpochs
from headrace.model.ids import TopicId, TopicPartition
from headrace.ports.disk import Disk, DiskLockHeld
from headrace.ports.real.disk import RealDisk
from headrace.sim.disk import VirtualDisk
from headrace.sim.entropy import SeededEntropy

from .test_recovery import content_of, put_content
from .world import NOW_MS, PARTITION, TOPIC_ID, append, batch_of, read_all, values_of, virtual_disk


def open_directory(
    disk: Disk, path: str = "data", *, node_id: int = 1, notices: list[str] | None = None
) -> LogDirectory:
    heard = notices if notices is not None else []
    return LogDirectory.open(
        disk, path, cluster_id="cluster", node_id=node_id, entropy=SeededEntropy(5), notice=heard.append
    )


def test_a_stop_and_a_start_on_the_real_disk(tmp_path: Path) -> None:
    disk = RealDisk()
    directory = open_directory(disk, str(tmp_path))
    assert not directory.clean_shutdown
    log = directory.open_log(PARTITION, TOPIC_ID, LogConfig(), wall_ms=NOW_MS)
    append(log, batch_of(b"a"), batch_of(b"b"))
    log.advance_start(1)
    log.close()
    directory.checkpoint([log], {PARTITION: 2})
    directory.mark_clean()
    directory.close()
    assert sorted(path.name for path in (tmp_path / "orders-0").iterdir()) == [
        "00000000000000000000.index",
        "00000000000000000000.log",
        "00000000000000000000.timeindex",
        "00000000000000000002.snapshot",
        "leader-epoch-checkpoint",
        "partition.metadata",
    ]
    text = (tmp_path / "recovery-point-offset-checkpoint").read_text()
    assert text.startswith("0\n3\norders 0 2\norders@AAECAwQFBgcICQoLDA0ODw 0 0\n@crc32c 0 ")
    assert (tmp_path / "log-start-offset-checkpoint").read_text().startswith("0\n3\norders 0 1\n")
    assert (tmp_path / "replication-offset-checkpoint").read_text().startswith("0\n3\norders 0 2\n")
    assert (tmp_path / "orders-0/leader-epoch-checkpoint").read_text().startswith("0\n2\n0 1\n2147483647 461168601")
    text = (tmp_path / "orders-0/partition.metadata").read_text()
    assert text.startswith("version: 0\ntopic_id: AAECAwQFBgcICQoLDA0ODw\nheadrace_crc32c: ")
    again = open_directory(disk, str(tmp_path))
    assert again.clean_shutdown
    assert again.directory_id == directory.directory_id
    assert not (tmp_path / ".kafka_cleanshutdown").exists()
    assert again.partitions() == [PARTITION]
    assert again.high_watermarks == {PARTITION: 2}
    reopened = again.open_log(PARTITION, TOPIC_ID, LogConfig(), wall_ms=NOW_MS)
    assert read_all(reopened) == [(1, b"b")]
    reopened.close()
    again.close()


def test_a_second_process_is_refused(tmp_path: Path) -> None:
    directory = open_directory(RealDisk(), str(tmp_path))
    with pytest.raises(DiskLockHeld):
        open_directory(RealDisk(), str(tmp_path))
    directory.close()
    open_directory(RealDisk(), str(tmp_path)).close()


def test_meta_properties_say_whose_the_directory_is() -> None:
    disk = virtual_disk()
    open_directory(disk).close()
    lines = content_of(disk, "data/meta.properties").decode().splitlines()
    assert lines[:3] == ["version=1", "cluster.id=cluster", "node.id=1"]
    assert len(lines[3].removeprefix("directory.id=")) == 22
    with pytest.raises(WrongDirectory, match=r"node\.id '1'"):
        open_directory(disk, node_id=2)
    put_content(disk, "data/meta.properties", b"\xff\xff")
    with pytest.raises(WrongDirectory, match="cannot be read"):
        open_directory(disk)
    put_content(disk, "data/meta.properties", b"\n".join(line.encode() for line in lines))
    open_directory(disk).close()


@pytest.mark.parametrize("name", [names.RECOVERY_POINTS, names.HIGH_WATERMARKS])
@pytest.mark.parametrize("content", [b"", b"0\n5\norders 0 1\n", b"0\n1\norders zero 1\n", b"\xff"])
def test_a_damaged_checkpoint_is_done_without(name: str, content: bytes) -> None:
    disk = virtual_disk()
    directory = open_directory(disk)
    log = directory.open_log(PARTITION, TOPIC_ID, LogConfig(), wall_ms=NOW_MS)
    append(log, batch_of(b"a"))
    log.close()
    directory.checkpoint([log], {PARTITION: 1})
    directory.close()
    put_content(disk, f"data/{name}", content)
    notices: list[str] = []
    again = open_directory(disk, notices=notices)
    assert len(notices) == 1
    assert name in notices[0]
    assert read_all(again.open_log(PARTITION, TOPIC_ID, LogConfig(), wall_ms=NOW_MS)) == [(0, b"a")]


def test_a_folder_of_another_topic_is_put_aside() -> None:
    disk = virtual_disk()
    notices: list[str] = []
    directory = open_directory(disk, notices=notices)
    log = directory.open_log(PARTITION, TOPIC_ID, LogConfig(), wall_ms=NOW_MS)
    append(log, batch_of(b"old"))
    log.close()
    directory.checkpoint([log], {PARTITION: 1})
    other = directory.open_log(PARTITION, TopicId(bytes(16 * [7])), LogConfig(), wall_ms=NOW_MS)
    assert other.end_offset == other.recovery_point == 0
    strays = [name for name in disk.list_directory("data") if name.endswith("-stray")]
    assert len(strays) == 1
    assert "00000000000000000000.log" in disk.list_directory(f"data/{strays[0]}")
    assert notices
    assert directory.partitions() == [PARTITION]
    assert directory.high_watermarks == {}


def test_a_deleted_log_is_renamed_at_once_and_removed_by_work_even_after_a_restart() -> None:
    disk = virtual_disk()
    directory = open_directory(disk)
    first = directory.open_log(PARTITION, TOPIC_ID, LogConfig(), wall_ms=NOW_MS)
    second = directory.open_log(TopicPartition("orders", 1), TOPIC_ID, LogConfig(), wall_ms=NOW_MS)
    append(first, batch_of(b"a"))
    for log in (first, second):
        log.close(clean=False)
    work = directory.delete_folder(PARTITION)
    assert directory.delete_folder(second.topic_partition) is not None
    assert directory.delete_folder(second.topic_partition) is None, "there is none any more"
    assert work is not None
    assert directory.partitions() == []
    fresh = directory.open_log(PARTITION, TopicId(bytes(16 * [7])), LogConfig(), wall_ms=NOW_MS)
    assert fresh.end_offset == 0
    work.run_inline()
    assert len(folders(disk)) == 1
    directory.close()
    for left in open_directory(disk).leftover_removals():
        left.run_inline()
    assert folders(disk) == []


def test_deleting_a_log_leaves_slices_of_the_same_turn_alone() -> None:
    disk = virtual_disk()
    directory = open_directory(disk)
    kept = directory.open_log(PARTITION, TOPIC_ID, LogConfig(), wall_ms=NOW_MS)
    gone = directory.open_log(TopicPartition("orders", 1), TOPIC_ID, LogConfig(), wall_ms=NOW_MS)
    parts = []
    for log in (kept, gone):
        append(log, batch_of(b"a"))
        parts.append(log.read(0, 1000, 1, True))
    directory.files.open_files_max = 0
    gone.close(clean=False)
    directory.delete_folder(gone.topic_partition)
    assert [values_of(disk, part) for part in parts] == [[(0, b"a")]] * 2


def folders(disk: VirtualDisk) -> list[str]:
    return [name for name in disk.list_directory("data") if name.endswith("-delete")]


def test_long_topic_names_still_fit_a_file_name_when_deleted() -> None:
    name = names.retired_folder(TopicPartition("t" * 249, 12345), "f" * 32, names.DELETE_FOLDER)
    assert len(name) <= 255
    assert name.endswith("-12345." + "f" * 32 + "-delete")


@pytest.mark.parametrize(
    ("folder", "expected"),
    [
        ("orders-0", TopicPartition("orders", 0)),
        ("a-b.c_d-17", TopicPartition("a-b.c_d", 17)),
        ("orders-0.abc-delete", None),
        ("orders-0.abc-stray", None),
        ("orders", None),
        ("-3", None),
        ("orders-x", None),
        ("meta.properties", None),
    ],
)
def test_folder_names(folder: str, expected: TopicPartition | None) -> None:
    assert names.parse_partition_folder(folder) == expected


@pytest.mark.parametrize("at", range(8))
def test_an_older_checkpoint_never_replaces_a_newer_one(at: int) -> None:
    """A second write is begun while the first is at its rename or sync number `at`."""
    disk = virtual_disk()
    directory = open_directory(disk)
    log = directory.open_log(PARTITION, TOPIC_ID, LogConfig(), wall_ms=NOW_MS)
    append(log, batch_of(b"a"), batch_of(b"b"))
    calls, high_watermark = 0, 1

    def write() -> None:
        work = directory.checkpoint_work([log], {PARTITION: high_watermark}, again=write)
        if work is not None:
            work.run_inline()

    def begin_second(operation: str, path: str) -> None:
        nonlocal calls, high_watermark
        if operation in ("rename", "data_sync"):
            calls += 1
            if calls == at + 1:
                disk.on_operation = None
                log.advance_start(1)
                high_watermark = 2
                write()

    disk.on_operation = begin_second
    write()
    assert disk.on_operation is None, "the second one was begun"
    for name, offset in ((names.HIGH_WATERMARKS, 2), (names.START_OFFSETS, 1), (names.START_OFFSETS_COPY, 1)):
        assert checkpoints.decode_offsets(content_of(disk, f"data/{name}")) == {PARTITION: offset}


def test_a_checkpoint_that_could_not_be_written_is_tried_again_though_nothing_moved() -> None:
    disk = virtual_disk()
    directory = open_directory(disk)
    log = directory.open_log(PARTITION, TOPIC_ID, LogConfig(), wall_ms=NOW_MS)
    append(log, batch_of(b"a"))
    disk.faults.fail("data_sync", code=errno.ENOSPC, path_contains="checkpoint")
    failed = directory.checkpoint_work([log], {PARTITION: 1})
    assert failed is not None
    with pytest.raises(OSError, match="space"):
        failed.run_inline()
    repeated = directory.checkpoint_work([log], {PARTITION: 1})
    assert repeated is not None
    repeated.run_inline()
    assert checkpoints.decode_offsets(content_of(disk, "data/replication-offset-checkpoint")) == {PARTITION: 1}
    assert directory.checkpoint_work([log], {PARTITION: 1}) is None, "nothing has moved since"


def test_offsets_that_move_by_the_same_amount_are_written() -> None:
    """One partition is deleted while another one grows by as much."""
    disk = virtual_disk()
    directory = open_directory(disk)
    first = directory.open_log(PARTITION, TOPIC_ID, LogConfig(), wall_ms=NOW_MS)
    second = directory.open_log(TopicPartition("orders", 1), TOPIC_ID, LogConfig(), wall_ms=NOW_MS)
    directory.checkpoint([first, second], {PARTITION: 0, second.topic_partition: 3})
    second.close(clean=False)
    directory.delete_folder(second.topic_partition)
    work = directory.checkpoint_work([first], {PARTITION: 3})
    assert work is not None
    work.run_inline()
    assert checkpoints.decode_offsets(content_of(disk, "data/replication-offset-checkpoint")) == {PARTITION: 3}


DAMAGES = [b"", b"0\n5\norders 0 1\n", b"0\n1\norders zero 1\n", b"\xff"]


def deleted_up_to_one(disk: VirtualDisk) -> None:
    """A directory that was closed, with one log whose first record was deleted."""
    directory = open_directory(disk)
    log = directory.open_log(PARTITION, TOPIC_ID, LogConfig(), wall_ms=NOW_MS)
    append(log, batch_of(b"a"), batch_of(b"b"))
    log.advance_start(1)
    log.close()
    directory.checkpoint([log], {PARTITION: 2})
    directory.mark_clean()
    directory.close()


@pytest.mark.parametrize("name", [names.START_OFFSETS, names.START_OFFSETS_COPY])
@pytest.mark.parametrize("content", [*DAMAGES, None])
def test_deleted_records_do_not_return_with_a_damaged_or_lost_checkpoint(name: str, content: bytes | None) -> None:
    disk = virtual_disk()
    deleted_up_to_one(disk)
    if content is None:
        disk.unlink(f"data/{name}")
    else:
        put_content(disk, f"data/{name}", content)
    notices: list[str] = []
    directory = open_directory(disk, notices=notices)
    log = directory.open_log(PARTITION, TOPIC_ID, LogConfig(), wall_ms=NOW_MS)
    assert read_all(log) == [(1, b"b")]
    assert len(notices) == (content is not None and name == names.START_OFFSETS)
    directory.checkpoint([log], {PARTITION: 2})
    assert checkpoints.decode_offsets(content_of(disk, f"data/{name}")) == {PARTITION: 1}


@pytest.mark.parametrize("content", DAMAGES)
def test_a_directory_whose_start_offsets_are_lost_is_refused_until_that_is_accepted(content: bytes) -> None:
    disk = virtual_disk()
    deleted_up_to_one(disk)
    for name in (names.START_OFFSETS, names.START_OFFSETS_COPY):
        put_content(disk, f"data/{name}", content)
    with pytest.raises(WrongDirectory, match="headrace log repair data"):
        open_directory(disk)
    assert repair(disk, "data", dry_run=False).findings
    log = open_directory(disk).open_log(PARTITION, TOPIC_ID, LogConfig(), wall_ms=NOW_MS)
    assert read_all(log) == [(0, b"a"), (1, b"b")]


topics = st.from_regex(r"[a-zA-Z0-9._-]{1,20}", fullmatch=True)


@given(st.dictionaries(st.builds(TopicPartition, topics, st.integers(0, 9999)), st.integers(0, 2**63 - 1)))
def test_offset_checkpoints_come_back(offsets: dict[TopicPartition, int]) -> None:
    assert checkpoints.decode_offsets(checkpoints.encode_offsets(offsets)) == offsets


@given(st.binary(max_size=60))
def test_any_bytes_are_a_checkpoint_or_refused(content: bytes) -> None:
    for decode in (checkpoints.decode_offsets, checkpoints.decode_partition_metadata, checkpoints.decode_properties):
        try:
            decode(content)
        except CorruptFile:
            continue


def flipped(content: bytes) -> Iterator[bytes]:
    for place in range(len(content) * 8):
        changed = bytearray(content)
        changed[place // 8] ^= 1 << place % 8
        yield bytes(changed)


def test_no_flipped_bit_changes_what_a_small_file_says() -> None:
    """It is found, or it is in the checksum's own line and changes nothing else."""
    offsets = {PARTITION: 120, TopicPartition("a", 3): 7}
    for content in flipped(checkpoints.encode_offsets(offsets, {"orders": TOPIC_ID})):
        with suppress(CorruptFile):
            assert offsets.items() <= checkpoints.decode_offsets(content).items()
            assert checkpoints.decode_topic_ids(content) == {"orders": TOPIC_ID}
    for content in flipped(checkpoints.encode_partition_metadata(TOPIC_ID)):
        with suppress(CorruptFile):
            assert checkpoints.decode_partition_metadata(content) == TOPIC_ID
    properties = {"version": "1", "cluster.id": "abc", "node.id": "1"}
    for content in flipped(checkpoints.encode_properties(properties)):
        with suppress(CorruptFile):
            assert properties.items() <= checkpoints.decode_properties(content).items()
    epochs = LeaderEpochs()
    for epoch, start in ((0, 0), (3, 17), (4, 90)):
        epochs.assign(epoch, start)
    for content in flipped(epochs.encode()):
        with suppress(CorruptFile):
            found = LeaderEpochs.decode(content)
            found.truncate_from(1 << 40)  # as a start does: no log is so long
            assert (found.epochs, found.starts) == (epochs.epochs, epochs.starts)


def test_files_without_a_checksum_are_taken_as_they_are() -> None:
    assert checkpoints.decode_offsets(b"0\n1\norders 0 5\n") == {PARTITION: 5}
    assert checkpoints.decode_topic_ids(b"0\n1\norders 0 5\n") == {}
    assert checkpoints.decode_properties(b"#Mon\ncluster.id=x\n") == {"cluster.id": "x"}
    plain = checkpoints.encode_partition_metadata(TOPIC_ID).split(b"headrace")[0]
    assert checkpoints.decode_partition_metadata(plain) == TOPIC_ID
    assert LeaderEpochs.decode(b"0\n1\n4 17\n").epochs == [4]


def test_offsets_of_an_earlier_topic_of_the_same_name_do_not_count() -> None:
    """The checkpoint on disk is still that of the deleted topic when the node dies."""
    disk = virtual_disk()
    directory = open_directory(disk)
    old = directory.open_log(PARTITION, TOPIC_ID, LogConfig(), wall_ms=NOW_MS)
    for number in range(9):
        append(old, batch_of(b"%d" % number))
    old.advance_start(8)
    old.close()
    directory.checkpoint([old], {PARTITION: 9})
    assert directory.delete_folder(PARTITION) is not None
    other = TopicId(bytes(16 * [7]))
    new = directory.open_log(PARTITION, other, LogConfig(), wall_ms=NOW_MS)
    append(new, batch_of(b"mine"))
    disk.kill()
    again = open_directory(disk)
    log = again.open_log(PARTITION, other, LogConfig(), wall_ms=NOW_MS)
    assert read_all(log) == [(0, b"mine")]
    assert (log.start_offset, log.recovery_point) == (0, 0)


def test_a_folder_that_is_gone_is_not_created_again() -> None:
    disk = virtual_disk()
    directory = open_directory(disk)
    log = directory.open_log(PARTITION, TOPIC_ID, LogConfig(), wall_ms=NOW_MS)
    append(log, batch_of(b"a"))
    log.close()
    directory.checkpoint([log], {PARTITION: 1})
    directory.close()
    for name in disk.list_directory("data/orders-0"):
        disk.unlink(f"data/orders-0/{name}")
    disk.remove_directory("data/orders-0")
    with pytest.raises(MissingLog, match="restore the folder from a copy"):
        open_directory(disk).open_log(PARTITION, TOPIC_ID, LogConfig(), wall_ms=NOW_MS)
