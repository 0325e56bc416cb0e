"""Dead letters that are sent again: where there are none, and with headers that anybody may have put on a record."""

import pytest

from headrace.client import Producer
from headrace.client.blocking.whole_topics import read_topic
from headrace.client.errors import ClientError
from headrace.spark.pipelines.letters import REPLAYED_HEADER, Replay, replay
from headrace.testing import EmbeddedBroker

TIME_MS = 1_700_000_000_000


def test_before_the_first_run_there_are_no_letters() -> None:
    with EmbeddedBroker() as broker:
        settings = {"bootstrap.servers": broker.bootstrap_servers}
        with pytest.raises(ClientError, match='no dead letters yet: topic "orders-dead"'):
            replay(settings, pipeline="shop", topic="orders-dead", chosen=lambda _letter: True)


def test_headers_that_look_like_ours_hold_up_no_letter() -> None:
    with EmbeddedBroker() as broker:
        for topic in ("orders", "dead"):
            broker.create_topic(topic)
        strange = [b"", b"twice", b"\xff", b"9" * 5_000, None, b"3"]
        with Producer(broker.bootstrap_servers) as producer:
            for number, times in enumerate(strange):
                ours = [("hr-dead-topic", b"orders"), ("hr-dead-timestamp", b"%d" % TIME_MS)]
                producer.send("dead", b"%d" % number, headers=[("own", b"x"), (REPLAYED_HEADER, times), *ours])
        settings = {"bootstrap.servers": broker.bootstrap_servers}
        found = replay(settings, pipeline="p", topic="dead", chosen=lambda _letter: True)
        assert found == Replay(sent=len(strange), passed_over=0)
        records = list(read_topic(settings, "orders"))
    assert [record.value for record in records] == [b"%d" % number for number in range(len(strange))]
    assert {record.timestamp for record in records} == {TIME_MS}
    counted = [dict(record.headers)[REPLAYED_HEADER] for record in records]
    assert counted == [b"1"] * (len(strange) - 1) + [b"4"]
