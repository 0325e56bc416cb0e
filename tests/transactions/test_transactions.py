"""Whole transactions over the wire: what readers see, what zombies can do, what is left after a kill at any step."""

import pytest

from headrace.model.errors import ErrorCode
from headrace.wire.apis import ApiKey
from headrace.wire.messages import list_offsets
from headrace.wire.records.reader import batches, is_control, records
from tests.transactions.wire import READ_COMMITTED, TransactionClient, known, transaction_broker, wait_loaded

NONE = ErrorCode.NONE
LATEST = -1


@pytest.fixture
def broker():
    return transaction_broker()


@pytest.fixture
def client(broker):
    client = TransactionClient(broker)
    assert client.init() is NONE
    return client


def committed(broker, partition=0):
    """The values that a reader of committed records gets from the start on, with what is aborted left out."""
    answer = broker.client().fetch("t", partition, isolation=READ_COMMITTED)
    aborted = {(each.producer_id, each.first_offset) for each in answer.aborted_transactions or ()}
    leaving_out, values = set(), []
    for batch in batches(answer.records or b""):
        for record in records(batch):
            if (_producer(batch), record.offset) in aborted:
                leaving_out.add(_producer(batch))
            if is_control(batch):
                leaving_out.discard(_producer(batch))
            elif _producer(batch) not in leaving_out:
                values.append(bytes(record.value))
    return values


def _producer(batch):
    return int.from_bytes(batch[43:51], "big", signed=True)


def stable_offset(broker, partition=0):
    wanted = list_offsets.ListOffsetsRequestPartition(partition_index=partition, timestamp=LATEST)
    topic = list_offsets.ListOffsetsRequestTopic(name="t", partitions=(wanted,))
    request = list_offsets.ListOffsetsRequest(replica_id=-1, isolation_level=READ_COMMITTED, topics=(topic,))
    return broker.client().ask(ApiKey.LIST_OFFSETS, 7, request).topics[0].partitions[0].offset


def wait_for_end(broker, transactional_id="id"):
    """Until no transaction of the id is on its way to its end."""
    broker.run_until(lambda: not known(broker, transactional_id).state.startswith("Prepare"))


def test_readers_see_what_is_committed(broker, client):
    for number, commit in enumerate((True, False, True)):
        assert client.write(b"%d" % number, b"%d'" % number) is NONE
        assert committed(broker) == ([b"0", b"0'"] if number else [])
        assert client.end(commit=commit) is NONE
        wait_for_end(broker)
    assert committed(broker) == [b"0", b"0'", b"2", b"2'"]
    assert client.markers() == ["COMMIT", "ABORT", "COMMIT"]
    assert stable_offset(broker) == broker.partition("t").log.end_offset == 9


def test_producers_of_before_version_2(broker, client):
    assert client.write(b"too early", version=10) is ErrorCode.INVALID_TXN_STATE
    for number in range(3):
        assert client.add(0) == [NONE]
        assert client.write(b"%d" % number, version=11) is NONE
        assert client.end(commit=number != 1, version=4) is NONE
        wait_for_end(broker)
    assert (client.producer_epoch, committed(broker)) == (0, [b"0", b"2"])


def test_the_next_transaction_may_begin_before_the_last_one_has_ended(broker, client):
    """The first write of each is sent behind the commit of the one before, and waits for its end."""
    ending = None
    for number in range(10):
        writing = client.send_write(b"%d" % number)
        if ending is not None:
            assert client.wait(ending).error_code == NONE
        assert client.wait(writing).responses[0].partition_responses[0].error_code == NONE
        ending = client.send_end()
        client.producer_epoch += 1
    assert client.wait(ending).error_code == NONE
    wait_for_end(broker)
    assert committed(broker) == [b"%d" % number for number in range(10)]


def test_a_zombie_writes_nothing_more(broker, client):
    assert client.write(b"lost") is NONE
    other = TransactionClient(broker).initialized()
    assert client.write(b"late") is ErrorCode.INVALID_PRODUCER_EPOCH
    assert client.commit() is ErrorCode.PRODUCER_FENCED
    assert other.write(b"kept") is NONE
    assert client.write(b"later") is ErrorCode.INVALID_PRODUCER_EPOCH
    assert other.commit() is NONE
    wait_for_end(broker)
    assert committed(broker) == [b"kept"]


