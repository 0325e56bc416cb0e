"""Files become visible once per batch, whenever the driver is killed, and beside other commits."""

import json
import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from headrace.spark.sink.identity import Identity
from headrace.spark.sink.tables import parquet
from headrace.spark.sink.tables.batch_commits import FileReport, SameBatchTwice, Table, is_repeat
from headrace.spark.sink.tables.delta import DeltaFolder
from headrace.spark.sink.tables.files import RollingFiles
from headrace.spark.sink.tables.options import TableOptions
from headrace.spark.sink.tables.parquet import OWN_FOLDER, ParquetFolder

SCHEMA = pa.schema([("number", pa.int64()), ("day", pa.string())])
OWNER = "spark.query.sink"


class Killed(BaseException):
    """The driver died here."""


def make(kind: str, path: Path, **options: Any) -> Table:
    given = TableOptions(path=str(path), **options)
    return DeltaFolder(given, SCHEMA) if kind == "delta" else ParquetFolder(given)


def numbers(kind: str, path: Path) -> list[int]:
    """Return what any reader of such a table sees."""
    if kind == "delta":
        from deltalake import DeltaTable

        return sorted(DeltaTable(str(path)).to_pyarrow_table()["number"].to_pylist())
    return sorted(ds.dataset(str(path), format="parquet", partitioning="hive").to_table()["number"].to_pylist())


def written(
    table: Table, values: list[int], *, batch_id: int, run: str = "run1", write: str | None = None
) -> FileReport:
    """Do the work of a task."""
    identity = Identity(OWNER, run, batch_id, 0)
    write_id = write or f"{run}-{batch_id}"
    files = RollingFiles(
        table.staging_folder(identity, write_id), target_bytes=10_000, partition_columns=("day",), compression="snappy"
    )
    days = [f"d{value % 2}" for value in values]
    files.write(pa.record_batch([pa.array(values, pa.int64()), pa.array(days)], schema=SCHEMA))
    return FileReport(identity=identity, write_id=write_id, files=tuple(files.close()), is_skipped=False)


def commit(table: Table, *reports: FileReport) -> None:
    table.commit(reports, reports[0].identity, reports[0].write_id)


@pytest.mark.parametrize("kind", ["delta", "parquet"])
def test_batches_are_added_one_by_one_and_a_repeat_changes_nothing(kind: str, tmp_path: Path) -> None:
    table = make(kind, tmp_path, partition_columns=("day",))
    assert table.committed(OWNER) is None
    commit(table, written(table, [1, 2], batch_id=0), written(table, [3], batch_id=0))
    commit(table, written(table, [4], batch_id=1))
    assert numbers(kind, tmp_path) == [1, 2, 3, 4]
    commit(table, written(table, [4, 5], batch_id=1, run="run2"))
    commit(table, written(table, [1], batch_id=0, run="run2"))
    assert numbers(kind, tmp_path) == [1, 2, 3, 4]
    assert table.committed(OWNER) == (1, "run1", "run1-1")
    commit(table, written(table, [6], batch_id=2, run="run2"))
    assert numbers(kind, tmp_path) == [1, 2, 3, 4, 6]


@pytest.mark.parametrize("kind", ["delta", "parquet"])
def test_a_commit_that_is_tried_again_takes_nothing_away(kind: str, tmp_path: Path) -> None:
    """As when it was written, and its answer was lost."""
    table = make(kind, tmp_path, partition_columns=("day",))
    report = written(table, [1, 2], batch_id=7)
    commit(table, report)
    commit(table, report)
    assert numbers(kind, tmp_path) == [1, 2]


@pytest.mark.parametrize("kind", ["delta", "parquet"])
def test_what_is_part_of_the_table_is_not_discarded(kind: str, tmp_path: Path) -> None:
    """Spark aborts a write whose commit raised, also if it is there."""
    table = make(kind, tmp_path, partition_columns=("day",))
    report, other = written(table, [1, 2], batch_id=7), written(table, [3], batch_id=8)
    commit(table, report)
    table.discard([report, other])
    assert numbers(kind, tmp_path) == [1, 2]
    assert list(tmp_path.rglob(Path(other.files[0].path).name)) == []


@pytest.mark.parametrize("kind", ["delta", "parquet"])
def test_a_second_write_of_one_run_under_one_name_is_refused(kind: str, tmp_path: Path) -> None:
    table = make(kind, tmp_path, partition_columns=("day",))
    commit(table, written(table, [1], batch_id=7, write="first"))
    with pytest.raises(SameBatchTwice, match="a different option sinkName"):
        commit(table, written(table, [2], batch_id=7, write="second"))
    assert numbers(kind, tmp_path) == [1]


