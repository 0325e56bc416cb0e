"""Queries on checkpoints and tables of a development version continue or are refused; they never repeat rows."""

import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.dataset as ds
import pytest
from pyspark.errors import StreamingQueryException

from headrace.client.batch_commits import FEATURE, FEATURE_BEFORE
from headrace.client.core.cluster import Cluster
from headrace.client.errors import UnsupportedByBroker
from headrace.spark.sink.identity import Identity
from headrace.spark.sink.options import parse_sink_options
from headrace.spark.sink.tables.batch_commits import Table, WrittenByEarlierVersion
from headrace.spark.sink.tables.delta import DeltaFolder
from headrace.spark.sink.tables.options import TableOptions
from headrace.spark.sink.tables.parquet import ParquetFolder
from headrace.spark.sink.tasks import write_rows
from headrace.testing import EmbeddedBroker
from tests.upgrades.earlier_release import owner, unpack
from tests.upgrades.make_earlier_release import BATCHES, BROKER_CONFIG, KINDS, ROWS, TOPIC, run_once

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

WRITTEN = Counter(range(ROWS * BATCHES))
CONTINUED = Counter(range(ROWS * (BATCHES + 1)))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return unpack(tmp_path)


@pytest.fixture
def old_broker(folder: Path) -> Iterator[EmbeddedBroker]:
    """A broker of this release on the data folder of the earlier one."""
    with EmbeddedBroker(data_dir=str(folder / "data"), config=BROKER_CONFIG) as started:
        yield started


def in_topic(spark: "SparkSession", broker: EmbeddedBroker) -> Counter[int]:
    source = spark.read.format("headrace").option("kafka.bootstrap.servers", broker.bootstrap_servers)
    return Counter(int(row.value) for row in source.option("subscribe", TOPIC).load().collect())


def in_table(folder: Path, kind: str) -> Counter[int]:
    if kind == "headrace-delta":
        from deltalake import DeltaTable

        found: Any = DeltaTable(str(folder / kind)).to_pyarrow_table()
    else:
        found = ds.dataset(str(folder / kind), format="parquet").to_table()
    return Counter(int(value) for value in found["value"].to_pylist())


def test_a_query_to_a_topic_continues_exactly_once(
    spark: "SparkSession", folder: Path, old_broker: EmbeddedBroker
) -> None:
    assert in_topic(spark, old_broker) == WRITTEN
    run_once(spark, "headrace", folder, old_broker.bootstrap_servers)
    assert in_topic(spark, old_broker) == CONTINUED


@pytest.mark.parametrize(
    ("kind", "told"),
    [
        (
            "headrace-delta",
            "under the property headrace.epoch of a development version before 0.1.* another option sinkName",
        ),
        (
            "headrace-parquet",
            "_headrace/epochs/.*, where a development version before 0.1 kept them.* then move it to ",
        ),
    ],
)
def test_a_query_to_an_old_table_is_refused(spark: "SparkSession", folder: Path, kind: str, told: str) -> None:
    with pytest.raises(StreamingQueryException, match=told):
        run_once(spark, kind, folder, "")
    assert in_table(folder, kind) == WRITTEN


def test_a_query_to_a_parquet_folder_continues_when_its_lists_are_moved(spark: "SparkSession", folder: Path) -> None:
    """As the message tells the user to do."""
    own = folder / "headrace-parquet" / "_headrace"
    name = owner(folder, "headrace-parquet")
    with pytest.raises(WrittenByEarlierVersion, match=str(own / "batches" / name)):
        table(folder, "headrace-parquet").committed(name)
    (own / "batches").mkdir()
    os.rename(own / "epochs" / name, own / "batches" / name)
    run_once(spark, "headrace-parquet", folder, "")
    assert in_table(folder, "headrace-parquet") == CONTINUED


def table(folder: Path, kind: str) -> Table:
    options = TableOptions(path=str(folder / kind))
    if kind == "headrace-parquet":
        return ParquetFolder(options)
    import pyarrow as pa

    return DeltaFolder(options, pa.schema([("value", pa.string())]))


@pytest.mark.parametrize("kind", KINDS[1:])
def test_other_owners_may_write_to_an_old_table(folder: Path, kind: str) -> None:
    assert table(folder, kind).committed(f"{owner(folder, kind)}-2") is None


@pytest.mark.parametrize("kind", KINDS[1:])
def test_an_old_table_is_refused_in_every_call(folder: Path, kind: str) -> None:
    found, name = table(folder, kind), owner(folder, kind)
    with pytest.raises(WrittenByEarlierVersion, match="Nothing is written"):
        found.committed(name, "run")
    with pytest.raises(WrittenByEarlierVersion):
        found.note_repeat(Identity(name, "run", BATCHES - 1, 0, "write"), "write")


@pytest.mark.parametrize("delivery", [None, "exactly-once"])
def test_brokers_of_the_earlier_release_are_refused(
    broker: EmbeddedBroker, topic: str, monkeypatch: pytest.MonkeyPatch, delivery: str | None
) -> None:
    """Without the option delivery too: its default on brokers without batch commits is at least once."""
    level = Cluster.feature
    monkeypatch.setattr(
        Cluster,
        "feature",
        lambda cluster, name: 0 if name == FEATURE else int(name == FEATURE_BEFORE) or level(cluster, name),
    )
    given = {} if delivery is None else {"delivery": delivery}
    options = parse_sink_options({"kafka.bootstrap.servers": broker.bootstrap_servers, "topic": topic, **given})
    with pytest.raises(UnsupportedByBroker, match=r"headrace\.epoch\.version is now called headrace\.batch\.version"):
        write_rows([], options, Identity(f"spark.{topic}.sink", "run", 0, 1, "write"))
