"""The pages for people: what they show, what they load, and that a browser accepts them."""

import asyncio
import re
import shutil
import subprocess
import time
from pathlib import Path
from typing import NoReturn, cast

import pytest

from headrace.client.errors import BrokerUnreachable
from headrace.manager.cluster_calls import ClusterCalls
from headrace.manager.overview import Overview
from headrace.manager.pages import diagram_points, page, rate_text
from headrace.testing import EmbeddedBroker
from tests.manager.manager_process import ManagerProcess

BROWSER_S_MAX = 120
STATES_MAX = 600


def test_rates_are_as_precise_as_they_are_meaningful() -> None:
    assert [rate_text(rate) for rate in (0, 0.04, 3.26, 12.6, 1_234_567.8)] == ["0", "0.0", "3.3", "13", "1,234,568"]


def test_the_newest_rate_is_at_the_right_and_the_largest_at_the_top() -> None:
    line, area = diagram_points([0.0, 5.0, 10.0], 90)
    assert line == "87,24.00 88,12.00 89,0.00"
    assert area == f"87,24 {line} 89,24"
    assert diagram_points([0.0, 0.0], 2)[0] == "0,24.00 1,24.00"


@pytest.mark.process
def test_the_overview_shows_health_topics_and_groups(manager: ManagerProcess, broker: EmbeddedBroker) -> None:
    name = broker.create_topic("shown", partitions=2)
    records = [{"value": "x" * 100} for _ in range(30)]
    manager.call("POST", f"/v1/topics/{name}/records", json={"records": records})
    manager.call("POST", "/v1/groups/readers/reset", json={"to": "earliest", "topics": {name: []}})
    show(manager, name)
    page = manager.http.get("/")
    assert page.headers["content-type"].startswith("text/html")
    assert "default-src 'none'" in page.headers["content-security-policy"]
    text = re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", page.text))
    assert "Everything is served" in text
    assert re.search(rf"{name} 2 30 [\d.]+ KiB", text)
    assert re.search(r"readers Empty \w* ?\w* ?0 30 ", text)
    for forbidden in ("://", "style=", "onclick", "<script>"):
        assert forbidden not in page.text
    part = manager.http.get("/overview")
    assert "<html" not in part.text
    assert name in part.text


@pytest.mark.process
def test_what_pages_load_is_there_and_nothing_else(manager: ManagerProcess) -> None:
    page = manager.http.get("/").text
    loaded = set(re.findall(r'(?:href|src)="(/assets/[^"]+)"', page))
    assert {"/assets/style.css", "/assets/overview.js", "/assets/mark.svg"} == loaded
    for path in loaded:
        assert manager.http.get(path).status_code == 200
    for path in ("/assets/overview.html", "/assets/%2e%2e%2fapp.py", "/assets/missing"):
        assert manager.http.get(path).status_code == 404


def test_the_overview_says_why_a_cluster_cannot_be_reached() -> None:
    class UnreachableCluster:
        async def run(self, call: object) -> NoReturn:
            raise BrokerUnreachable("cannot reach <127.0.0.1:1>")

    state = asyncio.run(Overview(cast(ClusterCalls, UnreachableCluster())).state())
    content = page("overview_state.html", root="", state=state)
    assert "Cluster not reachable" in content
    assert "cannot reach &lt;127.0.0.1:1&gt;" in content


@pytest.mark.process
def test_a_browser_shows_the_overview_and_keeps_it_up_to_date(
    manager: ManagerProcess, broker: EmbeddedBroker, tmp_path: Path
) -> None:
    name = broker.create_topic("seen-by-a-browser", partitions=1)
    show(manager, name)
    asked_before = manager.log().count('"path":"/overview"')
    ran = browse(manager.url + "/", "--dump-dom", "--virtual-time-budget=6000", folder=tmp_path)
    assert name in ran.stdout
    assert "CONSOLE" not in ran.stderr, "the browser reported an error in the page"
    asked = manager.log().count('"path":"/overview"')
    assert asked > asked_before, "the script of the page did not load the state"


def show(manager: ManagerProcess, name: str) -> None:
    """Ask until the overview has a new topic: for two seconds it shows an earlier state."""
    for _ in range(STATES_MAX):
        if name in manager.http.get("/overview").text:
            return
        time.sleep(0.1)
    raise AssertionError(f"the overview does not show {name}")


def browse(url: str, *options: str, folder: Path) -> "subprocess.CompletedProcess[str]":
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("needs chromium: apt-get install chromium")
    command = [
        chromium, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
        "--disable-background-networking", "--disable-component-update", "--disable-sync", "--enable-logging=stderr",
        f"--user-data-dir={folder / 'profile'}", *options, url,
    ]  # fmt: skip
    return subprocess.run(command, capture_output=True, text=True, timeout=BROWSER_S_MAX, check=True)
