"""Idempotent producers: no duplicate, no gap, no zombie."""

import pytest

from headrace.model.errors import ErrorCode
from headrace.wire.apis import ApiKey
from tests.broker.virtual import VirtualBroker, produce_request, sequenced

E = ErrorCode


@pytest.fixture
def fresh():
    return VirtualBroker().with_topic("t")


def test_a_retried_batch_answers_its_original_offset_and_is_stored_once(fresh):
    client = fresh.client()
    batches = [sequenced(client, place) for place in range(7)]
    assert [client.produce("t", 0, batch).base_offset for batch in batches] == list(range(7))
    for place in (6, 5, 4, 3, 2):
        answer = client.produce("t", 0, batches[place])
        assert (answer.error_code, answer.base_offset) == (0, place), "the last five are remembered"
    assert client.produce_error("t", 0, batches[1]) == E.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert client.read_all("t") == [b"s%d" % place for place in range(7)]


def test_a_retry_in_the_same_turn_is_recognised(fresh):
    client = fresh.client()
    batch = sequenced(client, 0)
    request = produce_request([("t", [(0, batch), (0, batch)])])
    answers = client.ask(ApiKey.PRODUCE, 9, request).responses[0].partition_responses
    assert [(answer.error_code, answer.base_offset) for answer in answers] == [(0, 0), (0, 0)]
    assert client.read_all("t") == [b"s0"]


def test_a_gap_in_the_sequence_is_refused_and_filled_later(fresh):
    client = fresh.client()
    assert client.produce_error("t", 0, sequenced(client, 0, b"a", b"b")) == 0
    assert client.produce_error("t", 0, sequenced(client, 3)) == E.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert client.produce_error("t", 0, sequenced(client, 2)) == 0
    assert client.produce_error("t", 0, sequenced(client, 3)) == 0
    assert client.read_all("t") == [b"a", b"b", b"s2", b"s3"]


def test_a_part_of_a_batch_is_no_retry_of_it(fresh):
    client = fresh.client()
    assert client.produce_error("t", 0, sequenced(client, 0, b"a", b"b", b"c")) == 0
    assert client.produce_error("t", 0, sequenced(client, 0, b"a")) == E.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_a_new_epoch_begins_at_zero_and_fences_the_old_one(fresh):
    client = fresh.client()
    assert client.produce_error("t", 0, sequenced(client, 0)) == 0
    assert client.produce_error("t", 0, sequenced(client, 1, epoch=1)) == E.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert client.produce_error("t", 0, sequenced(client, 0, b"new", epoch=1)) == 0
    assert client.produce_error("t", 0, sequenced(client, 1)) == E.INVALID_PRODUCER_EPOCH
    assert client.produce_error("t", 0, sequenced(client, 1, epoch=1)) == 0
    assert client.read_all("t") == [b"s0", b"new", b"s1"]


def test_sequences_wrap_around(fresh):
    client = fresh.client()
    assert client.produce_error("t", 0, sequenced(client, 2**31 - 2, b"a", b"b")) == 0
    assert client.produce_error("t", 0, sequenced(client, 0, b"c")) == 0
    assert client.produce("t", 0, sequenced(client, 2**31 - 2, b"a", b"b")).base_offset == 0
    assert client.read_all("t") == [b"a", b"b", b"c"]


def test_producers_do_not_disturb_one_another(fresh):
    client = fresh.client()
    for sequence in range(3):
        for producer in (1, 2, 3):
            assert client.produce_error("t", 0, sequenced(client, sequence, producer=producer)) == 0


def test_a_retry_answers_the_append_time_of_the_original():
    broker = VirtualBroker().with_topic("t", message_timestamp_type="LogAppendTime")
    client = broker.client()
    first = client.produce("t", 0, sequenced(client, 0))
    broker.pass_time(5_000)
    again = client.produce("t", 0, sequenced(client, 0))
    assert (again.base_offset, again.log_append_time_ms) == (0, first.log_append_time_ms)


def test_a_producer_that_was_silent_too_long_is_forgotten():
    settings = {"producer.id.expiration.ms": "60000", "log.retention.check.interval.ms": "10000"}
    broker = VirtualBroker(settings=settings).with_topic("t")
    client = broker.client()
    assert client.produce_error("t", 0, sequenced(client, 0)) == 0
    assert client.produce_error("t", 0, sequenced(client, 5)) == E.OUT_OF_ORDER_SEQUENCE_NUMBER
    broker.pass_time(61_000)
    broker.pass_time(11_000)
    assert client.produce_error("t", 0, sequenced(client, 5)) == 0
