"""The transaction manager against a coordinator and leaders made of plain state: all or nothing, on any network."""

import random
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.client.core.accumulator import ProducerSettings
from headrace.client.core.calls import Call, PendingCall
from headrace.client.core.cluster import Cluster
from headrace.client.core.engine import ClientEngine
from headrace.client.core.producer import ProducerCore
from headrace.client.core.transactions import State, TransactionManager
from headrace.client.errors import ClientError, TransactionFailed
from headrace.model.errors import ErrorCode
from headrace.wire.messages import add_partitions_to_txn, end_txn, find_coordinator, init_producer_id, metadata, produce
from headrace.wire.records.header import BASE_SEQUENCE, PRODUCER_EPOCH
from headrace.wire.records.reader import check_batch, records

from .model_cluster import Wires
from .scripted import VirtualClock

TOPIC_ID = bytes(range(16))
PARTITIONS = 2
TRANSACTIONS = 6
STEPS_MAX = 6_000
CACHED_BATCHES = 5
WEIGHTS = {"progress": 20, "step": 6, "serve": 8, "deliver": 8, "wait": 4, "cut": 2, "moved": 1, "busy": 1, "large": 1}


class ModelPartition:
    """One producer's records: those of its open transaction, and those that were committed."""

    def __init__(self) -> None:
        self.open: list[bytes | None] = []
        self.committed: list[bytes | None] = []
        self.epoch = -1
        self.next_sequence = 0
        self.cached: list[tuple[int, int]] = []

    def append(self, batch: Any) -> ErrorCode:
        fields = check_batch(batch)
        values = [record.value for record in records(batch)]
        epoch, sequence = fields[PRODUCER_EPOCH], fields[BASE_SEQUENCE]
        if epoch < self.epoch:
            return ErrorCode.INVALID_PRODUCER_EPOCH
        if epoch > self.epoch:
            self.epoch, self.next_sequence, self.cached = epoch, 0, []
        if (sequence, len(values)) in self.cached:
            return ErrorCode.NONE
        if sequence != self.next_sequence:
            return ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        self.next_sequence += len(values)
        self.cached = [*self.cached, (sequence, len(values))][-CACHED_BATCHES:]
        self.open += values
        return ErrorCode.NONE

    def end(self, *, commit: bool, epoch: int) -> None:
        self.committed += self.open if commit else []
        self.open = []
        if epoch > self.epoch:
            self.epoch, self.next_sequence, self.cached = epoch, 0, []


