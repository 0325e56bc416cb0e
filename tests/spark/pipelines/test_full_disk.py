"""A disk that is full under the checkpoint: the run ends with a word on it, and the next one goes on without a loss."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from headrace.spark.pipelines.records import RunState
from headrace.testing.embedded import EmbeddedBroker
from tests.small_disks import small_file_system
from tests.spark.pipelines.helpers import read_records, run_once, send, values, write_pipeline

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DISK_BYTES = 512 * 1024
PIPELINE = """\
name: {name}
source: {{topic: {name}, format: json, schema: "id INT NOT NULL", rows_per_batch: 10}}
sink: {{topic: {name}-out}}
checkpoint: {checkpoint}
restart: {{attempts: 0}}
"""


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / "small"
    path.mkdir()
    with small_file_system(path, DISK_BYTES):
        yield path


def fill(file: Path) -> None:
    with file.open("wb", buffering=0) as opened:
        while True:
            opened.write(bytes(1024))


def test_a_full_disk_under_the_checkpoint_loses_nothing(
    spark: "SparkSession", broker: EmbeddedBroker, small_disk: Path, tmp_path: Path
) -> None:
    name = broker.create_topic(broker.unused_topic_name("full-disk"), partitions=2)
    folder = write_pipeline(tmp_path, PIPELINE.format(name=name, checkpoint=small_disk / "checkpoint"))
    send(broker.bootstrap_servers, name, ({"id": number} for number in range(20)))
    assert run_once(folder, spark, broker.bootstrap_servers).state is RunState.DONE
    filler = small_disk / "filler"
    with pytest.raises(OSError, match="No space"):
        fill(filler)
    send(broker.bootstrap_servers, name, ({"id": number} for number in range(20, 50)))
    outcome = run_once(folder, spark, broker.bootstrap_servers)
    assert outcome.state is RunState.FAILED
    assert "the disk is full: free some space, then run it again" in outcome.message
    filler.unlink()
    assert run_once(folder, spark, broker.bootstrap_servers).state is RunState.DONE
    found = sorted(row["id"] for row in values(read_records(broker.bootstrap_servers, f"{name}-out")))
    assert found == list(range(50))
