"""Records that take long to open or to compress again: a helper does it, and nothing gets ahead of them."""

from random import Random

import pytest

from headrace.broker.partitions.codecs import RECOMPRESSED_ON_LOOP_BYTES_MAX
from headrace.broker.partitions.keys import (
    OPENED_ON_LOOP_BYTES_MAX,
    OPENED_ON_LOOP_RECORDS_MAX,
    keyless_on_loop,
    keyless_places,
)
from headrace.broker.produce import record_hold
from headrace.model.errors import ErrorCode as E
from headrace.wire.apis import ApiKey
from headrace.wire.errors import InflationLimit
from headrace.wire.records.builder import NewRecord, build_batch
from headrace.wire.records.compression import Compression
from headrace.wire.records.header import ATTRIBUTES, COMPRESSION_MASK, HEADER
from headrace.wire.records.reader import batches

from .test_transactional_produce import FakeTransactions
from .virtual import TOPIC_RESOURCE, VirtualBroker, produce_request, values_of

CODECS = [codec for codec in Compression if codec is not Compression.NONE]
LARGE = OPENED_ON_LOOP_BYTES_MAX + 1
PREPARING = "prepare_records"


@pytest.fixture
def broker():
    broker = VirtualBroker().with_topic("t", cleanup_policy="compact", partitions=6).with_topic("plain")
    broker.machine.spawner.hold(name_contains=PREPARING)
    return broker


def large(client, *, key=b"k", codec=Compression.GZIP, size=LARGE, **fields):
    return client.batch(bytes(size), key=key, compression=codec, **fields)


def many(client, *, keyless=()):
    """More records than are opened on the loop, not compressed."""
    return bytes(
        build_batch(
            [
                NewRecord(client.now(), None if place in keyless else b"k", b"")
                for place in range(OPENED_ON_LOOP_RECORDS_MAX + 1)
            ]
        )
    )


def is_opening(broker):
    return any(PREPARING in name for name in broker.machine.spawner.waiting_names())


def settled(broker):
    hold = broker.node.broker.produce.record_hold
    return not hold._queues and hold.bytes == 0 and len(hold) == 0


@pytest.mark.parametrize("codec", CODECS)
def test_what_inflates_far_is_opened_by_a_helper_and_small_batches_are_not(broker, codec):
    client = broker.client()
    assert client.produce_error("t", 0, client.batch(b"small", key=b"k", compression=codec)) == E.NONE
    asked = client.send_produce("t", 0, large(client, codec=codec))
    broker.run_until(lambda: is_opening(broker))
    broker.steps()
    assert not client.has_answer(asked)
    assert broker.client().produce_error("t", 0, client.batch(b"other", key=b"k")) == E.NONE  # others go on
    broker.machine.spawner.release()
    assert client.wait(asked).responses[0].partition_responses[0].error_code == E.NONE
    assert client.read_all("t") == [b"small", b"other", bytes(LARGE)]
    assert settled(broker)


def test_many_records_are_opened_by_a_helper_and_those_without_keys_are_named(broker):
    client = broker.client()
    asked = client.send_produce("t", 0, many(client, keyless=(3, 900)))
    broker.run_until(lambda: is_opening(broker))
    broker.machine.spawner.release()
    answer = client.wait(asked).responses[0].partition_responses[0]
    assert answer.error_code == E.INVALID_RECORD
    assert [error.batch_index for error in answer.record_errors] == [3, 900]
    assert client.produce_error("t", 0, many(client)) == E.NONE
    assert settled(broker)


def test_a_topic_that_is_not_compacted_opens_nothing(broker):
    client = broker.client()
    assert client.produce_error("plain", 0, large(client)) == E.NONE
    assert not is_opening(broker)


def test_many_compressed_record_sets_of_one_request_are_opened_together(broker):
    client = broker.client()
    sets = [(index, client.batch(b"v", key=b"k", compression=Compression.ZSTD)) for index in range(6)]
    asked = client.send(ApiKey.PRODUCE, 9, produce_request([("t", sets)]))
    broker.run_until(lambda: is_opening(broker))
    broker.machine.spawner.release()
    assert [answer.error_code for answer in client.wait(asked).responses[0].partition_responses] == [E.NONE] * 6


