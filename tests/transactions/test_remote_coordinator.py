"""A leader and a group coordinator that ask a transaction coordinator on another broker, which the test plays."""

import pytest

from headrace.broker.coordinators.check_requests import CHECK_REQUESTS_IN_FLIGHT_MAX
from headrace.broker.partitions.verification import CHECK_WAIT_MS_MAX
from headrace.core.transactions.settings import COMPLETION_WAIT_MS_MAX
from headrace.model.errors import ErrorCode
from headrace.wire.apis import ApiKey
from headrace.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResponsePartition,
    AddPartitionsToTxnResponseTopic,
    AddPartitionsToTxnResponseTransaction,
)
from tests.broker.other_brokers import NO_LEADER, OTHER, THIS, commit_and_wait, elect, registration
from tests.groups.test_txn_offset_commit import CopyClient
from tests.groups.wire import GroupClient
from tests.transactions.fake_peers import BROKEN, FakePeers
from tests.transactions.wire import transaction_broker

NONE, CONCURRENT = ErrorCode.NONE, ErrorCode.CONCURRENT_TRANSACTIONS
RETRY_LATER = ErrorCode.NOT_ENOUGH_REPLICAS
ADDED_IMPLICITLY, ADDED_BY_CLIENT = 12, 11
"""Versions of Produce."""


@pytest.fixture
def broker():
    """Leads "t" and coordinates groups; the coordinators of all transactional ids are on the other broker."""
    broker = transaction_broker(settings={"transaction.state.log.num.partitions": "1"})
    GroupClient(broker).find("g")
    groups = broker.node.broker.groups.topic
    broker.run_until(lambda: list(groups) and all(host.machine is not None for host in groups))
    broker.node.broker.peers = FakePeers()
    commit_and_wait(broker, registration())
    elect(broker, "__transaction_state", 0, OTHER, replicas=(OTHER,))
    return broker


@pytest.fixture
def client(broker):
    return producer(broker)


def producer(broker, transactional_id="id", producer_id=12):
    client = CopyClient(broker, transactional_id)
    client.producer_id, client.producer_epoch = producer_id, 6
    return client


def sent(broker):
    peers = broker.node.broker.peers
    broker.run_until(lambda: peers.sent)
    return peers.take()


def response(request, *errors):
    """Answer each transaction of the request with its error; with one error, all of them."""
    codes = errors * len(request.message.transactions) if len(errors) == 1 else errors
    return AddPartitionsToTxnResponse(
        results_by_transaction=tuple(
            AddPartitionsToTxnResponseTransaction(
                transactional_id=each.transactional_id,
                topic_results=tuple(
                    AddPartitionsToTxnResponseTopic(
                        name=topic.name,
                        results_by_partition=tuple(
                            AddPartitionsToTxnResponsePartition(partition_index=index, partition_error_code=code)
                            for index in topic.partitions
                        ),
                    )
                    for topic in each.topics
                ),
            )
            for each, code in zip(request.message.transactions, codes, strict=True)
        )
    )


def error_of(client, asked):
    return ErrorCode(client.wait(asked).responses[0].partition_responses[0].error_code)


@pytest.mark.parametrize("version", [ADDED_BY_CLIENT, ADDED_IMPLICITLY])
def test_the_first_batch_waits_for_the_coordinator_on_the_other_broker(broker, client, version):
    asked = client.send_write(b"v", version=version)
    request = sent(broker)
    assert (request.node_id, request.api_key) == (OTHER, ApiKey.ADD_PARTITIONS_TO_TXN)
    (transaction,) = request.message.transactions
    assert (transaction.transactional_id, transaction.producer_id, transaction.producer_epoch) == ("id", 12, 6)
    assert transaction.verify_only == (version == ADDED_BY_CLIENT)
    assert [(topic.name, topic.partitions) for topic in transaction.topics] == [("t", (0,))]
    assert request.message.metadata_offset == broker.node.broker.image.version
    assert request.message.leader_id == THIS
    assert request.message.boot_id == broker.machine.disk.boot_id()
    assert not client.has_answer(asked)
    request.answer(response(request, NONE))
    assert error_of(client, asked) is NONE
    asked = client.send_write(b"w", version=version)
    assert error_of(client, asked) is NONE
    assert not broker.node.broker.peers.sent, "the transaction is open on the partition"


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (BROKEN, RETRY_LATER),
        (AddPartitionsToTxnResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED), ErrorCode.INVALID_TXN_STATE),
        (AddPartitionsToTxnResponse(error_code=ErrorCode.COORDINATOR_NOT_AVAILABLE), RETRY_LATER),
        (AddPartitionsToTxnResponse(), ErrorCode.UNKNOWN_SERVER_ERROR),
        (ErrorCode.NOT_COORDINATOR, RETRY_LATER),
        (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, RETRY_LATER),
        (ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH),
        (ErrorCode.INVALID_PRODUCER_ID_MAPPING, ErrorCode.INVALID_PRODUCER_ID_MAPPING),
        (ErrorCode.TRANSACTION_ABORTABLE, ErrorCode.TRANSACTION_ABORTABLE),
    ],
)
def test_errors_reach_the_producer_as_with_a_coordinator_here(broker, client, answer, error):
    asked = client.send_write(b"v")
    request = sent(broker)
    request.answer(response(request, answer) if isinstance(answer, ErrorCode) else answer)
    assert error_of(client, asked) is error
    assert broker.partition("t").log.end_offset == 0


