"""Runs a query over and over until its plans are carried out and its input is done, and compares every row."""

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import confluent_kafka

from headrace.client import Admin, NewTopic
from headrace.spark.session_launcher import spark_environment
from tests.reserved_ports import reserved_address
from tests.spark.kills.points import DRIVER, EVERY_KILL, Plan, Points

ROOT = Path(__file__).parents[3]
PARTITIONS = 3
ROWS_PER_BATCH = 400
DRIVER_S_MAX = 900.0
TOPIC = "out"
WATCH_S = 0.1
READ_S_MAX = 60.0
COMPLAINT_LETTERS_MAX = 6_000
SEED = 1


class Broker:
    """Started again by a thread whenever it was killed, on the same port and data."""

    def __init__(self, folder: Path) -> None:
        self.address = reserved_address()
        self._folder = folder
        self._stopping = threading.Event()
        self._process = self._start()
        self._keeper = threading.Thread(target=self._keep, daemon=True)
        self._keeper.start()
        self.starts = 1

    def _start(self) -> "subprocess.Popen[str]":
        settings = {
            "listeners": f"PLAINTEXT://{self.address}",
            "log.dirs": str(self._folder / "data"),
            "headrace.disk.free.min.bytes": "0",
            "headrace.log.level": "error",
        }
        words = [f"{name}={value}" for name, value in settings.items()]
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.spark.kills.failing_broker", str(self._folder), *words],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert process.stdout is not None
        line = process.stdout.readline()
        process.stdout.close()
        assert line.startswith("headrace listening on"), line
        return process

    def _keep(self) -> None:
        while not self._stopping.wait(WATCH_S):
            if self._process.poll() is not None:
                self._process = self._start()
                self.starts += 1

    def stop(self) -> None:
        self._stopping.set()
        self._keeper.join()
        self._process.kill()
        self._process.wait()