@pytest.mark.parametrize("acks", [-1, 1])
def test_what_a_producer_sends_behind_stays_behind(broker, acks):
    client = broker.client()

    def batch(sequence, content):
        fields = {"producer_id": 5, "producer_epoch": 0, "base_sequence": sequence}
        return client.batch(content, key=b"k", compression=Compression.GZIP, **fields)

    assert client.produce_error("t", 0, batch(0, b"first"), acks=acks) == E.NONE  # its shape is known now
    contents = [bytes(LARGE), b"second", b"third", bytes(LARGE + 1), b"last"]
    asked = [
        client.send_produce("t", 0, batch(1 + place, content), acks=acks) for place, content in enumerate(contents)
    ]
    looked = client.send_fetch(("t", 0, 0))
    broker.run_until(lambda: len(broker.node.broker.produce.record_hold) == 5)
    broker.steps()
    assert not any(client.has_answer(correlation) for correlation in asked)
    broker.machine.spawner.release()
    answers = [client.wait(correlation).responses[0].partition_responses[0] for correlation in asked]
    assert [(answer.error_code, answer.base_offset) for answer in answers] == [(E.NONE, 1 + at) for at in range(5)]
    assert values_of(client.wait(looked).responses[0].partitions[0].records) == [b"first"]
    assert client.read_all("t") == [b"first", *contents]
    assert settled(broker)


def test_batches_of_a_transaction_are_opened_and_then_wait_for_the_coordinator(broker):
    coordinator = broker.node.broker.produce.transaction_hold.transactions = FakeTransactions()
    client = broker.client()
    fields = {"producer_id": 5, "producer_epoch": 0, "transactional": True}
    batches = [large(client, base_sequence=0, **fields), large(client, base_sequence=1, key=None, **fields)]
    asked = [
        client.send(ApiKey.PRODUCE, 11, produce_request([("t", [(0, batch)])], transactional_id="bank", version=11))
        for batch in batches
    ]
    broker.run_until(lambda: len(broker.node.broker.produce.record_hold) == 2)
    assert not coordinator.asked
    broker.machine.spawner.release()
    broker.run_until(lambda: len(broker.node.broker.produce.transaction_hold) == 2)
    assert len(coordinator.asked) == 1
    coordinator.answer()
    answers = [client.wait(correlation).responses[0].partition_responses[0].error_code for correlation in asked]
    assert answers == [E.NONE, E.INVALID_RECORD]
    assert settled(broker)


def test_without_acknowledgement_a_refused_batch_closes_the_connection(broker):
    client = broker.client()
    client.send_produce("t", 0, large(client), acks=0)
    client.send_produce("t", 0, large(client, key=None), acks=0)
    broker.run_until(lambda: len(broker.node.broker.produce.record_hold) == 2)
    broker.machine.spawner.release()
    client.wait_closed()
    assert broker.client().read_all("t") == [bytes(LARGE)]
    assert settled(broker)


def test_records_of_a_client_that_is_gone_are_appended(broker):
    client = broker.client()
    client.send_produce("t", 0, large(client))
    broker.run_until(lambda: is_opening(broker))
    client.close()
    broker.steps()
    broker.machine.spawner.release()
    broker.run_until(lambda: settled(broker))
    assert broker.client().read_all("t") == [bytes(LARGE)]


def test_a_stop_waits_for_what_is_being_opened(broker):
    client = broker.client()
    asked = client.send_produce("t", 0, large(client))
    broker.run_until(lambda: is_opening(broker))
    broker.node.begin_stop()
    broker.steps()
    assert not broker.node.drained
    broker.machine.spawner.release()
    assert client.wait(asked).responses[0].partition_responses[0].error_code == E.NONE
    broker.run_until(lambda: broker.node.drained)


