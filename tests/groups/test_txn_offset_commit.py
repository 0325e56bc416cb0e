"""TxnOffsetCommit over the wire: offsets that count when their transaction does, also after a restart."""

import errno
import random
from typing import Any

import pytest

from headrace.broker.api.registry import SERVED
from headrace.broker.cluster.proposal import Proposal
from headrace.broker.partitions.verification import CHECK_WAIT_MS_MAX
from headrace.model.errors import ErrorCode
from headrace.wire.apis import ApiKey
from headrace.wire.messages import offset_fetch, txn_offset_commit
from tests.groups.wire import GroupClient, group_broker
from tests.transactions.wire import TransactionClient, wait_loaded

NONE = ErrorCode.NONE
UNSTABLE = ErrorCode.UNSTABLE_OFFSET_COMMIT
SETTINGS = {"transaction.state.log.num.partitions": "1", "offsets.topic.num.partitions": "1"}
VERSIONS = next(
    range(each.min_version, each.max_version + 1) for each in SERVED if each.key == ApiKey.TXN_OFFSET_COMMIT
)


class CopyClient(TransactionClient):
    """A producer that commits what a group has read."""

    def send_offsets(self, offsets, *, group="g", version=5, member_id="", generation=-1, topic="t", epoch=None):
        partitions = tuple(
            txn_offset_commit.TxnOffsetCommitRequestPartition(
                partition_index=partition, committed_offset=offset, committed_leader_epoch=0, committed_metadata="note"
            )
            for partition, offset in offsets.items()
        )
        identity = self.identity()
        if epoch is not None:
            identity["producer_epoch"] = epoch
        request = txn_offset_commit.TxnOffsetCommitRequest(
            **identity,
            group_id=group,
            member_id=member_id,
            generation_id=generation,
            topics=(txn_offset_commit.TxnOffsetCommitRequestTopic(name=topic, partitions=partitions),),
        )
        return self.send(ApiKey.TXN_OFFSET_COMMIT, version, request)

    def commit_offsets(self, offsets, **options):
        answer = self.wait(self.send_offsets(offsets, **options))
        return [ErrorCode(each.error_code) for each in answer.topics[0].partitions]


def stable(client, group="g", partitions=(0, 1, 2)):
    """{partition: offset or error} for one that requires stable offsets."""
    topic = offset_fetch.OffsetFetchRequestTopic(name="t", partition_indexes=partitions)
    request = offset_fetch.OffsetFetchRequest(group_id=group, topics=(topic,), require_stable=True)
    answer = client.ask(ApiKey.OFFSET_FETCH, 7, request)
    return {each.partition_index: each.error_code or each.committed_offset for each in answer.topics[0].partitions}


@pytest.fixture
def broker():
    broker = group_broker(settings=SETTINGS)
    TransactionClient(broker).find("id")
    wait_loaded(broker)
    return broker


@pytest.fixture
def client(broker):
    return GroupClient(broker)


@pytest.fixture
def producer(broker):
    return CopyClient(broker).initialized()


@pytest.mark.parametrize("version", VERSIONS)
def test_offsets_count_from_the_commit_on(client, producer, version):
    client.commit({0: 1})
    if version < 5:
        assert producer.commit_offsets({0: 4}, version=version) == [
            ErrorCode.TRANSACTION_ABORTABLE if version == 4 else ErrorCode.INVALID_TXN_STATE
        ], "up to version 4 the group is added to the transaction first"
        assert producer.add_offsets() is NONE
    assert producer.commit_offsets({0: 5, 1: 6}, version=version) == [NONE, NONE]
    assert client.committed() == {0: 1, 1: -1, 2: -1}
    assert stable(client) == {0: UNSTABLE, 1: UNSTABLE, 2: -1}
    assert producer.end(version=4 if version < 5 else 5) is NONE
    client._broker.run_until(lambda: stable(client) == {0: 5, 1: 6, 2: -1})


def test_an_abort_forgets_them(broker, client, producer):
    client.commit({0: 1})
    assert producer.commit_offsets({0: 5}) == [NONE]
    assert producer.end(commit=False) is NONE
    broker.run_until(lambda: stable(client) == {0: 1, 1: -1, 2: -1})


