"""Every command of `headrace bench` and `python -m tools.bench` in a tiny form: output and failures."""

import json
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import click
import pytest
from click.testing import CliRunner, Result

from headrace.bench import latency
from headrace.bench.brokers import MeasuredBroker
from headrace.bench.figures import FIGURES, Round
from headrace.cli.main import cli
from headrace.testing import EmbeddedBroker
from tools.bench import cluster, comparison, idle, replicas, targets
from tools.bench.__main__ import PROGRAM
from tools.bench.__main__ import bench as tools_bench
from tools.bench.idle import connections_round

pytestmark = pytest.mark.process

Bench = Callable[..., Any]
INSTALLED = ("produce", "consume", "latency", "shards")

TINY = replace(
    comparison.QUICK,
    rounds=1,
    starts=1,
    round_trips=10,
    partitions=100,
    connections=10,
    cold_seconds=0.3,
    members=4,
    compacted_bytes=2_000_000,
    recovery_small_bytes=20_000,
    recovery_large_bytes=8_000_000,
    disk_bytes=0,
)


def invoke(*arguments: str, exit_code: int = 0) -> Result:
    """Call the installed command where there is one, and that of the project's tools otherwise."""
    command: click.Group
    if arguments[0] in INSTALLED and "--kafka" not in arguments:
        command, program, words = cli, "headrace", ["bench", *arguments]
    else:
        command, program, words = tools_bench, PROGRAM, [*arguments]
    with mock.patch("sys.argv", [program, *words]):  # the report quotes it
        result = CliRunner().invoke(command, words, prog_name=program)
    assert result.exit_code == exit_code, (arguments, result.output, result.exception)
    return result


@pytest.fixture
def bench(embedded: EmbeddedBroker) -> Bench:
    """Call a command on the embedded broker and give the JSON it prints."""

    def call(*arguments: str) -> Any:
        on = ("--bootstrap", embedded.bootstrap_servers, "--broker-pid", str(embedded.process_id))
        return json.loads(invoke(*arguments, *on, "--rounds", "1", "--json").stdout)

    return call


def check_shape(printed: Any, *loads: str) -> None:
    assert printed["command"].startswith(("headrace bench ", f"{PROGRAM} "))
    assert {"cpu", "memory", "system", "python", "file system"} <= set(printed["machine"])
    assert [one["load"] for one in printed["measurements"]] == list(loads)
    for one in printed["measurements"]:
        assert len(one["rounds"]) >= 1
        assert set(one["median"]) == set(one["spread"]) <= set(FIGURES)
        assert one["client"]


def test_produce(bench: Bench) -> None:
    printed = bench("produce", "--connections", "2", "--in-flight", "2", "--size", "16000", "--seconds", "0.1")
    check_shape(printed, "2 x 2, 16 KB")
    assert printed["measurements"][0]["median"]["cpu_us_per_request"] >= 0


def test_produce_has_four_loads(bench: Bench) -> None:
    printed = bench("produce", "--seconds", "0.05")
    check_shape(printed, "32 x 1, 100 B", "8 x 16, 100 B", "8 x 4, 16 KB", "4 x 2, 1 MB")


def test_produce_by_librdkafka(bench: Bench) -> None:
    printed = bench("produce", "--size", "1000", "--seconds", "0.05", "--client", "librdkafka")
    check_shape(printed, "messages of 1 KB, 4 partitions")


def test_consume(bench: Bench) -> None:
    check_shape(bench("consume", "--megabytes", "8", "--client", "replay"), "8 MB of 1 KB records")


def test_latency(bench: Bench) -> None:
    loads = (latency.ROUND_TRIP, latency.ROUND_TRIP_LIBRDKAFKA, latency.ONE_AT_A_TIME)
    check_shape(bench("latency", "--count", "10"), *loads)


