"""The Java producer's transactions: commits, aborts, an epoch for each, and a rival that fences it."""

import subprocess

import pytest

from compat.environments import jars_from_maven
from compat.segments import ARTIFACTS, KAFKA_VERSION
from headrace.testing import EmbeddedBroker
from tests.transactions.test_stock_clients import committed_values

JAVA_SECONDS_MAX = 60


@pytest.fixture
def broker():
    with EmbeddedBroker(process=True) as broker:
        yield broker


JAVA = """
import java.util.*;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.clients.admin.*;
import org.apache.kafka.common.serialization.*;

public class Transactions {
    static KafkaProducer<byte[], byte[]> producer(String bootstrap) {
        Map<String, Object> config = Map.of("bootstrap.servers", bootstrap, "transactional.id", "java");
        KafkaProducer<byte[], byte[]> made =
            new KafkaProducer<>(config, new ByteArraySerializer(), new ByteArraySerializer());
        made.initTransactions();
        return made;
    }

    public static void main(String[] arguments) throws Exception {
        KafkaProducer<byte[], byte[]> first = producer(arguments[0]);
        for (int number = 0; number < 100; number++) {
            first.beginTransaction();
            first.send(new ProducerRecord<>(arguments[1], Integer.toString(number).getBytes()));
            if (number % 5 == 4) first.abortTransaction(); else first.commitTransaction();
        }
        first.beginTransaction();
        first.send(new ProducerRecord<>(arguments[1], "lost".getBytes())).get();
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", (Object) arguments[0]))) {
            System.out.println(admin.describeTransactions(List.of("java")).all().get().get("java").state());
        }
        KafkaProducer<byte[], byte[]> second = producer(arguments[0]);
        try {
            first.commitTransaction();
        } catch (Exception fenced) {
            System.out.println(fenced.getClass().getSimpleName());
        }
        second.beginTransaction();
        second.send(new ProducerRecord<>(arguments[1], "last".getBytes()));
        second.commitTransaction();
        second.close();
        first.close(java.time.Duration.ZERO);
    }
}
"""


def test_the_java_producer_bumps_its_epoch_with_every_transaction(broker, tmp_path):
    jars = jars_from_maven(f"kafka-{KAFKA_VERSION}", ARTIFACTS)
    topic = broker.create_topic("java-out")
    (tmp_path / "Transactions.java").write_text(JAVA)
    classes = f"{jars}/*:{tmp_path}"
    subprocess.run(["javac", "-cp", classes, "Transactions.java"], cwd=tmp_path, check=True, timeout=JAVA_SECONDS_MAX)
    ran = subprocess.run(
        ["java", "-cp", classes, "Transactions", broker.bootstrap_servers, topic],
        capture_output=True,
        text=True,
        timeout=JAVA_SECONDS_MAX,
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.split() == ["Ongoing", "ProducerFencedException"]
    kept = [b"%d" % number for number in range(100) if number % 5 != 4]
    assert committed_values(broker, topic, "java-check") == [*kept, b"last"]
