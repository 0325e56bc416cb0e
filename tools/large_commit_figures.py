"""Measure the latency of a producer alone and beside another client that commits 16 MiB of offsets per request.

    python -m tools.large_commit_figures [--rounds 7] [--seconds 2]

The producer has one connection with one request of 100 bytes in flight. Rounds alone and beside the commits alternate.
"""

import argparse
import multiprocessing
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.sharedctypes import Synchronized
from statistics import median

from headrace.bench.brokers import HeadraceBroker
from headrace.bench.errors import RunRejected
from headrace.bench.figures import Round
from headrace.bench.links import BenchConnection
from headrace.bench.loads import ProduceLoad
from headrace.bench.machine import bench_folder
from headrace.bench.produce import ProduceRounds
from headrace.bench.replay import ReplayClient
from headrace.bench.topics import create_topics
from headrace.wire.messages import offset_commit
from tools.bench.commits import COMMIT_VERSION, wait_for_coordinators

PARTITIONS = 4_170
METADATA_BYTES = 4_000
GROUP = "large-commits"
TOPIC = "committed"


def large_commit() -> offset_commit.OffsetCommitRequest:
    partitions = tuple(
        offset_commit.OffsetCommitRequestPartition(
            partition_index=number, committed_offset=0, committed_metadata="m" * METADATA_BYTES
        )
        for number in range(PARTITIONS)
    )
    topic = offset_commit.OffsetCommitRequestTopic(name=TOPIC, partitions=partitions)
    return offset_commit.OffsetCommitRequest(group_id=GROUP, topics=(topic,))


def commit_forever(address: str, commits: "Synchronized[int]") -> None:
    request = large_commit()
    with BenchConnection(address) as link:
        while True:
            response = link.call(offset_commit, request, COMMIT_VERSION)
            errors = {partition.error_code for topic in response.topics for partition in topic.partitions}
            if errors != {0}:
                raise RunRejected(f"a commit was answered with the error codes {sorted(errors)}")
            with commits.get_lock():
                commits.value += 1


@contextmanager
def beside_commits(address: str) -> Iterator["Synchronized[int]"]:
    """Run the committing client in a process of its own; check at the end that it committed something."""
    commits = multiprocessing.Value("i", 0)
    process = multiprocessing.Process(target=commit_forever, args=(address, commits), daemon=True)
    process.start()
    try:
        yield commits
    finally:
        process.kill()
        process.join()
    if not commits.value:
        raise RunRejected("no commit was answered while the producer ran")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=2.0)
    asked = parser.parse_args()
    load = ProduceLoad(
        connections=1, depth=1, records=1, record_bytes=100, partitions=1, acks=-1, seconds=asked.seconds
    )
    alone: list[Round] = []
    beside: list[Round] = []
    with bench_folder(None) as folder, HeadraceBroker(folder / "broker").start() as broker:
        client = ReplayClient(folder)
        create_topics(broker.address, [TOPIC], partitions=PARTITIONS)
        wait_for_coordinators(broker.address, [GROUP])
        produce = ProduceRounds(broker, client, load, topic="produced")
        produce()
        for number in range(asked.rounds):
            alone.append(produce())
            with beside_commits(broker.address) as commits:
                beside.append(produce())
            ratio = beside[-1]["p99_us"] / alone[-1]["p99_us"]
            print(
                f"round {number + 1}: alone p50 {alone[-1]['p50_us']:.0f} us, p99 {alone[-1]['p99_us']:.0f} us; "
                f"beside {commits.value} commits p50 {beside[-1]['p50_us']:.0f} us, p99 {beside[-1]['p99_us']:.0f} us; "
                f"{ratio:.2f} times",
                flush=True,
            )
    p99_alone, p99_beside = (median(one["p99_us"] for one in rounds) for rounds in (alone, beside))
    print(f"median p99: alone {p99_alone:.0f} us, beside {p99_beside:.0f} us, {p99_beside / p99_alone:.2f} times")


if __name__ == "__main__":
    main()
