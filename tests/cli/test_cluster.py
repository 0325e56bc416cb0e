"""`headrace up`, `down` and `cluster`: a real cluster of processes, as people start one."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from headrace import Admin
from headrace.operations.folder_owner import folder_owner
from tests.process_groups import wait_until

pytestmark = pytest.mark.process

COMMAND_SECONDS_MAX = 200


def command(*arguments: str) -> "subprocess.CompletedProcess[str]":
    """Call a command in a process of its own, which brokers in the background outlive."""
    return subprocess.run(
        [sys.executable, "-m", "headrace", *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=COMMAND_SECONDS_MAX,
    )


def call(*arguments: str, exit_code: int = 0) -> "subprocess.CompletedProcess[str]":
    result = command(*arguments)
    assert result.returncode == exit_code, (arguments, result.stdout, result.stderr)
    return result


def runs(node: dict[str, Any]) -> bool:
    return folder_owner(node["data_dir"]) == node["pid"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    place = tmp_path_factory.mktemp("cluster")
    yield place
    call("down", "--data-dir", str(place))


@pytest.fixture
def nodes(folder: Path) -> list[dict[str, Any]]:
    """The nodes of the cluster, all of them running."""
    return json.loads(call("up", "--brokers", "3", "--data-dir", str(folder), "--json").stdout)["nodes"]


@pytest.fixture
def bootstrap(nodes: list[dict[str, Any]]) -> str:
    return ",".join(str(node["address"]) for node in nodes)


def test_up_returns_when_the_cluster_is_complete(folder: Path) -> None:
    shown = json.loads(call("up", "--brokers", "3", "--data-dir", str(folder), "--json").stdout)
    assert shown["bootstrap"] == ",".join(node["address"] for node in shown["nodes"])
    assert [node["id"] for node in shown["nodes"]] == [1, 2, 3]
    assert all(runs(node) for node in shown["nodes"])
    assert all(Path(node["data_dir"]).is_dir() for node in shown["nodes"])
    quorum = json.loads(call("cluster", "quorum", "--bootstrap", shown["bootstrap"], "--json").stdout)
    assert quorum["leader"] in quorum["voters"]
    assert (quorum["voters"], quorum["observers"]) == ([1, 2, 3], [])


def test_up_again_starts_what_is_missing(folder: Path, nodes: list[dict[str, Any]], bootstrap: str) -> None:
    killed = nodes[1]["pid"]
    os.kill(killed, signal.SIGKILL)
    again = json.loads(call("up", "--data-dir", str(folder), "--json").stdout)
    assert [node["pid"] for node in again["nodes"]][::2] == [node["pid"] for node in nodes][::2]
    assert again["nodes"][1]["pid"] != killed
    assert again["bootstrap"] == bootstrap


def test_status_is_green_or_says_why_not(nodes: list[dict[str, Any]], bootstrap: str) -> None:
    wait_until(
        lambda: command("cluster", "status", "--bootstrap", bootstrap).stdout.startswith(
            "green: 3 brokers, controller "
        ),
        "the cluster is not green",
    )
    quorum = json.loads(call("cluster", "quorum", "--bootstrap", bootstrap, "--json").stdout)
    victim = next(node for node in nodes if node["id"] != quorum["leader"])
    os.kill(victim["pid"], signal.SIGKILL)

    def status() -> dict[str, Any]:
        found: dict[str, Any] = json.loads(command("cluster", "status", "--bootstrap", bootstrap, "--json").stdout)
        return found

    wait_until(lambda: status()["fenced_brokers"] == [victim["id"]], "the killed broker is not fenced")
    assert status()["health"] in ("yellow", "red")
    shown = call("cluster", "brokers", "--bootstrap", bootstrap).stdout
    assert "fenced" in shown
    assert "running" in shown


def test_topics_are_spread_over_the_brokers(bootstrap: str) -> None:
    wait_until(lambda: command("cluster", "status", "--bootstrap", bootstrap).stdout.startswith("green"), "not green")
    call("topics", "create", "spread", "--partitions", "6", "--bootstrap", bootstrap)
    with Admin(bootstrap) as admin:
        wait_until(lambda: {each.leader for each in admin.topics(["spread"])[0].partitions} == {1, 2, 3}, "not spread")


def test_down_stops_all_and_keeps_the_data(folder: Path, nodes: list[dict[str, Any]], bootstrap: str) -> None:
    call("topics", "create", "kept", "--bootstrap", bootstrap)
    assert call("down", "--data-dir", str(folder)).stdout == "stopped 3 brokers\n"
    assert not any(map(runs, nodes))
    assert call("down", "--data-dir", str(folder)).stdout == "no broker was running\n"
    shown = call("up", "--data-dir", str(folder)).stdout
    assert f"bootstrap {bootstrap}" in shown
    assert "kept" in call("topics", "list", "--bootstrap", bootstrap).stdout


def test_a_broker_that_cannot_start_is_reported_with_its_log(folder: Path, nodes: list[dict[str, Any]]) -> None:
    call("down", "--data-dir", str(folder))
    damaged = Path(str(nodes[2]["data_dir"])) / "meta.properties"
    kept = damaged.read_bytes()
    damaged.write_bytes(b"damaged")
    try:
        refused = call("up", "--data-dir", str(folder), exit_code=1).stderr
        assert "broker 3 ended with status 1" in refused
        assert "broker-3.log" in refused
    finally:
        damaged.write_bytes(kept)
