"""Requests of a transactional producer, before and from transaction.version 2 on; against a broker made of answers."""

from typing import Any

import pytest

from headrace.client.core.accumulator import ProducerSettings
from headrace.client.core.calls import ANY_BROKER, Call, Pause
from headrace.client.core.cluster import Cluster
from headrace.client.core.produced_batches import ProducedBatch
from headrace.client.core.producer import ProducerCore
from headrace.client.core.transactions import State, TransactionManager
from headrace.client.errors import BrokerUnreachable, ClientError, InvalidArgument, ProducerFenced, TransactionFailed
from headrace.client.types import GroupIdentity, OffsetAndMetadata, PreparedTransaction
from headrace.model.errors import ErrorCode
from headrace.model.ids import TopicPartition
from headrace.wire.apis import ApiKey
from headrace.wire.messages import (
    add_offsets_to_txn,
    add_partitions_to_txn,
    end_txn,
    find_coordinator,
    init_producer_id,
    metadata,
    produce,
    txn_offset_commit,
)
from headrace.wire.records.header import BASE_SEQUENCE, HEADER, PRODUCER_EPOCH, PRODUCER_ID

TOPIC_ID = bytes(range(16))
STEPS_MAX = 200
T0 = TopicPartition("t", 0)


class Coordinator:
    """Answers everything with success unless `faults` has something for that API; bumps epochs at level 2."""

    def __init__(self, level: int) -> None:
        self.level = level
        self.epoch = -1
        self.faults: dict[ApiKey, list[Any]] = {}
        self.calls: list[Call] = []

    def names(self) -> list[str]:
        return [ApiKey(call.api.API_KEY).name for call in self.calls]

    def answer(self, call: Call) -> Any:
        self.calls.append(call)
        key = ApiKey(call.api.API_KEY)
        fault = self.faults[key].pop(0) if self.faults.get(key) else ErrorCode.NONE
        if isinstance(fault, ClientError):
            return fault
        return getattr(self, key.name.lower())(call.message, fault)

    def metadata(self, _request: Any, _fault: int) -> Any:
        partitions = tuple(
            metadata.MetadataResponsePartition(partition_index=index, leader_id=1, leader_epoch=0) for index in (0, 1)
        )
        topic = metadata.MetadataResponseTopic(name="t", topic_id=TOPIC_ID, partitions=partitions)
        broker = metadata.MetadataResponseBroker(node_id=1, host="h", port=1)
        return metadata.MetadataResponse(brokers=(broker,), topics=(topic,))

    def find_coordinator(self, request: Any, fault: int) -> Any:
        found = find_coordinator.FindCoordinatorResponseCoordinator(
            key=request.key, node_id=1, host="h", port=1, error_code=fault
        )
        return find_coordinator.FindCoordinatorResponse(coordinators=(found,))

    def init_producer_id(self, _request: Any, fault: int) -> Any:
        self.epoch += not fault
        return init_producer_id.InitProducerIdResponse(producer_id=7, producer_epoch=self.epoch, error_code=fault)

    def add_partitions_to_txn(self, request: Any, fault: int) -> Any:
        topics = tuple(
            add_partitions_to_txn.AddPartitionsToTxnResponseTopic(
                name=topic.name,
                results_by_partition=tuple(
                    add_partitions_to_txn.AddPartitionsToTxnResponsePartition(
                        partition_index=index, partition_error_code=fault
                    )
                    for index in topic.partitions
                ),
            )
            for topic in request.v3_and_below_topics
        )
        return add_partitions_to_txn.AddPartitionsToTxnResponse(results_by_topic_v3_and_below=topics)

    def add_offsets_to_txn(self, _request: Any, fault: int) -> Any:
        return add_offsets_to_txn.AddOffsetsToTxnResponse(error_code=fault)

    def txn_offset_commit(self, _request: Any, fault: int) -> Any:
        partition = txn_offset_commit.TxnOffsetCommitResponsePartition(partition_index=0, error_code=fault)
        topic = txn_offset_commit.TxnOffsetCommitResponseTopic(name="t", partitions=(partition,))
        return txn_offset_commit.TxnOffsetCommitResponse(topics=(topic,))

    def end_txn(self, _request: Any, fault: int) -> Any:
        if fault or self.level < 2:
            return end_txn.EndTxnResponse(error_code=fault)
        self.epoch += 1
        return end_txn.EndTxnResponse(producer_id=7, producer_epoch=self.epoch)

    def produce(self, request: Any, fault: int) -> Any:
        answers = tuple(
            produce.ProduceResponsePartition(index=each.index, error_code=fault, base_offset=5)
            for each in request.topic_data[0].partition_data
        )
        topic = produce.ProduceResponseTopic(name="t", topic_id=TOPIC_ID, partition_responses=answers)
        return produce.ProduceResponse(responses=(topic,))