class ModelBroker:
    """One node that is everything; the rules are those of KIP-98 or, from level 2 on, of KIP-890."""

    def __init__(self, level: int) -> None:
        self.level = level
        self.partitions = [ModelPartition() for _ in range(PARTITIONS)]
        self.epoch = -1
        self.added: set[int] = set()
        self.is_open = False
        self.last_end: bool | None = None
        self.faults: list[int] = []
        """Errors with which the next requests are refused."""
        self.too_large = 0

    def serve(self, _node: int, message: Any, answer: Callable[[Any], None]) -> None:
        is_fault_free = isinstance(message, metadata.MetadataRequest | find_coordinator.FindCoordinatorRequest)
        fault = self.faults.pop() if self.faults and not is_fault_free else ErrorCode.NONE
        answer(getattr(self, f"_{type(message).__name__}")(message, fault))

    def _MetadataRequest(self, _message: Any, _fault: int) -> Any:
        partitions = tuple(
            metadata.MetadataResponsePartition(partition_index=index, leader_id=1, leader_epoch=0)
            for index in range(PARTITIONS)
        )
        topic = metadata.MetadataResponseTopic(name="t", topic_id=TOPIC_ID, partitions=partitions)
        broker = metadata.MetadataResponseBroker(node_id=1, host="h", port=1)
        return metadata.MetadataResponse(brokers=(broker,), topics=(topic,))

    def _FindCoordinatorRequest(self, _message: Any, _fault: int) -> Any:
        return find_coordinator.FindCoordinatorResponse(node_id=1, host="h", port=1)

    def _InitProducerIdRequest(self, _message: Any, fault: int) -> Any:
        if fault:
            return init_producer_id.InitProducerIdResponse(error_code=fault)
        self.epoch += 1
        self._end(commit=False)
        self.last_end = None
        return init_producer_id.InitProducerIdResponse(producer_id=7, producer_epoch=self.epoch)

    def _AddPartitionsToTxnRequest(self, message: Any, fault: int) -> Any:
        assert self.level < 2, "the leaders add partitions"
        error = fault or (
            ErrorCode.NONE if message.v3_and_below_producer_epoch == self.epoch else ErrorCode.INVALID_PRODUCER_EPOCH
        )
        indexes = message.v3_and_below_topics[0].partitions
        if not error:
            self.added |= set(indexes)
            self.is_open = True
        results = tuple(
            add_partitions_to_txn.AddPartitionsToTxnResponsePartition(partition_index=index, partition_error_code=error)
            for index in indexes
        )
        topic = add_partitions_to_txn.AddPartitionsToTxnResponseTopic(name="t", results_by_partition=results)
        return add_partitions_to_txn.AddPartitionsToTxnResponse(results_by_topic_v3_and_below=(topic,))

    def _ProduceRequest(self, message: Any, fault: int) -> Any:
        answers = []
        for sent in message.topic_data[0].partition_data:
            error = fault or self._append(sent.index, sent.records)
            answers.append(produce.ProduceResponsePartition(index=sent.index, error_code=error, base_offset=0))
        topic = produce.ProduceResponseTopic(name="t", topic_id=TOPIC_ID, partition_responses=tuple(answers))
        return produce.ProduceResponse(responses=(topic,))

    def _append(self, index: int, batch: Any) -> int:
        epoch = check_batch(batch)[PRODUCER_EPOCH]
        if epoch != self.epoch:
            return ErrorCode.INVALID_PRODUCER_EPOCH
        if self.too_large:
            self.too_large -= 1
            return ErrorCode.MESSAGE_TOO_LARGE
        if index not in self.added and self.level < 2:
            return ErrorCode.INVALID_TXN_STATE
        self.added.add(index)
        self.is_open = True
        return self.partitions[index].append(batch)

    def _EndTxnRequest(self, message: Any, fault: int) -> Any:
        error = fault or self._end_error(message.producer_epoch, commit=message.committed)
        if error:
            return end_txn.EndTxnResponse(error_code=error)
        if message.producer_epoch == self.epoch and (self.is_open or self.level >= 2):
            self.epoch += self.level >= 2
            self._end(commit=message.committed)
            self.last_end = message.committed
        if self.level < 2:
            return end_txn.EndTxnResponse()
        return end_txn.EndTxnResponse(producer_id=7, producer_epoch=self.epoch)

    def _end_error(self, epoch: int, *, commit: bool) -> int:
        is_retry = epoch == self.epoch - 1 and self.level >= 2 and self.last_end == commit and not self.is_open
        if epoch != self.epoch and not is_retry:
            return ErrorCode.PRODUCER_FENCED
        if not self.is_open and not is_retry and (self.last_end != commit if self.level < 2 else commit):
            return ErrorCode.INVALID_TXN_STATE
        return ErrorCode.NONE

    def _end(self, *, commit: bool) -> None:
        for partition in self.partitions:
            partition.end(commit=commit, epoch=self.epoch)
        self.added.clear()
        self.is_open = False


class WireLinks:
    """The links that the engine needs, on wires that a test serves."""

    def __init__(self, wires: Wires) -> None:
        self._wires = wires

    def submit(self, call: Call, completed: Callable[[Any], None], *, deadline_ms: float | None = None) -> None:
        self._wires.send(PendingCall(call, lambda reply, _now_ms: completed(reply)))


