"""Topics read to their ends: what is not there is empty, and what cannot be read is an error."""

import pytest

from headrace.client import Producer
from headrace.client.blocking.whole_topics import read_topic
from headrace.client.errors import BrokerError
from headrace.model.errors import ErrorCode
from headrace.testing import EmbeddedBroker

pytestmark = [pytest.mark.process, pytest.mark.record_integrity]


def test_all_that_is_there_is_read_and_a_missing_topic_has_nothing() -> None:
    with EmbeddedBroker() as broker:
        settings = {"bootstrap.servers": broker.bootstrap_servers}
        broker.create_topic("orders", partitions=3)
        with Producer(broker.bootstrap_servers) as producer:
            for number in range(30):
                producer.send("orders", str(number).encode())
        assert sorted(int(record.value or b"") for record in read_topic(settings, "orders")) == list(range(30))
        assert list(read_topic(settings, "order")) == []


def test_a_topic_that_cannot_be_asked_for_is_no_empty_one() -> None:
    with EmbeddedBroker() as broker:
        records = read_topic({"bootstrap.servers": broker.bootstrap_servers}, "orders of today")
        with pytest.raises(BrokerError, match=r'topic "orders of today" cannot be read.*names have at most') as refused:
            next(records)
    assert refused.value.code == ErrorCode.INVALID_TOPIC_EXCEPTION
