"""One group of librdkafka, Java and our own client, which moves to the new protocol and back while it reads."""

import subprocess
import threading
import time

import confluent_kafka
import pytest

from compat.environments import jars_from_maven
from compat.segments import ARTIFACTS, KAFKA_VERSION
from headrace import Consumer
from headrace.client import Admin
from headrace.client.errors import ClientError
from headrace.testing import EmbeddedBroker

PARTITIONS = 6
WAIT_S = 90
POLL_MS = 50
LOOK_AGAIN_S = 0.02
GROUP = "mixed"

JAVA = """
import java.time.Duration;
import java.util.*;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.*;

public class Member implements ConsumerRebalanceListener {
    public void onPartitionsAssigned(Collection<TopicPartition> partitions) { say("assigned", partitions); }
    public void onPartitionsRevoked(Collection<TopicPartition> partitions) { say("revoked", partitions); }

    static void say(String what, Collection<TopicPartition> partitions) {
        StringBuilder line = new StringBuilder(what);
        for (TopicPartition partition : partitions) line.append(" ").append(partition.partition());
        System.out.println(line);
    }

    public static void main(String[] arguments) throws Exception {
        Map<String, Object> config = new HashMap<>(Map.of(
            "bootstrap.servers", arguments[0], "group.id", arguments[1], "group.protocol", arguments[2],
            "auto.offset.reset", "earliest", "enable.auto.commit", "false", "max.poll.records", "1"));
        if (arguments[2].equals("classic")) {
            config.put("partition.assignment.strategy", "org.apache.kafka.clients.consumer.RangeAssignor");
            config.put("session.timeout.ms", "6000");
            config.put("heartbeat.interval.ms", "200");
        }
        StringDeserializer text = new StringDeserializer();
        try (KafkaConsumer<String, String> consumer = new KafkaConsumer<>(config, text, text)) {
            consumer.subscribe(List.of(arguments[1]), new Member());
            while (System.in.available() == 0) {
                for (ConsumerRecord<String, String> record : consumer.poll(Duration.ofMillis(50))) {
                    boolean committed = true;
                    try { consumer.commitSync(); } catch (Exception refused) { committed = false; }
                    System.out.println((committed ? "read " : "uncommitted ") + record.value());
                }
            }
        }
        System.out.println("closed");
    }
}
"""


class Group:
    """Its records, and who reads them. Members commit each record before they ask for the next."""

    def __init__(self, broker, classes):
        self.broker, self.classes = broker, classes
        broker.create_topic(GROUP, partitions=PARTITIONS)
        self.producer = confluent_kafka.Producer({"bootstrap.servers": broker.bootstrap_servers})
        self.members = {}
        self.seen = []
        self.uncommitted = 0
        self.sent = 0

    def add(self, kind, protocol):
        self.members[kind, protocol] = KINDS[kind](self, protocol)

    def remove(self, kind, protocol):
        self.members.pop((kind, protocol)).close()

    def read(self, value, *, committed):
        self.seen.append(int(value))
        self.uncommitted += not committed

    def send(self, count=24):
        for _ in range(count):
            self.producer.produce(GROUP, str(self.sent).encode(), partition=self.sent % PARTITIONS)
            self.sent += 1
        assert self.producer.flush(WAIT_S) == 0

    def settle(self):
        """Until everything is read, every partition has one owner, and everyone owns something."""
        deadline = time.monotonic() + WAIT_S
        while not self._is_settled():
            assert time.monotonic() < deadline, (self.owners(), len(set(self.seen)), self.sent)
            for member in self.members.values():
                member.check()
            time.sleep(LOOK_AGAIN_S)

    def _is_settled(self):
        shares = [set(member.owned) for member in self.members.values()]
        owned = sorted(partition for share in shares for partition in share)
        return owned == list(range(PARTITIONS)) and all(shares) and len(set(self.seen)) == self.sent

    def owners(self):
        return {key: sorted(member.owned) for key, member in self.members.items()}

    def kind(self):
        with Admin(self.broker.bootstrap_servers) as admin:
            return next(each.type.lower() for each in admin.groups() if each.group == GROUP)

    def check(self):
        assert sorted(set(self.seen)) == list(range(self.sent)), "a record is missing"
        assert len(self.seen) - self.sent <= self.uncommitted, "a record was committed and read again"


class JavaMember:
    """A process that tells what it has and reads, line by line, until something is written to it."""

    def __init__(self, group, protocol):
        self.owned = set()
        self._group = group
        command = ["java", "-cp", group.classes, "Member", group.broker.bootstrap_servers, GROUP, protocol]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        self._listening = threading.Thread(target=self._listen)
        self._listening.start()

    def _listen(self):
        for line in self._process.stdout:
            what, *words = line.split()
            if what == "assigned":
                self.owned |= set(map(int, words))
            elif what == "revoked":
                self.owned -= set(map(int, words))
            elif what != "closed":
                self._group.read(words[0], committed=what == "read")

    def check(self):
        assert self._process.poll() is None, "the Java member ended"

    def close(self):
        self._process.stdin.write("end\n")
        self._process.stdin.close()
        try:
            status = self._process.wait(WAIT_S)
        finally:
            self._process.kill()
            self._listening.join()
            self._process.stdout.close()
        assert status == 0