@pytest.mark.parametrize("kind", ["delta", "parquet"])
@pytest.mark.parametrize("found_by", ["tasks", "commit"])
def test_a_second_write_is_not_passed_over_when_a_later_run_repeats_the_batch(
    kind: str, found_by: str, tmp_path: Path
) -> None:
    """A kill came between the two. The first is found there by its tasks, or by the commit of what they wrote."""
    table = make(kind, tmp_path, partition_columns=("day",))
    commit(table, written(table, [1], batch_id=7, write="first"))
    again = Identity(OWNER, "run2", 7, 0)
    for _ in range(2):
        if found_by == "tasks":
            table.note_repeat(again, "first again")
        else:
            commit(table, written(table, [1], batch_id=7, run="run2", write="first again"))
    other = table.committed(OWNER, "run3")
    assert other == (7, "run1", "first"), "who put it there is known as before"
    with pytest.raises(SameBatchTwice, match="keep the name of the first"):
        is_repeat(table.committed(OWNER, "run2"), again, "second")  # as a task asks
    with pytest.raises(SameBatchTwice, match="keep the name of the first"):
        commit(table, written(table, [2], batch_id=7, run="run2", write="second"))
    commit(table, written(table, [1], batch_id=7, run="run3", write="first once more"))
    commit(table, written(table, [3], batch_id=8, run="run3"))
    assert numbers(kind, tmp_path) == [1, 3]
    if kind == "parquet":
        assert [path.name for path in (tmp_path / OWN_FOLDER / "batches" / OWNER).iterdir()] == ["8.json"]


def test_runs_that_repeat_a_batch_without_end_take_no_more_room(tmp_path: Path) -> None:
    table = make("parquet", tmp_path, partition_columns=("day",))
    commit(table, written(table, [1], batch_id=7))
    for number in range(parquet.REPEATS_MAX + 5):
        table.note_repeat(Identity(OWNER, f"again-{number}", 7, 0), f"write-{number}")
    (listing,) = (tmp_path / OWN_FOLDER / "batches" / OWNER).iterdir()
    repeats = json.loads(listing.read_text())["repeats"]
    assert list(repeats) == [f"again-{number}" for number in range(5, parquet.REPEATS_MAX + 5)]
    assert table.committed(OWNER, "again-104") == (7, "again-104", "write-104")


@pytest.mark.parametrize("kind", ["delta", "parquet"])
def test_what_is_not_committed_is_not_seen(kind: str, tmp_path: Path) -> None:
    table = make(kind, tmp_path, partition_columns=("day",))
    commit(table, written(table, [1], batch_id=0))
    lost = written(table, [2], batch_id=1)
    assert numbers(kind, tmp_path) == [1]
    table.discard([lost])
    table.discard([lost])
    commit(table, written(table, [3], batch_id=1, run="run2"))
    assert numbers(kind, tmp_path) == [1, 3]
    assert list(tmp_path.rglob(Path(lost.files[0].path).name)) == []


