"""Stock clients that write to replicated topics while brokers fail, and the check that nothing was lost or doubled."""

import random
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

from headrace import Admin
from headrace.testing import EmbeddedCluster
from tests.process_groups import wait_until

PARTITIONS = 6
REPLICAS = 3
TOPIC_CONFIGS = {"min.insync.replicas": "2"}
WAIT_S_MAX = 120.0
RECORD_BYTES = 100
TURN_S = 0.005
READ_AT_ONCE = 5_000
RECORDS_OF_A_TRANSACTION = 10
TRANSACTION_PAUSE_S = 0.02
ABORTED_OF = 4
"""The interval, in transactions, at which one is aborted."""
QUIET = {"log_level": 0}
IDEMPOTENT = {"enable.idempotence": True, "linger.ms": 5}


class ProducedRecords:
    """A producer of librdkafka that sends numbered records to partitions in turn, at a steady rate."""

    def __init__(
        self, bootstrap: str, topic: str, *, partitions: Sequence[int], rate: int, settings: Mapping[str, Any]
    ) -> None:
        self.topic = topic
        self.acknowledged = dict.fromkeys(partitions, 0)
        self.errors: list[str] = []
        self._partitions = tuple(partitions)
        self._rate = rate
        self._sent = dict.fromkeys(partitions, 0)
        self._last_s = dict.fromkeys(partitions, 0.0)
        self._gaps_s = dict.fromkeys(partitions, 0.0)
        self._producer = Producer({"bootstrap.servers": bootstrap, **QUIET, **settings})

    @property
    def longest_gap_s(self) -> float:
        """Return the longest time since `forget_gaps` between two acknowledgements of a partition."""
        return max(self._gaps_s.values())

    def forget_gaps(self) -> None:
        self._gaps_s = dict.fromkeys(self._partitions, 0.0)

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        partition = message.partition()
        assert partition is not None
        if error is not None:
            self.errors.append(f"partition {partition}: {error}")
            return
        value = message.value()
        assert value is not None
        if int(value) != (expected := self.acknowledged[partition]):
            self.errors.append(f"partition {partition}: {int(value)} acknowledged before {expected}")
        self.acknowledged[partition] += 1
        now_s = time.monotonic()
        if last_s := self._last_s[partition]:
            self._gaps_s[partition] = max(self._gaps_s[partition], now_s - last_s)
        self._last_s[partition] = now_s

    def run(self, stop: threading.Event) -> None:
        began_s, total = time.monotonic(), 0
        while not stop.is_set():
            due = int((time.monotonic() - began_s) * self._rate) - total
            for _ in range(due):
                if not self._send(self._partitions[total % len(self._partitions)]):
                    began_s, total = time.monotonic(), 0  # what was not sent in time is not sent later at once
                    break
                total += 1
            self._producer.poll(TURN_S)
        left = self._producer.flush(WAIT_S_MAX)
        if left:
            self.errors.append(f"{left} records were not acknowledged")

    def _send(self, partition: int) -> bool:
        value = b"%0*d" % (RECORD_BYTES, self._sent[partition])
        try:
            self._producer.produce(self.topic, value, partition=partition, on_delivery=self._delivered)
        except BufferError:
            return False
        self._sent[partition] += 1
        return True

    def check(self, bootstrap: str) -> None:
        assert self.errors == [], self.errors[:5]
        assert self.acknowledged == self._sent
        for partition, count in self.acknowledged.items():
            expected = 0
            for value in values_of(bootstrap, self.topic, partition):
                assert int(value) == expected, f"partition {partition}: {int(value)} where {expected} should be"
                expected += 1
            assert expected == count, f"partition {partition}: {expected} of {count} acknowledged records"