@pytest.mark.parametrize("end", ["stop", "kill"])
@pytest.mark.parametrize("outcome", ["commit", "abort", "open"])
def test_a_restart_knows_the_same(broker, client, producer, end, outcome):
    client.commit({0: 1})
    assert producer.commit_offsets({0: 5, 1: 6}) == [NONE, NONE]
    if outcome != "open":
        assert producer.end(commit=outcome == "commit") is NONE
        broker.run_until(lambda: stable(client)[0] != UNSTABLE)
    if end == "stop":
        broker.stop()
    else:
        broker.machine.kill()
    broker.boot()
    client = GroupClient(broker)
    offsets: dict[str, dict[int, int]] = {
        "commit": {0: 5, 1: 6},
        "abort": {0: 1, 1: -1},
        "open": {0: UNSTABLE, 1: UNSTABLE},
    }
    broker.run_until(lambda: client.committed() != ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    assert stable(client) == {**offsets[outcome], 2: -1}
    if outcome == "open":
        wait_loaded(broker)
        producer = CopyClient(broker).initialized()  # what was open is aborted for the new one
        broker.run_until(lambda: stable(client) == {0: 1, 1: -1, 2: -1})
        assert producer.commit_offsets({0: 7}) == [NONE]
        assert producer.end() is NONE
        broker.run_until(lambda: stable(client) == {0: 7, 1: -1, 2: -1})


def test_a_marker_that_comes_while_the_group_is_loaded_is_heard(broker, client, producer):
    assert producer.commit_offsets({0: 5}) == [NONE]
    broker.machine.kill()
    broker.boot()
    client, host = GroupClient(broker), next(iter(broker.node.broker.groups.topic))
    broker.machine.spawner.hold()
    assert client.committed() == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    end_offset = host.partition.append_marker(
        producer.producer_id,
        producer.producer_epoch + 1,
        commit=True,
        coordinator_epoch=0,
        transaction_version=2,
        wall_ms=client.now(),
    )
    assert not isinstance(end_offset, ErrorCode)
    broker.machine.spawner.release()
    broker.run_until(lambda: host.machine is not None)
    assert stable(client) == {0: 5, 1: -1, 2: -1}


def test_zombies_are_fenced(broker, client, producer):
    assert producer.commit_offsets({0: 5}) == [NONE]
    old = CopyClient(broker)
    old.producer_id, old.producer_epoch = producer.producer_id, producer.producer_epoch
    successor = CopyClient(broker).initialized()
    assert old.commit_offsets({0: 6}) == [ErrorCode.INVALID_PRODUCER_EPOCH]
    assert successor.commit_offsets({1: 7}) == [NONE]
    assert old.commit_offsets({0: 6}) == [ErrorCode.INVALID_PRODUCER_EPOCH]
    assert successor.end() is NONE
    broker.run_until(lambda: stable(client) == {0: -1, 1: 7, 2: -1})


def test_an_answer_that_a_marker_has_overtaken_does_not_count(broker, client, producer):
    """The coordinator of the transaction says yes, and the transaction is over before that arrives."""
    checked: list[Any] = []

    def check(*_arguments, **_options):
        checked.append(Proposal())
        return checked[-1]

    broker.node.broker.transactions.check = check
    waiting = producer.send_offsets({0: 5})
    broker.run_until(lambda: checked)
    partition = broker.partition("__consumer_offsets")
    partition.append_marker(
        producer.producer_id,
        producer.producer_epoch,
        commit=False,
        coordinator_epoch=0,
        transaction_version=1,
        wall_ms=client.now(),
    )
    checked[0].complete({("__consumer_offsets", 0): NONE})
    assert producer.wait(waiting).topics[0].partitions[0].error_code == ErrorCode.INVALID_TXN_STATE
    assert stable(client) == {0: -1, 1: -1, 2: -1}


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH),
        (ErrorCode.INVALID_PRODUCER_ID_MAPPING, ErrorCode.INVALID_PRODUCER_ID_MAPPING),
        (ErrorCode.CONCURRENT_TRANSACTIONS, ErrorCode.CONCURRENT_TRANSACTIONS),
        (ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS),
    ],
)
def test_what_the_coordinator_of_the_transaction_says_is_passed_on(broker, client, producer, said, told):
    answer: Proposal[Any] = Proposal()
    answer.complete({("__consumer_offsets", 0): said})
    broker.node.broker.transactions.check = lambda *_arguments, **_options: answer
    assert producer.commit_offsets({0: 5}) == [told]
    assert client.committed() == {0: -1, 1: -1, 2: -1}


