"""The page "A secure cluster in five minutes": its commands run as they stand, and do what it says."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from headrace.ports.real.held_ports import held_port

pytestmark = pytest.mark.process

PAGE = Path(__file__).resolve().parents[2] / "docs/guide/secure-cluster.md"
SECONDS_MAX = 300
BLOCK = re.compile(r"^```(sh|properties)\n(.*?)^```", re.MULTILINE | re.DOTALL)
BEGIN = """\
set -euo pipefail
trap 'kill $(jobs -p) && wait' EXIT
"""


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    folder = tmp_path_factory.mktemp("secure")
    with held_port() as first, held_port() as second:
        ports = {"9093": str(first.getsockname()[1]), "9094": str(second.getsockname()[1])}
        text = re.sub(r"\b(9093|9094)\b", lambda found: ports[found[1]], PAGE.read_text())
        blocks = BLOCK.findall(text)
        (config,) = (block for kind, block in blocks if kind == "properties")
        (folder / "server.properties").write_text(config)
        script = folder / "page.sh"
        script.write_text(BEGIN + "".join(block for kind, block in blocks if kind == "sh"))
        environment = {
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "HOME": str(folder),
            "LANG": "C.UTF-8",
        }
        yield (
            folder,
            subprocess.run(
                ["bash", str(script)], cwd=folder, env=environment, capture_output=True, text=True, timeout=SECONDS_MAX
            ),
        )


def test_the_commands_of_the_page_run(ran):
    folder, process = ran
    log = folder / "broker.log"
    assert process.returncode == 0, process.stdout + process.stderr + (log.read_text() if log.exists() else "")
    assert 'allowed: by the rule allow User:shop write on topic "orders"' in process.stdout
    assert "\nthree apples\n" in process.stdout
    assert "TOPIC_AUTHORIZATION_FAILED" in process.stderr


def test_the_audit_log_has_what_happened_and_no_password(ran):
    folder, process = ran
    content = (folder / "audit/audit-1.jsonl").read_text()
    lines = [json.loads(line) for line in content.splitlines()]
    found = {(line["kind"], line["action"], line["principal"], line["outcome"]) for line in lines}
    assert found >= {
        ("change", "create_topics", "User:admin", "done"),
        ("change", "create_acls", "User:admin", "done"),
        ("change", "alter_user_scram_credentials", "User:admin", "done"),
        ("login", "SCRAM-SHA-512", "User:shop", "done"),
        ("change", "create_topics", "User:shop", "refused"),
    }
    password = (folder / "shop.password").read_text().strip()
    shown = (content, process.stdout, process.stderr, (folder / "broker.log").read_text())
    assert not [text for text in shown if password in text]
