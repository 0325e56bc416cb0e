"""Fixtures for tests that need a broker: one per test, one for the whole run, a cluster, or only a topic."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from headrace.testing.cluster import EmbeddedCluster
    from headrace.testing.embedded import EmbeddedBroker
    from headrace.testing.security import BrokerSecurity


def _embedded() -> "EmbeddedBroker":
    # Imported late: a test run that uses no fixture of this plugin does not pay for the broker.
    from headrace.testing.embedded import EmbeddedBroker

    return EmbeddedBroker()


@pytest.fixture
def headrace_broker() -> "Iterator[EmbeddedBroker]":
    """An empty broker for this test alone, started in milliseconds."""
    with _embedded() as broker:
        yield broker


@pytest.fixture
def headrace_security() -> "BrokerSecurity":
    """The security of `headrace_secure_broker`: TLS and SCRAM. Define a fixture of this name for other users."""
    from headrace.testing.security import BrokerSecurity

    return BrokerSecurity()


@pytest.fixture
def headrace_secure_broker(headrace_security: "BrokerSecurity") -> "Iterator[EmbeddedBroker]":
    """A broker for this test alone, whose clients need TLS and a password: see `client_settings`."""
    from headrace.testing.embedded import EmbeddedBroker

    with EmbeddedBroker(security=headrace_security) as broker:
        yield broker


@pytest.fixture(scope="session")
def headrace_session_broker() -> "Iterator[EmbeddedBroker]":
    """One broker for all tests of the run (of the worker, under pytest-xdist)."""
    with _embedded() as broker:
        yield broker


@pytest.fixture
def headrace_cluster() -> "Iterator[EmbeddedCluster]":
    """A cluster of three brokers for this test alone, each a process of its own."""
    from headrace.testing.cluster import EmbeddedCluster

    with EmbeddedCluster() as cluster:
        yield cluster


@pytest.fixture
def headrace_topic(headrace_session_broker: "EmbeddedBroker", request: pytest.FixtureRequest) -> "Iterator[str]":
    """A topic for this test alone on the session's broker, named after the test and deleted afterwards."""
    broker = headrace_session_broker
    topic = broker.create_topic(broker.unused_topic_name(request.node.name))
    yield topic
    broker.delete_topic(topic)
