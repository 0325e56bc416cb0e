"""Recovery load: the time until a broker serves again after kill -9 under load."""

import time
from dataclasses import replace
from pathlib import Path

from headrace.bench.brokers import BrokerProcess
from headrace.bench.errors import RunRejected
from headrace.bench.figures import Round
from headrace.bench.loads import LARGE, SINGLE, ProduceLoad
from headrace.bench.produce import prepare_topic, send
from headrace.bench.replay import ReplayClient
from headrace.bench.topics import delete_topics, end_offsets
from headrace.log.checkpoints import decode_offsets
from headrace.log.names import RECOVERY_POINTS
from headrace.model.ids import TopicPartition

ALLOWED_SECONDS = 1.0
ALLOWED_SECONDS_PER_GIGABYTE = 0.5
ALLOWED_SECONDS_PER_BATCH = 5e-6

SMALL_SHARE = 10
"""Factor by which small batches produce less data in the same time."""

SMALL_BATCHES = replace(SINGLE, connections=8, depth=16, seconds=60.0)
LARGE_BATCHES = replace(LARGE, seconds=60.0)


class RecoveryRounds:
    """Rounds that fill a topic, kill the broker and restart it; data after the recovery points is scanned."""

    def __init__(self, broker: BrokerProcess, client: ReplayClient, load: ProduceLoad, *, topic: str) -> None:
        self._broker = broker
        self._client = client
        self._load = load
        self._topic = topic
        self._round = 0

    def __call__(self) -> Round:
        self._round += 1
        topic, load, broker = f"{self._topic}-{self._round}", self._load, self._broker
        frames = prepare_topic(broker.address, topic, load)
        report = send(self._client, broker.address, frames, load)
        acknowledged = report.requests * load.records
        broker.kill()
        assert broker.folder is not None
        flushed = recovery_points(broker.folder)
        began = time.monotonic()
        broker.start()
        ends = end_offsets(broker.address, topic, partitions=load.partitions)
        seconds = time.monotonic() - began
        if sum(ends) < acknowledged:
            raise RunRejected(f"{acknowledged - sum(ends)} acknowledged records are lost after kill -9")
        tail = sum(end - flushed.get(TopicPartition(topic, index), 0) for index, end in enumerate(ends))
        batches = tail / load.records
        gigabytes = batches * frames.batch_bytes / 1e9
        delete_topics(broker.address, topic)  # the next round must not recover unsynced data of this one
        return {
            "seconds": seconds,
            "tail_megabytes": gigabytes * 1e3,
            "tail_batches": batches,
            "allowed_seconds": ALLOWED_SECONDS
            + ALLOWED_SECONDS_PER_GIGABYTE * gigabytes
            + ALLOWED_SECONDS_PER_BATCH * batches,
        }


def recovery_points(folder: Path) -> dict[TopicPartition, int]:
    """Return the recovery points; the broker scans everything after them at the next start."""
    path = folder / RECOVERY_POINTS
    content = path.read_bytes() if path.exists() else b""
    return decode_offsets(content) if content else {}  # Apache Kafka creates the file before it has content
