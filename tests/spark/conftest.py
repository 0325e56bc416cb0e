"""One Spark session and one broker for all tests of a process; `tools/module_scheduler.py` keeps most in one worker."""

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from headrace.testing.embedded import EmbeddedBroker
from tests.spark.sessions import FAST_START, FEW_ROWS, running_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

for name in ("SPARK_SUBMIT_OPTS", "SPARK_DAEMON_JAVA_OPTS"):
    os.environ.setdefault(name, FAST_START)
TEST_SECONDS_MAX = 600
"""The first test also waits for Spark's start, which a busy machine draws out."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark every test that uses the session; tests that start Spark in a process of their own carry the marker."""
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.spark)
            item.add_marker(pytest.mark.timeout(TEST_SECONDS_MAX))


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> "Iterator[SparkSession]":
    """Other settings than these need a process of their own."""
    conf = {**FEW_ROWS, "spark.sql.shuffle.partitions": "2", "spark.driver.memory": "1g"}
    with running_session("headrace-tests", tmp_path_factory.mktemp("spark"), conf) as started:
        yield started


@pytest.fixture(scope="session")
def broker() -> Iterator[EmbeddedBroker]:
    """Nothing is too old for it: some tests write records of long ago, and retention looks every few minutes."""
    with EmbeddedBroker(config={"log.retention.ms": "-1"}) as started:
        yield started


@pytest.fixture
def topic(broker: EmbeddedBroker, request: pytest.FixtureRequest) -> Iterator[str]:
    """A topic of two partitions, of this test's own."""
    name = broker.create_topic(broker.unused_topic_name(request.node.name), partitions=2)
    yield name
    if name in known_topics(broker):
        broker.delete_topic(name)


def known_topics(broker: EmbeddedBroker) -> set[str]:
    from headrace.client import Admin

    with Admin(broker.bootstrap_servers) as admin:
        return {each.name for each in admin.topics()}
