"""Batches and offsets under another client's producer id, with an epoch that does not exist, are refused."""

import pytest

from headrace.model.errors import ErrorCode
from headrace.wire.apis import ApiKey
from tests.broker.virtual import produce_request
from tests.groups.test_txn_offset_commit import CopyClient
from tests.groups.wire import GroupClient
from tests.transactions.wire import transaction_broker

NONE = ErrorCode.NONE
EPOCH_MAX = 2**15 - 1


@pytest.fixture
def broker():
    broker = transaction_broker()
    GroupClient(broker).find("g")
    return broker


def liar_for(broker, producer):
    liar = CopyClient(broker)
    liar.producer_id, liar.producer_epoch = producer.producer_id, EPOCH_MAX
    return liar


@pytest.mark.parametrize("version", [9, 11, 12])
def test_a_lie_does_not_keep_the_producer_from_writing(broker, version):
    producer = CopyClient(broker).initialized()
    assert liar_for(broker, producer).write(b"lie", version=version) is ErrorCode.INVALID_PRODUCER_EPOCH
    if version < 12:
        assert producer.add(0) == [NONE]
    assert producer.write(b"truth", version=version) is NONE
    assert producer.commit(version=5 if version == 12 else 4) is NONE
    broker.run_until(lambda: producer.markers() == ["COMMIT"])


def test_a_lie_does_not_keep_the_producer_from_committing_offsets(broker):
    producer = CopyClient(broker).initialized()
    assert liar_for(broker, producer).commit_offsets({0: 9}) == [ErrorCode.INVALID_PRODUCER_EPOCH]
    assert producer.commit_offsets({0: 5}) == [NONE]
    assert producer.commit() is NONE
    client = GroupClient(broker)
    broker.run_until(lambda: client.committed((0,)) == {0: 5})


def test_a_plain_batch_of_an_older_epoch_is_fenced_also_within_a_transaction(broker):
    zombie = CopyClient(broker).initialized()
    producer = CopyClient(broker).initialized()
    assert producer.write(b"v") is NONE
    content = zombie.batch(b"late", producer_id=zombie.producer_id, producer_epoch=0, base_sequence=0)
    request = produce_request([("t", [(0, content)])], version=12)
    answer = zombie.ask(ApiKey.PRODUCE, 12, request).responses[0].partition_responses[0]
    assert answer.error_code == ErrorCode.INVALID_PRODUCER_EPOCH
