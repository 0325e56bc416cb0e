"""A query from topic to topic whose broker is killed and stays away for a while: it waits, goes on, and loses nothing.

python -m tests.spark.kills.outages --outages 3 --seconds 30
"""

import argparse
import itertools
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from headrace.client import Admin, NewTopic, Producer
from tests.broker_process.broker_process import BrokerProcess
from tests.reserved_ports import reserved_port
from tests.spark.kills.campaign import PARTITIONS, TOPIC, rows_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming import StreamingQuery

SOURCE = "in"
ROWS_AT_ONCE = 50
PAUSE_S = 0.05
BATCH_S_MAX = 120.0
DELIVERY_MS = 300_000


class Sender(threading.Thread):
    """Sends numbers in order until it is stopped; waits for a broker that is away."""

    def __init__(self, servers: str) -> None:
        super().__init__(daemon=True)
        self._servers = servers
        self._stopping = threading.Event()
        self._sent = 0

    def run(self) -> None:
        options = {"delivery_timeout_ms": DELIVERY_MS, "max_block_ms": DELIVERY_MS}
        with Producer(bootstrap_servers=self._servers, **options) as producer:
            for number in itertools.count():
                producer.send(SOURCE, b"%d" % number, key=b"%d" % number)
                if number % ROWS_AT_ONCE == ROWS_AT_ONCE - 1:
                    producer.flush(timeout_ms=DELIVERY_MS)
                    self._sent = number + 1
                    if self._stopping.wait(PAUSE_S):
                        return

    def stop(self) -> int:
        """Return how many were sent."""
        self._stopping.set()
        self.join()
        return self._sent


def broker_in(folder: Path) -> BrokerProcess:
    """On one address, however often it is started."""
    return BrokerProcess(folder / "data", settings={"listeners": f"PLAINTEXT://127.0.0.1:{reserved_port()}"})


def start_query(spark: "SparkSession", broker: BrokerProcess, folder: Path, **options: str) -> "StreamingQuery":
    servers = broker.bootstrap_servers
    rows = spark.readStream.format("headrace").option("kafka.bootstrap.servers", servers).option("subscribe", SOURCE)
    rows = rows.option("startingOffsets", "earliest")
    if "kafkaConsumer.pollTimeoutMs" in options:
        rows = rows.option("kafkaConsumer.pollTimeoutMs", options.pop("kafkaConsumer.pollTimeoutMs"))
    written = rows.load().select("key", "value").writeStream.format("headrace")
    written = written.option("kafka.bootstrap.servers", servers).option("topic", TOPIC).options(**options)
    return written.option("checkpointLocation", str(folder / "checkpoint")).start()


def create_topics(broker: BrokerProcess) -> None:
    with Admin(broker.bootstrap_servers) as admin:
        made = admin.create_topics([NewTopic(name, partitions=PARTITIONS) for name in (SOURCE, TOPIC)])
    assert not any(each.error for each in made.values())


def wait_for_rows(query: "StreamingQuery", more_than: int) -> int:
    """The rows that the query has copied, when they are more than that."""
    deadline_s = time.monotonic() + BATCH_S_MAX
    while (copied := sum(each.numInputRows for each in query.recentProgress)) <= more_than:
        assert query.isActive, query.exception()
        assert time.monotonic() < deadline_s, "the query does not go on"
        time.sleep(PAUSE_S)
    return copied


def copy_through_outages(spark: "SparkSession", folder: Path, *, outages: int, seconds: float) -> int:
    """Return how many rows were sent and found, each once."""
    with broker_in(folder) as broker:
        create_topics(broker)
        sender = Sender(broker.bootstrap_servers)
        sender.start()
        query = start_query(spark, broker, folder)
        try:
            copied = 0
            for _ in range(outages):
                copied = wait_for_rows(query, copied)
                broker.kill()
                time.sleep(seconds)  # so long it is away
                assert query.isActive, query.exception()
                broker.start()
            wait_for_rows(query, copied)
            sent = sender.stop()
            query.processAllAvailable()
        finally:
            query.stop()
        assert Counter(rows_of(broker.bootstrap_servers)) == Counter(range(sent))
    return sent


def main() -> None:
    from headrace.spark import session

    parser = argparse.ArgumentParser(prog="python -m tests.spark.kills.outages", description=__doc__)
    parser.add_argument("--outages", type=int, default=3, help="of one query")
    parser.add_argument("--seconds", type=float, default=30.0, help="how long the broker is away")
    chosen = parser.parse_args()
    spark = session("headrace-outages", master="local[2]")
    with tempfile.TemporaryDirectory(prefix="headrace-outages-") as folder:
        sent = copy_through_outages(spark, Path(folder), outages=chosen.outages, seconds=chosen.seconds)
    spark.stop()
    print(f"{chosen.outages} times {chosen.seconds:g} s without a broker, {sent} rows, each once")


if __name__ == "__main__":
    main()