def test_above_the_limits_requests_are_refused_for_now_and_none_gets_ahead(broker, monkeypatch):
    client = broker.client()
    first = large(client, producer_id=5, producer_epoch=0, base_sequence=0)
    monkeypatch.setattr(record_hold, "RECORDS_HELD_BYTES_MAX", len(first) - 1)
    assert client.produce_error("t", 0, first) == E.NOT_ENOUGH_REPLICAS
    second = client.batch(b"v", key=b"k", producer_id=5, producer_epoch=0, base_sequence=1)
    assert client.produce_error("t", 0, second) == E.OUT_OF_ORDER_SEQUENCE_NUMBER
    monkeypatch.undo()
    broker.machine.spawner.release()
    assert client.produce_error("t", 0, first) == E.NONE
    assert client.produce_error("t", 0, second) == E.NONE
    monkeypatch.setattr(record_hold, "HELD_PER_CONNECTION_MAX", 1)
    broker.machine.spawner.hold(name_contains=PREPARING)
    client.send_produce("t", 0, large(client))
    refused = client.send_produce("t", 0, client.batch(b"w", key=b"k"))
    broker.run_until(lambda: is_opening(broker))
    broker.steps()
    broker.machine.spawner.release()
    assert client.wait(refused).responses[0].partition_responses[0].error_code == E.NOT_ENOUGH_REPLICAS


def test_a_request_whose_helper_failed_is_refused_for_now(broker, monkeypatch):
    client = broker.client()

    def fail(_operation, completed, _lane):
        completed(None, RuntimeError("failed"))

    monkeypatch.setattr(broker.machine.spawner, "submit", fail, raising=True)
    assert client.produce_error("t", 0, large(client)) == E.NOT_ENOUGH_REPLICAS
    assert settled(broker)


def plain_batch(client, sequence, content, codec=Compression.NONE):
    fields = {"producer_id": 5, "producer_epoch": 0, "base_sequence": sequence}
    return client.batch(content, compression=codec, **fields)


def stored_codecs(client, topic="packed"):
    content = client.wait(client.send_fetch((topic, 0, 0))).responses[0].partitions[0].records
    return [HEADER.unpack_from(batch)[ATTRIBUTES] & COMPRESSION_MASK for batch in batches(content)]


@pytest.fixture
def packing(broker):
    """The same with a topic that stores everything under lz4."""
    return broker.with_topic("packed", compression_type="lz4", partitions=6)


TO_HELPER = RECOMPRESSED_ON_LOOP_BYTES_MAX[Compression.LZ4] + 1


def test_what_takes_long_to_recompress_is_left_to_a_helper_and_nothing_gets_ahead_of_it(packing):
    client = packing.client()
    contents = [b"first", bytes(TO_HELPER), b"second", bytes(TO_HELPER + 1), b"third"]
    assert client.produce_error("packed", 0, plain_batch(client, 0, contents[0])) == E.NONE
    asked = [client.send_produce("packed", 0, plain_batch(client, at, contents[at])) for at in range(1, 5)]
    packing.run_until(lambda: len(packing.node.broker.produce.record_hold) == 4)
    packing.steps()
    assert not any(client.has_answer(correlation) for correlation in asked)
    assert packing.client().produce_error("packed", 1, client.batch(b"other")) == E.NONE  # others go on
    packing.machine.spawner.release()
    answers = [client.wait(correlation).responses[0].partition_responses[0] for correlation in asked]
    assert [(answer.error_code, answer.base_offset) for answer in answers] == [(E.NONE, at) for at in range(1, 5)]
    assert client.read_all("packed") == contents
    assert stored_codecs(client) == [Compression.LZ4] * 5
    assert settled(packing)


def test_a_large_batch_that_has_the_right_codec_already_does_not_wait(packing):
    client = packing.client()
    assert client.produce_error("packed", 0, plain_batch(client, 0, bytes(TO_HELPER), Compression.LZ4)) == E.NONE
    assert not is_opening(packing)


def test_a_large_batch_that_comes_again_is_a_duplicate(packing):
    packing.machine.spawner.release()
    client = packing.client()
    batch = plain_batch(client, 0, bytes(TO_HELPER))
    assert client.produce_error("packed", 0, batch) == client.produce_error("packed", 0, batch) == E.NONE
    assert stored_codecs(client) == [Compression.LZ4]


def test_a_codec_that_changes_meanwhile_has_the_batch_come_again(packing):
    client = packing.client()
    batch = plain_batch(client, 0, bytes(TO_HELPER))
    asked = client.send_produce("packed", 0, batch)
    packing.run_until(lambda: is_opening(packing))
    packing.client().alter_configs(TOPIC_RESOURCE, "packed", {"compression.type": "zstd"})
    packing.machine.spawner.release()
    assert client.wait(asked).responses[0].partition_responses[0].error_code == E.NOT_ENOUGH_REPLICAS
    assert client.produce_error("packed", 0, batch) == E.NONE
    assert stored_codecs(client) == [Compression.ZSTD]


