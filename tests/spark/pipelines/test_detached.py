"""A pipeline that runs in the background on a cluster, watched and stopped by processes that do not have its folder."""

import json
import os
import re
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from pyarrow import parquet

from headrace.cli.main import cli
from headrace.ports.real.processes import is_running
from headrace.spark import standalone
from headrace.testing.embedded import EmbeddedBroker
from tests.spark.conftest import FAST_START
from tests.spark.pipelines.commands import ran, running
from tests.spark.pipelines.helpers import read_records, send, values, write_pipeline

SECONDS_MAX = 600
PIPELINE = """\
name: {name}
source: {{topic: {name}, format: json, schema: "id INT NOT NULL, n INT"}}
transform: {{sql: "SELECT id, n * 2 AS doubled FROM input"}}
sinks:
  - {{topic: {name}-out}}
  - {{parquet: files}}
bad_records: {{topic: {name}-dead}}
trigger: 200 ms
spark:
  settings:
    spark.executor.memory: 512m
    spark.executor.extraJavaOptions: {fast}
    spark.cores.max: "2"
"""


@pytest.mark.timeout(SECONDS_MAX)
@pytest.mark.spark
def test_a_detached_run_on_a_cluster_is_watched_and_stopped_from_elsewhere(
    broker: EmbeddedBroker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = broker.create_topic(broker.unused_topic_name("detached"), partitions=2)
    folder = write_pipeline(tmp_path / "here", PIPELINE.format(name=name, fast=FAST_START))
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    call = ("--bootstrap", broker.bootstrap_servers)
    cluster_folder = tmp_path / "cluster"
    try:
        up = asked("spark", "up", "--workers", "1", "--cores", "2", "--memory", "512m", "--folder", str(cluster_folder))
        assert up.exit_code == 0, up.output
        cluster = standalone.current(cluster_folder)
        assert cluster is not None
        send(broker.bootstrap_servers, name, ({"id": number, "n": number} for number in range(50)))
        run = ("run", "here", "--continuous", "--detach", "--master", cluster.master, *call)
        status, said = ran(*run, folder=tmp_path)
        assert status == 0, said
        process_id = int(re.findall(r"runs as process (\d+), run", said)[-1])
        assert is_running(process_id)
        monkeypatch.chdir(elsewhere)
        with running("status", name, "--watch", "--json", *call, folder=elsewhere) as watching:
            watching.wait_for(lambda: read_so_far(watching.lines, name) == 50)
            send(broker.bootstrap_servers, name, ({"id": number, "n": number} for number in range(50, 80)))
            watching.wait_for(lambda: read_so_far(watching.lines, name) == 80)
        again = asked("pipeline", "run", str(folder), *call)
        assert (again.exit_code, "is in use by another run" in again.output) == (3, True), again.output
        stopped = asked("pipeline", "stop", name, *call)
        assert (stopped.exit_code, f'pipeline "{name}": run' in stopped.output, "stopped" in stopped.output) == (
            0, True, True,
        ), stopped.output  # fmt: skip
        stopped = asked("pipeline", "stop", name, *call)
        assert (stopped.exit_code, "is not running" in stopped.output) == (1, True), stopped.output
        used = {file.parent.parent.name for file in (cluster_folder / "work").rglob("stderr")}
        assert used, "no worker of the cluster has run anything"
    finally:
        asked("spark", "down", "--folder", str(cluster_folder))
    found = sorted(values(read_records(broker.bootstrap_servers, f"{name}-out")), key=lambda row: row["id"])
    assert found == [{"id": number, "doubled": 2 * number} for number in range(80)]
    files = [file for file in (folder / "files").rglob("*.parquet") if "_headrace" not in file.parts]
    stored = [row for file in files for row in parquet.read_table(file).to_pylist()]
    assert sorted(stored, key=lambda row: row["id"]) == found
    assert "stopped after" in (folder / "checkpoint" / "run.log").read_text()
    assert os.listdir(elsewhere) == []


def asked(*arguments: str) -> Result:
    return CliRunner().invoke(cli, arguments)


def read_so_far(lines: list[str], topic: str) -> int:
    """The sum of the offsets that the last look at the pipeline tells."""
    told = [line for line in lines if line.startswith("[")]
    batch = json.loads(told[-1])[0]["last_batch"] if told else None
    return sum(batch["ends"][topic].values()) if batch is not None else 0
