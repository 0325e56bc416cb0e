"""Pipeline load: `headrace pipeline run` on orders, from its start to output rows that are checked."""

import json
import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

from headrace.bench import processes
from headrace.bench.brokers import HeadraceBroker
from headrace.bench.errors import BenchError, RunRejected
from headrace.bench.figures import Round
from headrace.bench.orders import DEAD, PIPELINE_FILE, RESULTS, TOPIC, send_orders
from headrace.bench.topics import create_topics
from headrace.client import EARLIEST, Admin, Consumer, TopicPartition
from headrace.client.blocking.whole_topics import read_topic
from headrace.model.errors import ErrorCode
from tools.bench.paced_orders import STAMPED, PacedSender, encoded_ticks
from tools.bench.targets import Target

PARTITIONS = 4
SEED = 7
VALIDATE = "validate, without Spark"
FIRST_BATCH = "run to the first batch"
VALIDATE_SECONDS = 1.0
"""At most."""
TOLD = TopicPartition("__headrace_pipelines", 0)
"""The topic to which pipeline runs report their batches."""
FEW_ORDERS = 1_000
RUN_SECONDS_MAX = 900
VALIDATE_SECONDS_MAX = 60
POLL_MS = 200
SUSTAINED_GROWTH_MAX = 1.25
"""Maximum ratio of the waits in the last quarter to those in the quarter before: more means a growing queue."""

Batch = Mapping[str, Any]


class PipelineRun:
    """A process that runs the pipeline of the orders, and the batches that it has reported."""

    def __init__(self, folder: Path, bootstrap: str) -> None:
        self._folder, self._messages = folder, folder / "messages.txt"
        self.batches: list[Batch] = []
        write_pipeline(folder)
        self._admin, self._consumer = Admin(bootstrap), Consumer(bootstrap_servers=bootstrap)
        self.began = time.time()
        command = ("-m", "headrace", "pipeline", "run", str(folder), "--continuous", "--bootstrap", bootstrap)
        self.process = processes.start(processes.python_command(*command), messages=self._messages)
        self._is_assigned = False

    def follow(self) -> None:
        """Poll once for newly reported batches."""
        if self.process.poll() is not None:
            raise RunRejected(f"the pipeline has ended{processes.last_words(self._messages)}")
        if time.time() - self.began > RUN_SECONDS_MAX:
            raise RunRejected(f"the pipeline has not finished within {RUN_SECONDS_MAX} s")
        if not self._is_assigned:
            if self._admin.topics([TOLD.topic])[0].error is not ErrorCode.NONE:
                time.sleep(POLL_MS / 1000)
                return
            self._consumer.assign([TOLD])
            self._consumer.seek(TOLD, EARLIEST)
            self._is_assigned = True
        for record in self._consumer.poll(timeout_ms=POLL_MS):
            told = json.loads(record.value)
            if told["kind"] == "batch":
                self.batches.append(told)

    def rows(self, kind: str) -> int:
        return sum(batch["rows"][kind] for batch in self.batches)

    def has_all(self, orders: int) -> bool:
        """Tell whether all records including the closing ones are read and no window is open."""
        return self.rows("read") == orders + PARTITIONS and self.batches[-1]["state_rows"] == 0

    def close(self) -> None:
        self._consumer.close()
        self._admin.close()
        processes.stop(self.process)

    def __enter__(self) -> "PipelineRun":
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()


