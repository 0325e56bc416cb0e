"""A producer's next request is recognised by its bytes, and answered as if it had been read field by field."""

from itertools import count
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.broker.produce import repeated_requests
from headrace.model.errors import ErrorCode
from headrace.wire.apis import ApiKey
from headrace.wire.repeats import read_repeat
from tests.broker.virtual import VirtualBroker, produce_frame, produce_request

SIZES = (1, 10, 66, 67, 68, 200, 16_320, 20_000)
"""Values whose batches take one, two and three bytes to tell their length."""


@pytest.fixture(scope="module")
def broker():
    return VirtualBroker().with_topic("t", partitions=300)


@pytest.mark.parametrize("version", range(3, 14))
@pytest.mark.parametrize("partition", [0, 127, 128, 200, 255, 256])
def test_requests_that_repeat_are_appended_one_behind_the_other(broker, version, partition):
    client = broker.client()
    topic = client.topic_id("t") if version >= 13 else "t"
    first = broker.partition("t", partition).log.end_offset
    values = [bytes([65 + place]) * size for place, size in enumerate(SIZES)]
    for place, value in enumerate(values):
        answer = client.produce(topic, partition, client.batch(value), version=version)
        assert (answer.index, answer.error_code, answer.base_offset) == (partition, 0, first + place)
        assert answer.log_start_offset == (0 if version >= 5 else -1)
    assert client.read_all("t", partition, first) == values
    client.close()


def test_partitions_acks_and_versions_that_take_turns_are_not_mixed_up(broker):
    client = broker.client()
    told = {}
    asked = []
    for place in range(60):
        partition = (3, 131, 259)[place % 3]
        options = {"acks": (1, -1)[place % 2], "version": (9, 8, 11)[place // 2 % 3]}
        value = b"%d" % place
        asked.append((partition, value, client.send_produce("t", partition, client.batch(value), **options)))
    for partition, value, correlation in asked:
        answer = client.wait(correlation).responses[0].partition_responses[0]
        assert (answer.index, answer.error_code) == (partition, 0)
        told[partition, answer.base_offset] = value
    assert len(told) == 60
    for (partition, offset), value in told.items():
        assert client.values("t", partition, offset)[0] == value


def test_an_error_in_a_repeated_request_is_answered_and_the_next_one_continues(broker):
    client = broker.client()
    first = client.produce("t", 5).base_offset
    broken = bytearray(client.batch())
    broken[-1] ^= 1
    assert client.produce_error("t", 5, bytes(broken)) == ErrorCode.CORRUPT_MESSAGE
    assert client.produce("t", 5).base_offset == first + 1
    assert client.produce_error("t", 5, None) == 0


def test_a_topic_without_partitions_beside_one_with_a_batch(broker):
    client = broker.client()
    for topics in ([("t", []), ("t", [(6, client.batch(b"a"))])], [("t", [(6, client.batch(b"b"))]), ("t", [])]):
        for _ in range(2):
            response = client.ask(ApiKey.PRODUCE, 9, produce_request(topics))
            [partitions] = [topic.partition_responses for topic in response.responses if topic.partition_responses]
            assert partitions[0].error_code == 0
            assert len(response.responses) == 2
    assert client.read_all("t", 6) == [b"a", b"a", b"b", b"b"]
    assert broker.metrics.handler_failures == 0


def test_a_recreated_topic_gets_the_records_of_a_connection_that_wrote_to_the_old_one(broker):
    client, admin = broker.client(), broker.client()
    admin.create_topic("again")
    for _ in range(3):
        assert client.produce_error("again") == 0
    assert admin.delete_topic("again") == 0
    assert client.produce_error("again") == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    admin.create_topic("again")
    assert client.produce("again", 0, client.batch(b"new")).base_offset == 0
    assert client.read_all("again") == [b"new"]


def test_a_request_that_begins_like_the_last_one_and_ends_early_is_the_senders_fault(broker):
    errors = broker.metrics.protocol_errors
    for version in (8, 9):
        whole = produce_frame(produce_request([("t", [(7, broker.client().batch(b"v"))])], version=version), version)
        for cut in range(8, len(whole) - 4, 7):
            client = broker.client()
            assert client.produce_error("t", 7, version=version) == 0
            client.send_bytes((cut).to_bytes(4, "big") + whole[4 : 4 + cut])
            client.wait_closed()
            errors += 1
    assert broker.metrics.protocol_errors == errors
    assert broker.metrics.handler_failures == 0


BATCHES = st.fixed_dictionaries(
    {
        "back": st.integers(0, 2),
        "producer_id": st.sampled_from([-1, 7, 8]),
        "epoch": st.integers(0, 1),
        "age_ms": st.sampled_from([0, 0, 90_000, -90_000]),
        "size": st.sampled_from([1, 1, 400]),
        "broken": st.sampled_from([False, False, False, True]),
        "acks": st.sampled_from([1, -1]),
    }
)
NUMBERS = count()
CONFIGS: tuple[dict[str, str], ...] = (
    {},
    {"message.timestamp.type": "LogAppendTime"},
    {"compression.type": "gzip"},
    {"max.message.bytes": "300"},
)


@pytest.fixture(scope="module")
def second():
    return VirtualBroker()


@settings(max_examples=60)
@given(
    st.lists(BATCHES, min_size=2, max_size=12),
    st.sampled_from(CONFIGS),
    st.sampled_from([{}, {"message.timestamp.before.max.ms": "60000", "message.timestamp.after.max.ms": "60000"}]),
)
@pytest.mark.slow
def test_the_quick_way_appends_and_answers_as_the_long_one(broker, second, drawn, config, limits):
    """The same requests to a broker that believes no batch to be plain."""
    told, name = [], f"both-{next(NUMBERS)}"
    for node in (broker, second):
        with pytest.MonkeyPatch.context() as patch:
            if node is second:
                patch.setattr(repeated_requests, "read_repeat", lambda *place: not_plain(read_repeat(*place)))
            node.with_topic(name, **{key.replace(".", "_"): value for key, value in (config | limits).items()})
            told.append(answers_to(node, name, drawn))
    assert told[0] == told[1]


def not_plain(repeat):
    return repeat and (*repeat[:5], None, repeat[6])


def answers_to(node, topic, drawn):
    client = node.client()
    sequences: dict[Any, Any] = {}
    told: list[Any] = []
    for place, asked in enumerate(drawn):
        producer = (asked["producer_id"], asked["epoch"])
        sequence = -1
        if asked["producer_id"] >= 0:
            sequence = max(sequences.get(producer, 0) - asked["back"], 0)
            sequences[producer] = sequence + 1
        batch = bytearray(
            client.batch(
                bytes([97 + place]) * asked["size"],
                timestamp=client.now() - asked["age_ms"],
                producer_id=asked["producer_id"],
                producer_epoch=asked["epoch"] if sequence >= 0 else -1,
                base_sequence=sequence,
            )
        )
        batch[-1] ^= asked["broken"]
        answer = client.produce(topic, 0, bytes(batch), acks=asked["acks"])
        told.append((answer.error_code, answer.base_offset, answer.log_append_time_ms >= 0, answer.log_start_offset))
    log = node.partition(topic).log
    producers = [one._replace(last_timestamp=0) for one in log.producers.describe()]
    stored = (client.read_all(topic), log.end_offset, log.size_bytes, producers)
    client.close()
    return told, stored