def test_a_coordinator_that_does_not_answer_is_given_up(broker, client):
    asked = client.send_write(b"v")
    assert sent(broker).timeout_ms == CHECK_WAIT_MS_MAX
    broker.pass_time(CHECK_WAIT_MS_MAX)
    assert error_of(client, asked) is RETRY_LATER


def test_a_coordinator_without_a_leader_is_not_asked(broker, client):
    elect(broker, "__transaction_state", 0, NO_LEADER)
    assert error_of(client, client.send_write(b"v")) is RETRY_LATER
    assert not broker.node.broker.peers.sent


def test_an_addition_waits_a_while_for_the_end_of_the_previous_transaction(broker, client):
    asked = client.send_write(b"v")
    for _ in range(2):
        request = sent(broker)
        request.answer(response(request, CONCURRENT))
    request = sent(broker)
    request.answer(response(request, NONE))
    assert error_of(client, asked) is NONE


def test_an_addition_does_not_wait_for_long(broker, client):
    asked = client.send_write(b"v")
    for _ in range(COMPLETION_WAIT_MS_MAX):
        request = sent(broker)
        request.answer(response(request, CONCURRENT))
        broker.run_until(lambda: client.has_answer(asked) or broker.node.broker.peers.sent)
        if client.has_answer(asked):
            break
    assert error_of(client, asked) is CONCURRENT


def test_many_producers_share_a_request(broker):
    clients = [producer(broker, f"id {number}", number) for number in range(1, 41)]
    peers = broker.node.broker.peers
    waiting = {client: client.send_write(b"v") for client in clients}
    broker.run_until(lambda: sum(len(request.message.transactions) for request in peers.sent) > 0)
    broker.steps()
    requests = 0
    while not all(client.has_answer(asked) for client, asked in waiting.items()):
        assert len(peers.sent) <= CHECK_REQUESTS_IN_FLIGHT_MAX
        for request in tuple(peers.sent):
            peers.sent.remove(request)
            requests += 1
            request.answer(response(request, NONE))
        broker.steps()
    assert [error_of(client, asked) for client, asked in waiting.items()] == [NONE] * len(clients)
    assert requests < len(clients)


def test_each_transaction_of_a_shared_request_gets_its_own_error(broker):
    good, bad = producer(broker, "good", 1), producer(broker, "bad", 2)
    peers = broker.node.broker.peers
    waiting = [good.send_write(b"v"), bad.send_write(b"v", partition=1)]
    errors = {"good": NONE, "bad": ErrorCode.PRODUCER_FENCED}
    while not (good.has_answer(waiting[0]) and bad.has_answer(waiting[1])):
        broker.steps(5)
        for request in tuple(peers.sent):
            peers.sent.remove(request)
            codes = [errors[each.transactional_id] for each in request.message.transactions]
            request.answer(response(request, *codes))
    assert error_of(good, waiting[0]) is NONE
    assert error_of(bad, waiting[1]) is ErrorCode.INVALID_PRODUCER_EPOCH


def test_offsets_of_a_group_wait_for_the_coordinator_on_the_other_broker(broker, client):
    asked = client.send_offsets({0: 7})
    request = sent(broker)
    (transaction,) = request.message.transactions
    assert not transaction.verify_only
    assert [(topic.name, topic.partitions) for topic in transaction.topics] == [
        ("__consumer_offsets", (broker.node.broker.groups.topic.partition_of("g"),))
    ]
    request.answer(response(request, NONE))
    assert client.wait(asked).topics[0].partitions[0].error_code == NONE


@pytest.mark.parametrize("answer", [BROKEN, ErrorCode.NOT_COORDINATOR, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION])
def test_a_commit_of_offsets_is_retried_at_the_group_coordinator(broker, client, answer):
    asked = client.send_offsets({0: 7})
    request = sent(broker)
    request.answer(answer if answer is BROKEN else response(request, answer))
    error = client.wait(asked).topics[0].partitions[0].error_code
    assert error == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS


@pytest.mark.parametrize("catches_up", [True, False])
def test_a_coordinator_answers_when_it_knows_the_metadata_of_the_leader(broker, catches_up):
    client = broker.client()
    request = AddPartitionsToTxnRequest(metadata_offset=broker.node.broker.image.version + 1)
    asked = client.send(ApiKey.ADD_PARTITIONS_TO_TXN, 5, request)
    broker.steps()
    assert not client.has_answer(asked)
    if catches_up:
        broker.with_topic("later")
    else:
        broker.pass_time(CHECK_WAIT_MS_MAX)
    assert client.wait(asked).error_code == (NONE if catches_up else ErrorCode.COORDINATOR_NOT_AVAILABLE)
