"""Offsets by time after kill -9 and two restarts: the second start trusts indexes that the first one rebuilt."""

from pathlib import Path

import pytest

from compat.adapters import connect
from compat.cases.case import now_ms
from compat.client import Message
from headrace.client import Admin, NewTopic
from tests.broker_process.broker_process import BrokerProcess

pytestmark = pytest.mark.process

TOPIC = "timed"
RECORDS_BEFORE, RECORDS_AFTER = 40, 12
VALUE_BYTES = 100_000
STEP_MS = 1000


def _write(broker: BrokerProcess, numbers: range, base_ms: int) -> None:
    client = connect("confluent-kafka", broker.bootstrap_servers)
    for number in numbers:
        value = b"%d " % number + b"x" * VALUE_BYTES
        client.send(TOPIC, [Message(value=value, timestamp_ms=base_ms + number * STEP_MS)])
    client.close()


def test_offsets_by_time_survive_a_kill_and_a_clean_restart(tmp_path: Path) -> None:
    count = RECORDS_BEFORE + RECORDS_AFTER
    base_ms = now_ms() - count * STEP_MS
    with BrokerProcess(tmp_path) as broker:
        with Admin(broker.bootstrap_servers) as admin:
            new = NewTopic(TOPIC, configs={"segment.bytes": "1048576"})
            assert not admin.create_topics([new])[TOPIC].error
        _write(broker, range(RECORDS_BEFORE), base_ms)
        broker.kill()
        broker.start()
        _write(broker, range(RECORDS_BEFORE, count), base_ms)  # so that a flush has passed what was recovered
        broker.stop()
        indexes = sorted((tmp_path / f"{TOPIC}-0").glob("*.timeindex"))
        assert len(indexes) > 4
        assert [index.name for index in indexes if not index.stat().st_size] == []
        broker.start()
        client = connect("confluent-kafka", broker.bootstrap_servers)
        for number in range(count):
            found = client.offset_at(TOPIC, base_ms + number * STEP_MS - STEP_MS // 2)
            assert (found.offset, found.timestamp_ms) == (number, base_ms + number * STEP_MS)
        latest = client.offset_of_max_timestamp(TOPIC)
        assert (latest.offset, latest.timestamp_ms) == (count - 1, base_ms + (count - 1) * STEP_MS)
        client.close()
