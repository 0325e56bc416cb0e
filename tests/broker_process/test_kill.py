"""kill -9 again and again under an idempotent producer: nothing acked is lost, nothing is there twice."""

import os
import random
import threading
import time
from collections import Counter
from pathlib import Path

import confluent_kafka
import pytest

from compat.adapters import connect
from compat.client import Received
from headrace.client import Admin, NewTopic
from tests.broker_process.broker_process import ENDED_BY_KILL, BrokerProcess
from tests.broker_process.torn_tails import segments_written_last, tear
from tests.reserved_ports import reserved_port

pytestmark = [pytest.mark.process, pytest.mark.record_integrity]

ROUNDS = int(os.environ.get("KILL_ROUNDS", "4"))
"""More of them by `KILL_ROUNDS=100 make test ARGS=tests/broker_process/test_kill.py`."""

SEED = int(os.environ.get("KILL_SEED", "20"))
LOAD_S_MIN, LOAD_S_MAX = 0.3, 1.2
PARTITIONS = 3
SEGMENT_BYTES = 1 << 20
FLUSH_S_MAX = 120.0
UNACKED_MESSAGES_MAX = 20_000
TOPIC = "survivor"


class Writer:
    """A stock idempotent producer in a thread, which numbers its messages and notes what was acked where."""

    def __init__(self, bootstrap_servers: str, compression: str) -> None:
        self.acked: dict[tuple[int, int], bytes] = {}
        self.failures: list[str] = []
        self._sent = 0
        self._name = compression.encode()
        self._source = random.Random(SEED)
        self._stop = threading.Event()
        self._producer = confluent_kafka.Producer(
            {
                "bootstrap.servers": bootstrap_servers,
                "enable.idempotence": True,
                "acks": "all",
                "compression.type": compression,
                "linger.ms": 2,
                "batch.num.messages": 500,
                "message.timeout.ms": int(FLUSH_S_MAX * 1000),
                "reconnect.backoff.ms": 10,
                "reconnect.backoff.max.ms": 100,
                "retry.backoff.ms": 20,
                "retry.backoff.max.ms": 100,
                "log_level": 0,
            }
        )
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    @property
    def acked_count(self) -> int:
        return len(self.acked)

    def _run(self) -> None:
        while not self._stop.is_set():
            self._producer.poll(0.001)
            if self._sent - len(self.acked) < UNACKED_MESSAGES_MAX:
                for _ in range(50):
                    self._send()

    def _send(self) -> None:
        value = self._name + b" %d " % self._sent + b"x" * self._source.randrange(200)
        self._producer.produce(TOPIC, value, partition=self._sent % PARTITIONS, on_delivery=self._delivered)
        self._sent += 1

    def _delivered(self, error: confluent_kafka.KafkaError | None, message: confluent_kafka.Message) -> None:
        if error is not None:
            self.failures.append(str(error))
            return
        place = (message.partition() or 0, message.offset() or 0)
        assert place not in self.acked, f"two acks for {place}"
        self.acked[place] = message.value() or b""

    def finish(self) -> None:
        self._stop.set()
        self._thread.join()
        assert self._producer.flush(FLUSH_S_MAX) == 0, "messages are still without an answer"
        assert self.failures == []
        assert len(self.acked) == self._sent


def _load_and_kill(broker: BrokerProcess, writers: list[Writer], source: random.Random) -> None:
    before = [writer.acked_count for writer in writers]
    deadline = time.monotonic() + FLUSH_S_MAX
    while any(writer.acked_count == count for writer, count in zip(writers, before, strict=True)):
        assert time.monotonic() < deadline, "no ack came after the restart"
        assert not any(writer.failures for writer in writers)
        time.sleep(0.01)
    time.sleep(source.uniform(LOAD_S_MIN, LOAD_S_MAX))
    broker.kill()
    assert broker.wait() == ENDED_BY_KILL


def _read_all(bootstrap_servers: str) -> dict[int, list[Received]]:
    client = connect("confluent-kafka", bootstrap_servers)
    try:
        ends = {partition: client.bounds(TOPIC, partition) for partition in range(PARTITIONS)}
        assert {start for start, _ in ends.values()} == {0}
        return {partition: client.read(TOPIC, end, partition=partition) for partition, (_, end) in ends.items()}
    finally:
        client.close()


def test_nothing_acked_is_lost_or_doubled(tmp_path: Path) -> None:
    source = random.Random(SEED)
    settings = {
        "listeners": f"PLAINTEXT://127.0.0.1:{reserved_port()}",
        "log.flush.offset.checkpoint.interval.ms": "200",
        "headrace.unclean.tail.bytes.max": str(1 << 20),
    }
    torn: Counter[str] = Counter()
    with BrokerProcess(tmp_path, settings=settings) as broker:
        with Admin(broker.bootstrap_servers) as admin:
            new = NewTopic(TOPIC, partitions=PARTITIONS, configs={"segment.bytes": str(SEGMENT_BYTES)})
            assert not admin.create_topics([new])[TOPIC].error
        writers = [Writer(broker.bootstrap_servers, compression) for compression in ("none", "lz4")]
        try:
            for _ in range(ROUNDS):
                _load_and_kill(broker, writers, source)
                torn.update(tear(segment, source) for segment in segments_written_last(tmp_path, TOPIC))
                broker.start()
        finally:
            for writer in writers:
                writer.finish()
        acked = {place: value for writer in writers for place, value in writer.acked.items()}
        assert len(acked) == sum(writer.acked_count for writer in writers), "one offset was given to two messages"
        logs = _read_all(broker.bootstrap_servers)
    for partition, records in logs.items():
        assert [record.offset for record in records] == list(range(len(records))), f"seed {SEED}: offsets have a gap"
        doubled = [value for value, count in Counter(record.value for record in records).items() if count > 1]
        assert doubled == [], f"seed {SEED}: {len(doubled)} messages twice in partition {partition}"
    found = {(partition, record.offset): record.value for partition, records in logs.items() for record in records}
    lost = [place for place, value in acked.items() if found.get(place) != value]
    assert lost == [], f"seed {SEED}, tails {dict(torn)}: {len(lost)} of {len(acked)} acked messages are not in place"
    assert len(found) == len(acked), "what is in the log was acked, for every message has its answer"
