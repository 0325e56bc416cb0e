"""kill -9 of a broker process that compacts all the time, with its helper processes at work."""

import os
import random
import signal
from pathlib import Path

import confluent_kafka
import pytest

from headrace.log.inspect import verify
from headrace.ports.real.disk import RealDisk
from headrace.testing import EmbeddedBroker

from .test_clients import TOPIC, WAIT_SECONDS, by_librdkafka

pytestmark = [pytest.mark.process, pytest.mark.record_integrity]

KILLS = 3
KEYS = 50
ROUND_RECORDS = 1500
CONFIGS = {
    "cleanup.policy": "compact",
    "segment.bytes": "15000",
    "min.cleanable.dirty.ratio": "0.01",
    "file.delete.delay.ms": "100",
}


def started(folder: Path) -> EmbeddedBroker:
    return EmbeddedBroker(process=True, data_dir=str(folder), config={"log.cleaner.backoff.ms": "100"}).start()


def write_until_killed(broker: EmbeddedBroker, state: dict[bytes, int], begin: int, draw: random.Random) -> int:
    """Write numbers and kill the broker somewhere on the way; the last number given out."""
    acknowledged: dict[bytes, int] = {}

    def delivered(error: object, message: confluent_kafka.Message) -> None:
        if error is None:
            key = message.key() or b""
            acknowledged[key] = max(acknowledged.get(key, -1), int(message.value()))

    settings = {
        "bootstrap.servers": broker.bootstrap_servers,
        "enable.idempotence": True,  # else a batch that is sent again comes behind later ones, which it then hides
        "batch.num.messages": 20,
        "message.timeout.ms": 2000,
        "log_level": 0,
    }
    producer = confluent_kafka.Producer(settings)
    number, killed_at = begin, begin + draw.randrange(ROUND_RECORDS // 2, ROUND_RECORDS)
    while number < killed_at:
        producer.produce(TOPIC, key=b"key-%d" % (number % KEYS), value=b"%d" % number, on_delivery=delivered)
        producer.poll(0.001 if number % 10 == 0 else 0)
        number += 1
    os.kill(broker.process_id, signal.SIGKILL)
    producer.flush(WAIT_SECONDS)
    state.update(acknowledged)
    return number


def check_values(broker: EmbeddedBroker, state: dict[bytes, int]) -> int:
    """Every value that was acknowledged is there, or a later one; how many records there are."""
    found: dict[bytes, int] = {}
    offsets = []
    for offset, key, value in by_librdkafka(broker.bootstrap_servers, 0):
        assert value is not None
        found[key] = int(value)
        offsets.append(offset)
    assert offsets == sorted(offsets)
    assert all(found[key] >= last for key, last in state.items()), "an acknowledged value was lost"
    return len(offsets)


def test_nothing_acknowledged_is_lost_over_kills(tmp_path: Path) -> None:
    draw = random.Random(7)
    folder = tmp_path / "data"
    state: dict[bytes, int] = {}
    number = 0
    broker = started(folder)
    broker.create_topic(TOPIC, configs=CONFIGS)
    for _ in range(KILLS):
        number = write_until_killed(broker, state, number, draw)
        broker.stop()
        broker = started(folder)
        while check_values(broker, state) >= number:  # until something was compacted
            continue
    broker.stop()
    assert verify(RealDisk(), str(folder)).is_whole
