"""The Java client on three brokers: a topic through any of them, all partitions, a group and a transaction."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from compat.environments import jars_from_maven
from compat.segments import ARTIFACTS, KAFKA_VERSION
from headrace import Admin
from headrace.testing import EmbeddedCluster

JAVA_SECONDS_MAX = 120
PARTITIONS = 6
RECORDS = 600


@pytest.fixture
def cluster() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster(brokers=3) as running:
        yield running


JAVA = """
import java.time.Duration;
import java.util.*;
import org.apache.kafka.clients.admin.*;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.serialization.*;

public class Cluster {
    public static void main(String[] arguments) throws Exception {
        String bootstrap = arguments[0], topic = arguments[1];
        int partitions = Integer.parseInt(arguments[2]), records = Integer.parseInt(arguments[3]);
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", (Object) bootstrap))) {
            System.out.println("brokers " + admin.describeCluster().nodes().get().size());
            admin.createTopics(List.of(new NewTopic(topic, partitions, (short) 1))).all().get();
            System.out.println("voters " + admin.describeMetadataQuorum().quorumInfo().get().voters().size());
        }
        Map<String, Object> sending = Map.of("bootstrap.servers", bootstrap, "transactional.id", "java");
        try (KafkaProducer<byte[], byte[]> producer =
                new KafkaProducer<>(sending, new ByteArraySerializer(), new ByteArraySerializer())) {
            producer.initTransactions();
            for (boolean isCommitted : new boolean[] {false, true}) {
                producer.beginTransaction();
                for (int number = 0; number < records; number++)
                    producer.send(new ProducerRecord<>(
                        topic, number % partitions, null, Integer.toString(number).getBytes()));
                if (isCommitted) producer.commitTransaction(); else producer.abortTransaction();
            }
        }
        for (String protocol : List.of("classic", "consumer")) {
            Map<String, Object> reading = Map.of(
                "bootstrap.servers", bootstrap, "group.id", "java-" + protocol, "group.protocol", protocol,
                "auto.offset.reset", "earliest", "isolation.level", "read_committed", "enable.auto.commit", false);
            Set<Integer> seen = new TreeSet<>();
            int count = 0;
            try (KafkaConsumer<byte[], byte[]> consumer =
                    new KafkaConsumer<>(reading, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
                consumer.subscribe(List.of(topic));
                while (count < records) {
                    for (ConsumerRecord<byte[], byte[]> record : consumer.poll(Duration.ofMillis(200))) {
                        seen.add(Integer.parseInt(new String(record.value())));
                        count++;
                    }
                }
                consumer.commitSync();
            }
            System.out.println(protocol + " " + count + " " + seen.size());
        }
    }
}
"""


def test_the_java_client_uses_all_brokers(cluster: EmbeddedCluster, tmp_path: Path) -> None:
    program = tmp_path / "Cluster.java"
    program.write_text(JAVA)
    jars = jars_from_maven(f"kafka-{KAFKA_VERSION}", ARTIFACTS)
    arguments = (cluster.address(2), "java", str(PARTITIONS), str(RECORDS))
    ran = subprocess.run(
        ["java", "-cp", f"{jars}/*", str(program), *arguments],
        capture_output=True,
        text=True,
        timeout=JAVA_SECONDS_MAX,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert ran.stdout.splitlines() == [
        "brokers 3",
        "voters 3",
        f"classic {RECORDS} {RECORDS}",
        f"consumer {RECORDS} {RECORDS}",
    ]
    with Admin(cluster.bootstrap_servers) as admin:
        (topic,) = admin.topics(["java"])
    assert {partition.leader for partition in topic.partitions} == {1, 2, 3}
