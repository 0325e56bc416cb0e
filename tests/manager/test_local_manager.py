"""`headrace up --manager`: it starts with the cluster, keeps its address, and stops with the cluster."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.manager.keyed_load import awaited

pytestmark = pytest.mark.process
RUN_S_MAX = 200


def headrace(*words: str) -> str:
    ran = subprocess.run(
        [sys.executable, "-m", "headrace", *words], capture_output=True, text=True, timeout=RUN_S_MAX
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def up(folder: Path, *options: str) -> Any:
    return json.loads(headrace("up", "--brokers", "1", "--data-dir", str(folder), "--json", *options))


def ended(process_id: int) -> bool:
    try:
        os.kill(process_id, 0)
    except ProcessLookupError:
        return True
    return Path(f"/proc/{process_id}/stat").read_text().rpartition(")")[2].split()[0] == "Z"


def test_a_manager_starts_and_stops_with_the_cluster(tmp_path: Path) -> None:
    folder = tmp_path / "cluster"
    try:
        assert "manager" not in up(folder)
        first = up(folder, "--manager")["manager"]
        cluster = httpx.get(f"{first['url']}/v1/cluster", timeout=60).json()
        assert (cluster["health"], cluster["brokers"]) == ("green", [1])
        assert up(folder)["manager"] == first, "a cluster that had a manager keeps it"
        os.kill(first["pid"], signal.SIGKILL)
        awaited(lambda: ended(first["pid"]))
        again = up(folder)["manager"]
        assert (again["url"], again["pid"] == first["pid"]) == (first["url"], False)
        assert httpx.get(f"{again['url']}/healthz", timeout=60).status_code == 200
        assert (folder / "manager").stat().st_mode & 0o077 == 0, "the catalog is for its owner alone"
    finally:
        stopped = headrace("down", "--data-dir", str(folder))
    assert stopped == "stopped 1 broker and the manager\n"
    assert ended(again["pid"])
    with pytest.raises(httpx.TransportError):
        httpx.get(f"{again['url']}/healthz", timeout=10)
