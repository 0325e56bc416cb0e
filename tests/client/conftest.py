"""The broker that the tests of the client's fronts run against: Headrace's, or Apache Kafka's where that is asked for.

`make compat` sets HEADRACE_CLIENT_BROKER=kafka, which needs Java and Maven.
"""

import os
from collections.abc import Iterator

import pytest

from headrace.testing import EmbeddedBroker

from .fronts import NAMES, WAITING_FRONTS, Front

KAFKA_SETTINGS = {
    "auto.create.topics.enable": "false",
    "group.initial.rebalance.delay.ms": "0",
    "group.consumer.heartbeat.interval.ms": "100",
    "group.consumer.min.heartbeat.interval.ms": "100",
}


@pytest.fixture(scope="module")
def any_broker() -> Iterator[EmbeddedBroker]:
    if os.environ.get("HEADRACE_CLIENT_BROKER") == "kafka":
        from compat.kafka import apache_kafka

        with apache_kafka(KAFKA_SETTINGS) as kafka:
            yield kafka  # type: ignore[misc]  # it has what these tests use of an embedded broker
    else:
        with EmbeddedBroker(config={"group.consumer.heartbeat.interval.ms": "100"}) as running:
            yield running


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "front" in metafunc.fixturenames:
        fronts = getattr(metafunc.module, "FRONTS", WAITING_FRONTS)
        metafunc.parametrize("front", fronts, ids=lambda front: front.name, indirect=True)


@pytest.fixture
def front(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Front]:
    """Each front in turn, in the place of the classes that the module of the test imports."""
    opened: Front = request.param()
    for name in NAMES:
        if hasattr(request.module, name):
            monkeypatch.setattr(request.module, name, getattr(opened, name))
    yield opened
    opened.close()
