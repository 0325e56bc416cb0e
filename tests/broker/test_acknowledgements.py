"""When the answer to a Produce may leave: after the write, after the sync, or with the error of the disk."""

import errno

from headrace.model.errors import ErrorCode
from headrace.wire.apis import ApiKey
from tests.broker.virtual import LONG_MS, VirtualBroker, produce_frame, produce_request, sequenced

E = ErrorCode


def synced_topic(**settings):
    return VirtualBroker(settings=settings).with_topic("t", partitions=2, flush_messages=1)


def test_flush_messages_one_answers_only_after_the_sync():
    broker = synced_topic()
    broker.hold_syncs()
    client, reader = broker.client(), broker.client()
    asked = client.send_produce("t")
    waiting = reader.send_fetch(("t", 0, 0), wait_ms=LONG_MS)
    broker.steps()
    assert broker.partition("t").log.end_offset == 1, "it is written"
    assert not client.has_answer(asked)
    assert not reader.has_answer(waiting), "and no consumer reads above the high watermark"
    broker.release_syncs()
    assert client.wait(asked).responses[0].partition_responses[0].error_code == 0
    assert reader.wait(waiting).responses[0].partitions[0].high_watermark == 1


def test_acks_one_waits_for_the_sync_that_a_topic_asks_for():
    broker = synced_topic()
    broker.hold_syncs()
    client = broker.client()
    asked = client.send_produce("t", acks=1)
    broker.steps()
    assert not client.has_answer(asked)
    broker.release_syncs()
    assert client.wait(asked).responses[0].partition_responses[0].error_code == 0


def test_acks_one_does_not_wait_where_no_sync_is_asked_for():
    broker = VirtualBroker().with_topic("t")
    broker.hold_syncs()
    assert broker.client().produce("t", acks=1).base_offset == 0
    assert broker.client().produce("t", acks=-1).base_offset == 1


def test_answers_keep_their_order_though_one_waits():
    broker = synced_topic()
    broker.with_topic("loose")
    broker.hold_syncs()
    client = broker.client()
    slow, quick = client.send_produce("t"), client.send_produce("loose")
    broker.steps()
    assert broker.partition("loose").log.end_offset == 1
    assert not client.has_answer(quick)
    broker.release_syncs()
    for correlation in (slow, quick):
        assert client.wait(correlation).responses[0].partition_responses[0].error_code == 0


def test_acks_all_gives_up_after_its_timeout_and_the_record_stays():
    broker = synced_topic()
    broker.hold_syncs()
    client = broker.client()
    asked = client.send_produce("t", timeout_ms=2_000)
    broker.pass_time(1_000)
    assert not client.has_answer(asked)
    broker.pass_time(2_000)
    answer = client.wait(asked).responses[0].partition_responses[0]
    assert (answer.error_code, answer.base_offset) == (E.REQUEST_TIMED_OUT, -1)
    broker.release_syncs()
    broker.steps()
    assert client.read_all("t") == [b"v"]
    assert client.produce("t").base_offset == 1


def test_each_gives_up_at_its_own_deadline_though_one_timer_serves_all():
    broker = synced_topic()
    broker.hold_syncs()
    clients = [broker.client() for _ in range(4)]
    asked = [
        client.send_produce("t", timeout_ms=timeout_ms)
        for client, timeout_ms in zip(clients, (9_000, 2_000, 30_000, 5_000), strict=True)
    ]
    broker.steps()
    answered = []
    for _ in range(4):
        broker.pass_time(2_500)
        answered.append([client.has_answer(one) for client, one in zip(clients, asked, strict=True)])
    assert answered == [
        [False, True, False, False],
        [False, True, False, True],
        [False, True, False, True],
        [True, True, False, True],
    ]
    broker.release_syncs()
    assert clients[2].wait(asked[2]).responses[0].partition_responses[0].error_code == 0


def test_a_request_waits_for_all_its_partitions_and_one_may_time_out():
    broker = synced_topic()
    broker.with_topic("loose")
    broker.hold_syncs()
    client = broker.client()
    batch = client.batch()
    request = produce_request([("t", [(0, batch), (1, batch)]), ("loose", [(0, batch)])], timeout_ms=2_000)
    asked = client.send(ApiKey.PRODUCE, 9, request)
    broker.pass_time(3_000)
    answers = [each for topic in client.wait(asked).responses for each in topic.partition_responses]
    assert [each.error_code for each in answers] == [E.REQUEST_TIMED_OUT, E.REQUEST_TIMED_OUT, 0]


