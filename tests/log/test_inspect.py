"""Dump, verify and repair of the files of a log."""

from pathlib import Path

import pytest

from headrace.log.config import LogConfig
from headrace.log.directory import LogDirectory
from headrace.log.errors import DamagedLog, LogError
from headrace.log.inspect import Remedy, dump, repair, verify
from headrace.log.partition_log import PartitionLog
from headrace.ports.disk import Disk, DiskLockHeld
from headrace.ports.real.disk import RealDisk
from headrace.sim.entropy import SeededEntropy

from .test_recovery import content_of, put_content
from .world import FOLDER, NOW_MS, PARTITION, TOPIC_ID, append, batch_of, open_log, read_all, virtual_disk

CONFIG = LogConfig(segment_bytes=900, index_interval_bytes=100)


def closed_log(disk: Disk, path: str = "data") -> PartitionLog:
    directory = LogDirectory.open(disk, path, cluster_id="c", node_id=1, entropy=SeededEntropy(1))
    log = directory.open_log(PARTITION, TOPIC_ID, CONFIG, wall_ms=NOW_MS)
    for number in range(20):
        batch = batch_of(
            b"v%d" % number + bytes(60),
            b"w",
            timestamps=[NOW_MS + number] * 2,
            producer_id=4,
            producer_epoch=0,
            base_sequence=2 * number,
        )
        append(log, batch, epoch=number // 10)
    log.close()
    directory.checkpoint([log], {PARTITION: log.end_offset})
    directory.mark_clean()
    directory.close()
    return log


def test_a_closed_log_is_whole() -> None:
    disk = virtual_disk()
    log = closed_log(disk)
    for path in ("data", FOLDER):
        report = verify(disk, path)
        assert report.findings == []
        assert report.is_whole
        assert (report.batches, report.records, report.bytes) == (20, 40, log.size_bytes)


def test_dump_shows_everything_in_the_directory(tmp_path: Path) -> None:
    disk = RealDisk()
    log = closed_log(disk, str(tmp_path))
    entries = list(dump(disk, str(tmp_path), deep=True))
    kinds = [entry.kind for entry in entries]
    assert kinds.count("batch") == 20
    assert kinds.count("record") == 40
    assert kinds.count("leader-epoch") == 2
    assert kinds.count("producer") == len(log.segments)
    assert kinds.count("checkpoint") == 4
    assert kinds.count("offset-index") == sum(len(segment.index) for segment in log.segments) > 0
    assert kinds.count("time-index") == sum(len(segment.time_index) for segment in log.segments) > 0
    assert "damage" not in kinds
    batch = next(entry for entry in entries if entry.kind == "batch")
    assert batch.values["base_offset"] == 0
    assert batch.values["producer_id"] == 4
    record = next(entry for entry in entries if entry.kind == "record")
    assert record.values["value"] == b"v0" + bytes(60)
    meta = next(entry for entry in entries if entry.kind == "meta-properties")
    assert meta.values["cluster.id"] == "c"


def test_dump_of_one_file_and_of_what_is_no_log() -> None:
    disk = virtual_disk()
    closed_log(disk)
    assert {entry.kind for entry in dump(disk, f"{FOLDER}/{0:020d}.index")} == {"offset-index"}
    put_content(disk, "data/letter.txt", b"hello")
    with pytest.raises(LogError, match="not a log file"):
        list(dump(disk, "data/letter.txt"))
    put_content(disk, f"{FOLDER}/{0:020d}.index", b"12345")
    assert [entry.kind for entry in dump(disk, f"{FOLDER}/{0:020d}.index")] == ["damage"]
    disk.make_directory("elsewhere")
    with pytest.raises(LogError, match="neither segments nor partitions"):
        verify(disk, "elsewhere")
    with pytest.raises(LogError, match="is not a folder"):
        verify(disk, "data/letter.txt")


def test_a_damaged_batch_is_found_and_cut_by_repair_which_keeps_the_bytes() -> None:
    disk = virtual_disk()
    log = closed_log(disk)
    path = log.segments[1].log.path
    content = bytearray(content_of(disk, path))
    batch_bytes = log.segments[1].size // 6
    content[2 * batch_bytes + 80] ^= 1
    put_content(disk, path, bytes(content))
    report = verify(disk, "data")
    assert not report.is_whole
    damage = next(finding for finding in report.findings if finding.remedy is Remedy.CUT)
    assert (damage.path, damage.position) == (path, 2 * batch_bytes)
    assert "wrong checksum" in damage.text
    dry = repair(disk, "data", dry_run=True)
    assert dry.findings == report.findings
    assert content_of(disk, path) == bytes(content)
    done = repair(disk, "data", dry_run=False)
    assert done.is_whole
    assert content_of(disk, path) == bytes(content[: 2 * batch_bytes])
    assert content_of(disk, f"{path}.{2 * batch_bytes}.damaged") == bytes(content[2 * batch_bytes :])
    assert verify(disk, "data").is_whole
    again = open_log(disk, CONFIG, recovery_point=40, clean=True)
    base = log.bases[1]
    lost = range(base + 4, log.bases[2])
    assert [at for at, _ in read_all(again)] == [at for at in range(40) if at not in lost]


@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
@pytest.mark.parametrize("damage", ["missing", "odd", "wrong", "falling"])
def test_a_bad_index_is_found_and_rebuilt(suffix: str, damage: str) -> None:
    disk = virtual_disk()
    log = closed_log(disk)
    path = log.segments[0].stem + suffix
    good = content_of(disk, path)
    size = 8 if suffix == ".index" else 12
    if damage == "missing":
        disk.unlink(path)
    else:
        wrong = bytearray(good)
        wrong[size - 1] += 1
        put_content(disk, path, {"odd": good[:-1], "wrong": bytes(wrong), "falling": good + good[:size]}[damage])
    (finding,) = verify(disk, FOLDER).findings
    assert (finding.path, finding.remedy) == (path, Remedy.REBUILD)
    assert repair(disk, FOLDER, dry_run=False).is_whole
    assert verify(disk, FOLDER).findings == []


def test_bad_small_files_are_found_and_removed_where_the_start_rebuilds_them() -> None:
    disk = virtual_disk()
    closed_log(disk)
    removed = [
        f"{FOLDER}/{40:020d}.snapshot",
        f"{FOLDER}/leader-epoch-checkpoint",
        "data/recovery-point-offset-checkpoint",
    ]
    for path in (*removed, f"{FOLDER}/partition.metadata"):
        put_content(disk, path, b"\xff\x00")
    report = repair(disk, "data", dry_run=False)
    assert sorted(finding.path for finding in report.findings if finding.repaired) == sorted(removed)
    assert not any(disk.exists(path) for path in removed)
    (left,) = verify(disk, "data").findings
    assert left.remedy is Remedy.BY_HAND


def test_repair_brings_back_a_log_that_refused_to_open() -> None:
    disk = virtual_disk()
    log = closed_log(disk)
    path = log.active.log.path
    content = content_of(disk, path)
    put_content(disk, path, content[:-30])
    with pytest.raises(DamagedLog):
        open_log(disk, CONFIG, recovery_point=40, clean=True)
    assert repair(disk, FOLDER, dry_run=False).is_whole
    assert open_log(disk, CONFIG, recovery_point=40, clean=True).end_offset == 38


def test_preallocated_space_is_no_fault() -> None:
    disk = virtual_disk()
    log = closed_log(disk)
    path = log.active.log.path
    put_content(disk, path, content_of(disk, path) + bytes(500))
    report = verify(disk, FOLDER)
    assert report.is_whole
    assert report.findings[0].remedy is Remedy.NONE
    assert [entry.kind for entry in dump(disk, path)][-1] == "preallocated"


def test_repair_refuses_a_directory_in_use(tmp_path: Path) -> None:
    disk = RealDisk()
    closed_log(disk, str(tmp_path))
    directory = LogDirectory.open(disk, str(tmp_path), cluster_id="c", node_id=1, entropy=SeededEntropy(1))
    for path in (str(tmp_path), f"{tmp_path}/orders-0"):
        with pytest.raises(DiskLockHeld):
            repair(RealDisk(), path, dry_run=False)
        assert repair(RealDisk(), path, dry_run=True).is_whole
    directory.close()


def test_a_gap_and_a_short_end_are_reported_and_accepted_by_repair() -> None:
    disk = virtual_disk()
    directory = LogDirectory.open(disk, "data", cluster_id="c", node_id=1, entropy=SeededEntropy(1))
    log = directory.open_log(PARTITION, TOPIC_ID, CONFIG, wall_ms=NOW_MS)
    for number in range(40):
        append(log, batch_of(b"%02d" % number + bytes(100)))
    log.close()
    directory.checkpoint([log], {PARTITION: 40})
    directory.close()
    for segment in (log.segments[1], log.segments[-1]):
        for file in segment.all_files():
            disk.unlink(file.path)
    report = verify(disk, "data")
    texts = [finding.text for finding in report.findings if finding.remedy is Remedy.ACCEPT]
    assert len(texts) == 2
    assert f"the next segment begins at {log.bases[2]}" in texts[0]
    assert "but was synced up to 40: the records between are missing" in texts[1]
    with pytest.raises(DamagedLog):
        open_log(disk, CONFIG, recovery_point=40)
    assert repair(disk, "data", dry_run=False).is_whole
    assert verify(disk, "data").is_whole
    again = open_log(disk, CONFIG, recovery_point=40)
    assert again.end_offset == log.bases[-1]
    assert [at for at, _ in read_all(again)] == [*range(log.bases[1]), *range(log.bases[2], log.bases[-1])]
