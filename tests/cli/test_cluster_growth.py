"""`headrace cluster invite`, `headrace broker --join`, `headrace up --shards`, and a founder that lost its folder."""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from headrace import Admin
from headrace.core.peers.invitation import ONE_TIME_KEY_BYTES, read_token, token_of
from tests.process_groups import running, wait_until
from tests.reserved_ports import reserved_address

pytestmark = pytest.mark.process

LISTENING = "headrace listening on "
SECONDS_MAX = 200


def call(*arguments: str, exit_code: int = 0) -> "subprocess.CompletedProcess[str]":
    result = subprocess.run(
        [sys.executable, "-m", "headrace", *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=SECONDS_MAX,
    )
    assert result.returncode == exit_code, (arguments, result.stdout, result.stderr)
    return result


def node_options(folder: Path, node_id: int) -> list[str]:
    return [
        *("broker", "--data-dir", str(folder / f"node-{node_id}"), "--set", f"node.id={node_id}"),
        *("--listen", reserved_address(), "--cluster-listen", reserved_address()),
    ]


@contextmanager
def started(*options: str) -> Iterator[str]:
    """The address of a broker process, which is stopped at the end."""
    with running(sys.executable, "-m", "headrace", *options) as process:
        assert process.stdout is not None
        line = process.stdout.readline().strip()
        assert line.startswith(LISTENING), line
        yield line.removeprefix(LISTENING)
        process.send_signal(signal.SIGTERM)
        process.wait(SECONDS_MAX)


def brokers(bootstrap: str) -> list[int]:
    with Admin(bootstrap) as admin:
        return [broker.node_id for broker in admin.cluster().brokers]


def voters(bootstrap: str) -> list[int]:
    found: list[int] = json.loads(call("cluster", "quorum", "--bootstrap", bootstrap, "--json").stdout)["voters"]
    return found


def test_a_node_joins_by_an_invitation_once(tmp_path: Path) -> None:
    with started(*node_options(tmp_path, 1)) as bootstrap:
        invited = call("cluster", "invite", "--bootstrap", bootstrap)
        token = invited.stdout.strip()
        assert "headrace broker --join TOKEN" in invited.stderr
        options = node_options(tmp_path, 2)
        with started(*options, "--join", token) as joined:
            wait_until(lambda: brokers(bootstrap) == [1, 2], "it has not joined")
            assert brokers(joined) == [1, 2]
            quorum = json.loads(call("cluster", "quorum", "--bootstrap", joined, "--json").stdout)
            assert (quorum["leader"], quorum["voters"], quorum["observers"]) == (1, [1], [2])
        wait_until(lambda: brokers(bootstrap) == [1], "it has not left")
        with started(*options, "--join", token):
            wait_until(lambda: brokers(bootstrap) == [1, 2], "it has not joined again")

        used = call(*node_options(tmp_path, 3), "--join", token, exit_code=1).stderr
        assert "does not accept the token: the invitation is not valid here: it was used, has expired" in used
        assert "create another with headrace cluster invite" in used
        assert not (tmp_path / "node-3" / "cluster.key").exists()


def test_an_expired_or_forged_token_opens_nothing(tmp_path: Path) -> None:
    with started(*node_options(tmp_path, 1)) as bootstrap:
        expired = json.loads(call("cluster", "invite", "--valid-for", "1ms", "--bootstrap", bootstrap, "--json").stdout)
        refused = call(*node_options(tmp_path, 2), "--join", expired["token"], exit_code=1).stderr
        assert "it was used, has expired" in refused

        token = call("cluster", "invite", "--bootstrap", bootstrap).stdout.strip()
        forged = msgspec.structs.replace(read_token(token), one_time_key=bytes(ONE_TIME_KEY_BYTES))
        refused = call(*node_options(tmp_path, 2), "--join", token_of(forged), exit_code=1).stderr
        assert "does not accept the token" in refused
        cut = call(*node_options(tmp_path, 2), "--join", token[:-9], exit_code=2).stderr
        assert "copy the whole line that headrace cluster invite prints" in cut
        assert not (tmp_path / "node-2").exists()
        with started(*node_options(tmp_path, 2), "--join", token):  # the forged one has not used it up
            wait_until(lambda: brokers(bootstrap) == [1, 2], "it has not joined")


@pytest.mark.parametrize("duration", ["0s", "never"])
def test_a_useless_lifetime_is_refused(tmp_path: Path, duration: str) -> None:
    with started(*node_options(tmp_path, 1)) as bootstrap:
        result = subprocess.run(
            [sys.executable, "-m", "headrace", "cluster", "invite", "--valid-for", duration, "--bootstrap", bootstrap],
            capture_output=True,
            text=True,
            check=False,
            timeout=SECONDS_MAX,
        )
    assert result.returncode in (1, 2)
    assert result.stdout == ""
    assert result.stderr


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path
    call("down", "--data-dir", str(tmp_path))


def up(folder: Path, *options: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(call("up", "--data-dir", str(folder), "--json", *options).stdout)
    return found


def test_up_runs_shards_of_every_broker(folder: Path) -> None:
    shown = up(folder, "--brokers", "2", "--shards", "2")
    assert [node["id"] for node in shown["nodes"]] == [1, 1001, 2, 1002]
    assert len({node["pid"] for node in shown["nodes"]}) == 4
    assert brokers(shown["nodes"][3]["address"]) == [1, 2, 1001, 1002]
    os.kill(shown["nodes"][1]["pid"], signal.SIGKILL)  # its parent starts it again
    again = up(folder)
    assert [node["address"] for node in again["nodes"]] == [node["address"] for node in shown["nodes"]]
    assert again["nodes"][1]["pid"] != shown["nodes"][1]["pid"]
    assert call("down", "--data-dir", str(folder)).stdout == "stopped 2 brokers\n"


def test_a_founder_with_an_emptied_folder_joins_the_cluster_that_it_founded(folder: Path) -> None:
    shown = up(folder, "--brokers", "3")
    founder, *others = shown["nodes"]
    cluster_id = json.loads(call("cluster", "status", "--bootstrap", shown["bootstrap"], "--json").stdout)["cluster_id"]
    os.kill(founder["pid"], signal.SIGKILL)
    rest = ",".join(node["address"] for node in others)
    wait_until(lambda: brokers(rest) == [2, 3], "it is not fenced")
    shutil.rmtree(founder["data_dir"])
    again = up(folder)
    assert [node["pid"] for node in again["nodes"][1:]] == [node["pid"] for node in others]
    # The voter of the lost folder is removed before the new one is added.
    wait_until(lambda: voters(founder["address"]) == [1, 2, 3], "it is not a voter again")
    status = json.loads(call("cluster", "status", "--bootstrap", founder["address"], "--json").stdout)
    assert status["cluster_id"] == cluster_id
