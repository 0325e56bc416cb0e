"""The folder of a checkpoint: what is noted beside Spark's files, what is read of them, and who may work with it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from headrace.spark.batch_watermarks import watermark_before
from headrace.spark.pipelines.checkpoints import Checkpoint, CheckpointError, CheckpointInUse, Note
from headrace.spark.pipelines.identity import DefinitionIdentity, digest

pytestmark = pytest.mark.process

IDENTITY = DefinitionIdentity(name="p", sources=("a",), shapes=("json(id)",), transform="SELECT 1", is_stateful=True)


def test_a_note_comes_back_as_it_was(tmp_path: Path) -> None:
    checkpoint = Checkpoint(tmp_path / "new")
    assert checkpoint.note() == Note()
    note = Note(identity=IDENTITY, generation=3, starts={"input": {"t": {"0": 5}}})
    checkpoint.write_note(note)
    assert checkpoint.note() == note
    assert json.loads((tmp_path / "new" / "headrace.json").read_text())["definition"] == digest(IDENTITY)
    fresh = checkpoint.begin_generation({"input": {"t": {"0": 1}}}, {"dead": {"0": 7}})
    assert (fresh.generation, fresh.identity, fresh.starts) == (4, None, {"input": {"t": {"0": 1}}})
    assert checkpoint.note() == fresh


def test_a_note_that_cannot_be_read_is_reported(tmp_path: Path) -> None:
    tmp_path.joinpath("headrace.json").write_text("{")
    with pytest.raises(CheckpointError, match="cannot be read"):
        Checkpoint(tmp_path).note()
    tmp_path.joinpath("headrace.json").write_text('{"version": 99}')
    with pytest.raises(CheckpointError, match="an incompatible version"):
        Checkpoint(tmp_path).note()


def test_a_checkpoint_that_cannot_be_written_is_reported(tmp_path: Path) -> None:
    tmp_path.joinpath("file").write_text("")
    with pytest.raises(CheckpointError, match=r"cannot be written: .*; check its owner"):
        with Checkpoint(tmp_path / "file" / "x").locked():
            pass


def test_two_processes_do_not_work_with_one_checkpoint(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from headrace.spark.pipelines.checkpoints import Checkpoint\n"
        "with Checkpoint(Path(sys.argv[1])).locked(): print('locked', flush=True); sys.stdin.read()\n"
    )
    other = subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert other.stdout is not None
    assert other.stdout.readline() == "locked\n"
    with pytest.raises(CheckpointInUse, match="in use by another run"):
        with Checkpoint(tmp_path).locked():
            pass
    other.communicate("")
    with Checkpoint(tmp_path).locked():
        pass


def test_batches_are_read_from_the_logs_of_spark(tmp_path: Path) -> None:
    offsets, commits = tmp_path / "spark-0" / "offsets", tmp_path / "spark-0" / "commits"
    os.makedirs(offsets)
    os.makedirs(commits)
    for number in range(3):
        metadata = json.dumps({"batchWatermarkMs": number * 1000, "batchTimestampMs": 5, "conf": {}})
        (offsets / str(number)).write_text(f'v1\n{metadata}\n{{"t":{{"0":{number}}}}}\n-')
        (offsets / f".{number}.crc").write_text("")
    (commits / "0").write_text("v1\n{}")
    (offsets / "3").write_text("v1")
    checkpoint = Checkpoint(tmp_path)
    assert checkpoint.has_batches(0)
    assert not checkpoint.has_batches(1)
    first, second, third = checkpoint.batches(0)
    assert (first.number, first.is_committed, first.ends) == (0, True, ({"t": {"0": 0}}, None))
    assert (second.watermark_ms, second.is_committed) == (1000, False)
    assert checkpoint.batches(0, 2) == [third]
    assert [watermark_before(str(tmp_path / "spark-0"), batch) for batch in (0, 1, 2)] == [0, 0, 1000]
