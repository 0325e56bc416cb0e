"""Batches are added to Iceberg tables once, whenever the driver is killed and beside other commits, without Spark."""

import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from headrace.spark.sink.iceberg.table import CatalogPlace, IcebergTable
from headrace.spark.sink.staged_writes import RowsDoNotFit, StagingReport

SCHEMA = pa.schema([("id", pa.int64()), ("day", pa.string())])

KILLED_DRIVER = """
import os, signal, sys
sys.path.insert(0, {root!r})
from pathlib import Path
from headrace.spark.sink.iceberg.table import IcebergTable
from tests.spark.tables.test_iceberg import SCHEMA, batch, table_in

def die(*_):
    os.kill(os.getpid(), signal.SIGKILL)

point, found = {point!r}, table_in(Path({folder!r}))
stage = found.prepare(SCHEMA)
reports = [stage([batch(2, 3)]), stage([batch(4)])]
if point == "staged":
    die()
if point == "adding":
    from pyiceberg.table import Transaction
    Transaction.commit_transaction = die
found.commit(reports, 1)
die()
"""


def table_in(folder: Path, **changes: Any) -> IcebergTable:
    place = CatalogPlace.of("sqlite:///catalog.db", "warehouse", {}).below(folder)
    return replace(IcebergTable(table="shop.orders", place=place, owner="o", partition_by=("day",)), **changes)


def batch(*ids: int) -> "pa.RecordBatch":
    return pa.RecordBatch.from_pydict({"id": list(ids), "day": [f"d{each % 2}" for each in ids]}, schema=SCHEMA)


def staged(table: IcebergTable, *ids: int) -> StagingReport:
    return table.prepare(SCHEMA)([batch(*ids)])


def ids(table: IcebergTable) -> list[int]:
    """Return what a reader sees."""
    return sorted(table.load().scan().to_arrow()["id"].to_pylist())


def files(folder: Path) -> int:
    return len(list(folder.rglob("*.parquet")))


def test_batches_are_added_one_by_one_and_a_repeat_changes_nothing(tmp_path: Path) -> None:
    table = table_in(tmp_path)
    assert table.committed() is None
    assert table.commit([staged(table, 1, 2), staged(table, 3), StagingReport("empty", 0)], 0)
    assert table.commit([staged(table, 4)], 1)
    before = files(tmp_path)
    assert not table.commit([staged(table, 4, 5)], 1)
    assert not table.commit([staged(table, 1)], 0)
    assert (ids(table), table.committed(), files(tmp_path)) == ([1, 2, 3, 4], 1, before)
    assert not table.commit([], 2)
    newest = table.load().current_snapshot().summary.additional_properties
    assert (newest["headrace.owner"], newest["headrace.batch"]) == ("o", "1")
    assert {each["partition"]["day"] for each in table.load().inspect.files().to_pylist()} == {"d0", "d1"}


@pytest.mark.record_integrity
@pytest.mark.process
@pytest.mark.parametrize("point", ["staged", "adding", "committed"])
def test_a_batch_of_a_killed_driver_is_repeated_without_loss_or_repetition(tmp_path: Path, point: str) -> None:
    table = table_in(tmp_path)
    table.commit([staged(table, 1)], 0)
    script = KILLED_DRIVER.format(root=str(Path.cwd()), point=point, folder=str(tmp_path))
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120, env=os.environ)
    assert ran.returncode == -signal.SIGKILL, ran.stderr
    assert ids(table) == ([1, 2, 3, 4] if point == "committed" else [1])
    assert table.commit([staged(table, 2), staged(table, 3, 4)], 1) is (point != "committed")
    assert ids(table) == [1, 2, 3, 4]


@pytest.mark.record_integrity
def test_a_batch_that_another_driver_commits_meanwhile_is_not_added_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The library by itself would repeat the failed commit on top of the other."""
    table = table_in(tmp_path)
    table.commit([staged(table, 1)], 0)
    ours, theirs = staged(table, 2), staged(table, 2)
    add, others = IcebergTable._add, [1]

    def delayed(self: IcebergTable, loaded: Any, paths: list[str], batch_id: int) -> None:
        if others.pop() if others else False:
            assert table.commit([theirs], 1)
        add(self, loaded, paths, batch_id)

    monkeypatch.setattr(IcebergTable, "_add", delayed)
    assert not table.commit([ours], 1)
    assert ids(table) == [1, 2]


@pytest.mark.record_integrity
def test_a_commit_of_another_pipeline_in_between_is_no_obstacle(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table, other = table_in(tmp_path), table_in(tmp_path, owner="other")
    table.commit([staged(table, 1)], 0)
    report = staged(other, 3)
    add, others = IcebergTable._add, [1]

    def delayed(self: IcebergTable, loaded: Any, paths: list[str], batch_id: int) -> None:
        if others.pop() if others else False:
            assert other.commit([report], 0)
        add(self, loaded, paths, batch_id)

    monkeypatch.setattr(IcebergTable, "_add", delayed)
    assert table.commit([staged(table, 2)], 1)
    assert (ids(table), table.committed(), other.committed()) == ([1, 2, 3], 1, 0)


@pytest.mark.record_integrity
def test_a_commit_that_failed_and_took_effect_keeps_its_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As when the answer of the catalog was lost, and the repeated request conflicted with the first."""
    from pyiceberg.exceptions import CommitFailedException

    table, add = table_in(tmp_path), IcebergTable._add

    def failing(*given: Any) -> None:
        add(*given)
        raise CommitFailedException("the answer is lost")

    table.prepare(SCHEMA)
    monkeypatch.setattr(IcebergTable, "_add", failing)
    assert not table.commit([staged(table, 1, 2)], 0)
    assert ids(table) == [1, 2]


