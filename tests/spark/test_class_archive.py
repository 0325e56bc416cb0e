"""The archive of Spark's classes: used where it is there and one's own, and never in the way."""

import shlex
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from headrace.cli import spark_archive
from headrace.cli.failures import Failure
from headrace.spark import class_archive, standalone
from headrace.spark.class_archive import JAVA_OPTIONS, archive_file, archiving, with_archive
from headrace.spark.java import find_java

pytestmark = pytest.mark.process

JAVA = Path("/jdk")


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "a cache"))
    return tmp_path / "a cache"


def write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def test_it_is_used_where_it_exists_and_no_other_is(monkeypatch: pytest.MonkeyPatch) -> None:
    own = {"spark.ui.enabled": "false", JAVA_OPTIONS: "-Dmine=1"}
    assert with_archive(own, JAVA) == own
    write(archive_file(JAVA), "classes")
    found = with_archive(own, JAVA)
    assert found["spark.ui.enabled"] == "false"
    options = shlex.split(found[JAVA_OPTIONS])
    assert (options[0], options[-1]) == (f"-XX:SharedArchiveFile={archive_file(JAVA)}", "-Dmine=1")
    assert with_archive(own, Path("/another/jdk")) == own
    monkeypatch.setattr(class_archive.os, "getuid", lambda: -1)
    assert with_archive(own, JAVA) == own, "the writer of that file could have Java do anything"


def test_every_java_of_a_cluster_uses_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The driver and the executors of a job by its settings, the master and the workers by their environment."""
    java = find_java().home
    write(archive_file(java), "classes")
    option = f"-XX:SharedArchiveFile={archive_file(java)}"
    commands: list[list[str]] = []
    environments: list[Mapping[str, str]] = []

    real = subprocess.run

    def run(command: list[str], **options: Any) -> "subprocess.CompletedProcess[str]":
        if not command[0].endswith("spark-submit"):
            return real(command, **options)
        commands.append(command)
        return subprocess.CompletedProcess(command, 0)

    def spawn(_program: str, _arguments: list[str], environment: Mapping[str, str], **_options: object) -> int:
        environments.append(environment)
        raise OSError("no process is started here")

    monkeypatch.setattr(standalone.subprocess, "run", run)
    monkeypatch.setattr(standalone.os, "posix_spawn", spawn)
    monkeypatch.setenv("SPARK_DAEMON_JAVA_OPTS", "-Dmine=1")
    assert standalone.submit(["job.py"], master="spark://127.0.0.1:1") == 0
    for role in ("driver", "executor"):
        (found,) = [word for word in commands[0] if word.startswith(f"spark.{role}.extraJavaOptions=")]
        assert shlex.split(found.partition("=")[2])[0] == option
    with pytest.raises(OSError, match="no process"):
        standalone.up(tmp_path / "cluster", workers=1)
    words = shlex.split(environments[0]["SPARK_DAEMON_JAVA_OPTS"])
    assert (words[0], words[-1]) == (option, "-Dmine=1")


@pytest.mark.parametrize("text", ["", "no classes at all"])
def test_java_ignores_an_archive_that_it_cannot_use(text: str) -> None:
    java = find_java()
    write(archive_file(java.home), text)
    options = shlex.split(with_archive({}, java.home)[JAVA_OPTIONS])
    done = subprocess.run([str(java.home / "bin" / "java"), *options, "-version"], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "")
    assert "version" in done.stderr


def test_it_appears_whole_or_not_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    file = archive_file(find_java().home)
    write(file, "of a Spark that was here before")
    parts: list[Path] = []

    def run_orders(_folder: Path, part: Path) -> None:
        assert not file.exists(), "Java does not write an archive while it uses one"
        parts.append(part)

    monkeypatch.setattr(spark_archive, "_run_orders", run_orders)
    monkeypatch.setattr(spark_archive, "_end_java", lambda: parts[-1].write_text("classes"))
    assert spark_archive.make_archive() == file
    assert (file.read_text(), list(file.parent.iterdir())) == ("classes", [file])
    monkeypatch.setattr(spark_archive, "_end_java", lambda: None)
    with pytest.raises(Failure, match="has written no archive"):
        spark_archive.make_archive()
    assert list(file.parent.iterdir()) == []


def test_java_writes_what_it_has_loaded_and_takes_it(tmp_path: Path) -> None:
    """The small program of Spark that finds out how to start the large one stands for it."""
    import pyspark

    home, file = Path(pyspark.__file__).parent, tmp_path / "archive.jsa"
    program = ["-cp", f"{home}/jars/*", "org.apache.spark.launcher.Main", "org.apache.spark.deploy.SparkSubmit", "-v"]
    environment = {"SPARK_HOME": str(home), "SPARK_SCALA_VERSION": "2.13"}
    said = []
    for options in (archiving({}, file)[JAVA_OPTIONS], f"-XX:SharedArchiveFile={file} -Xshare:on"):
        command = [str(find_java().home / "bin" / "java"), *shlex.split(options), *program]
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        assert file.stat().st_size > 1_000_000
        said.append(done.stdout)
    assert "SparkSubmit" in said[0]
    assert said[0] == said[1]
