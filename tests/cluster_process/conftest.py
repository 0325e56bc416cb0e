"""One cluster of three broker processes for the tests of a module."""

from collections.abc import Iterator

import pytest

from headrace.testing import EmbeddedCluster


@pytest.fixture(scope="module")
def cluster() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster(brokers=3, config={"auto.create.topics.enable": "false"}) as running:
        yield running


@pytest.fixture
def topic(cluster: EmbeddedCluster, request: pytest.FixtureRequest) -> str:
    """A topic of this test alone, with two partitions on each broker."""
    return cluster.create_topic(cluster.unused_topic_name(request.node.name), partitions=6)