class ThreadMember:
    """A client of this process, polled by a thread of its own: one that waits must not keep the others from joining."""

    def __init__(self, group, protocol):
        self.owned = set()
        self.group = group
        self._over = threading.Event()
        self._failure = None
        self._thread = threading.Thread(target=self._run, args=(protocol,))
        self._thread.start()

    def _run(self, protocol):
        try:
            self.begin(protocol)
            while not self._over.is_set():
                self.poll()
            self.end()
        except Exception as failure:
            self._failure = failure

    def check(self):
        assert self._failure is None, repr(self._failure)

    def close(self):
        self._over.set()
        self._thread.join(WAIT_S)
        self.check()


class LibrdkafkaMember(ThreadMember):
    def begin(self, protocol):
        options = {"group.protocol": protocol, "auto.offset.reset": "earliest", "enable.auto.commit": False}
        if protocol == "classic":
            options |= {"partition.assignment.strategy": "range", "session.timeout.ms": 6_000}
            options |= {"heartbeat.interval.ms": 200}
        servers = self.group.broker.bootstrap_servers
        self._consumer = confluent_kafka.Consumer({"bootstrap.servers": servers, "group.id": GROUP, **options})
        self._consumer.subscribe(
            [GROUP],
            on_assign=lambda _, places: self.owned.update(place.partition for place in places),
            on_revoke=lambda _, places: self.owned.difference_update(place.partition for place in places),
        )

    def poll(self):
        message = self._consumer.poll(POLL_MS / 1000)
        if message is None or message.error() is not None:
            return
        committed = True
        try:
            self._consumer.commit(message=message, asynchronous=False)
        except confluent_kafka.KafkaException:
            committed = False
        self.group.read(message.value(), committed=committed)

    def end(self):
        self._consumer.close()


class OwnMember(ThreadMember):
    def begin(self, protocol):
        options = {"partition_assignment_strategy": "range", "session_timeout_ms": 6_000, "heartbeat_interval_ms": 200}
        self._consumer = Consumer(
            bootstrap_servers=self.group.broker.bootstrap_servers,
            group_id=GROUP,
            group_protocol=protocol,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            **(options if protocol == "classic" else {}),
        )
        self._consumer.subscribe(
            GROUP,
            on_assigned=lambda places: self.owned.update(place.partition for place in places),
            on_revoked=lambda places: self.owned.difference_update(place.partition for place in places),
            on_lost=lambda places: self.owned.difference_update(place.partition for place in places),
        )

    def poll(self):
        for record in self._consumer.poll(timeout_ms=POLL_MS, max_records=1):
            committed = True
            try:
                self._consumer.commit()
            except ClientError:
                committed = False
            self.group.read(record.value, committed=committed)

    def end(self):
        self._consumer.close()


KINDS = {"java": JavaMember, "librdkafka": LibrdkafkaMember, "own": OwnMember}


@pytest.fixture
def group(tmp_path):
    jars = jars_from_maven(f"kafka-{KAFKA_VERSION}", ARTIFACTS)
    classes = f"{jars}/*:{tmp_path}"
    (tmp_path / "Member.java").write_text(JAVA)
    subprocess.run(["javac", "-cp", classes, "Member.java"], cwd=tmp_path, check=True, timeout=WAIT_S)
    config = {"group.consumer.heartbeat.interval.ms": "200", "group.initial.rebalance.delay.ms": "0"}
    with EmbeddedBroker(process=True, config=config) as broker:
        group = Group(broker, classes)
        try:
            yield group
        finally:
            for key in tuple(group.members):
                group.remove(*key)


def test_a_group_of_three_clients_moves_to_the_new_protocol_and_back(group):
    steps = [
        (group.add, "librdkafka", "classic"),
        (group.add, "java", "classic"),
        (group.add, "own", "classic"),
        (group.add, "java", "consumer"),  # it becomes a group of the new protocol
        (group.remove, "java", "classic"),
        (group.add, "librdkafka", "consumer"),
        (group.remove, "librdkafka", "classic"),
        (group.add, "own", "consumer"),
        (group.remove, "own", "classic"),  # everyone has moved
        (group.add, "java", "classic"),  # and back
        (group.remove, "java", "consumer"),
        (group.add, "own", "classic"),
        (group.remove, "own", "consumer"),
        (group.add, "librdkafka", "classic"),
        (group.remove, "librdkafka", "consumer"),
    ]
    kinds = []
    for step, kind, protocol in steps:
        step(kind, protocol)
        group.send()
        group.settle()
        kinds.append(group.kind())
    for key in tuple(group.members):
        group.remove(*key)
    group.check()
    assert kinds == ["classic"] * 3 + ["consumer"] * 11 + ["classic"]