class World:
    def __init__(self, level: int) -> None:
        self.coordinator = Coordinator(level)
        self.cluster = Cluster()
        self.cluster.learn_features(1, {"transaction.version": level})
        self.transactions = TransactionManager("id", self.cluster, timeout_ms=1_000, retry_pause_ms=100)
        settings = ProducerSettings(linger_ms=0, delivery_timeout_ms=5_000)
        self.core = ProducerCore(settings, self.cluster, lambda _bound: 0, transactions=self.transactions)
        self.cluster.want(["t"])
        self.now_ms = 0.0
        self.turn()

    def turn(self) -> None:
        calls, _wakeup_ms = self.core.poll(self.now_ms)
        for pending in calls:
            pending.completed(self.coordinator.answer(pending.call), self.now_ms)
        self.now_ms += 10

    def run(self, operation: Any) -> Any:
        replies = None
        try:
            for _ in range(STEPS_MAX):
                step = operation.send(replies)
                replies = [] if isinstance(step, Pause) else [self.coordinator.answer(call) for call in step]
        except StopIteration as end:
            return end.value
        raise AssertionError("the operation does not end")

    def send(self, partition: int = 0) -> ProducedBatch:
        self.transactions.check_may_send()
        appended = self.core.append("t", partition, 1, None, b"v", (), self.now_ms)
        assert appended is not None
        return appended.batch

    def flush(self) -> None:
        for _ in range(STEPS_MAX):
            if not self.core.incomplete_count():
                return
            self.turn()
        raise AssertionError("the producer does not come to rest")

    def transact(self, *partitions: int, commit: bool = True) -> None:
        self.transactions.begin()
        for partition in partitions:
            self.send(partition)
        self.flush()
        self.run(self.transactions.end(commit=commit))

    def of(self, key: ApiKey) -> list[Call]:
        return [call for call in self.coordinator.calls if key == call.api.API_KEY]

    def heads(self) -> list[tuple[int, ...]]:
        return [
            HEADER.unpack_from(each.records)
            for call in self.of(ApiKey.PRODUCE)
            for each in call.message.topic_data[0].partition_data
        ]


def offered(call: Call) -> range:
    """The versions in which the call may be sent."""
    return range(call.min_version, min(call.max_version, call.api.MAX_VERSION) + 1)


def test_before_level_2_partitions_are_added_and_the_epoch_stays() -> None:
    world = World(1)
    world.run(world.transactions.initialize())
    world.transact(0, 1)
    world.transact(0)
    names = world.coordinator.names()
    assert names.index("ADD_PARTITIONS_TO_TXN") < names.index("PRODUCE")
    assert names.count("END_TXN") == 2
    assert offered(world.of(ApiKey.PRODUCE)[0])[-1] == 11
    assert offered(world.of(ApiKey.END_TXN)[0])[-1] == 4
    assert {head[PRODUCER_EPOCH] for head in world.heads()} == {0}
    assert [head[BASE_SEQUENCE] for head in world.heads()] == [0, 0, 1]


def test_from_level_2_on_the_end_brings_the_next_epoch() -> None:
    world = World(2)
    world.run(world.transactions.initialize())
    world.transact(0, 1)
    world.transact(0, commit=False)
    world.transact()
    world.transact(0)
    names = world.coordinator.names()
    assert "ADD_PARTITIONS_TO_TXN" not in names
    assert names.count("END_TXN") == 3, "there is nothing to end where nothing was written"
    assert set(offered(world.of(ApiKey.PRODUCE)[0])) == {12, 13}
    assert set(offered(world.of(ApiKey.END_TXN)[0])) == {5}
    assert [head[PRODUCER_EPOCH] for head in world.heads()] == [0, 0, 1, 2]
    assert {head[BASE_SEQUENCE] for head in world.heads()} == {0}
    assert {head[PRODUCER_ID] for head in world.heads()} == {7}


@pytest.mark.parametrize("level", [1, 2])
def test_offsets_join_the_transaction(level: int) -> None:
    world = World(level)
    world.run(world.transactions.initialize())
    world.transactions.begin()
    group = GroupIdentity("g", 3, "member")
    world.run(world.transactions.add_offsets({T0: OffsetAndMetadata(9)}, group))
    world.run(world.transactions.end(commit=True))
    assert ("ADD_OFFSETS_TO_TXN" in world.coordinator.names()) == (level < 2)
    (commit,) = world.of(ApiKey.TXN_OFFSET_COMMIT)
    assert set(offered(commit)) == ({5} if level == 2 else {3, 4})
    assert "END_TXN" in world.coordinator.names()
    assert world.transactions.producer_epoch == level - 1


