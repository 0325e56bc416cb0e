"""Producers and readers on virtual connections, and the ledger of what they were told."""

from headrace.sim.clock import WALL_START_MS
from tests.sim.kafka_client import KafkaClient, records_of

HOST, PORT = "node", 9092
REQUESTS_IN_FLIGHT = 3
RECORDS_PER_BATCH_MAX = 4


class Ledger:
    """What the node has promised: every acknowledged record, and every record a reader was shown."""

    def __init__(self):
        self._promised = {}
        self.acknowledged = 0

    def promise(self, topic, partition, offset, value):
        known = self._promised.setdefault((topic, partition), {})
        assert known.setdefault(offset, value) == value, f"offset {offset} of {topic}-{partition} changed its value"

    def end_offset(self, topic, partition):
        return max(self._promised.get((topic, partition), {-1: b""})) + 1

    def check(self, topic, partition, found):
        """`found` is everything there is: one sequence without gap or double, and it holds all that was promised."""
        assert [offset for offset, _ in found] == list(range(len(found)))
        values = [value for _, value in found]
        assert len(set(values)) == len(values), "a record is there twice"
        promised = self._promised.get((topic, partition), {})
        lost = {offset: value for offset, value in promised.items() if (offset, value) not in set(found)}
        assert not lost, f"{topic}-{partition} lost {len(lost)} of {len(promised)}, from offset {min(lost)} on"


class Producer:
    """Keeps a few produce requests in flight, to partitions that the seed draws."""

    def __init__(self, world, ledger, name, targets):
        self._client = KafkaClient(world, HOST, PORT)
        self._entropy = world.entropy.branch(f"producer {name} {world.steps}")
        self._clock = world.time
        self._ledger = ledger
        self._name = f"{name}-{world.steps}"
        self._targets = targets
        self._sent = {}
        self._count = 0

    def step(self):
        for correlation, response in self._client.poll():
            topic, partition, values = self._sent.pop(correlation)
            answer = response.responses[0].partition_responses[0]
            assert answer.error_code == 0, f"{topic}-{partition}: error {answer.error_code}"
            for offset, value in enumerate(values, answer.base_offset):
                self._ledger.promise(topic, partition, offset, value)
                self._ledger.acknowledged += 1
        while len(self._sent) < REQUESTS_IN_FLIGHT and not self._client.is_closed():
            self._send_one()

    def _send_one(self):
        topic, partition = self._targets[self._entropy.below(len(self._targets))]
        values = []
        for _ in range(1 + self._entropy.below(RECORDS_PER_BATCH_MAX)):
            values.append(b"%s:%d" % (self._name.encode(), self._count) + bytes(self._entropy.below(600)))
            self._count += 1
        timestamp = WALL_START_MS + int(self._clock.now_ms)
        correlation = self._client.send_produce(topic, partition, values, timestamp=timestamp)
        self._sent[correlation] = (topic, partition, values)


class IdempotentProducer:
    """Sends everything again, in order, on a new connection when the old one broke: each record must be there once."""

    def __init__(self, world, ledger, name, targets):
        self._world = world
        self._ledger = ledger
        self._entropy = world.entropy.branch(f"idempotent producer {name}")
        self._name = name
        self._targets = targets
        self._client = None
        self._producer_id = None
        self._sequences = dict.fromkeys(targets, 0)
        self._unacknowledged = []
        self._asked = {}
        self._count = 0

    def step(self):
        if self._client is None or self._client.is_closed():
            self._connect()
        if self._client is None:
            return
        for correlation, response in self._client.poll():
            batch = self._asked.pop(correlation)
            if batch is None:
                assert response.error_code == 0
                self._producer_id = response.producer_id
            else:
                self._acknowledged(batch, response.responses[0].partition_responses[0])
        while self._producer_id is not None and len(self._unacknowledged) < REQUESTS_IN_FLIGHT:
            self._unacknowledged.append(self._new_batch())
            self._send(self._unacknowledged[-1])

    def _connect(self):
        try:
            self._client = KafkaClient(self._world, HOST, PORT)
        except ConnectionRefusedError:
            self._client = None
            return
        self._asked.clear()
        if self._producer_id is None:
            self._asked[self._client.send_init_producer_id()] = None
        for batch in self._unacknowledged:
            self._send(batch)

    def _new_batch(self):
        target = self._targets[self._entropy.below(len(self._targets))]
        values = []
        for _ in range(1 + self._entropy.below(RECORDS_PER_BATCH_MAX)):
            values.append(b"%s:%d" % (self._name.encode(), self._count) + bytes(self._entropy.below(600)))
            self._count += 1
        sequence = self._sequences[target]
        self._sequences[target] += len(values)
        return (*target, values, sequence, WALL_START_MS + int(self._world.time.now_ms))

    def _send(self, batch):
        topic, partition, values, sequence, timestamp = batch
        correlation = self._client.send_produce(
            topic,
            partition,
            values,
            timestamp=timestamp,
            producer_id=self._producer_id,
            producer_epoch=0,
            base_sequence=sequence,
        )
        self._asked[correlation] = batch

    def _acknowledged(self, batch, answer):
        topic, partition, values, _, _ = batch
        assert answer.error_code == 0, f"{topic}-{partition}: error {answer.error_code}"
        self._unacknowledged.remove(batch)
        for offset, value in enumerate(values, answer.base_offset):
            self._ledger.promise(topic, partition, offset, value)
            self._ledger.acknowledged += 1


class Reader:
    """Follows one partition with long polls; what it was shown must never change."""

    def __init__(self, world, ledger, topic, partition):
        self._client = KafkaClient(world, HOST, PORT)
        self._ledger = ledger
        self._topic = topic
        self._partition = partition
        self._offset = 0
        self._asking = False

    def step(self):
        for _, response in self._client.poll():
            self._asking = False
            answer = response.responses[0].partitions[0]
            assert answer.error_code == 0
            for record in records_of(answer.records or b""):
                if record.offset >= self._offset:
                    assert record.offset == self._offset, "a reader sees no gap"
                    assert record.offset < answer.high_watermark, "nobody reads above the high watermark"
                    self._ledger.promise(self._topic, self._partition, record.offset, bytes(record.value))
                    self._offset += 1
        if not self._asking and not self._client.is_closed():
            self._asking = True
            self._client.send_fetch(self._topic, self._partition, self._offset, wait_ms=200)


def run_workload(world, ledger, targets, *, acknowledgements, readers=True):
    """Produce and read at once until so many more records are acknowledged."""
    clients = [Producer(world, ledger, name, targets) for name in ("anna", "bert", "carl")]
    if readers:
        clients += [Reader(world, ledger, topic, partition) for topic, partition in targets]
    goal = ledger.acknowledged + acknowledgements

    def step_clients():
        for client in clients:
            client.step()
        return ledger.acknowledged >= goal

    world.run_until(step_clients)


def check_all(world, ledger, targets):
    client = KafkaClient(world, HOST, PORT)
    for topic, partition in targets:
        client.await_high_watermark(topic, partition, ledger.end_offset(topic, partition))
        ledger.check(topic, partition, client.read_all(topic, partition))
    client.connection.close()
