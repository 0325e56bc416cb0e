"""Fetches that take several turns: what happens to their log, their partitions and their senders meanwhile."""

import pytest

from headrace.broker.api import fetch as fetch_api
from headrace.broker.partitions.reader import WantedRead
from headrace.model.errors import ErrorCode
from headrace.model.limits import FETCH_PARTITIONS_MAX, FETCH_PARTITIONS_PER_SLICE
from headrace.wire import frames
from headrace.wire.apis import ApiKey, codec
from headrace.wire.messages import delete_records, fetch
from tests.broker.virtual import LONG_MS, VirtualBroker, fetch_request, values_of

E = ErrorCode


def delete_below(client, topic, partition, offset):
    asked = delete_records.DeleteRecordsRequestPartition(partition_index=partition, offset=offset)
    request = delete_records.DeleteRecordsRequest(
        topics=(delete_records.DeleteRecordsRequestTopic(name=topic, partitions=(asked,)),), timeout_ms=LONG_MS
    )
    return client.ask(ApiKey.DELETE_RECORDS, 2, request).topics[0].partitions[0]


# What happens to the log meanwhile


def test_a_fetch_parked_below_a_new_log_start_gets_an_error():
    broker = VirtualBroker().with_topic("t", partitions=2)
    reader, writer = broker.client(), broker.client()
    for value in (b"a", b"b", b"c"):
        writer.produce("t", 0, writer.batch(value))
    waiting = reader.send_fetch(("t", 0, 0), ("t", 1, 0), wait_ms=LONG_MS, bytes_min=1 << 20)
    broker.steps()
    assert not reader.has_answer(waiting)
    assert delete_below(writer, "t", 0, 2).low_watermark == 2
    first, second = reader.wait(waiting).responses[0].partitions
    assert (first.error_code, first.log_start_offset) == (E.OFFSET_OUT_OF_RANGE, 2)
    assert second.error_code == 0


def test_retention_under_a_parked_fetch_never_sends_from_a_closed_file():
    settings = {"log.retention.check.interval.ms": "1000"}
    broker = VirtualBroker(settings=settings)
    broker.with_topic("t", partitions=2, segment_bytes=1024, retention_ms=60_000, file_delete_delay_ms=0)
    reader, writer = broker.client(), broker.client()
    writer.produce("t", 0, writer.batch(b"0" + bytes(600)))
    waiting = reader.send_fetch(("t", 0, 0), ("t", 1, 0), wait_ms=200_000, bytes_min=1 << 20)
    broker.steps()
    assert not reader.has_answer(waiting)
    for _ in range(8):
        broker.pass_time(20_000)
    broker.pass_time(60_000)
    assert broker.partition("t").log.start_offset > 0, "the segment it waits on was closed and deleted"
    first = reader.wait(waiting).responses[0].partitions[0]
    assert values_of(first.records) == [b"0" + bytes(600)], "what was read before it was deleted"
    assert not reader.is_closed()
    assert broker.metrics.handler_failures == 0


def test_retention_under_a_slow_reader_gives_it_the_old_bytes():
    settings = {"log.retention.check.interval.ms": "1000", "headrace.slow.client.timeout.ms": "600000"}
    broker = VirtualBroker(settings=settings)
    broker.with_topic("t", segment_bytes=1 << 20, retention_ms=60_000, file_delete_delay_ms=0)
    reader, writer = broker.client(), broker.client()
    values = [b"%d" % place + bytes(90_000) for place in range(8)]
    for value in values:
        writer.produce("t", 0, writer.batch(value))
    reader.connection.stall(receiving=True)
    waiting = reader.send_fetch(("t", 0, 0))
    broker.steps()
    for _ in range(9):
        broker.pass_time(9_000)
        writer.produce("t", 0, writer.batch(bytes(300_000)))
    broker.pass_time(9_000)
    assert broker.partition("t").log.start_offset > 0
    reader.connection.stall()
    assert values_of(reader.wait(waiting).responses[0].partitions[0].records) == values


