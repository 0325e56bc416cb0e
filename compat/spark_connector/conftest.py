"""One Spark session with the connector's jars, one broker process, and a topic with everything that a row can have."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from compat.spark_connector.rows import TIMED, TOPIC, fill
from headrace.testing import EmbeddedBroker
from tests.spark.sessions import running_session
from tools.bench.spark.connector import connector_jars

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TEST_SECONDS_MAX = 300


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        item.add_marker(pytest.mark.timeout(TEST_SECONDS_MAX))


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> "Iterator[SparkSession]":
    conf = {"spark.jars": ",".join(map(str, connector_jars()))}
    with running_session("headrace-compat", tmp_path_factory.mktemp("spark"), conf) as started:
        yield started


@pytest.fixture(scope="session")
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(process=True) as started:
        fill(started, TOPIC)
        fill(started, TIMED, kinds=["plain"])
        yield started
