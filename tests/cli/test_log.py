"""`headrace log` on the files a broker left."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from headrace.cli.main import cli
from headrace.client import Producer
from headrace.testing import EmbeddedBroker

pytestmark = pytest.mark.process

SEGMENT = "00000000000000000000.log"


def log(*arguments: str | Path, exit_code: int = 0, input: str | None = None) -> Result:
    result = CliRunner().invoke(cli, ["log", *map(str, arguments)], input=input)
    assert result.exit_code == exit_code, (arguments, result.output, result.exception)
    return result


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A data folder with 5 batches of one record each in orders-0."""
    with EmbeddedBroker(data_dir=str(tmp_path / "data")) as broker:
        broker.create_topic("orders")
        with Producer(bootstrap_servers=broker.bootstrap_servers, compression="zstd") as producer:
            for number in range(5):
                producer.send("orders", b"value %d" % number, key=b"\xff").result(timeout_ms=60_000)
    return tmp_path / "data"


def damage(folder: Path) -> Path:
    """A byte changed in the fourth batch."""
    segment = folder / "orders-0" / SEGMENT
    content = bytearray(segment.read_bytes())
    entries = [json.loads(line) for line in log("dump", segment, "--json").stdout.splitlines()]
    content[entries[3]["position"] + 65] ^= 1
    segment.write_bytes(content)
    return segment


def test_dump(folder: Path) -> None:
    lines = log("dump", folder / "orders-0" / SEGMENT, "--records").stdout.splitlines()
    assert lines[0].endswith(SEGMENT)
    assert len(lines) == 11
    assert "base_offset=0  last_offset=0" in lines[1]
    assert "compression=zstd" in lines[1]
    assert "value=value 0" in lines[2]
    entries = [json.loads(line) for line in log("dump", folder, "--records", "--json").stdout.splitlines()]
    records = [entry for entry in entries if entry["kind"] == "record" and "orders-0" in entry["path"]]
    assert [record["offset"] for record in records] == [0, 1, 2, 3, 4]
    assert records[0]["key_base64"] == "/w=="
    assert {"batch", "checkpoint", "partition-metadata", "meta-properties"} <= {entry["kind"] for entry in entries}


def test_a_whole_folder(folder: Path) -> None:
    assert log("verify", folder).stdout.splitlines()[-1].startswith("whole: ")
    report = json.loads(log("verify", folder / "orders-0", "--json").stdout)
    assert report["whole"]
    assert report["records"] == 5
    assert log("repair", folder, "--yes").stdout.splitlines()[-1].startswith("whole: ")


def test_damage_is_found_shown_and_repaired(folder: Path) -> None:
    segment = damage(folder)
    found = log("verify", folder, exit_code=1)
    assert "truncate here" in found.stdout
    assert "damaged: " in found.stdout
    assert f"headrace log repair {folder}" in found.stderr
    size = segment.stat().st_size
    assert "truncate here" in log("repair", folder, "--dry-run", exit_code=1).stdout
    assert "repair" in log("repair", folder, input="n\n", exit_code=1).stderr
    assert segment.stat().st_size == size
    report = json.loads(log("repair", folder, "--yes", "--json").stdout)
    assert report["whole"]
    assert any(finding["repaired"] for finding in report["findings"])
    assert segment.stat().st_size < size
    assert list(segment.parent.glob("*.damaged"))
    assert json.loads(log("verify", folder / "orders-0", "--json").stdout)["records"] == 3


def test_a_folder_in_use_is_not_repaired(tmp_path: Path) -> None:
    with EmbeddedBroker(data_dir=str(tmp_path), process=True) as broker:
        broker.create_topic("orders")
        (tmp_path / "orders-0" / "leader-epoch-checkpoint").write_bytes(b"x")
        result = log("repair", tmp_path, "--yes", exit_code=1)
        assert f"is in use by process {broker.process_id}: stop the broker first" in result.stderr


def test_what_is_no_log(tmp_path: Path) -> None:
    assert "holds neither segments nor partitions" in log("verify", tmp_path, exit_code=1).stderr
    (tmp_path / "notes.txt").write_text("x")
    assert "is not a log file" in log("dump", tmp_path / "notes.txt", exit_code=1).stderr
    assert "does not exist" in log("verify", tmp_path / "none", exit_code=2).stderr
