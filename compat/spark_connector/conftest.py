"""One Spark session with the connector's jars, one broker process, and a topic with everything that a row can have."""

import logging
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from compat.spark_connector.rows import TIMED, TOPIC, fill
from headrace.bench.spark.connector import connector_jars
from headrace.spark import session
from headrace.testing import EmbeddedBroker

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TEST_SECONDS_MAX = 300


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        item.add_marker(pytest.mark.timeout(TEST_SECONDS_MAX))


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> "Iterator[SparkSession]":
    folder = tmp_path_factory.mktemp("spark")
    logging.getLogger("py4j").setLevel(logging.ERROR)
    started = session(
        "headrace-compat",
        master="local[2]",
        conf={
            "spark.jars": ",".join(map(str, connector_jars())),
            "spark.ui.enabled": "false",
            "spark.sql.warehouse.dir": str(folder / "warehouse"),
            "spark.local.dir": str(folder / "local"),
            "spark.sql.session.timeZone": "UTC",
        },
    )
    started.sparkContext.setLogLevel("OFF")
    yield started
    started.stop()


@pytest.fixture(scope="session")
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(process=True) as started:
        fill(started, TOPIC)
        fill(started, TIMED, kinds=["plain"])
        yield started
