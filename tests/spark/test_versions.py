"""A Spark that lacks what is needed is refused by name where a user first meets it, not within a worker."""

from pathlib import Path

import pyspark
import pytest

from headrace.spark.data_source import HeadraceDataSource
from headrace.spark.pipelines.definition_reader import read_pipeline
from headrace.spark.pipelines.runner import Runner
from headrace.spark.session_launcher import session
from headrace.spark.sink.tables.sources import DeltaSink, ParquetSink
from headrace.spark.versions import UnsupportedSpark, check_version
from headrace.testing import EmbeddedBroker
from tests.spark.pipelines.helpers import write_pipeline

pytestmark = pytest.mark.process

PIPELINE = "name: p\nsource: {topic: in}\nsink: {topic: out}\n"


@pytest.mark.parametrize("version", ["4.2.0", "4.3.0", "4.10.1", "4.3.0.dev1"])
def test_supported_versions(version: str) -> None:
    check_version(version)


@pytest.mark.parametrize("version", ["3.5.7", "4.0.5", "4.1.4", "5.0.0", "nightly"])
def test_other_versions_are_refused_where_they_are_met(
    version: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(pyspark, "__version__", version)
    said = rf"Spark {version} is not supported: headrace works with Spark 4\.2 and newer, below 5: pip install"
    for source in (HeadraceDataSource, DeltaSink, ParquetSink):
        with pytest.raises(UnsupportedSpark, match=said):
            source({"subscribe": "t", "kafka.bootstrap.servers": "h:1", "path": "/x"})
    with pytest.raises(UnsupportedSpark, match=said):
        session()
    pipeline = read_pipeline(write_pipeline(tmp_path, PIPELINE))
    with pytest.raises(UnsupportedSpark, match=said):
        Runner(pipeline=pipeline, bootstrap="127.0.0.1:1", make_session=session, is_once=True).run()


def test_a_runner_on_a_session_of_spark_connect_is_refused(tmp_path: Path) -> None:
    pipeline = read_pipeline(write_pipeline(tmp_path, PIPELINE))
    with EmbeddedBroker() as broker:
        broker.create_topic("in")
        runner = Runner(
            pipeline=pipeline,
            bootstrap=broker.bootstrap_servers,
            make_session=object,  # type: ignore[arg-type]  # one of Connect is of another class than the classic one
            is_once=True,
        )
        with pytest.raises(
            UnsupportedSpark, match=r"needs a classic Spark session, but this is a Spark Connect session"
        ):
            runner.run()
