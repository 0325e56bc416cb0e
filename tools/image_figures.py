"""Measure the metadata image of a large cluster: memory, loading a snapshot in slices, and a lost broker.

    python -m tools.image_figures [--topics 10000] [--partitions 100] [--brokers 1000]

Every partition has three replicas. The lost broker leads as many partitions as every other one. Times are CPU.
"""

import argparse
import multiprocessing
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from headrace.broker.cluster.snapshots import SnapshotLoading, SnapshotName, write_snapshot
from headrace.core.controller.brokers import fence_broker
from headrace.core.controller.image import MetadataImage
from headrace.core.controller.records import Endpoint, PartitionRecord, Record, RegisterBrokerRecord, TopicRecord
from headrace.core.controller.settings import ControllerSettings
from headrace.model.ids import LeaderEpoch, NodeId, TopicId
from headrace.ports.real.disk import RealDisk

REPLICAS = 3
DIRECTORY = bytes(16)
NAME = SnapshotName(1, 1)


def records(topics: int, partitions: int, brokers: int) -> Iterator[Record]:
    for number in range(brokers):
        endpoint = Endpoint("PLAINTEXT", f"broker-{number}", 9092, "PLAINTEXT")
        yield RegisterBrokerRecord(NodeId(number), bytes(16), number, (endpoint,), None, f"host-{number}")
    for topic in range(topics):
        topic_id = TopicId(topic.to_bytes(16, "big"))
        yield TopicRecord(f"topic-{topic:06}", topic_id)
        for index in range(partitions):
            first = topic * partitions + index
            nodes = tuple(NodeId((first + step) % brokers) for step in range(REPLICAS))
            yield PartitionRecord(topic_id, index, nodes, nodes, nodes[0], LeaderEpoch(0), 0, (DIRECTORY,) * REPLICAS)


def resident_bytes() -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) << 10
    raise OSError("this system does not tell how much memory a process has")


def measure_load(path: str, partitions: int) -> None:
    """Load the snapshot in a process that has nothing else in memory."""
    content = Path(path).read_bytes()
    before = resident_bytes()
    slices: list[float] = []
    began = last = time.process_time()
    loading = SnapshotLoading(content, NAME)
    for _ in loading.slices():
        now = time.process_time()
        slices.append(now - last)
        last = now
    loaded = time.process_time() - began
    memory = resident_bytes() - before
    image = loading.loaded().image
    assert image.partition_count == partitions
    began = time.process_time()
    twin = image.copy()
    copied = time.process_time() - began
    began = time.process_time()
    lost = fence_broker(twin, ControllerSettings(), NodeId(1), 1)
    decided = time.process_time() - began
    print(f"memory of the image {memory / 1e6:.0f} MB")
    print(f"loaded in {loaded:.2f} s, longest slice {max(slices) * 1e3:.1f} ms")
    print(
        f"copied in {copied * 1e3:.1f} ms; {len(lost.records) - 1:,} partitions of a lost broker "
        f"decided in {decided * 1e3:.1f} ms"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--topics", type=int, default=10_000)
    parser.add_argument("--partitions", type=int, default=100, help="of each topic")
    parser.add_argument("--brokers", type=int, default=1_000)
    asked = parser.parse_args()
    image = MetadataImage()
    for record in records(asked.topics, asked.partitions, asked.brokers):
        image.apply(record)
    print(f"{image.partition_count:,} partitions of {asked.topics:,} topics with {REPLICAS} replicas")
    with tempfile.TemporaryDirectory() as folder:
        began = time.process_time()
        write_snapshot(RealDisk(), folder, NAME, image, voters=(), wall_ms=0)
        written = time.process_time() - began
        path = f"{folder}/{NAME.file_name}"
        print(f"snapshot of {Path(path).stat().st_size / 1e6:.0f} MB written in {written:.2f} s", flush=True)
        process = multiprocessing.get_context("spawn").Process(target=measure_load, args=(path, image.partition_count))
        process.start()
        process.join()


if __name__ == "__main__":
    main()