def test_a_failed_sync_takes_the_directory_offline():
    broker = VirtualBroker(settings={"log.dirs": "meta,data1,data2"})
    broker.with_topic("a", flush_messages=1).with_topic("b", flush_messages=1).with_topic("c").with_topic("d")
    home = {topic: broker.partition(topic).log.path.split("/")[0] for topic in "abcd"}
    topic = next(topic for topic in "ab" if home[topic] != "meta")
    broker.machine.disk.faults.fail("data_sync", path_contains=f"{topic}-0")
    client, reader = broker.client(), broker.client()
    waiting = reader.send_fetch((topic, 0, 0), wait_ms=LONG_MS)
    broker.steps()
    assert client.produce_error(topic) == E.KAFKA_STORAGE_ERROR
    assert reader.wait(waiting).responses[0].partitions[0].error_code == E.KAFKA_STORAGE_ERROR
    for name in "abcd":
        expected = E.KAFKA_STORAGE_ERROR if home[name] == home[topic] else 0
        assert client.produce_error(name) == expected
        assert client.fetch(name).error_code == expected
    partition = client.metadata(topic).topics[0].partitions[0]
    assert (partition.error_code, partition.leader_id) == (E.LEADER_NOT_AVAILABLE, -1)
    assert not broker.node.failed


def test_a_failed_write_is_a_storage_error_and_closes_acks_zero():
    broker = VirtualBroker(settings={"log.dirs": "meta,data1"}).with_topic("a", partitions=2)
    place = next(index for index in (0, 1) if broker.partition("a", index).log.path.startswith("data1"))
    broker.machine.disk.faults.fail("write_vector", path_contains=f"a-{place}")
    client, silent, other = broker.client(), broker.client(), broker.client()
    silent.send_bytes(produce_frame(produce_request([("a", [(place, silent.batch())])], acks=0)))
    correlation = client.send_produce("a", place)
    silent.wait_closed()
    assert client.wait(correlation).responses[0].partition_responses[0].error_code == E.KAFKA_STORAGE_ERROR
    answer = client.produce("a", place)
    assert (answer.error_code, answer.base_offset) == (E.KAFKA_STORAGE_ERROR, -1)
    assert other.produce_error("a", 1 - place) == 0, "the other directory goes on"


def test_a_full_disk_refuses_the_turn_and_heals():
    broker = VirtualBroker().with_topic("t").with_topic("other")
    client, silent = broker.client(), broker.client()
    assert client.produce("t", 0, sequenced(client, 0)).base_offset == 0
    broker.machine.disk.faults.fail("write_vector", code=errno.ENOSPC, path_contains="t-0")
    answer = client.produce("t", 0, sequenced(client, 1))
    assert (answer.error_code, answer.base_offset) == (E.KAFKA_STORAGE_ERROR, -1)
    silent.send_bytes(produce_frame(produce_request([("t", [(0, silent.batch())])], acks=0)))
    silent.wait_closed()
    assert client.produce_error("other") == E.KAFKA_STORAGE_ERROR, "its directory is the same"
    assert client.read_all("t") == [b"s0"]
    broker.run_until(lambda: not broker.partition("other").space.full)
    assert client.produce_error("other") == 0
    assert client.produce("t", 0, sequenced(client, 1)).base_offset == 1, "the sequence goes on where it was"
    assert client.read_all("t") == [b"s0", b"s1"]


def test_a_request_over_two_directories_fails_only_where_the_disk_does():
    broker = VirtualBroker(settings={"log.dirs": "meta,data1"}).with_topic("a", partitions=2)
    place = next(index for index in (0, 1) if broker.partition("a", index).log.path.startswith("data1"))
    broker.machine.disk.faults.fail("write_vector", path_contains=f"a-{place}")
    client = broker.client()
    response = client.ask(ApiKey.PRODUCE, 9, produce_request([("a", [(0, client.batch()), (1, client.batch())])]))
    errors = {each.index: each.error_code for each in response.responses[0].partition_responses}
    assert errors == {place: E.KAFKA_STORAGE_ERROR, 1 - place: 0}


def test_a_producer_that_left_before_its_sync_ended_harms_no_other():
    broker = synced_topic()
    broker.hold_syncs()
    gone, staying = broker.client(), broker.client()
    gone.send_produce("t")
    correlation = staying.send_produce("t", 0, staying.batch(b"w"))
    broker.steps()
    gone.connection.reset()
    broker.steps()
    broker.release_syncs()
    assert staying.wait(correlation).responses[0].partition_responses[0].error_code == 0
    assert sorted(staying.read_all("t")) == [b"v", b"w"]
