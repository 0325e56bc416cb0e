"""Writes in foreachBatch on a server of Spark Connect."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from headrace.client import Producer
from headrace.testing import EmbeddedBroker
from tests.spark.conftest import TEST_SECONDS_MAX
from tests.spark.sink.connect_driver import ROWS


@pytest.mark.timeout(TEST_SECONDS_MAX)
@pytest.mark.spark
def test_foreach_batch_is_refused_without_a_name_and_writes_once_with_one(tmp_path: Path) -> None:
    with EmbeddedBroker() as broker:
        for topic in ("in", "out"):
            broker.create_topic(topic)
        with Producer(broker.bootstrap_servers) as producer:
            for number in range(ROWS):
                producer.send("in", b"%d" % number)
        command = [sys.executable, "-m", "tests.spark.sink.connect_driver", broker.bootstrap_servers, str(tmp_path)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=TEST_SECONDS_MAX)
    assert done.returncode == 0, done.stderr[-5_000:]
    told = json.loads(done.stdout.splitlines()[-1])
    assert "idempotenceKey" in told["refused"]
    assert told["after_refusal"] == 0
    assert (told["failures"], told["rows"], told["most"]) == (["", ""], ROWS, 1), told
