"""Apache Kafka's own DumpLogSegments on the files this broker writes: with every compression, and after kill -9."""

import os
import re
import signal
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka import Producer

from compat.adapters import connect
from compat.cases.case import sample
from compat.client import COMPRESSIONS, Sending
from compat.environments import jars_from_maven
from compat.report import Outcome
from headrace.testing import EmbeddedBroker

KAFKA_VERSION = "4.3.1"
ARTIFACTS = [("org.apache.kafka", name, KAFKA_VERSION) for name in ("kafka_2.13", "kafka-tools")]
TOOL = "org.apache.kafka.tools.DumpLogSegments"
TOOL_S_MAX = 120
TOPIC = "dumped"
CONFIGS = {"segment.bytes": "1048576"}
TRANSACTED_TOPIC = "transacted"
TRANSACTED_CONFIGS = {"segment.bytes": "16384"}
TRANSACTIONS = 12
"""Of every process; each third is committed, the others are aborted."""
TRANSACTION_S_MAX = 30
ROUNDS = 3
RECORDS_PER_ROUND = 200
COMPLAINTS = ("mismatch", "Exception", "not sorted", "out of order", "Non-consecutive", "isvalid: false")
TOOL_ARTEFACT = re.compile(r"Non-consecutive offsets in \S+\n\s+-1 is followed by \d+\n?")
"""The tool's message for every segment that does not begin at offset 0, Kafka's own too: it starts counting at -1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dump:
    kind: str
    pattern: str
    entry: re.Pattern[str]
    options: tuple[str, ...] = ()
    topic: str = TOPIC


DUMPS = (
    Dump(
        kind="segments, all compressions",
        pattern="*.log",
        entry=re.compile(r"^\| offset: \d+", re.M),
        options=("--deep-iteration",),
    ),
    Dump(kind="offset indexes", pattern="*.index", entry=re.compile(r"^offset: \d+ position: \d+", re.M)),
    Dump(kind="time indexes", pattern="*.timeindex", entry=re.compile(r"^timestamp: \d+ offset: \d+", re.M)),
    Dump(kind="producer snapshots", pattern="*.snapshot", entry=re.compile(r"^producerId: \d+", re.M)),
    Dump(
        kind="transaction markers",
        pattern="*.log",
        entry=re.compile(r"endTxnMarker: (?:COMMIT|ABORT) coordinatorEpoch: \d+", re.M),
        options=("--deep-iteration",),
        topic=TRANSACTED_TOPIC,
    ),
    Dump(
        kind="transaction indexes",
        pattern="*.txnindex",
        entry=re.compile(r"^version: 0 producerId: \d+ firstOffset: \d+ lastOffset: \d+ lastStableOffset: \d+", re.M),
        topic=TRANSACTED_TOPIC,
    ),
)


def dumped_segments() -> dict[str, Outcome]:
    """By kind of file; raises Missing without Maven."""
    classpath = f"{jars_from_maven(f'kafka-{KAFKA_VERSION}', ARTIFACTS)}/*"
    with tempfile.TemporaryDirectory() as folder:
        records = _write(folder)
        expected = {TOPIC: records, TRANSACTED_TOPIC: 2 * TRANSACTIONS}
        return {
            dump.kind: _outcome(classpath, Path(folder) / f"{dump.topic}-0", dump, expected[dump.topic])
            for dump in DUMPS
        }


def _write(folder: str) -> int:
    """Segments, indexes and snapshots of a broker that was killed half way and stopped in the end; how many records."""
    sent = 0
    for ending in (signal.SIGKILL, signal.SIGTERM):
        broker = EmbeddedBroker(process=True, data_dir=folder).start()
        if ending is signal.SIGKILL:
            broker.create_topic(TOPIC, configs=CONFIGS)
            broker.create_topic(TRANSACTED_TOPIC, configs=TRANSACTED_CONFIGS)
        client = connect("confluent-kafka", broker.bootstrap_servers)
        for compression in COMPRESSIONS:
            for number in range(ROUNDS):
                messages = sample(RECORDS_PER_ROUND, seed=number, value_size=3000)
                client.send(TOPIC, messages, Sending(compression=compression, idempotent=True))
                sent += len(messages)
        client.close()
        _write_transactions(broker.bootstrap_servers)
        if ending is signal.SIGKILL:
            os.kill(broker.process_id, signal.SIGKILL)
        broker.stop()
    return sent


def _write_transactions(bootstrap_servers: str) -> None:
    producer = _transactional_producer(bootstrap_servers)
    for number in range(TRANSACTIONS):
        producer.begin_transaction()
        for _ in range(5):
            producer.produce(TRANSACTED_TOPIC, bytes(1000))
        producer.flush(TRANSACTION_S_MAX)
        end = producer.abort_transaction if number % 3 else producer.commit_transaction
        end(TRANSACTION_S_MAX)
    _transactional_producer(bootstrap_servers)  # begins when the markers of the last transaction are written


def _transactional_producer(bootstrap_servers: str) -> Producer:
    producer = Producer({"bootstrap.servers": bootstrap_servers, "transactional.id": TRANSACTED_TOPIC})
    producer.init_transactions(TRANSACTION_S_MAX)
    return producer


def _outcome(classpath: str, partition: Path, dump: Dump, records: int) -> Outcome:
    files = sorted(map(str, partition.glob(dump.pattern)))
    done = subprocess.run(
        ["java", "-cp", classpath, TOOL, *dump.options, "--files", ",".join(files)],
        capture_output=True,
        text=True,
        timeout=TOOL_S_MAX,
        check=False,
    )
    said = done.stdout + TOOL_ARTEFACT.sub("", done.stderr)
    complaints = [line for line in said.splitlines() if any(text in line for text in COMPLAINTS)]
    entries = len(dump.entry.findall(done.stdout))
    if done.returncode or complaints:
        return Outcome(result="fail", detail=complaints[0] if complaints else f"exit status {done.returncode}")
    if len(files) < 2 or entries == 0 or (dump.options and entries != records):
        return Outcome(result="fail", detail=f"{entries} entries in {len(files)} files, for {records} records")
    return Outcome(result="pass")