def test_a_write_that_comes_after_the_abort_opens_nothing(broker, client):
    """It was under way when its producer gave up; with the epoch of before, or with one that was never begun."""
    assert client.write(b"first") is NONE
    stale_epoch = client.producer_epoch
    assert client.abort() is NONE
    wait_for_end(broker)
    client.producer_epoch = stale_epoch
    assert client.write(b"delayed") is ErrorCode.INVALID_PRODUCER_EPOCH
    assert stable_offset(broker) == 2
    plain = TransactionClient(broker, "plain")
    assert plain.init() is NONE
    assert plain.add(1) == [NONE]
    assert plain.write(b"first", partition=1, version=11) is NONE
    assert plain.abort(version=4) is NONE
    wait_for_end(broker, "plain")
    assert plain.write(b"delayed", partition=1, version=11) is ErrorCode.TRANSACTION_ABORTABLE
    assert plain.write(b"delayed", partition=1, version=10) is ErrorCode.INVALID_TXN_STATE
    assert stable_offset(broker, 1) == broker.partition("t", 1).log.end_offset == 2


def test_a_deleted_topic_does_not_keep_a_transaction_open(broker, client):
    broker.with_topic("short-lived")
    assert client.write(b"a", topic="short-lived") is NONE
    client.sequence = 0
    assert client.write(b"b") is NONE
    assert broker.client().delete_topic("short-lived") == NONE
    assert client.commit() is NONE
    wait_for_end(broker)
    assert committed(broker) == [b"b"]


def test_a_timeout_lets_readers_continue(broker):
    slow = TransactionClient(broker, "slow")
    assert slow.init(timeout_ms=10_000) is NONE
    assert slow.write(b"slow") is NONE
    assert broker.client().produce_error("t", 0) == NONE
    assert (stable_offset(broker), committed(broker)) == (0, [])
    broker.pass_time(30_000)
    wait_for_end(broker, "slow")
    assert stable_offset(broker) == 3
    assert committed(broker) == [b"v"]
    assert slow.write(b"more") is ErrorCode.INVALID_PRODUCER_EPOCH


@pytest.mark.parametrize("commit", [True, False])
@pytest.mark.parametrize("synced", [False, True])
def test_after_a_kill_the_outcome_is_what_was_answered(commit, synced):
    """Killed after each turn from the EndTxn on. Nothing stays open, and no outcome is taken back or made up."""
    ended_both_ways = set()
    steps = 0
    while True:
        broker = transaction_broker(seed=steps)
        if synced:
            for topic in ("t", "__transaction_state"):
                assert broker.client().alter_configs(2, topic, {"flush.messages": 1}) == NONE
        client = TransactionClient(broker)
        assert client.init() is NONE
        for partition in range(3):
            client.sequence = 0
            assert client.write(b"%d" % partition, partition=partition) is NONE
        asked = client.send_end(commit=commit)
        broker.steps(steps)
        answered = client.has_answer(asked)
        over = known(broker).state.startswith("Complete")
        broker.machine.kill()
        broker.boot()
        wait_loaded(broker)
        wait_for_end(broker)
        state = known(broker).state
        again = TransactionClient(broker)
        if state == "Ongoing":
            assert not answered
            again.initialized()
        else:
            assert state == ("CompleteCommit" if commit else "CompleteAbort")
        ended_both_ways.add(state)
        visible = [committed(broker, partition) for partition in range(3)]
        if answered and commit:
            assert visible == [[b"0"], [b"1"], [b"2"]]
        else:
            assert visible in ([[b"0"], [b"1"], [b"2"]], [[], [], []])
            assert visible == [[], [], []] or (commit and state == "CompleteCommit")
        for partition in range(3):
            assert stable_offset(broker, partition) == broker.partition("t", partition).log.end_offset
        if over:
            break
        steps += 1
    assert len(ended_both_ways) == 2, "the kills came before and after the decision"


def test_a_retry_after_a_kill_gets_the_same_response(broker, client):
    assert client.write(b"v") is NONE
    assert client.commit() is NONE
    broker.machine.kill()
    broker.boot()
    wait_loaded(broker)
    wait_for_end(broker)
    again = TransactionClient(broker)
    again.producer_id, again.producer_epoch = client.producer_id, client.producer_epoch - 1
    assert again.commit() is NONE
    assert again.producer_epoch == client.producer_epoch
    assert committed(broker) == [b"v"]