def write_pipeline(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copy(PIPELINE_FILE, folder / "pipeline.yml")


@contextmanager
def _broker(folder: Path, *, stamped: bool = False) -> Iterator[HeadraceBroker]:
    """Start a new broker with the topics of the orders."""
    with HeadraceBroker(folder / "broker") as broker:
        broker.start()
        create_topics(broker.address, [TOPIC], partitions=PARTITIONS, configs=STAMPED if stamped else None)
        create_topics(broker.address, [RESULTS, DEAD], partitions=PARTITIONS)
        yield broker


def check_sum(bootstrap: str, run: PipelineRun, sent: int) -> None:
    """Check that every order is in a window, late or dead; each of the three is counted separately."""
    settings = {"bootstrap.servers": bootstrap}
    aggregated = sum(json.loads(record.value)["orders"] for record in read_topic(settings, RESULTS))
    dead = sum(1 for _ in read_topic(settings, DEAD))
    late = run.rows("late")
    if sent != aggregated + late + dead or not aggregated or not dead:
        raise RunRejected(f"{sent:,} orders were sent, but {aggregated:,} are aggregated, {late:,} late, {dead:,} dead")


def validate(folder: Path) -> Round:
    """Measure the command on a valid file, from start to exit."""
    write_pipeline(folder)
    began = time.monotonic()
    command = processes.python_command("-m", "headrace", "pipeline", "validate", str(folder))
    done = subprocess.run(command, capture_output=True, text=True, timeout=VALIDATE_SECONDS_MAX)
    seconds = time.monotonic() - began
    if done.returncode != 0 or "is valid" not in done.stdout:
        raise RunRejected(f"validate failed: {done.stdout}{done.stderr[-2000:]}")
    return {"seconds": seconds}


def first_batch(folder: Path) -> Round:
    """Measure from the start of the command until the first batch of a few orders is written."""
    with _broker(folder) as broker:
        for _ in send_orders(broker.address, TOPIC, FEW_ORDERS, SEED):
            pass
        with PipelineRun(folder / "pipeline", broker.address) as run:
            while not run.batches:
                run.follow()
            return {"seconds": _done(run.batches[0]) - run.began}


def all_orders(folder: Path, count: int) -> Round:
    """Measure orders that exist already, from the start of the command until all are written."""
    with _broker(folder) as broker:
        for _ in send_orders(broker.address, TOPIC, count, SEED):
            pass
        with PipelineRun(folder / "pipeline", broker.address) as run:
            while not (run.batches and run.has_all(count)):
                run.follow()
            cpu_seconds = processes.cpu_seconds(run.process.pid)
            check_sum(broker.address, run, count)
            first, last = run.batches[0], run.batches[-1]
            found = {
                "events_per_second": count / (_done(last) - run.began),
                "cpu_us_per_event": cpu_seconds / count * 1e6,
                "seconds": _done(last) - run.began,
            }
            if first["rows"]["read"] < count:  # there was more than one batch with orders
                found["warm_events_per_second"] = (count - first["rows"]["read"]) / (_done(last) - _done(first))
            return found


def steady(folder: Path, *, rate: int, seconds: int) -> Round:
    """Measure the waits of orders from a producer at a steady rate, in the second half, when everything is warm."""
    count = rate * seconds
    ticks = encoded_ticks(TOPIC, count, partitions=PARTITIONS, per_second=rate, seed=SEED)
    with _broker(folder, stamped=True) as broker, PipelineRun(folder / "pipeline", broker.address) as run:
        while not run.batches:
            run.follow()  # the first batch is always planned without records
        with PacedSender(broker.address, ticks, partitions=PARTITIONS) as sender:
            cpu_seconds, cpu_at = 0.0, 0
            while not sender.is_done:
                run.follow()
                if not cpu_at and len(sender.times) > len(ticks) // 2:
                    cpu_seconds, cpu_at = processes.cpu_seconds(run.process.pid), run.rows("read")
            cpu_seconds = processes.cpu_seconds(run.process.pid) - cpu_seconds
            cpu_events = run.rows("read") - cpu_at
            while not run.has_all(count):
                run.follow()
        check_sum(broker.address, run, count)
    return _judged(run, sender, cpu_us_per_event=cpu_seconds / max(cpu_events, 1) * 1e6)


def _judged(run: PipelineRun, sender: PacedSender, *, cpu_us_per_event: float) -> Round:
    began, ended = sender.times[0], sender.times[-1]
    waits: list[list[float]] = [[], []]
    """Return the longest wait of each batch that ended in the third and in the last quarter of the run."""
    lags = []
    for before, batch in zip(run.batches, run.batches[1:], strict=False):
        done, first = _done(batch), sender.oldest(_places(before))
        middle = began + (ended - began) / 2
        if first is None or not middle <= done <= ended:
            continue
        unread = sender.oldest(_places(batch))
        lags.append(max(done - unread, 0.0) if unread is not None else 0.0)
        waits[done > middle + (ended - middle) / 2].append(done - first)
    if not all(waits):
        raise RunRejected("no batch ended in a quarter of the run: send for longer")
    return {
        "offered_per_second": sender.rate(),
        "lag_p50_seconds": median(lags),
        "wait_p50_seconds": median(waits[0] + waits[1]),
        "wait_max_seconds": max(waits[0] + waits[1]),
        "wait_growth": median(waits[1]) / median(waits[0]),
        "cpu_us_per_event": cpu_us_per_event,
    }


def is_sustained(found: Round) -> bool:
    return found["wait_growth"] <= SUSTAINED_GROWTH_MAX


def targets(rate: int) -> tuple[Target, ...]:
    return (
        Target(VALIDATE, "seconds", True, VALIDATE_SECONDS),
        Target(steady_name(rate), "wait_growth", True, SUSTAINED_GROWTH_MAX),
    )


def steady_name(rate: int) -> str:
    return f"steady {rate:,} orders/s"


def _done(batch: Batch) -> float:
    """Return seconds since 1970."""
    return float(batch["began_ms"] / 1000 + batch["seconds"])


def _places(batch: Batch) -> Iterator[tuple[int, int]]:
    """Return the first records that a batch has not read, by partition and offset."""
    ends = batch["ends"].get(TOPIC)
    if ends is None:
        raise BenchError("a batch does not report its end offsets")
    return ((int(partition), int(offset)) for partition, offset in ends.items())