class Application:
    """Runs transactions one after the other, some of which it aborts; knows how each of them ended."""

    def __init__(self, level: int, draw: random.Random) -> None:
        self.draw = draw
        self.broker = ModelBroker(level)
        self.wires = Wires(self.broker.serve)
        self.clock = VirtualClock()
        cluster = Cluster()
        cluster.learn_features(1, {"transaction.version": level})
        cluster.want(["t"])
        self.transactions = TransactionManager("id", cluster, timeout_ms=1_000, retry_pause_ms=20)
        self.core = ProducerCore(
            ProducerSettings(linger_ms=0, batch_bytes_max=150, retry_pause_ms=20, delivery_timeout_ms=1e9),
            cluster,
            lambda _bound: 0,
            transactions=self.transactions,
        )
        self.engine = ClientEngine(WireLinks(self.wires), self.clock)  # type: ignore[arg-type]
        self.engine.attach(self.core)
        self.committed: list[list[bytes]] = [[] for _ in range(PARTITIONS)]
        self.done = 0
        self._is_last = False
        self._sent: list[tuple[int, bytes]] = []
        self._to_send = 0
        self._commits = True
        self._running: list[Any] | None = None
        self._ends = False
        """True while the running operation is the end of a transaction."""

    def advance(self) -> None:
        """The next step of the program, if it need not wait."""
        if self._running is not None:
            if self._running:
                self._ended(self._running[0])
            return
        if self.transactions.state is State.NEW:
            self._start(self.transactions.initialize(), ends=False)
        elif self.transactions.state is State.READY:
            self.transactions.begin()
            self._sent, self._to_send = [], 1 if self._is_last else self.draw.randrange(5)
            self._commits = self._is_last or self.draw.random() < 0.7
        elif self._to_send and self.transactions.state is State.OPEN:
            self._send()
        else:
            self.core.fill()
            if not self.core.incomplete_count():
                self._commits = self._commits and self.transactions.state is State.OPEN
                self._start(self.transactions.end(commit=self._commits), ends=True)

    def _send(self) -> None:
        index = self.draw.randrange(PARTITIONS)
        value = b"%d-%d" % (self.done, self._to_send) + bytes(40)
        if self.core.append("t", index, 1, None, value, (), self.clock.now_ms) is not None:
            self._to_send -= 1
            self._sent.append((index, value))

    def _start(self, operation: Any, *, ends: bool) -> None:
        self._running, self._ends = [], ends
        self.engine.start(operation, deadline_ms=float("inf"), ended=self._running.append)

    def _ended(self, result: Any) -> None:
        self._running = None
        if isinstance(result, TransactionFailed):
            self._commits = False
            return
        assert not isinstance(result, ClientError), result
        if self._ends:
            self.done += 1
            for index, value in self._sent if self._commits else ():
                self.committed[index].append(value)

    def progress(self, choice: int) -> None:
        self.advance()
        self.engine.step()
        self.wires.serve(choice)
        self.wires.deliver(choice, self.clock.now_ms)
        self.clock.now_ms += 5

    def commit_one(self) -> None:
        """Whatever happened before: when nothing is in the way any more, a transaction can be committed."""
        self.broker.faults.clear()
        self.broker.too_large = 0
        self._is_last = True
        begun, committed = self.done, sum(map(len, self.committed))
        for step in range(STEPS_MAX):
            self.progress(step)
            if self.done > begun + 1:  # The first of them may have been under way.
                break
        assert sum(map(len, self.committed)) > committed

    def act(self, name: str, choice: int) -> None:
        match name:
            case "progress":
                self.progress(choice)
            case "step":
                self.engine.step()
            case "serve":
                self.wires.serve(choice)
            case "deliver":
                self.wires.deliver(choice, self.clock.now_ms)
            case "wait":
                self.clock.now_ms += 25
            case "cut":
                self.wires.cut(choice, self.clock.now_ms)
            case "moved":
                self.broker.faults.append(ErrorCode.NOT_COORDINATOR)
            case "busy":
                self.broker.faults.append(ErrorCode.CONCURRENT_TRANSACTIONS)
            case "large":
                self.broker.too_large = 1


@pytest.mark.parametrize("level", [1, 2])
@settings(max_examples=40)
@given(seed=st.integers(0, 2**32))
def test_what_was_committed_is_there_once_and_nothing_else(level: int, seed: int) -> None:
    draw = random.Random(seed)
    application = Application(level, draw)
    for _ in range(STEPS_MAX):
        if application.done >= TRANSACTIONS:
            break
        (name,) = draw.choices(list(WEIGHTS), list(WEIGHTS.values()))
        application.act(name, draw.randrange(4))
    else:
        raise AssertionError(f"only {application.done} transactions ended")
    application.commit_one()
    found = [partition.committed for partition in application.broker.partitions]
    assert found == application.committed
