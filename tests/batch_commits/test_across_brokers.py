"""A batch with rows on another broker, which the test plays: the commit waits for its sync, and notices a reboot."""

import pytest

from headrace.model.errors import ErrorCode
from headrace.wire.apis import ApiKey
from headrace.wire.messages import add_partitions_to_txn, sync_partitions
from tests.batch_commits.test_batch_apis import DONE
from tests.batch_commits.wire import BatchClient
from tests.broker.other_brokers import NO_LEADER, OTHER, commit_and_wait, elect, registration
from tests.transactions import test_markers
from tests.transactions.fake_peers import BROKEN, FakePeers
from tests.transactions.wire import known, transaction_broker

NONE = ErrorCode.NONE
BOOT, NEXT_BOOT = "boot of the other broker", "its next boot"
NOT_SYNCED = (ErrorCode.COORDINATOR_NOT_AVAILABLE, False)
FAR = 1
"""The partition on the other broker."""


def response(error=NONE, boot=BOOT):
    partition = sync_partitions.SyncPartitionsResponsePartition(partition_index=FAR, error_code=error)
    topic = sync_partitions.SyncPartitionsResponseTopic(name="t", partitions=(partition,))
    return sync_partitions.SyncPartitionsResponse(boot_id=boot, topics=(topic,))


@pytest.fixture
def broker():
    broker = transaction_broker(settings={"transaction.state.log.num.partitions": "1"})
    broker.node.broker.peers = FakePeers()
    commit_and_wait(broker, registration())
    elect(broker, "t", FAR, OTHER, replicas=(OTHER,))
    return broker


@pytest.fixture
def task(broker):
    """A writer with rows on both brokers."""
    task = BatchClient(broker).begun()
    assert task.write(b"near") is NONE
    assert add_as_the_other_broker(broker, task) == NONE
    return task


def add_as_the_other_broker(broker, task, boot=BOOT):
    request = add_partitions_to_txn.AddPartitionsToTxnRequest(
        transactions=(
            add_partitions_to_txn.AddPartitionsToTxnRequestTransaction(
                **task.identity(),
                topics=(add_partitions_to_txn.AddPartitionsToTxnRequestTopic(name="t", partitions=(FAR,)),),
            ),
        ),
        leader_id=OTHER,
        boot_id=boot,
    )
    answer = broker.client().ask(ApiKey.ADD_PARTITIONS_TO_TXN, 5, request)
    return answer.results_by_transaction[0].topic_results[0].results_by_partition[0].partition_error_code


def sent(broker):
    peers = broker.node.broker.peers
    broker.run_until(lambda: peers.sent)
    return peers.take()


def outcome(driver, asked):
    answer = driver.wait(asked)
    return ErrorCode(answer.error_code), answer.already_committed


def test_a_batch_is_committed_when_the_other_broker_has_synced_its_rows(broker, task):
    driver = BatchClient(broker)
    asked = driver.send_commit(task)
    request = sent(broker)
    assert (request.node_id, request.api_key) == (OTHER, ApiKey.SYNC_PARTITIONS)
    assert [(topic.name, topic.partition_indexes) for topic in request.message.topics] == [("t", (FAR,))]
    assert request.message.metadata_offset == broker.node.broker.image.version
    broker.steps()
    assert not driver.has_answer(asked)
    assert known(broker, task.transactional_id).state == "Ongoing"
    request.answer(response())
    assert outcome(driver, asked) == DONE
    markers = sent(broker)
    assert markers.api_key == ApiKey.WRITE_TXN_MARKERS
    assert [marker.sync for marker in markers.message.markers] == [True]
    markers.answer(test_markers.response(markers, NONE))
    broker.run_until(lambda: known(broker, task.transactional_id).state == "CompleteCommit")


@pytest.mark.parametrize(
    "answer",
    [BROKEN, response(ErrorCode.NOT_LEADER_OR_FOLLOWER), sync_partitions.SyncPartitionsResponse(boot_id=BOOT)],
    ids=["broken link", "another leader", "partition left out"],
)
def test_a_commit_that_the_other_broker_could_not_sync_is_repeated(broker, task, answer):
    driver = BatchClient(broker)
    asked = driver.send_commit(task)
    sent(broker).answer(answer)
    assert outcome(driver, asked) == NOT_SYNCED
    asked = driver.send_commit(task)
    sent(broker).answer(response())
    assert outcome(driver, asked) == DONE


def test_rows_that_the_other_broker_lost_with_its_power_are_not_committed(broker, task):
    driver = BatchClient(broker)
    asked = driver.send_commit(task)
    sent(broker).answer(response(boot=NEXT_BOOT))
    assert outcome(driver, asked) == (ErrorCode.TRANSACTION_ABORTABLE, False)
    assert known(broker, task.transactional_id).state == "Ongoing"


def test_a_writer_is_fenced_at_a_broker_that_has_booted_since(broker, task):
    assert add_as_the_other_broker(broker, task) == NONE
    assert add_as_the_other_broker(broker, task, NEXT_BOOT) == ErrorCode.PRODUCER_FENCED


def test_a_commit_waits_for_a_partition_without_a_leader(broker, task):
    elect(broker, "t", FAR, NO_LEADER)
    assert BatchClient(broker).commit_batch(task) == NOT_SYNCED
    assert not broker.node.broker.peers.sent
