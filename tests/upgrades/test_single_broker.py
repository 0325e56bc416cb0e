"""A data folder of a broker without a quorum becomes that of a one-voter cluster, which can grow to three."""

import tarfile
from pathlib import Path
from typing import Any

import pytest

from headrace.client import Consumer
from headrace.log.checkpoints import decode_properties
from headrace.testing import EmbeddedBroker
from tests.cluster.quorum_nodes import QuorumCluster
from tests.upgrades.make_single_broker import ARCHIVE, BROKER_CONFIG, RECORDS, TOPICS


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(tmp_path, filter="data")
    return tmp_path / "data"


@pytest.mark.process
def test_the_folder_is_served_with_every_topic_and_record(folder: Path) -> None:
    for _ in range(2):  # the second start reads a folder of this release
        with EmbeddedBroker(data_dir=str(folder), config=BROKER_CONFIG) as broker:
            settings: Any = {"auto_offset_reset": "earliest"}
            with Consumer(*TOPICS, bootstrap_servers=broker.bootstrap_servers, **settings) as consumer:
                found: list[tuple[str, bytes]] = []
                while len(found) < len(TOPICS) * RECORDS:
                    found += [(record.topic, bytes(record.value)) for record in consumer.poll(timeout_ms=10_000)]
    assert sorted(found) == sorted((topic, str(value).encode()) for topic in TOPICS for value in range(RECORDS))


def test_it_grows_to_three_voters(folder: Path) -> None:
    cluster = QuorumCluster()
    founder = cluster.node(1)
    founder.directory = decode_properties((folder / "meta.properties").read_bytes())["directory.id"]
    founder.founds = False  # a folder with metadata is never new
    disk = founder.machine.disk
    disk.make_directory("data/__cluster_metadata-0")
    for path in (folder / "__cluster_metadata-0").iterdir():
        file = disk.open(f"data/__cluster_metadata-0/{path.name}", create=True)
        disk.write_vector(file, [path.read_bytes()], 0)
        disk.data_sync(file)
        disk.close(file)
    for name in (".", "data", "data/__cluster_metadata-0"):
        disk.sync_directory(name)
    founder.boot()
    cluster.leader()
    assert founder.quorum.voters == (founder.key,)
    assert founder.topics == TOPICS
    for node_id in (2, 3):
        cluster.node(node_id).boot()
    cluster.run_until(lambda: cluster.has_voters(3))
    cluster.settle()
    assert cluster.node(3).topics == TOPICS
    founder.kill(power=True)
    assert cluster.leader().topics == TOPICS
    founder.boot()
    cluster.settle()
    assert len(founder.quorum.voters) == 3
