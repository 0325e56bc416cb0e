"""The demo, in small: messages through brokers, one of which is killed, come back, and nothing is left behind."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.process, pytest.mark.record_integrity]

ROOT = Path(__file__).resolve().parents[2]
RUN_SECONDS_MAX = 240


@pytest.mark.parametrize("brokers", [1, 3])
def test_the_demo_gets_every_message_back_and_cleans_up(tmp_path: Path, brokers: int) -> None:
    temporary, blocked = tmp_path / "tmp", tmp_path / "blocked"
    temporary.mkdir()
    blocked.mkdir()
    blocked.joinpath("confluent_kafka.py").write_text("raise ImportError('the demo needs the core packages alone')\n")
    path = [str(blocked), *filter(None, [os.environ.get("PYTHONPATH")])]
    ran = subprocess.run(
        [sys.executable, str(ROOT / "examples" / "demo.py"), "--messages", "2000", "--brokers", str(brokers)],
        env={**os.environ, "TMPDIR": str(temporary), "COLUMNS": "120", "PYTHONPATH": os.pathsep.join(path)},
        capture_output=True,
        text=True,
        timeout=RUN_SECONDS_MAX,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "every message came back once, in order" in ran.stdout
    assert "the group read every message, though one of its members died" in ran.stdout
    assert re.search(r"first message sent and read \d+\.\d s after the start", ran.stdout)
    killed = r"broker \d, a leader, was killed with -9 half-way: [\d,]+ ms without an acknowledgement, no error"
    assert bool(re.search(killed, ran.stdout)) is (brokers == 3)
    assert list(temporary.iterdir()) == []
    listed = re.search(r"broker at (\S+), process ([\d, ]+\d)", ran.stdout)
    assert listed
    processes = listed[2].split(", ")
    assert len(processes) == len(listed[1].split(",")) == brokers
    for process in processes:
        with pytest.raises(ProcessLookupError):
            os.kill(int(process), 0)