@pytest.mark.parametrize("level", [1, 2])
def test_what_passes_is_tried_again(level: int) -> None:
    world = World(level)
    gone = BrokerUnreachable("gone")
    world.coordinator.faults = {
        ApiKey.FIND_COORDINATOR: [ErrorCode.COORDINATOR_NOT_AVAILABLE],
        ApiKey.INIT_PRODUCER_ID: [ErrorCode.CONCURRENT_TRANSACTIONS, gone],
        ApiKey.ADD_PARTITIONS_TO_TXN: [ErrorCode.CONCURRENT_TRANSACTIONS, ErrorCode.NOT_COORDINATOR, gone],
        ApiKey.PRODUCE: [ErrorCode.CONCURRENT_TRANSACTIONS, gone, ErrorCode.NOT_LEADER_OR_FOLLOWER],
        ApiKey.END_TXN: [ErrorCode.NOT_COORDINATOR, gone, ErrorCode.CONCURRENT_TRANSACTIONS],
    }
    world.run(world.transactions.initialize())
    world.transact(0)
    assert world.transactions.state is State.READY
    assert not any(world.coordinator.faults[key] for key in (ApiKey.PRODUCE, ApiKey.END_TXN, ApiKey.INIT_PRODUCER_ID))


@pytest.mark.parametrize("level", [1, 2])
def test_a_lost_batch_dooms_the_transaction_and_the_next_has_another_epoch(level: int) -> None:
    world = World(level)
    world.run(world.transactions.initialize())
    world.transactions.begin()
    world.coordinator.faults = {ApiKey.PRODUCE: [ErrorCode.MESSAGE_TOO_LARGE]}
    batch = world.send()
    world.flush()
    assert batch.error is not None
    with pytest.raises(TransactionFailed, match="MESSAGE_TOO_LARGE"):
        world.run(world.transactions.end(commit=True))
    world.run(world.transactions.end(commit=False))
    world.transact(0)
    assert [(head[PRODUCER_EPOCH], head[BASE_SEQUENCE]) for head in world.heads()] == [(0, 0), (1, 0)]
    assert world.coordinator.names().count("INIT_PRODUCER_ID") == (2 if level == 1 else 1)


@pytest.mark.parametrize("level", [1, 2])
@pytest.mark.parametrize("code", [ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH])
def test_a_fenced_producer_is_of_no_more_use(level: int, code: ErrorCode) -> None:
    world = World(level)
    world.run(world.transactions.initialize())
    world.transactions.begin()
    world.send()
    world.flush()
    world.coordinator.faults = {ApiKey.END_TXN: [code]}
    with pytest.raises(ProducerFenced, match="taken over"):
        world.run(world.transactions.end(commit=True))
    with pytest.raises(ProducerFenced):
        world.transactions.begin()


@pytest.mark.parametrize("level", [1, 2])
def test_an_empty_transaction_is_adopted(level: int) -> None:
    world = World(level)
    prepared = PreparedTransaction(
        transactional_id="id", producer_id=7, producer_epoch=3, partitions=(), has_offsets=False
    )
    world.run(world.transactions.adopt(prepared))
    world.send()
    world.flush()
    assert world.transactions.hand_over().partitions == (T0,)
    assert "INIT_PRODUCER_ID" not in world.coordinator.names()
    assert [(head[PRODUCER_ID], head[PRODUCER_EPOCH], head[BASE_SEQUENCE]) for head in world.heads()] == [(7, 3, 0)]
    with pytest.raises(InvalidArgument, match="only a new producer"):
        world.run(world.transactions.adopt(prepared))
    for wrong in ({"transactional_id": "other"}, {"partitions": (T0,)}):
        fields = {name: getattr(prepared, name) for name in PreparedTransaction.__slots__}
        with pytest.raises(InvalidArgument):
            World(level).run(World(level).transactions.adopt(PreparedTransaction(**{**fields, **wrong})))


def test_the_level_is_looked_at_when_a_transaction_begins() -> None:
    world = World(1)
    world.run(world.transactions.initialize())
    world.transact(0)
    world.cluster.learn_features(2, {"transaction.version": 2})
    world.cluster.learn_features(1, {})
    world.coordinator.level = 2
    world.transact(0)
    world.transact(0)
    assert [head[PRODUCER_EPOCH] for head in world.heads()] == [0, 0, 1]
    assert [head[BASE_SEQUENCE] for head in world.heads()] == [0, 1, 0]
    assert ANY_BROKER not in {call.target for call in world.of(ApiKey.END_TXN)}