def test_a_topic_deleted_under_parked_and_sliced_fetches():
    count = FETCH_PARTITIONS_PER_SLICE + 50
    broker = VirtualBroker().with_topic("many", partitions=count).with_topic("t")
    reader, sliced, admin = broker.client(), broker.client(), broker.client()
    waiting = reader.send_fetch(("t", 0, 0), ("many", 0, 0), wait_ms=LONG_MS)
    broker.steps()
    assert admin.delete_topic("t") == 0
    response = reader.wait(waiting)
    assert response.responses[0].partitions[0].error_code == E.UNKNOWN_TOPIC_OR_PARTITION
    asked = sliced.send_fetch(*[("many", partition, 0) for partition in range(count)], wait_ms=LONG_MS)
    broker.run_until(lambda: broker.metrics.parked_fetches == 1)
    assert admin.delete_topic("many") == 0
    errors = {answer.error_code for answer in sliced.wait(asked).responses[0].partitions}
    assert E.UNKNOWN_TOPIC_OR_PARTITION in errors
    assert broker.metrics.parked_fetches == 0


def test_a_topic_deleted_between_two_slices_of_a_fetch():
    count = FETCH_PARTITIONS_PER_SLICE + 50
    broker = VirtualBroker().with_topic("many", partitions=count)
    reader = broker.client()
    asked = reader.send_fetch(*[("many", partition, 0) for partition in range(count)], wait_ms=LONG_MS)
    before = broker.metrics.requests[ApiKey.FETCH]
    broker.run_until(lambda: broker.metrics.requests[ApiKey.FETCH] > before)
    table = broker.node.broker.partitions
    table._delete_topic(broker.node.broker.image.topics["many"])
    response = reader.wait(asked)
    assert E.UNKNOWN_TOPIC_OR_PARTITION in {answer.error_code for answer in response.responses[0].partitions}


@pytest.mark.parametrize("session_epoch", [-1, 0])
def test_no_more_is_made_of_a_request_in_one_turn_than_is_read_in_it(monkeypatch, session_epoch):
    count = 2 * FETCH_PARTITIONS_PER_SLICE + 50
    broker = VirtualBroker().with_topic("many", partitions=count)
    made = []

    def make(*fields):
        made.append(fields)
        return WantedRead(*fields)

    monkeypatch.setattr(fetch_api, "WantedRead", make)
    reader = broker.client()
    asked = reader.send_fetch(*[("many", partition, 0) for partition in range(count)], session_epoch=session_epoch)
    steps = []
    while not reader.has_answer(asked):
        before = len(made)
        broker.steps(1)
        steps.append(len(made) - before)
    assert (max(steps), sum(steps)) == (FETCH_PARTITIONS_PER_SLICE, count)
    assert len(reader.wait(asked).responses[0].partitions) == count


def test_a_consumer_that_leaves_between_two_slices_leaves_nothing_behind():
    count = FETCH_PARTITIONS_PER_SLICE + 50
    broker = VirtualBroker().with_topic("many", partitions=count)
    reader = broker.client()
    reader.send_fetch(*[("many", partition, 0) for partition in range(count)], wait_ms=300_000)
    before = broker.metrics.requests[ApiKey.FETCH]
    broker.run_until(lambda: broker.metrics.requests[ApiKey.FETCH] > before)
    reader.connection.reset()
    broker.steps()
    assert broker.metrics.parked_fetches == 0
    assert all(broker.partition("many", index)._waiters.count == 0 for index in range(count))


@pytest.mark.parametrize("leaves", [False, True])
def test_an_answer_of_many_partitions_is_made_over_several_turns_and_keeps_its_files_open(leaves):
    count = 2 * FETCH_PARTITIONS_PER_SLICE + 50
    broker = VirtualBroker().with_topic("many", partitions=count)
    reader, other = broker.client(), broker.client()
    other.produce("many", 7)
    asked = reader.send_fetch(*[("many", partition, 0) for partition in range(count)], wait_ms=LONG_MS)
    file = broker.partition("many", 7).log.active.log
    broker.run_until(lambda: file.pins)
    assert not reader.has_answer(asked)
    if leaves:
        reader.connection.reset()
    else:
        answers = reader.wait(asked).responses[0].partitions
        assert [values_of(answer.records) for answer in answers if answer.records] == [[b"v"]]
        assert len(answers) == count
    broker.steps()
    assert not file.pins