def test_a_batch_is_known_after_its_snapshot_has_expired(tmp_path: Path) -> None:
    table = table_in(tmp_path)
    table.commit([staged(table, 1)], 0)
    loaded = table.load()
    loaded.append(pa.table({"id": [9], "day": ["d1"]}, schema=SCHEMA))
    first = loaded.snapshots()[0].snapshot_id
    loaded.maintenance.expire_snapshots().by_id(first).commit()
    assert not table.commit([staged(table, 1)], 0)
    assert ids(table) == [1, 9]


def test_files_of_a_failed_task_are_deleted(tmp_path: Path) -> None:
    stage = table_in(tmp_path).prepare(SCHEMA)

    def failing() -> Any:
        yield batch(1, 2)
        raise OSError("the source is gone")

    with pytest.raises(OSError, match="the source is gone"):
        stage(failing())
    assert files(tmp_path) == 0


def test_rows_that_do_not_fit_are_refused_before_any_is_written(tmp_path: Path) -> None:
    table = table_in(tmp_path)
    table.commit([staged(table, 1)], 0)
    other = pa.schema([("id", pa.int64()), ("price", pa.float64())])
    with pytest.raises(RowsDoNotFit, match=r"has no column price: it has id, day"):
        table.prepare(other)
    with pytest.raises(RowsDoNotFit, match=r"column `id` is double, and int64 in shop.orders: cast it"):
        table.prepare(pa.schema([("id", pa.float64())]))
    with pytest.raises(RowsDoNotFit, match=r"is partitioned by .*day.*: set partition_by to that"):
        replace(table, partition_by=()).prepare(SCHEMA)
    assert files(tmp_path) == 1


TYPED: Mapping[str, tuple[Any, Any]] = {
    "id": (pa.int64(), 2**40),
    "small": (pa.int16(), 7),
    "yes": (pa.bool_(), True),
    "part": (pa.float64(), 0.1),
    "price": (pa.decimal128(20, 4), Decimal("12345678901234.5678")),
    "raw": (pa.binary(), b"\x00\xff"),
    "day": (pa.date32(), date(2026, 5, 31)),
    "moment": (pa.timestamp("us", "UTC"), datetime(2026, 5, 31, 12, 0, 0, 5, UTC)),
    "local": (pa.timestamp("us"), datetime(2026, 5, 31, 12)),
    "tags": (pa.list_(pa.string()), ["a", "b"]),
    "place": (pa.struct([("city", pa.string())]), {"city": "x"}),
    "nothing": (pa.string(), None),
}


def test_types_arrive_also_in_a_partition_without_a_value(tmp_path: Path) -> None:
    table = table_in(tmp_path, partition_by=("nothing",))
    schema = pa.schema([(name, kind) for name, (kind, _) in TYPED.items()])
    given = pa.RecordBatch.from_arrays([pa.array([value], kind) for kind, value in TYPED.values()], schema=schema)
    for number in range(2):  # the second time into a table that exists
        assert table.commit([table.prepare(schema)([given])], number)
    for row in table.load().scan().to_arrow().to_pylist():
        assert row == {name: value for name, (_, value) in TYPED.items()}


def test_wrong_catalogs_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match='"file:" is not a catalog'):
        CatalogPlace.of("file:///x", "w", {})
    with pytest.raises(ValueError, match="put the credentials under options"):
        CatalogPlace.of("https://me:secret@host", "w", {})
    place = CatalogPlace.of("https://host", "lake", {"token": "geheim"}).below(tmp_path)
    assert (place.kind, place.warehouse, "geheim" in repr(place)) == ("rest", "lake", False)
    assert not table_in(tmp_path).place.finds("shop.orders")
    assert list(tmp_path.iterdir()) == []