@pytest.mark.parametrize("moved", [0, 1])
def test_a_driver_killed_among_the_moves_is_completed_by_the_next(
    moved: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = make("parquet", tmp_path, partition_columns=("day",))
    commit(table, written(table, [1], batch_id=0))
    report = written(table, [2, 3, 4], batch_id=1)
    assert len(report.files) == 2
    left = moved

    def rename(source: str, target: str) -> None:
        nonlocal left
        if os.path.exists(source):
            if not left:
                raise Killed
            left -= 1
        os.replace(source, target)

    with monkeypatch.context() as patched:
        patched.setattr(parquet.os, "rename", rename)
        with pytest.raises(Killed):
            commit(table, report)
    next_driver = make("parquet", tmp_path, partition_columns=("day",))
    found = next_driver.committed(OWNER)
    assert found is not None
    assert found.batch_id == 1
    next_driver.finish_commit(Identity(OWNER, "run2", 1, 0))
    assert numbers("parquet", tmp_path) == [1, 2, 3, 4]
    commit(next_driver, written(next_driver, [5], batch_id=2, run="run2"))
    assert numbers("parquet", tmp_path) == [1, 2, 3, 4, 5]


def test_a_driver_killed_before_its_list_is_there_is_repeated_by_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = make("parquet", tmp_path, partition_columns=("day",))

    def link(source: str, target: str) -> None:
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(parquet.os, "link", link)
        with pytest.raises(Killed):
            commit(table, written(table, [1, 2], batch_id=0))
    assert table.committed(OWNER) is None
    commit(table, written(table, [1, 2], batch_id=0, run="run2"))
    assert numbers("parquet", tmp_path) == [1, 2]


def test_a_parquet_folder_keeps_no_litter(tmp_path: Path) -> None:
    table = make("parquet", tmp_path, partition_columns=("day",))
    for batch_id in range(5):
        written(table, [100], batch_id=batch_id, run="killed")
        commit(table, written(table, [batch_id], batch_id=batch_id))
    own = [path.relative_to(tmp_path / OWN_FOLDER) for path in (tmp_path / OWN_FOLDER).rglob("*") if path.is_file()]
    assert [str(path) for path in own] == [f"batches/{OWNER}/4.json"]
    assert numbers("parquet", tmp_path) == [0, 1, 2, 3, 4]


def test_delta_commits_that_meet_are_decided_one_after_the_other(tmp_path: Path) -> None:
    """Two drivers of one query, and others that write to the same table in between."""
    first, second = (make("delta", tmp_path, partition_columns=("day",)) for _ in range(2))
    commit(first, written(first, [1], batch_id=0))
    ours = written(first, [2], batch_id=1, run="run1")
    theirs = written(second, [2], batch_id=1, run="run2")
    loaded = first._load()  # type: ignore[attr-defined]
    reads = iter([loaded])
    reload = first._load  # type: ignore[attr-defined]
    first._load = lambda: next(reads, None) or reload()  # type: ignore[attr-defined]
    commit(second, theirs)
    commit(first, ours)
    assert numbers("delta", tmp_path) == [1, 2]
    assert second.committed(OWNER) == (1, "run2", "run2-1")


@pytest.mark.parametrize("count", [1_000, 20_000])
def test_files_are_about_as_large_as_asked_for(tmp_path: Path, count: int) -> None:
    """However many rows come at a time."""
    files = RollingFiles(str(tmp_path), target_bytes=20_000, partition_columns=(), compression="none")
    for first in range(0, 20_000, count):
        values = pa.array(range(first, first + count), pa.int64())
        files.write(pa.record_batch([values], names=["number"]))
    done = files.close()
    assert len(done) > 3
    assert all(20_000 <= each.size_bytes < 40_000 for each in done[:-1])
    assert sum(each.records for each in done) == 20_000
    read = [number for each in done for number in pq.read_table(tmp_path / each.path)["number"].to_pylist()]
    assert read == list(range(20_000))


def test_partition_values_are_folders_as_spark_names_them(tmp_path: Path) -> None:
    files = RollingFiles(str(tmp_path), target_bytes=10_000, partition_columns=("a", "b"), compression="zstd")
    rows = pa.record_batch(
        [pa.array(["x/y=%é z", None, "", "x/y=%é z"]), pa.array([True, False, False, True]), pa.array([1, 2, 3, 4])],
        names=["a", "b", "n"],
    )
    files.write(rows)
    found = {each.partition_values: (each.path.rpartition("/")[0], each.records) for each in files.close()}
    assert found == {
        (("a", "x/y=%é z"), ("b", "true")): ("a=x%2Fy%3D%25é z/b=true", 2),
        (("a", None), ("b", "false")): ("a=__HIVE_DEFAULT_PARTITION__/b=false", 2),
    }


def test_few_files_are_open_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headrace.spark.sink.tables.files.OPEN_FILES_MAX", 3)
    files = RollingFiles(str(tmp_path), target_bytes=10_000, partition_columns=("a",), compression="none")
    for _ in range(2):
        files.write(pa.record_batch([pa.array(list(range(10))), pa.array(list(range(10)))], names=["a", "n"]))
        assert len(files._open) == 3
    done = files.close()
    assert sum(each.records for each in done) == 20


def test_a_failed_task_leaves_no_file(tmp_path: Path) -> None:
    files = RollingFiles(str(tmp_path), target_bytes=1_024, partition_columns=("a",), compression="none")
    for _ in range(3):
        files.write(pa.record_batch([pa.array([1] * 500 + [2]), pa.array(list(range(501)))], names=["a", "n"]))
    files.discard()
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_a_deleted_file_of_the_newest_batch_stops_later_batches_with_a_remedy(tmp_path: Path) -> None:
    table = make("parquet", tmp_path)
    report = written(table, [1], batch_id=0)
    commit(table, report, written(table, [2], batch_id=0))
    deleted = tmp_path / report.files[0].path
    deleted.unlink()
    listing = tmp_path / OWN_FOLDER / "batches" / OWNER / "0.json"
    for _ in range(2):
        with pytest.raises(parquet.CommittedFileMissing) as raised:
            commit(table, written(table, [3], batch_id=1))
    for part in (deleted.name, str(deleted.parent), str(listing), f"Batch 0 of {OWNER}", "put the file back"):
        assert part in str(raised.value)
    assert numbers("parquet", tmp_path) == [2]

    listed = json.loads(listing.read_text())
    listed["files"].remove(report.files[0].path)
    listing.write_text(json.dumps(listed))
    commit(table, written(table, [1, 2], batch_id=0, run="run2"))
    commit(table, written(table, [3], batch_id=1, run="run2"))
    assert numbers("parquet", tmp_path) == [2, 3]