class Transactions:
    """A transactional producer of librdkafka that commits or aborts records in two partitions at a time."""

    def __init__(self, bootstrap: str, topic: str, *, seed: int) -> None:
        self.topic = topic
        self.committed = 0
        self.errors: list[str] = []
        self._bootstrap = bootstrap
        self._source = random.Random(seed)
        self._outcomes: list[bool | None] = []
        """Of each transaction: committed, aborted, or unknown."""

    def run(self, stop: threading.Event) -> None:
        producer = self._producer()
        while not stop.is_set():
            number = len(self._outcomes)
            self._outcomes.append(None)
            try:
                self._outcomes[number] = self._transact(producer, number)
            except KafkaException as error:
                producer = self._after(error, producer, number)
            self.committed += bool(self._outcomes[number])
            time.sleep(TRANSACTION_PAUSE_S)

    def _producer(self) -> Producer:
        producer = Producer({"bootstrap.servers": self._bootstrap, "transactional.id": f"{self.topic}-writer", **QUIET})
        _until_done(lambda: producer.init_transactions(WAIT_S_MAX))
        return producer

    def _transact(self, producer: Producer, number: int) -> bool:
        producer.begin_transaction()
        for partition in self._source.sample(range(PARTITIONS), 2):
            for place in range(RECORDS_OF_A_TRANSACTION):
                producer.produce(self.topic, b"%d %d" % (number, place), partition=partition)
        if number % ABORTED_OF == ABORTED_OF - 1:
            _until_done(lambda: producer.abort_transaction(WAIT_S_MAX))
            return False
        _until_done(lambda: producer.commit_transaction(WAIT_S_MAX))
        return True

    def _after(self, error: KafkaException, producer: Producer, number: int) -> Producer:
        """Return the producer to continue with: an error may ask for an abort, or for a new producer."""
        reason = error.args[0]
        if reason.txn_requires_abort():
            _until_done(lambda: producer.abort_transaction(WAIT_S_MAX))
            self._outcomes[number] = False
            return producer
        if reason.fatal():
            return self._producer()
        self.errors.append(f"transaction {number}: {error}")
        return self._producer()

    def check(self, bootstrap: str) -> None:
        assert self.errors == [], self.errors[:5]
        found: dict[int, list[list[int]]] = defaultdict(list)
        for partition in range(PARTITIONS):
            last = -1
            places: dict[int, list[int]] = defaultdict(list)
            for value in values_of(bootstrap, self.topic, partition, **{"isolation.level": "read_committed"}):
                number, place = map(int, value.split())
                assert number >= last, f"transaction {number} after {last} in partition {partition}"
                last = number
                places[number].append(place)
            for number, seen in places.items():
                found[number].append(seen)
        whole = [list(range(RECORDS_OF_A_TRANSACTION))] * 2
        for number, outcome in enumerate(self._outcomes):
            allowed: list[list[list[int]]] = [whole] if outcome else [[]] if outcome is False else [[], whole]
            assert found[number] in allowed, f"transaction {number} ({outcome=}) has {found[number]}"


def _until_done(call: Callable[[], object]) -> None:
    """Call again, as an application does, while the error says that this may help."""
    deadline_s = time.monotonic() + WAIT_S_MAX
    while True:
        try:
            call()
            return
        except KafkaException as error:
            if not error.args[0].retriable() or time.monotonic() > deadline_s:
                raise


