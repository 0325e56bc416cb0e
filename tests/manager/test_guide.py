"""The snippets of the guide, run as they are printed, but at the address of the test's manager."""

import re
import subprocess
import sys
from contextlib import chdir
from pathlib import Path

import pytest

from headrace.testing import EmbeddedBroker
from tests.manager.manager_process import ManagerProcess

pytestmark = pytest.mark.process

GUIDE = (Path(__file__).resolve().parents[2] / "docs" / "guide" / "manager.md").read_text()
RUN_S_MAX = 120


def snippets(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", GUIDE, re.MULTILINE | re.DOTALL)


def run(manager: ManagerProcess, command: list[str], text: str) -> str:
    here = text.replace("127.0.0.1:8092", manager.url.removeprefix("http://"))
    ran = subprocess.run([*command, here], capture_output=True, text=True, timeout=RUN_S_MAX)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def test_the_commands_with_curl_run(manager: ManagerProcess, tmp_path: Path) -> None:
    commands, keyed, reading, connections, secured = snippets("sh")
    printed = run(manager, ["sh", "-ec"], commands.replace("\ncurl", "\necho; curl"))
    created, produced, read, cluster = printed.splitlines()
    assert '"name":"orders"' in created or "TOPIC_ALREADY_EXISTS" in created
    assert '"offset":' in produced
    assert '"amount": 120' in read
    assert '"amount": 7' not in read
    assert '"health":"green"' in cluster
    first, again = (run(manager, ["sh", "-ec"], keyed) for _ in range(2))
    assert first == again
    assert '"offset":' in first
    with chdir(tmp_path):
        assert run(manager, ["sh", "-ec"], reading) == ""
    users, rules = run(manager, ["sh", "-ec"], secured.replace("\ncurl", "\necho; curl")).splitlines()
    assert users == "[]"
    assert "SECURITY_DISABLED" in rules, "this broker has no authorizer"
    assert run(manager, ["sh", "-ec"], connections).startswith("[")
    (client,) = manager.call("GET", "/v1/clients")
    assert sum(part["committed"] for part in manager.call("GET", f"/v1/groups/{client['id']}/lag")) > 0


def test_the_streams_with_curl_begin(manager: ManagerProcess, broker: EmbeddedBroker) -> None:
    if manager.http.get("/v1/topics/orders").status_code == 404:
        broker.create_topic("orders")
    streams = re.findall(r"^curl -N .*$", GUIDE, re.MULTILINE)
    assert len(streams) == 2
    for text in streams:
        here = text.replace("127.0.0.1:8092", manager.url.removeprefix("http://"))
        with subprocess.Popen(["sh", "-c", f"exec {here}"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as curl:
            assert curl.stdout is not None
            assert curl.stdout.readline().startswith((b": alive", b"id: ")), "the stream has begun"
            curl.kill()


def test_the_programs_in_python_run(manager: ManagerProcess) -> None:
    first, *others = snippets("py")
    printed = run(manager, [sys.executable, "-c"], first)
    assert [printed, *(run(manager, [sys.executable, "-c"], each) for each in others)] == ["45\n", "50\n", "50\n"]
