"""`headrace pipeline test` without Spark: it says exactly which file is missing or belongs nowhere."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from headrace.cli.main import cli
from headrace.spark.pipelines.fixtures import differences, expected_text

PIPELINE = """\
name: p
source: {topic: orders, format: json, schema: "id INT NOT NULL"}
bad_records: {topic: orders-dead}
sinks:
  - {topic: clean}
  - {parquet: tables/landed}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "pipeline.yml").write_text(PIPELINE)
    for name in ("fixtures", "expected"):
        (tmp_path / name).mkdir()
    (tmp_path / "fixtures" / "orders.jsonl").write_text("{}\n")
    (tmp_path / "expected" / "clean.jsonl").write_text("{}\n")
    return tmp_path


def said(folder: Path, *more: str) -> str:
    done = CliRunner().invoke(cli, ["pipeline", "test", str(folder), *more], catch_exceptions=False)
    assert done.exit_code == 1
    return done.stderr.splitlines()[-1]


def test_a_missing_fixture_is_named(folder: Path) -> None:
    (folder / "fixtures" / "orders.jsonl").rename(folder / "fixtures" / "order.jsonl")
    for more in ((), ("--update",)):
        assert f"{folder}/fixtures/orders.jsonl is missing: write the records of the topic there" in said(folder, *more)


def test_a_fixture_that_is_not_read_is_named(folder: Path) -> None:
    (folder / "fixtures" / "order.jsonl").write_text("{}\n")
    assert (
        f'{folder}/fixtures/order.jsonl names a topic that the pipeline does not read: did you mean "orders"?'
        in said(folder)
    )


def test_an_expected_file_of_no_sink_is_named(folder: Path) -> None:
    (folder / "expected" / "orders-ded.jsonl").write_text("{}\n")
    assert 'orders-ded.jsonl belongs to no sink of the pipeline: did you mean "orders-dead"?' in said(folder)


def test_without_anything_expected_update_is_named(folder: Path) -> None:
    (folder / "expected" / "clean.jsonl").unlink()
    assert "there is nothing to compare: `headrace pipeline test --update` writes the" in said(folder)


def test_what_is_written_is_what_is_expected() -> None:
    came = [
        {"key": "b", "value": {"id": 2}, "headers": {"hr-dead-reason": "bad", "hr-dead-offset": "7", "trace": "x"}},
        {"key": None, "value": None, "headers": {}},
        {"value": {"row": 1}},
    ]
    text = expected_text(came)
    written = [json.loads(line) for line in text.splitlines()]
    assert {"key": "b", "value": {"id": 2}, "headers": {"hr-dead-reason": "bad", "trace": "x"}} in written
    assert {"value": None} in written
    assert differences(written, came) == []
    assert expected_text(reversed(came)) == text