class GroupReader:
    """A consumer of librdkafka in a group, which may read records again after a failure and must skip none."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self.read = 0
        self.errors: list[str] = []
        self._next = [0] * PARTITIONS
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": f"{topic}-readers",
                "auto.offset.reset": "earliest",
                "check.crcs": True,
                **QUIET,
            }
        )
        self._consumer.subscribe([topic])

    def run(self, stop: threading.Event) -> None:
        while not stop.is_set():
            for message in self._consumer.consume(READ_AT_ONCE, 0.2):
                if message.error() is None:
                    self._take(message)
        self._consumer.close()

    def _take(self, message: Message) -> None:
        partition, offset = message.partition(), message.offset()
        assert partition is not None
        assert offset is not None
        if offset > self._next[partition]:
            self.errors.append(f"partition {partition}: {self._next[partition]} to {offset} were skipped")
        self._next[partition] = max(self._next[partition], offset + 1)
        self.read += 1

    def check(self, bootstrap: str) -> None:
        assert self.errors == [], self.errors[:5]


class ReplicatedLoad:
    """All three clients at once, on topics of their own."""

    def __init__(self, cluster: EmbeddedCluster, *, rate: int, seed: int) -> None:
        bootstrap = cluster.bootstrap_servers
        self.topics = [
            cluster.create_topic(
                cluster.unused_topic_name(name), partitions=PARTITIONS, replicas=REPLICAS, configs=TOPIC_CONFIGS
            )
            for name in ("numbered", "transactions")
        ]
        self.produced = ProducedRecords(
            bootstrap, self.topics[0], partitions=range(PARTITIONS), rate=rate, settings=IDEMPOTENT
        )
        self.transactions = Transactions(bootstrap, self.topics[1], seed=seed)
        self.reader = GroupReader(bootstrap, self.topics[0])
        self._cluster = cluster
        self._rate = rate

    @property
    def _clients(self) -> tuple[ProducedRecords, Transactions, GroupReader]:
        return self.produced, self.transactions, self.reader

    @contextmanager
    def running(self) -> Iterator["ReplicatedLoad"]:
        stop = threading.Event()
        with ExitStack() as stack:
            for client in self._clients:
                thread = threading.Thread(target=self._run, args=(client, stop))
                thread.start()
                stack.callback(thread.join)
            stack.callback(stop.set)
            self.wait_for_progress()
            yield self

    @staticmethod
    def _run(client: Any, stop: threading.Event) -> None:
        try:
            client.run(stop)
        except Exception as error:
            client.errors.append(repr(error))

    def wait_for_progress(self) -> None:
        """Wait until every partition has acknowledged more, and a transaction has been committed."""
        before, committed = dict(self.produced.acknowledged), self.transactions.committed
        enough = max(self._rate // PARTITIONS // 10, 1)

        def continues() -> bool:
            self.fail_early()
            more = all(count >= before[partition] + enough for partition, count in self.produced.acknowledged.items())
            return more and self.transactions.committed > committed

        wait_until(continues, "the load does not continue", WAIT_S_MAX)

    def fail_early(self) -> None:
        for client in self._clients:
            assert client.errors == [], client.errors[:5]

    def wait_until_in_sync(self) -> None:
        wait_until(lambda: self._all_in_sync(), "the replicas did not become in sync again", WAIT_S_MAX)

    def _all_in_sync(self) -> bool:
        self.fail_early()
        with Admin(self._cluster.bootstrap_servers) as admin:
            topics = [topic for topic in admin.topics() if topic.name in self.topics or topic.internal]
        return all(len(partition.isr) == REPLICAS for topic in topics for partition in topic.partitions)

    def check(self) -> None:
        """Read everything back; the load must have ended."""
        for client in self._clients:
            client.check(self._cluster.bootstrap_servers)


def values_of(bootstrap: str, topic: str, partition: int, **settings: str) -> Iterator[bytes]:
    """Yield the values of all records of a partition."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "checker",
            "enable.partition.eof": True,
            "enable.auto.commit": False,
            "check.crcs": True,
            **QUIET,
            **settings,
        }
    )
    consumer.assign([TopicPartition(topic, partition, 0)])
    quiet_since_s = time.monotonic()
    try:
        while time.monotonic() - quiet_since_s < WAIT_S_MAX:
            messages: Sequence[Message] = consumer.consume(READ_AT_ONCE, 1.0)
            for message in messages:
                error = message.error()
                if error is None:
                    value = message.value()
                    assert value is not None
                    yield value
                    quiet_since_s = time.monotonic()
                elif error.code() == KafkaError._PARTITION_EOF:
                    return
    finally:
        consumer.close()
    raise AssertionError(f"the end of partition {partition} of {topic} was not reached")