class Run:
    """One query with its plans, in one folder."""

    def __init__(self, folder: Path, plans: list[Plan], *, batches: int) -> None:
        self.folder = folder
        self.points = Points(folder)
        self.points.write(plans)
        self._log = folder / "driver.log"
        (folder / "input").mkdir()
        (folder / "local").mkdir()
        self.expected = batches * ROWS_PER_BATCH
        for batch in range(batches):
            numbers = range(batch * ROWS_PER_BATCH, (batch + 1) * ROWS_PER_BATCH)
            path = folder / "input" / f"{batch:04}.json"
            path.write_text("".join(f'{{"id": {number}}}\n' for number in numbers))
            os.utime(path, (1_000_000 + batch, 1_000_000 + batch))  # Spark takes the oldest file first
        self.broker = Broker(folder)
        with Admin(self.broker.address) as admin:
            admin.create_topics([NewTopic(TOPIC, partitions=PARTITIONS)])

    def start_driver(
        self, *, tasks: int, master: str = "local[2,8]", conf: Any = None, source: str | None = None
    ) -> "subprocess.Popen[bytes]":
        settings = {
            "folder": str(self.folder),
            "master": master,
            "servers": self.broker.address,
            "topic": TOPIC,
            "tasks": str(tasks),
            "conf": json.dumps(conf or {}),
            **({"source": source} if source is not None else {}),
        }
        with self._log.open("ab") as log:
            return subprocess.Popen(
                [sys.executable, "-m", "tests.spark.kills.driver", json.dumps(settings)],
                cwd=ROOT,
                env={**os.environ, **spark_environment(is_local=True)},
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def complaints(self) -> str:
        return self._log.read_text(errors="replace")[-COMPLAINT_LETTERS_MAX:]

    def run_to_the_end(self, *, tasks: Iterable[int] = (2, 3, 4, 5), **driver: Any) -> int:
        """Drivers one after the other, each with another number of tasks, until one gets through; how many it took."""
        counts = list(tasks)
        drivers_max = 2 + sum(plan.victim == DRIVER for plan in self.points.plans())
        for number in range(drivers_max):
            process = self.start_driver(tasks=counts[number % len(counts)], **driver)
            try:
                status = process.wait(DRIVER_S_MAX)
            finally:
                self.end_session(process)
            if status == 0:
                return number + 1
            assert status == -signal.SIGKILL, self.complaints()
        raise AssertionError(f"{drivers_max} drivers did not get through: {self.complaints()}")

    def wait_until_paused(self, process: "subprocess.Popen[bytes]") -> None:
        deadline_s = time.monotonic() + DRIVER_S_MAX
        while not self.points.is_paused():
            assert process.poll() is None, self.complaints()
            assert time.monotonic() < deadline_s, "the driver did not come to its point"
            time.sleep(WATCH_S)

    def wait_until_seen(self, what: str, process: "subprocess.Popen[bytes]") -> None:
        """Until the driver has noted it."""
        deadline_s = time.monotonic() + DRIVER_S_MAX
        while not self.points.has_seen(what):
            assert process.poll() is None, self.complaints()
            assert time.monotonic() < deadline_s, f"the driver has seen no {what}"
            time.sleep(WATCH_S)

    def end_session(self, process: "subprocess.Popen[bytes]") -> None:
        """The driver with its Java and its workers: they have a session of their own."""
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        process.wait()

    def check(self) -> None:
        """Every plan was met, and every row is there once."""
        assert self.points.not_met() == []
        found = Counter(rows_of(self.broker.address))
        assert found == Counter(range(self.expected)), (
            f"missing {sorted(set(range(self.expected)) - set(found))[:10]}, "
            f"more than once {[number for number, count in found.items() if count > 1][:10]}"
        )

    def close(self) -> None:
        self.broker.stop()


def rows_of(address: str, *, isolation: str = "read_committed") -> list[int]:
    """All that a reader sees, up to the end of every partition."""
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": address,
            "group.id": "reader",
            "isolation.level": isolation,
            "enable.partition.eof": True,
            "enable.auto.commit": False,
        }
    )
    consumer.assign([confluent_kafka.TopicPartition(TOPIC, number, 0) for number in range(PARTITIONS)])
    found: list[int] = []
    ends: set[int] = set()
    while len(ends) < PARTITIONS:
        message = consumer.poll(READ_S_MAX)
        assert message is not None, "the last stable offset does not come to the end"
        if message.error() is None:
            found.append(int(message.value()))
        elif message.error().code() == confluent_kafka.KafkaError._PARTITION_EOF:
            ends.add(message.partition())
    consumer.close()
    return found


def kills(folder: Path, chosen: Iterable[tuple[str, str]]) -> int:
    """One kill in each micro-batch, in this order; how many drivers it took."""
    plans = [Plan(victim=victim, point=point, batch=batch) for batch, (victim, point) in enumerate(chosen)]
    run = Run(folder, plans, batches=len(plans) + 1)
    try:
        drivers = run.run_to_the_end()
        run.check()
    finally:
        run.close()
    assert drivers == 1 + sum(plan.victim == DRIVER for plan in plans)
    return drivers


def drawn(seed: int, first: int, count: int) -> list[tuple[str, str]]:
    """Return the kills from the `first` on, of a row in which every one comes before any comes again."""
    draw = random.Random(seed)
    chosen: list[tuple[str, str]] = []
    while len(chosen) < first + count:
        chosen += draw.sample(EVERY_KILL, len(EVERY_KILL))
    return chosen[first : first + count]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.spark.kills.campaign", description=__doc__)
    parser.add_argument("--seed", type=int, default=SEED, help="draws the order of the points")
    parser.add_argument("--first", type=int, default=0, help="leave out this many of them")
    parser.add_argument("--kills", type=int, default=10, help="one in each micro-batch")
    chosen = parser.parse_args()
    planned = drawn(chosen.seed, chosen.first, chosen.kills)
    with tempfile.TemporaryDirectory(prefix="headrace-kills-") as folder:
        drivers = kills(Path(folder), planned)
    print(f"{len(planned)} kills, {drivers} drivers, every row once")


if __name__ == "__main__":
    main()