def test_impossible_loads_are_refused(
    embedded: EmbeddedBroker, quick_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = ("--count", "10", "--rounds", "1", "--bootstrap", embedded.bootstrap_servers)
    assert "skipped: producer beside a cold reader: the cold reader needs" in invoke("latency", *options).stderr
    monkeypatch.setitem(sys.modules, "confluent_kafka", None)
    monkeypatch.setattr("headrace.bench.machine.file_system", lambda folder: "tmpfs")
    in_memory = f"needs a disk, and {quick_folder}"
    result = invoke("latency", *options[:4], "--folder", str(quick_folder))
    assert result.stdout.count("produce to a parked fetch  headrace") == 1
    assert "skipped: loads by librdkafka: this load needs librdkafka" in result.stderr
    assert f"skipped: producer beside a cold reader: cold data {in_memory}" in result.stderr
    assert in_memory in invoke("durable", "--folder", str(quick_folder), exit_code=1).stderr
    assert in_memory in invoke("start", "--touch", "--folder", str(quick_folder), exit_code=1).stderr


def test_durable(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headrace.bench.machine.IN_MEMORY", ())  # wherever these tests run
    check_shape(bench("durable", "--seconds", "0.05"), "sync before ack, 64 x 1", "sync before ack, 64 x 8")


def test_connections(bench: Bench) -> None:
    check_shape(bench("connections", "--count", "20"), "20 idle connections")


def test_connections_of_every_round_are_those_of_a_new_broker(
    quick_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A broker that had as many before takes no memory for them: every round but the first said zero."""
    measured = []

    def noting(broker: MeasuredBroker, *, connections: int) -> Round:
        measured.append((broker.process_id, connections))
        return connections_round(broker, connections=connections)

    monkeypatch.setattr(idle, "connections_round", noting)
    invoke("connections", "--count", "20", "--rounds", "3", "--folder", str(quick_folder))
    assert [count for _, count in measured] == [20, 20, 20]
    assert len({process_id for process_id, _ in measured}) == 3


def test_floor(quick_folder: Path) -> None:
    result = invoke("floor", "--seconds", "0.03", "--rounds", "1", "--folder", str(quick_folder))
    assert "receive, sum, write, answer: 4 x 2, 1 MB" in result.stdout
    assert "write and fdatasync of 200 B" in result.stdout
    assert "medians, ± is half the spread of the rounds" in result.stdout
    assert not list(quick_folder.iterdir())


def test_partitions_and_metadata_of_a_new_broker(quick_folder: Path) -> None:
    folder = ("--folder", str(quick_folder))
    printed = json.loads(invoke("partitions", "--count", "100", "--rounds", "2", "--json", *folder).stdout)
    check_shape(printed, "100 partitions")
    assert len(printed["measurements"][0]["rounds"]) == 2
    options = ("--topics", "2", "--partitions", "2", "--seconds", "0.05", "--rounds", "1")
    assert "metadata, 2 topics x 2  headrace" in invoke("metadata", *options, *folder).stdout


def test_the_comparison(tmp_path: Path, quick_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(comparison, "QUICK", TINY)
    page = tmp_path / "performance.md"
    parts = [word for part in ("latency", "start", "recovery") for word in ("--only", part)]
    options = ("--quick", "--no-kafka", "--folder", str(quick_folder), "--write", str(page), "--json")
    result = invoke("compare", *parts, *options)
    printed = json.loads(result.stdout)
    rows = {(row["load"], row["figure"]): row for row in printed["verdicts"]}
    assert rows["produce to a parked fetch", "p50 us"]["verdict"] == "not measured"
    assert rows["start, empty folder", "idle MB"]["verdict"] in ("reached", "MISSED")
    assert rows["kill -9, small batches", "seconds"]["target"] == "<= 1 x allowed s"
    assert printed["failures"] == {}
    assert not any(load.startswith("32 x 1") for load, _ in rows)
    assert "kill -9, large batches" in page.read_text()


def test_the_loop_beside_a_compaction_is_part_of_the_comparison(
    quick_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(comparison, "QUICK", TINY)
    folder = ("--folder", str(quick_folder), "--json")
    printed = json.loads(invoke("compare", "--quick", "--no-kafka", "--only", "compaction", *folder).stdout)
    assert [one["load"] for one in printed["measurements"]] == [targets.CLEANING, targets.BESIDE_COMPACTION]
    (row,) = printed["verdicts"]
    assert row["figure"] == "p99 ms of a turn beside"
    assert row["verdict"] in ("reached", "MISSED")
    assert 0 < printed["measurements"][1]["median"]["loop_p99_ms"] < 10_000


def test_what_compaction_cannot_be_measured_on(embedded: EmbeddedBroker) -> None:
    assert "leave out --kafka" in invoke("compaction", "--kafka", exit_code=2).stderr
    on = ("--bootstrap", embedded.bootstrap_servers)
    assert "leave out --bootstrap" in invoke("compaction", *on, exit_code=2).stderr


def test_a_part_that_fails_is_reported_and_the_rest_continues(
    quick_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(comparison, "QUICK", TINY)
    monkeypatch.setattr("tools.bench.startup._EMBEDDED_PROGRAM", "raise SystemExit('broken')")
    parts = ("--only", "start", "--only", "idle")
    result = invoke("compare", "--quick", "--no-kafka", *parts, "--folder", str(quick_folder), exit_code=1)
    assert "start does not count: python failed; it said:\nbroken" in result.stderr
    assert "4,000 partitions" in result.stdout


def test_evaluation_runs(embedded: EmbeddedBroker, tmp_path: Path) -> None:
    on = ("--bootstrap", embedded.bootstrap_servers, "--topic", "evaluated")
    sending = ("--producers", "2", "--interval-ms", "10", "--seconds", "0.1", "--partitions", "3")
    sent = json.loads(invoke("produce", *sending, *on, "--json").stdout)["producers"]
    assert [one["acknowledged"] for one in sent] == [10, 10]
    assert [one["failed"] for one in sent] == [0, 0]
    result = invoke("consume", "--consumers", "2", "--to-dir", str(tmp_path / "out"), *on)
    assert str(tmp_path / "out" / "consumer-1.txt") in result.stdout
    lines = [line for path in (tmp_path / "out").iterdir() for line in path.read_text().splitlines()]
    messages = sorted(line.split(" ", 4)[4] for line in lines)
    assert messages == sorted(f"producer-{p} message-{n}" for p in range(2) for n in range(10))


def test_the_project_s_tools_have_every_load_and_the_installed_command_has_no_kafka() -> None:
    assert set(INSTALLED) < set(tools_bench.commands)
    assert "--kafka" in invoke("floor", "--help").stdout
    assert "--kafka" not in invoke("produce", "--help").stdout
    assert "--kafka" in CliRunner().invoke(tools_bench, ["produce", "--help"]).stdout


def test_wrong_use(embedded: EmbeddedBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "give --bootstrap and --to-dir" in invoke("consume", "--consumers", "2", exit_code=2).stderr
    on = ("--bootstrap", embedded.bootstrap_servers)
    assert "leave out --bootstrap" in invoke("recovery", *on, exit_code=2).stderr
    assert "leave out --bootstrap" in invoke("start", *on, exit_code=2).stderr
    assert "--broker-pid" in invoke("connections", "--count", "1", *on, exit_code=1).stderr
    unused = str(1 << 22)  # above what Linux gives
    assert f"no process has the id {unused}" in invoke("produce", *on, "--broker-pid", unused, exit_code=2).stderr
    assert "requires --bootstrap" in invoke("produce", "--broker-pid", "1", exit_code=2).stderr
    monkeypatch.setattr("headrace.cli.bench.options.REACHED_MS_MAX", 2_000)
    assert "cannot reach 127.0.0.1:1" in invoke("produce", "--bootstrap", "127.0.0.1:1", exit_code=1).stderr


def test_an_option_that_would_be_passed_over_is_refused() -> None:
    assert "leave out --size" in invoke("produce", "--producers", "1", "--size", "9", exit_code=2).stderr
    assert "leave out --kafka" in invoke("produce", "--producers", "1", "--kafka", exit_code=2).stderr
    assert "leave out --interval-ms" in invoke("produce", "--interval-ms", "9", exit_code=2).stderr
    assert "leave out --megabytes" in invoke("consume", "--to-dir", "x", "--megabytes", "9", exit_code=2).stderr
    assert "leave out --topic" in invoke("consume", "--topic", "x", exit_code=2).stderr


def test_what_would_be_something_else_is_refused(embedded: EmbeddedBroker) -> None:
    on = ("--bootstrap", embedded.bootstrap_servers)
    assert "150 is not a multiple of 100" in invoke("partitions", "--count", "150", exit_code=2).stderr
    assert "leave out --bootstrap" in invoke("partitions", *on, exit_code=2).stderr
    assert "leave out --bootstrap" in invoke("floor", *on, exit_code=2).stderr
    assert "leave out --rounds" in invoke("connections", "--rounds", "2", *on, exit_code=2).stderr


def test_a_broker_that_refuses_has_no_figure(embedded: EmbeddedBroker) -> None:
    options = ("--size", "2000000", "--seconds", "0.05", "--bootstrap", embedded.bootstrap_servers)
    result = invoke("produce", *options, exit_code=1)
    assert "MESSAGE_TOO_LARGE" in result.stderr
    assert result.stdout == ""


def test_a_comparison_without_room_is_not_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(comparison, "QUICK", replace(TINY, disk_bytes=1 << 60))
    result = invoke("compare", "--quick", "--no-kafka", "--only", "latency", exit_code=1)
    assert "GB of disk" in result.stderr
    assert result.stdout == ""


def test_shards_are_measured_against_one_shard(tmp_path: Path) -> None:
    arguments = ("shards", "--shards", "2", "--seconds", "0.1", "--rounds", "1", "--folder", str(tmp_path))
    found = json.loads(invoke(*arguments, "--json").stdout)["measurements"]
    assert {one["subject"] for one in found} == {"1 shard", "2 shards"}
    assert len(found) == 8
    assert all(one["median"]["requests_per_second"] > 0 for one in found)
    assert all("cpu_us_per_request" in one["median"] for one in found)
    refused = invoke("shards", "--bootstrap", "127.0.0.1:1", exit_code=2)
    assert "brokers that the benchmark starts: leave out --bootstrap" in refused.output


def test_figures_of_clusters(tmp_path: Path, quick_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tiny = replace(cluster.QUICK, metadata_topics=2, topics=100)
    monkeypatch.setattr(cluster, "QUICK", tiny)
    page = tmp_path / "performance.md"
    result = invoke(
        *("cluster", "--quick", "--before", "HEAD", "--folder", str(quick_folder), "--write", str(page), "--json")
    )
    printed = json.loads(result.stdout)
    assert printed["failures"] == {}
    assert {row["verdict"] for row in printed["verdicts"]} <= {"reached", "MISSED"}
    targets = {(row["load"], row["figure"]): row["target"] for row in printed["verdicts"]}
    assert targets["start of 3 brokers", "seconds"] == "<= 2.000"
    assert targets["32 x 1, 100 B", "CPU us/request"] == "<= 1.05 x earlier commit"
    assert "32 x 1, 100 B: 2 shards" in page.read_text()
    assert all(one["median"].values() for one in printed["measurements"])


def test_three_replicas_are_measured_and_checked(quick_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replicas, "QUICK", replicas.ReplicaExtent(rounds=1, seconds=0.1, singles=5))
    parts = [word for part in ("messages", "paced", "commits") for word in ("--only", part)]
    result = invoke("replicas", "--quick", "--no-kafka", *parts, "--folder", str(quick_folder), "--json")
    printed = json.loads(result.stdout)
    assert printed["failures"] == {}
    loads = [one["load"] for one in printed["measurements"]]
    assert loads == [replicas.MESSAGES, *replicas.PACED.values(), replicas.COMMITS]
    assert {(row["load"], row["verdict"]) for row in printed["verdicts"]} >= {(replicas.MESSAGES, "not measured")}
