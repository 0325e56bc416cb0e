"""Clients beside each other: what any of them writes, every other reads, whatever the compression."""

import pytest

from compat.adapters import features
from compat.cases.case import assert_same, digest, sample
from compat.client import COMPRESSIONS, Feature, Message, Sending
from headrace.testing import EmbeddedBroker
from tests.client.stock.conftest import ClientOf
from tests.client.stock.test_clients import CLIENTS

pytestmark = [pytest.mark.process, pytest.mark.record_integrity]


@pytest.mark.parametrize("writer", CLIENTS)
def test_every_client_reads_what_one_wrote(writer: str, broker: EmbeddedBroker, client_of: ClientOf) -> None:
    topic = broker.create_topic(broker.unused_topic_name(f"from-{writer}"))
    messages: list[Message] = []
    for place, compression in enumerate(COMPRESSIONS):
        part = sample(60, seed=100 + place, value_size=400)
        client_of(writer, broker).send(topic, part, Sending(compression=compression))
        messages += part
    for reader in CLIENTS:
        assert_same(client_of(reader, broker).read(topic, len(messages)), messages)


def test_clients_write_to_one_partition_in_turns(broker: EmbeddedBroker, client_of: ClientOf) -> None:
    """Idempotent writers with sequences of their own, batches of five compressions, one order for all readers."""
    topic = broker.create_topic(broker.unused_topic_name("in-turns"))
    messages: list[Message] = []
    for turn, compression in enumerate(COMPRESSIONS):
        for place, writer in enumerate(CLIENTS):
            part = sample(10, seed=200 + 10 * turn + place)
            idempotent = Feature.IDEMPOTENCE in features(writer)
            client_of(writer, broker).send(topic, part, Sending(compression=compression, idempotent=idempotent))
            messages += part
    received = {reader: client_of(reader, broker).read(topic, len(messages)) for reader in CLIENTS}
    for reader in CLIENTS:
        assert_same(received[reader], messages)
    assert len({digest(records) for records in received.values()}) == 1


@pytest.mark.parametrize("reader", CLIENTS)
def test_a_waiting_reader_sees_what_another_client_writes(
    reader: str, broker: EmbeddedBroker, client_of: ClientOf
) -> None:
    topic = broker.create_topic(broker.unused_topic_name(f"to-{reader}"))
    following = client_of(reader, broker).reader(topic, 0)
    try:
        messages: list[Message] = []
        received = []
        for place, writer in enumerate(CLIENTS):
            part = sample(5, seed=300 + place)
            client_of(writer, broker).send(topic, part)
            messages += part
            received += following.read(5)
        assert_same(received, messages)
    finally:
        following.close()
