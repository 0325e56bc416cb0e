"""Every case of compat/cases with every client of the development environment, against a broker process."""

import pytest

from compat.adapters import features
from compat.cases import CASES, Case
from headrace.testing import EmbeddedBroker
from tests.client.stock.conftest import ClientOf

pytestmark = [pytest.mark.process, pytest.mark.record_integrity]

CLIENTS = ("confluent-kafka", "kafka-python", "aiokafka", "kcat")
PAIRS = [(name, case) for name in CLIENTS for case in CASES if case.needs <= features(name)]


@pytest.mark.parametrize(("name", "case"), PAIRS, ids=[f"{name}-{case.name}".replace(" ", "_") for name, case in PAIRS])
def test_case(name: str, case: Case, client_of: ClientOf, request: pytest.FixtureRequest) -> None:
    broker: EmbeddedBroker = request.getfixturevalue("auto_creating_broker" if case.auto_creation else "broker")
    client = client_of(name, broker)
    topic = broker.unused_topic_name(f"{name}-{case.name}")
    if not case.without_topic:
        broker.create_topic(topic, partitions=case.partitions, configs=case.configs)
    case.run(client, topic)
