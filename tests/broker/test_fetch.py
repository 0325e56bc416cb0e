"""Fetch: how much, how soon, from where; and that a waiting fetch costs no other client anything."""

import gc

import pytest

from headrace.broker.partitions.reader import RunningFetch
from headrace.model.errors import ErrorCode
from headrace.wire.apis import ApiKey
from headrace.wire.messages import fetch
from headrace.wire.records.header import HEADER_SIZE
from tests.broker.virtual import LONG_MS, VirtualBroker, fetch_request, values_of

E = ErrorCode
READ_COMMITTED = 1


@pytest.fixture(scope="module")
def broker():
    """Ten batches of two records in `ten`; nothing in `empty`; no client writes to them."""
    broker = VirtualBroker().with_topic("ten").with_topic("empty", partitions=3).with_topic("other")
    client = broker.client()
    for place in range(10):
        client.produce("ten", 0, client.batch(b"%02d" % (2 * place), b"%02d" % (2 * place + 1)))
    return broker


def all_values(first=0):
    return [b"%02d" % place for place in range(first, 20)]


def batch_bytes(broker):
    return len(broker.client().fetch("ten", bytes_max=1).records)


# How much


@pytest.mark.parametrize("version", range(4, 13))
def test_every_version_gives_the_same_records(broker, version):
    answer = broker.client().fetch("ten", version=version)
    assert values_of(answer.records) == all_values()
    assert (answer.high_watermark, answer.last_stable_offset) == (20, 20)


@pytest.mark.parametrize("version", range(13, 19))
def test_versions_with_topic_ids(broker, version):
    client = broker.client()
    topic_id = client.topic_id("ten")
    assert client.values(topic_id, version=version, by_id=True) == all_values()
    unknown = client.fetch(bytes(range(16)), version=version, by_id=True)
    assert unknown.error_code == E.UNKNOWN_TOPIC_ID


def test_a_fetch_from_inside_a_batch_gives_the_whole_batch(broker):
    answer = broker.client().fetch("ten", offset=7)
    assert values_of(answer.records) == all_values(6)


@pytest.mark.parametrize("limit", ["bytes_max", "partition_bytes"])
def test_whole_batches_up_to_the_limit_and_at_least_one(broker, limit):
    size = batch_bytes(broker)
    client = broker.client()
    for most, batches in ((0, 1), (1, 1), (size, 1), (size + 1, 1), (2 * size - 1, 1), (2 * size, 2), (5 * size, 5)):
        assert len(client.values("ten", **{limit: most})) == 2 * batches, most


def test_the_first_batch_comes_even_above_the_limit_but_only_of_the_first_partition(broker):
    client = broker.client()
    big = client.batch(bytes(5_000))
    for partition in (0, 1):
        client.produce("empty", partition, big)
    response = client.wait(client.send_fetch(("empty", 0, 0), ("empty", 1, 0), bytes_max=100))
    sizes = [len(answer.records or b"") for answer in response.responses[0].partitions]
    assert sizes == [len(big), 0]


def test_the_total_limit_is_spent_in_order(broker):
    size = batch_bytes(broker)
    client = broker.client()
    response = client.wait(client.send_fetch(("ten", 0, 0), ("ten", 0, 10), bytes_max=11 * size + 5))
    assert [len(answer.records) for answer in response.responses[0].partitions] == [10 * size, size]


def test_the_brokers_own_limit_counts():
    broker = VirtualBroker(settings={"fetch.max.bytes": "1024"}).with_topic("t")
    client = broker.client()
    for _ in range(5):
        client.produce("t", 0, client.batch(bytes(400)))
    assert len(client.values("t")) == 2


def test_negative_limits_are_as_none_at_all(broker):
    assert len(broker.client().values("ten", bytes_max=-5, partition_bytes=-7, bytes_min=-1, wait_ms=-3)) == 2


# From where


@pytest.mark.parametrize("offset", [21, -1, -(2**63), 2**63 - 1])
def test_offsets_outside_the_log_are_out_of_range(broker, offset):
    client = broker.client()
    answer = client.fetch("ten", offset=offset)
    assert (answer.error_code, answer.high_watermark, answer.log_start_offset) == (E.OFFSET_OUT_OF_RANGE, 20, 0)
    assert not answer.records
    assert client.fetch("empty", 2, offset=-1).error_code == E.OFFSET_OUT_OF_RANGE


def test_the_end_of_the_log_is_in_range_and_empty(broker):
    answer = broker.client().fetch("ten", offset=20)
    assert (answer.error_code, answer.records or b"") == (0, b"")


def test_an_error_is_answered_at_once_though_others_have_nothing(broker):
    client = broker.client()
    response = client.wait(client.send_fetch(("ten", 0, 20), ("ten", 9, 0), ("nowhere", 0, 0), wait_ms=LONG_MS))
    errors = [answer.error_code for topic in response.responses for answer in topic.partitions]
    assert errors == [0, E.UNKNOWN_TOPIC_OR_PARTITION, E.UNKNOWN_TOPIC_OR_PARTITION]


