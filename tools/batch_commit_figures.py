"""Batch commits of an older commit of this repository beside this one: what a commit takes, and the broker's CPU.

    python -m tools.batch_commit_figures COMMIT [--rounds 4] [--batches 30]

Tasks write records to all partitions of a topic, as tasks of Spark's sink do, and one request commits what they wrote.
The brokers run in turns; the client, the Python and the packages are the same for both.
"""

import argparse
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from statistics import median, quantiles
from typing import NamedTuple

from headrace.bench.brokers import BrokerProcess
from headrace.bench.machine import bench_folder
from headrace.bench.topics import create_topics
from headrace.client import Producer
from headrace.client.batch_commits import BatchOutcome, BatchWriter
from headrace.client.blocking.batch_commits import BatchCommits
from headrace.client.types import PreparedTransaction
from tools.commit_figures import ROOT, CommitBroker, source_of

TASKS = 4
PARTITIONS = 8
RECORDS_PER_PARTITION = 25
RECORD_BYTES = 1_000


class Figures(NamedTuple):
    tasks_ms: list[float]
    commits_ms: list[float]
    cpu_ms_per_batch: float


def write_task(address: str, writer: BatchWriter, topic: str) -> None:
    lent = PreparedTransaction(
        transactional_id=writer.transactional_id,
        producer_id=writer.producer_id,
        producer_epoch=writer.producer_epoch,
        partitions=(),
        has_offsets=False,
    )
    with Producer(bootstrap_servers=address, transactional_id=writer.transactional_id, linger_ms=5) as producer:
        transaction = producer.adopt(lent)
        for _ in range(RECORDS_PER_PARTITION):
            for partition in range(PARTITIONS):
                producer.send(topic, value=bytes(RECORD_BYTES), partition=partition)
        transaction.hand_over()


def measure(broker: BrokerProcess, topic: str, batches: int) -> Figures:
    create_topics(broker.address, [topic], partitions=PARTITIONS)
    tasks_ms, commits_ms = [], []
    with BatchCommits(broker.address, timeout_ms=60_000) as batch_commits, ThreadPoolExecutor(TASKS) as pool:
        cpu_before = broker.cpu_seconds() or 0.0
        for batch in range(batches):
            began = time.perf_counter()
            writers = [
                batch_commits.begin_batch_writer(topic, run="1", batch_id=batch, task_attempt_id=batch * TASKS + number)
                for number in range(TASKS)
            ]
            lent = [writer for writer in writers if writer is not None]
            list(pool.map(lambda writer: write_task(broker.address, writer, topic), lent))
            written = time.perf_counter()
            assert batch_commits.commit_batch(topic, run="1", batch_id=batch, writers=lent) is BatchOutcome.COMMITTED
            tasks_ms.append((written - began) * 1000)
            commits_ms.append((time.perf_counter() - written) * 1000)
        cpu_seconds = (broker.cpu_seconds() or 0.0) - cpu_before
    return Figures(tasks_ms, commits_ms, cpu_seconds * 1000 / batches)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("commit")
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--batches", type=int, default=30)
    arguments = parser.parse_args()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(bench_folder(None)))
        sources = {arguments.commit: source_of(arguments.commit, folder / "older"), "this": ROOT / "src"}
        brokers = {
            name: stack.enter_context(CommitBroker(name, folder / name, source).start())
            for name, source in sources.items()
        }
        found: dict[str, list[Figures]] = {name: [] for name in brokers}
        for number in range(arguments.rounds):
            for name in brokers if number % 2 == 0 else reversed(brokers):
                found[name].append(measure(brokers[name], f"batches-{number}", arguments.batches))
    print(f"{TASKS} tasks x {PARTITIONS} partitions x {RECORDS_PER_PARTITION} records of {RECORD_BYTES} bytes")
    print("| broker | tasks of a batch, p50 ms | commit, p50 ms | commit, p95 ms | broker's CPU per batch, ms |")
    print("|---|---|---|---|---|")
    for name, rounds in found.items():
        commits = [each for figures in rounds for each in figures.commits_ms]
        tasks = [each for figures in rounds for each in figures.tasks_ms]
        cpu_ms = median(figures.cpu_ms_per_batch for figures in rounds)
        p95 = quantiles(commits, n=20)[-1]
        print(f"| {name} | {median(tasks):.1f} | {median(commits):.1f} | {p95:.1f} | {cpu_ms:.1f} |")


if __name__ == "__main__":
    main()