# Many partitions


def test_ten_thousand_partitions_are_read_over_several_turns():
    broker = VirtualBroker().with_topic("many", partitions=50)
    reader, other = broker.client(), broker.client()
    other.produce("many", 49, other.batch(b"last"))
    # Each partition two hundred times: the work is that of ten thousand of them.
    asked = reader.send_fetch(*[("many", place % 50, 0) for place in range(10_000)], wait_ms=LONG_MS)
    before = broker.metrics.requests[ApiKey.FETCH]
    broker.run_until(lambda: broker.metrics.requests[ApiKey.FETCH] > before)
    turns = 0
    while not reader.has_answer(asked):
        turns += 1
        assert other.produce_error("many", 0) == 0, "others are served between the slices"
    answers = reader.wait(asked).responses[0].partitions
    assert len(answers) == 10_000
    assert values_of(answers[-1].records) == [b"last"]
    assert turns > 5


def test_more_partitions_than_are_served_at_once_close_the_connection():
    broker = VirtualBroker().with_topic("t")
    client = broker.client()
    part = fetch.FetchRequestPartition(partition=0, fetch_offset=0, partition_max_bytes=1)
    topic = fetch.FetchRequestTopic(topic="t", partitions=(part,) * (FETCH_PARTITIONS_MAX + 1))
    client.send(ApiKey.FETCH, 4, fetch.FetchRequest(max_bytes=100, topics=(topic,)))
    client.wait_closed()
    assert broker.metrics.protocol_errors == 1
    assert broker.client().produce_error("t") == 0


# Long requests


@pytest.mark.slow
def test_a_long_request_is_read_over_several_turns_and_delays_no_other():
    broker = VirtualBroker().with_topic("many", partitions=3)
    reader, other = broker.client(), broker.client()
    count = 20 * FETCH_PARTITIONS_PER_SLICE
    asked = reader.send_fetch(*[("many", partition, 0) for partition in range(count)], session_epoch=0)
    broker.run_until(lambda: broker.metrics.requests[ApiKey.FETCH])
    for _ in range(5):
        other.produce("many", 1)
        assert not reader.has_answer(asked)
    answers = reader.wait(asked).responses[0].partitions
    assert [answer.partition_index for answer in answers] == list(range(count))
    (session,) = broker.node.broker.fetch_sessions._sessions.values()
    assert sorted(index for _, index in session.partitions) == list(range(count))


def test_a_long_request_that_cannot_be_read_closes_its_connection_in_a_later_turn():
    broker = VirtualBroker().with_topic("many", partitions=3)
    reader = broker.client()
    wanted = [("many", partition, 0) for partition in range(10 * FETCH_PARTITIONS_PER_SLICE)]
    body = codec(ApiKey.FETCH).encode_request(fetch_request(wanted), 12)
    cut_off = frames.request_frame(ApiKey.FETCH, 12, 1, "test", body[:-20])
    before = broker.metrics.protocol_errors
    reader.send_bytes(cut_off)
    broker.run_until(lambda: broker.metrics.requests[ApiKey.FETCH])
    assert broker.metrics.protocol_errors == before, "its end was not looked at yet"
    reader.wait_closed()
    assert broker.metrics.protocol_errors == before + 1
    assert len(broker.node.loop.connections) == 0


def test_nothing_is_left_of_a_long_request_whose_sender_leaves():
    broker = VirtualBroker().with_topic("many", partitions=3)
    reader = broker.client()
    reader.send_fetch(*[("many", partition, 0) for partition in range(2000)], session_epoch=0, wait_ms=LONG_MS)
    broker.run_until(lambda: broker.metrics.requests[ApiKey.FETCH])
    reader.connection.reset()
    broker.steps()
    assert len(broker.node.broker.fetch_sessions) == 0, "it had not come to its session"
    assert broker.metrics.parked_fetches == 0