def test_the_leader_epoch_a_client_believes_in_is_checked(broker):
    client = broker.client()
    epoch = broker.partition("ten").role.leader_epoch
    assert client.fetch("ten", leader_epoch=epoch).error_code == 0
    assert client.fetch("ten", leader_epoch=epoch + 1).error_code == E.UNKNOWN_LEADER_EPOCH
    assert epoch == 0
    restarted = VirtualBroker(seed=4).with_topic("t")
    restarted.restart()
    assert restarted.client().fetch("t", leader_epoch=0).error_code == E.FENCED_LEADER_EPOCH


def test_read_committed_names_aborted_transactions_and_plain_reads_do_not(broker):
    client = broker.client()
    committed = client.fetch("ten", isolation=READ_COMMITTED)
    assert values_of(committed.records) == all_values()
    assert committed.aborted_transactions == ()
    assert client.fetch("ten").aborted_transactions is None


def test_no_client_may_call_itself_a_follower(broker):
    client = broker.client()
    for version in (7, 12, 14):
        topic = client.topic_id("ten") if version >= 13 else "ten"
        response = client.wait(client.send_fetch((topic, 0, 5), version=version, replica_id=1, by_id=version >= 13))
        assert (response.error_code, response.responses) == (E.CLUSTER_AUTHORIZATION_FAILED, ())
    client.send_fetch(("ten", 0, 5), version=5, replica_id=1)
    client.wait_closed()


def test_a_replica_state_of_a_client_moves_nothing(broker):
    client = broker.client()
    request = fetch_request([(client.topic_id("ten"), 0, 3)], by_id=True)
    state = fetch.FetchRequestReplicaState(replica_id=2, replica_epoch=1)
    body = {name: getattr(request, name) for name in request.__dataclass_fields__}
    response = client.ask(ApiKey.FETCH, 17, fetch.FetchRequest(**(body | {"replica_state": state})))
    assert response.responses[0].partitions[0].high_watermark == 20
    assert broker.metrics.handler_failures == 0


# Waiting


def test_an_append_on_another_connection_wakes_the_fetch(broker):
    reader, writer = broker.client(), broker.client()
    end = broker.partition("other").log.end_offset
    waiting = reader.send_fetch(("other", 0, end), wait_ms=LONG_MS)
    broker.steps()
    assert broker.metrics.parked_fetches == 1
    assert not reader.has_answer(waiting)
    writer.produce("other", 0, writer.batch(b"news"))
    answer = reader.wait(waiting).responses[0].partitions[0]
    assert values_of(answer.records) == [b"news"]
    assert answer.high_watermark == end + 1
    assert broker.metrics.parked_fetches == 0


def test_a_fetch_waits_until_it_has_the_bytes_it_asked_for(broker):
    reader, writer = broker.client(), broker.client()
    end = broker.partition("other").log.end_offset
    size = len(writer.batch(b"x" * 100))
    waiting = reader.send_fetch(("other", 0, end), wait_ms=LONG_MS, bytes_min=3 * size)
    for _ in range(2):
        writer.produce("other", 0, writer.batch(b"x" * 100))
        broker.steps()
        assert not reader.has_answer(waiting)
    writer.produce("other", 0, writer.batch(b"x" * 100))
    assert values_of(reader.wait(waiting).responses[0].partitions[0].records) == [b"x" * 100] * 3


def test_the_bytes_of_several_partitions_count_together():
    broker = VirtualBroker().with_topic("t", partitions=3)
    reader, writer = broker.client(), broker.client()
    size = len(writer.batch(b"x" * 100))
    writer.produce("t", 0, writer.batch(b"x" * 100))
    wanted = [("t", partition, 0) for partition in range(3)]
    waiting = reader.send_fetch(*wanted, wait_ms=LONG_MS, bytes_min=3 * size)
    broker.steps()
    writer.produce("t", 2, writer.batch(b"x" * 100))
    broker.steps()
    assert not reader.has_answer(waiting)
    writer.produce("t", 1, writer.batch(b"x" * 100))
    answers = reader.wait(waiting).responses[0].partitions
    assert [values_of(answer.records) for answer in answers] == [[b"x" * 100]] * 3


def test_at_the_deadline_the_fetch_is_answered_with_what_there_is(broker):
    reader, writer = broker.client(), broker.client()
    end = broker.partition("other").log.end_offset
    waiting = reader.send_fetch(("other", 0, end), wait_ms=5_000, bytes_min=1 << 20)
    writer.produce("other", 0, writer.batch(b"little"))
    broker.pass_time(4_000)
    assert not reader.has_answer(waiting)
    broker.pass_time(2_000)
    assert values_of(reader.wait(waiting).responses[0].partitions[0].records) == [b"little"]


def test_no_minimum_means_no_wait(broker):
    reader = broker.client()
    waiting = reader.send_fetch(("ten", 0, 20), wait_ms=LONG_MS, bytes_min=0)
    assert not reader.wait(waiting).responses[0].partitions[0].records