def test_a_topic_that_becomes_compacted_meanwhile_looks_for_keys_all_the_same(packing):
    client = packing.client()
    asked = client.send_produce("packed", 0, plain_batch(client, 0, bytes(TO_HELPER)))
    packing.run_until(lambda: is_opening(packing))
    packing.client().alter_configs(TOPIC_RESOURCE, "packed", {"cleanup.policy": "compact"})
    packing.machine.spawner.release()
    assert client.wait(asked).responses[0].partition_responses[0].error_code == E.INVALID_RECORD


def test_a_compacted_topic_with_a_codec_of_its_own_wants_both(broker):
    broker.with_topic("both", compression_type="zstd", cleanup_policy="compact")
    broker.machine.spawner.release()
    client = broker.client()
    assert client.produce_error("both", 0, large(client, codec=Compression.GZIP)) == E.NONE
    assert client.produce_error("both", 0, large(client, codec=Compression.GZIP, key=None)) == E.INVALID_RECORD
    assert stored_codecs(client, "both") == [Compression.ZSTD]


def test_many_record_sets_of_one_request_are_recompressed_together(packing):
    client = packing.client()
    asked = client.send(ApiKey.PRODUCE, 9, produce_request([("packed", [(at, client.batch(b"v")) for at in range(6)])]))
    packing.run_until(lambda: is_opening(packing))
    packing.machine.spawner.release()
    assert [answer.error_code for answer in client.wait(asked).responses[0].partition_responses] == [E.NONE] * 6


def test_of_one_request_as_much_is_taken_as_there_is_room_for_and_the_rest_comes_again(packing, monkeypatch):
    client = packing.client()
    sets = [(at, plain_batch(client, 0, Random(at).randbytes(TO_HELPER))) for at in range(3)]
    asked = client.send(ApiKey.PRODUCE, 9, produce_request([("packed", sets)]))
    packing.run_until(lambda: is_opening(packing))
    monkeypatch.setattr(record_hold, "RECORDS_HELD_BYTES_MAX", TO_HELPER * 3 // 2)
    packing.machine.spawner.release()
    answers = [answer.error_code for answer in client.wait(asked).responses[0].partition_responses]
    assert answers == [E.NONE, E.NONE, E.NOT_ENOUGH_REPLICAS]
    monkeypatch.undo()
    behind = plain_batch(client, 1, b"behind")
    assert client.produce_error("packed", 2, behind) == E.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert client.produce_error("packed", 2, sets[2][1]) == E.NONE
    assert client.produce_error("packed", 2, behind) == E.NONE


def test_one_request_is_opened_at_a_time(packing):
    clients = [packing.client() for _ in range(3)]
    asked = [client.send_produce("packed", 0, client.batch(bytes(TO_HELPER))) for client in clients]
    packing.run_until(lambda: len(packing.node.broker.produce.record_hold) == 3)
    packing.steps()
    assert len([name for name in packing.machine.spawner.waiting_names() if PREPARING in name]) == 1
    packing.machine.spawner.release()
    for client, correlation in zip(clients, asked, strict=True):
        assert client.wait(correlation).responses[0].partition_responses[0].error_code == E.NONE
    assert settled(packing)


@pytest.mark.parametrize("codec", list(Compression))
@pytest.mark.parametrize("size", [0, 10, OPENED_ON_LOOP_BYTES_MAX - 100, LARGE])
@pytest.mark.parametrize("key", [None, b"k"])
def test_the_loop_finds_what_a_helper_finds_or_leaves_it_to_one(codec, size, key):
    batch = memoryview(bytes(build_batch([NewRecord(0, key, bytes(size))], compression=codec)))
    found = keyless_places(batch, 1 << 20)
    assert found == ([0] if key is None else [])
    if codec is not Compression.NONE and size == LARGE:
        with pytest.raises(InflationLimit):
            keyless_on_loop(batch, 1 << 20)
    else:
        assert keyless_on_loop(batch, 1 << 20) == found