def test_refusals(producer):
    assert producer.commit_offsets({0: 1, 9: 1}) == [NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    assert producer.commit_offsets({0: 1}, topic="nope") == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    assert producer.commit_offsets({0: 1}, group="") == [ErrorCode.INVALID_GROUP_ID]
    assert producer.commit_offsets({0: 1}, group="missing", member_id="me", generation=3) == [
        ErrorCode.ILLEGAL_GENERATION
    ]


def test_members_say_who_they_are(broker, client, producer):
    """KIP-447: a consumer that was replaced cannot commit through its producer."""
    joined = client.join("g")
    client.sync(joined)
    assert producer.commit_offsets({0: 5}, member_id=joined.member_id, generation=1) == [NONE]
    assert producer.commit_offsets({0: 6}, member_id=joined.member_id, generation=0) == [ErrorCode.ILLEGAL_GENERATION]
    assert producer.commit_offsets({0: 6}, member_id="other", generation=1) == [ErrorCode.UNKNOWN_MEMBER_ID]
    beat = client.consumer_beat("me", group="new")
    assert producer.commit_offsets({0: 7}, group="new", member_id="me", generation=beat.member_epoch) == [NONE]
    assert producer.commit_offsets({0: 8}, group="new", member_id="me", generation=0) == [ErrorCode.ILLEGAL_GENERATION]
    assert producer.end() is NONE
    broker.run_until(lambda: stable(client, "g")[0] == 5 and stable(client, "new")[0] == 7)


def test_what_could_not_be_written_is_not_pending(broker, client, producer):
    assert producer.commit_offsets({0: 5}) == [NONE]
    broker.machine.disk.faults.fail("write_vector", code=errno.ENOSPC, path_contains="__consumer_offsets")
    assert producer.commit_offsets({1: 6}) == [ErrorCode.COORDINATOR_NOT_AVAILABLE]
    host = next(iter(broker.node.broker.groups.topic))
    broker.run_until(lambda: host.machine is not None)
    assert stable(client) == {0: UNSTABLE, 1: -1, 2: -1}
    assert producer.end() is NONE
    broker.run_until(lambda: stable(client) == {0: 5, 1: -1, 2: -1})


def test_deleted_offsets_and_groups(broker, client, producer):
    assert producer.commit_offsets({0: 5, 1: 6}) == [NONE, NONE]
    assert producer.commit_offsets({0: 7}, group="h") == [NONE]
    assert client.delete_offsets(0).error_code == NONE
    assert client.delete("h") == [NONE]
    assert producer.end() is NONE
    broker.run_until(lambda: stable(client) == {0: -1, 1: 6, 2: -1})
    assert stable(client, "h") == {0: -1, 1: -1, 2: -1}


COMPACTED = {
    "segment.bytes": "1500",
    "min.cleanable.dirty.ratio": "0.01",
    "delete.retention.ms": "200",
    "file.delete.delay.ms": "50",
}


@pytest.mark.parametrize("seed", range(3))
def test_a_compacted_log_gives_the_same_state(seed):
    """Plain commits, transactions that commit, abort and stay open, and deletions, while the topic is compacted."""
    draw = random.Random(seed)
    broker = group_broker(settings={**SETTINGS, "log.cleaner.backoff.ms": "100"}, seed=seed)
    TransactionClient(broker).find("id")
    wait_loaded(broker)
    client = GroupClient(broker)
    assert client.alter_configs(2, "__consumer_offsets", COMPACTED) == NONE
    producers = [CopyClient(broker, f"id {number}").initialized() for number in range(3)]
    writing = []
    for step in range(60):
        producer = draw.choice(producers)
        offsets = {draw.randrange(3): step}
        kind = draw.choice(("plain", "transaction", "transaction", "end", "delete"))
        if kind == "plain":
            assert client.commit(offsets) == [NONE]
        elif kind == "transaction":
            broker.run_until(lambda producer=producer, offsets=offsets: producer.commit_offsets(offsets) == [NONE])
            if producer not in writing:
                writing.append(producer)
        elif kind == "delete":
            client.delete_offsets(*offsets)
        everyone = step % 20 == 0  # nothing behind the oldest that is open is compacted
        for each in [each for each in writing if everyone or (kind == "end" and each is producer)]:
            assert each.end(commit=draw.random() < 0.5) is NONE
            writing.remove(each)
        broker.pass_time(150)
    assert broker.node.compactor.passes_ended > 0
    before, committed = stable(client), client.committed()
    broker.restart()
    client = GroupClient(broker)
    broker.run_until(lambda: client.committed() == committed)
    assert stable(client) == before


def test_a_coordinator_that_does_not_answer_is_not_waited_for_for_ever(broker, client, producer, monkeypatch):
    unanswered: Proposal[Any] = Proposal()
    monkeypatch.setattr(broker.node.broker.transactions, "check", lambda *_arguments, **_options: unanswered)
    asked = producer.send_offsets({0: 5})
    broker.pass_time(CHECK_WAIT_MS_MAX - 500)
    assert not producer.has_answer(asked)
    broker.pass_time(1_000)
    (answer,) = producer.wait(asked).topics[0].partitions
    assert answer.error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    unanswered.complete({("__consumer_offsets", 0): NONE})  # too late
    monkeypatch.undo()
    assert producer.commit_offsets({0: 6}) == [NONE]
    assert producer.end() is NONE
    broker.run_until(lambda: stable(client) == {0: 6, 1: -1, 2: -1})