def test_a_fetch_between_the_high_watermark_and_the_end_waits():
    broker = VirtualBroker().with_topic("t", flush_messages=1)
    broker.hold_syncs()
    reader, writer = broker.client(), broker.client()
    writer.send_produce("t", 0, writer.batch(b"a", b"b", b"c"))
    broker.steps()
    assert broker.partition("t").log.end_offset == 3
    for offset in (0, 2, 3):
        answer = reader.fetch("t", offset=offset)
        assert (answer.error_code, answer.records or b"", answer.high_watermark) == (0, b"", 0)
    assert reader.fetch("t", offset=4).error_code == E.OFFSET_OUT_OF_RANGE
    waiting = reader.send_fetch(("t", 0, 0), wait_ms=LONG_MS)
    broker.steps()
    broker.release_syncs()
    assert values_of(reader.wait(waiting).responses[0].partitions[0].records) == [b"a", b"b", b"c"]


def test_the_same_partition_twice_in_one_fetch(broker):
    reader, writer = broker.client(), broker.client()
    end = broker.partition("other").log.end_offset
    waiting = reader.send_fetch(("other", 0, end), ("other", 0, end), wait_ms=LONG_MS)
    broker.steps()
    writer.produce("other", 0, writer.batch(b"twice"))
    answers = reader.wait(waiting).responses[0].partitions
    assert b"twice" in [value for answer in answers for value in values_of(answer.records)]
    assert broker.partition("other")._waiters.count == 0


def running_fetches():
    """By their ids; those of other tests' brokers as well. An instance check could wake proxies of what is gone."""
    gc.collect()
    return {id(each): each for each in gc.get_objects() if type(each) is RunningFetch}


@pytest.mark.slow
@pytest.mark.parametrize("end", ["close", "reset", "finish"])
def test_a_consumer_that_leaves_takes_its_parked_fetch_with_it(broker, end):
    reader, writer = broker.client(), broker.client()
    offset = broker.partition("other").log.end_offset
    before = running_fetches()
    reader.send_fetch(("other", 0, offset), wait_ms=300_000)
    broker.steps()
    assert broker.metrics.parked_fetches == 1
    getattr(reader.connection, end)()
    broker.steps()
    assert broker.metrics.parked_fetches == 0
    assert broker.partition("other")._waiters.count == 0
    assert running_fetches().keys() <= before.keys(), "nothing keeps it"
    assert writer.produce_error("other") == 0


@pytest.mark.slow
def test_fetches_that_were_woken_are_not_kept_until_their_deadline():
    broker = VirtualBroker().with_topic("t")
    reader, writer = broker.client(), broker.client()
    before = running_fetches()
    for offset in range(200):
        waiting = reader.send_fetch(("t", 0, offset), wait_ms=300_000)
        broker.run_until(lambda: broker.metrics.parked_fetches == 1)
        writer.produce("t")
        reader.wait(waiting)
    assert len(running_fetches().keys() - before.keys()) < 20


def test_pipelined_fetches_are_answered_in_order(broker):
    reader, writer = broker.client(), broker.client()
    end = broker.partition("other").log.end_offset
    waiting = reader.send_fetch(("other", 0, end), wait_ms=LONG_MS)
    ready = reader.send_fetch(("ten", 0, 0))
    broker.steps()
    assert not reader.has_answer(ready)
    writer.produce("other", 0, writer.batch(b"first"))
    assert values_of(reader.wait(waiting).responses[0].partitions[0].records) == [b"first"]
    assert values_of(reader.wait(ready).responses[0].partitions[0].records) == all_values()


# Cold pages


def test_cold_pages_are_read_by_a_helper_before_they_are_sent(broker):
    reader, other = broker.client(), broker.client()
    broker.machine.spawner.hold(name_contains="when_hot")
    broker.machine.disk.faults.cold_reads_one_in = 1
    try:
        asked = reader.send_fetch(("ten", 0, 0))
        broker.steps()
        assert not reader.has_answer(asked)
        assert any("when_hot" in name for name in broker.machine.spawner.waiting_names())
        assert other.produce_error("other") == 0, "others do not wait for the device"
    finally:
        broker.machine.disk.faults.cold_reads_one_in = 0
        broker.release_syncs()
    assert values_of(reader.wait(asked).responses[0].partitions[0].records) == all_values()


def test_a_reader_that_leaves_while_a_helper_reads_for_it(broker):
    reader = broker.client()
    broker.machine.spawner.hold(name_contains="when_hot")
    broker.machine.disk.faults.cold_reads_one_in = 1
    try:
        reader.send_fetch(("ten", 0, 0))
        broker.steps()
        reader.close()
        broker.steps()
    finally:
        broker.machine.disk.faults.cold_reads_one_in = 0
        broker.release_syncs()
    broker.steps()
    assert broker.client().values("ten") == all_values()


def test_a_batch_is_larger_than_its_header(broker):
    assert batch_bytes(broker) > HEADER_SIZE
