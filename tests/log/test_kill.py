"""kill -9 of a real process with helpers at work, again and again on the same folder."""

import random
import subprocess
import sys
from pathlib import Path

import pytest

from headrace.log.directory import LogDirectory
from headrace.log.inspect import verify
from headrace.ports.real.disk import RealDisk
from headrace.sim.entropy import SeededEntropy

from .appender import CONFIG
from .world import NOW_MS, PARTITION, TOPIC_ID, batch_of, fields_of, read_all

pytestmark = [pytest.mark.process, pytest.mark.record_integrity]

KILLS = 6
TURNS_MAX = 400


def acked_until_killed(path: Path, turns: int) -> int:
    """The last end offset that the process told before it was killed."""
    root = Path(__file__).parents[2]
    command = [sys.executable, "-m", "tests.log.appender", str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=root, text=True) as process:
        assert process.stdout is not None
        for _ in range(turns):
            line = process.stdout.readline()
            assert line, "the appender ended by itself"
        process.kill()
        told = process.stdout.read().splitlines()
    return int(next((text for text in reversed(told) if text), line))


def test_nothing_acknowledged_is_lost_over_many_kills(tmp_path: Path) -> None:
    draw = random.Random(20240229)
    for _ in range(KILLS):
        acked = acked_until_killed(tmp_path, draw.randrange(1, TURNS_MAX))
        directory = LogDirectory.open(RealDisk(), str(tmp_path), cluster_id="c", node_id=1, entropy=SeededEntropy(1))
        assert not directory.clean_shutdown
        log = directory.open_log(PARTITION, TOPIC_ID, CONFIG, wall_ms=NOW_MS)
        assert log.end_offset >= acked
        values = read_all(log)
        assert [offset for offset, _ in values] == list(range(log.start_offset, log.end_offset))
        assert all(value.startswith(b"%d:" % offset) for offset, value in values)
        last = batch_of(b"", producer_id=1, producer_epoch=0, base_sequence=log.end_offset - 1)
        assert log.producers.admit(fields_of(last)) == log.end_offset - 1
        log.close()
        directory.checkpoint([log], {PARTITION: log.end_offset})
        directory.close()
        assert verify(RealDisk(), str(tmp_path)).is_whole
