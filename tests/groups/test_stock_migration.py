"""A group of stock consumers moves to the new protocol and back, member by member, while it reads."""

import asyncio
import time

import confluent_kafka
import kafka
import pytest
from aiokafka import AIOKafkaConsumer
from confluent_kafka.admin import AdminClient

from headrace.testing import EmbeddedBroker

pytestmark = [pytest.mark.process, pytest.mark.record_integrity]

PARTITIONS = 6
WAIT_S = 120
SESSION_MS = 30_000
"""No member here is to be expelled, however long a busy machine keeps it from its heartbeats."""

ROUNDS_SETTLED = 3
"""Polls of everyone without a change of who reads what."""


@pytest.fixture(scope="module")
def broker():
    config = {"group.consumer.heartbeat.interval.ms": "200", "group.initial.rebalance.delay.ms": "0"}
    with EmbeddedBroker(process=True, config=config) as broker:
        yield broker


class Reader:
    """One consumer; it commits each record before it asks for the next, and whatever it is to let go of."""

    def __init__(self, group, protocol, *, instance=None, **options):
        self.group = group
        self.owned = set()
        self.name = f"{protocol} {len(group.readers)}"
        if protocol == "classic":
            options |= {"session.timeout.ms": SESSION_MS, "heartbeat.interval.ms": 200}
        if instance is not None:
            options["group.instance.id"] = instance
        self.consumer = confluent_kafka.Consumer(
            {
                "bootstrap.servers": group.broker.bootstrap_servers,
                "group.id": group.topic,
                "group.protocol": protocol,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                **options,
            }
        )
        self.incremental = protocol == "consumer" or "cooperative" in options.get("partition.assignment.strategy", "")
        self.consumer.subscribe([group.topic], on_assign=self._assigned, on_revoke=self._revoked, on_lost=self._lost)

    def _assigned(self, consumer, partitions):
        found = {each.partition for each in partitions}
        for other in self.group.readers:
            assert other is self or not other.owned & found, f"{found & other.owned} have two owners"
        self.owned |= found
        (consumer.incremental_assign if self.incremental else consumer.assign)(partitions)

    def _revoked(self, consumer, partitions):
        self.owned -= {each.partition for each in partitions}
        if self.incremental:
            consumer.incremental_unassign(partitions)
        else:
            consumer.unassign()

    _lost = _revoked

    def poll(self):
        message = self.consumer.poll(0.02)
        if message is None or message.error() is not None:
            return
        try:
            self.consumer.commit(message=message, asynchronous=False)
        except confluent_kafka.KafkaException:
            self.group.uncommitted += 1
        self.group.seen.append(int(message.value()))

    def close(self):
        self.consumer.close()
        self.owned.clear()
        self.group.readers.remove(self)


class Group:
    def __init__(self, broker, topic):
        self.broker, self.topic = broker, topic
        broker.create_topic(topic, partitions=PARTITIONS)
        self.producer = confluent_kafka.Producer({"bootstrap.servers": broker.bootstrap_servers})
        self.readers = []
        self.seen = []
        self.uncommitted = 0
        self.sent = 0

    def add(self, protocol, **options):
        self.readers.append(Reader(self, protocol, **options))

    def send(self, count=12):
        for _ in range(count):
            self.producer.produce(self.topic, str(self.sent).encode(), partition=self.sent % PARTITIONS)
            self.sent += 1
        assert self.producer.flush(WAIT_S) == 0

    def settle(self):
        """Poll until everything is read, everything has an owner, and everyone owns something."""
        deadline = time.monotonic() + WAIT_S
        quiet = 0
        while quiet < ROUNDS_SETTLED:
            assert time.monotonic() < deadline, (self.owners(), len(set(self.seen)), self.sent)
            for reader in tuple(self.readers):
                reader.poll()
            owned = sorted(partition for reader in self.readers for partition in reader.owned)
            settled = owned == list(range(PARTITIONS)) and all(reader.owned for reader in self.readers)
            quiet = quiet + 1 if settled and len(set(self.seen)) == self.sent else 0

    def owners(self):
        return {reader.name: sorted(reader.owned) for reader in self.readers}

    def kind(self):
        admin = AdminClient({"bootstrap.servers": self.broker.bootstrap_servers})
        listed = admin.list_consumer_groups().result(WAIT_S).valid
        return next(each.type.name.lower() for each in listed if each.group_id == self.topic)

    def check(self):
        assert sorted(set(self.seen)) == list(range(self.sent)), "a record is missing"
        assert len(self.seen) - self.sent <= self.uncommitted, "a record was committed and read again"


