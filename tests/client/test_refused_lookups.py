"""Offsets by time that the broker refuses for now: the client asks again, and has them all in the end."""

from collections.abc import Iterator

import pytest

from headrace.client import Admin, Producer
from headrace.model.ids import TopicPartition
from headrace.testing import EmbeddedBroker

pytestmark = pytest.mark.process

PARTITIONS = 8
TIME_MS = 1_700_000_000_000


@pytest.fixture(scope="module")
def broker() -> Iterator[EmbeddedBroker]:
    with pytest.MonkeyPatch.context() as patch, EmbeddedBroker() as broker:
        patch.setattr("headrace.broker.api.list_offsets.LOOKUPS_PER_REQUEST_MAX", 3)
        broker.create_topic("t", partitions=PARTITIONS)
        with Producer(bootstrap_servers=broker.bootstrap_servers) as producer:
            for partition in range(PARTITIONS):
                for place in range(3):
                    producer.send("t", b"v", partition=partition, timestamp=TIME_MS + place)
        yield broker


def test_the_client_asks_again_for_what_was_refused(broker: EmbeddedBroker) -> None:
    with Admin(broker.bootstrap_servers) as admin:
        found = admin.offsets({TopicPartition("t", index): TIME_MS + 1 for index in range(PARTITIONS)})
    assert {at.offset for at in found.values()} == {1}
    assert len(found) == PARTITIONS