@pytest.mark.parametrize("strategy", ["range", "cooperative-sticky"])
def test_there_and_back(broker, strategy):
    group = Group(broker, f"there-and-back-{strategy}")
    classic = {"partition.assignment.strategy": strategy}
    steps = [
        lambda: group.add("classic", **classic),
        lambda: group.add("classic", **classic),
        lambda: group.add("consumer"),  # it becomes a group of the new protocol
        lambda: group.readers[0].close(),
        lambda: group.add("consumer"),
        lambda: group.readers[0].close(),
        lambda: group.add("classic", **classic),  # and back
        lambda: group.readers[0].close(),
        lambda: group.readers[0].close(),
        lambda: group.add("classic", **classic),
    ]
    kinds = []
    for step in steps:
        step()
        group.send()
        group.settle()
        kinds.append(group.kind())
    for reader in tuple(group.readers):
        reader.close()
    group.check()
    assert kinds == ["classic"] * 2 + ["consumer"] * 6 + ["classic"] * 2


def test_static_members_keep_their_partitions(broker):
    group = Group(broker, "static-members")
    for instance in ("one", "two"):
        group.add("classic", instance=instance)
    group.send()
    group.settle()
    for protocol in ("consumer", "classic"):
        for instance in ("one", "two"):
            group.readers[0].close()  # it says nothing: the instance is expected back
            group.add(protocol, instance=instance)
            group.send()
            group.settle()
        assert group.kind() == protocol
    for reader in tuple(group.readers):
        reader.close()
    group.check()


class OtherClients:
    """kafka-python and aiokafka, which speak the classic protocol alone, beside librdkafka with the new one."""

    def __init__(self, broker, topic):
        options = {
            "bootstrap_servers": broker.bootstrap_servers,
            "group_id": topic,
            "auto_offset_reset": "earliest",
            "enable_auto_commit": False,
            "session_timeout_ms": SESSION_MS,
            "heartbeat_interval_ms": 200,
        }
        self.plain = kafka.KafkaConsumer(topic, **options)
        # kafka-python that joins before it knows the topic joins again when it does, and forgets what it is then
        # assigned if that comes between two short polls.
        assert self.plain.partitions_for_topic(topic) == set(range(PARTITIONS))
        self.asynchronous = AIOKafkaConsumer(topic, **options)
        self.newer = None
        self.topic, self.broker = topic, broker
        self.seen = []
        self.over = self.newer_over = False

    def begin_new_protocol(self):
        self.newer = confluent_kafka.Consumer(
            {
                "bootstrap.servers": self.broker.bootstrap_servers,
                "group.id": self.topic,
                "group.protocol": "consumer",
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
            }
        )
        self.newer.subscribe([self.topic])

    async def poll_plain(self):
        while not self.over:
            found = await asyncio.to_thread(self.plain.poll, timeout_ms=20)
            self.seen += [int(message.value) for messages in found.values() for message in messages]

    async def poll_asynchronous(self):
        while not self.over:
            found = await self.asynchronous.getmany(timeout_ms=20)
            self.seen += [int(message.value) for messages in found.values() for message in messages]

    async def poll_newer(self):
        while not self.newer_over:
            message = await asyncio.to_thread(self.newer.poll, 0.02)
            if message is not None and message.error() is None:
                self.seen.append(int(message.value()))

    def shares(self):
        found = [
            {each.partition for each in self.plain.assignment()},
            {each.partition for each in self.asynchronous.assignment()},
        ]
        return found if self.newer is None else [*found, {each.partition for each in self.newer.assignment()}]

    async def settle(self, records):
        deadline = time.monotonic() + WAIT_S
        while not self._settled(records):
            assert time.monotonic() < deadline, (self.shares(), len(set(self.seen)))
            await asyncio.sleep(0.01)

    def _settled(self, records):
        """All members have as much as the others, every partition has an owner, and everything was read."""
        shares = self.shares()
        is_fair = {len(share) for share in shares} == {PARTITIONS // len(shares)}
        return is_fair and set.union(*shares) == set(range(PARTITIONS)) and len(set(self.seen)) == records


def test_clients_of_three_kinds_in_one_group(broker):
    """Each is polled by itself: one that waits for the others to join must not keep them from it."""
    group = Group(broker, "three-kinds")

    async def run():
        clients = OtherClients(broker, group.topic)
        tasks = [asyncio.create_task(clients.poll_plain())]
        try:
            await clients.asynchronous.start()
            tasks.append(asyncio.create_task(clients.poll_asynchronous()))
            group.send()
            await clients.settle(group.sent)
            kinds = [await asyncio.to_thread(group.kind)]
            clients.begin_new_protocol()
            newer = asyncio.create_task(clients.poll_newer())
            group.send()
            await clients.settle(group.sent)
            kinds.append(await asyncio.to_thread(group.kind))
            clients.newer_over = True
            await newer
            consumer, clients.newer = clients.newer, None
            await asyncio.to_thread(consumer.close)
            group.send()
            await clients.settle(group.sent)
            kinds.append(await asyncio.to_thread(group.kind))
            assert kinds == ["classic", "consumer", "classic"]
        finally:
            clients.over = clients.newer_over = True
            await asyncio.gather(*tasks)
            await clients.asynchronous.stop()
            await asyncio.to_thread(clients.plain.close)

    asyncio.run(run())
