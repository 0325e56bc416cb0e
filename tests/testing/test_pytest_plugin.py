"""The fixtures, used as a user's project uses them: by their names, without an import."""

import textwrap
from pathlib import Path

import pytest

pytestmark = pytest.mark.process

pytest_plugins = ["pytester"]

USERS_TESTS = """
    import confluent_kafka

    def roundtrip(bootstrap_servers, topic):
        producer = confluent_kafka.Producer({"bootstrap.servers": bootstrap_servers, "log_level": 0})
        producer.produce(topic, b"hello")
        assert producer.flush(60) == 0
        settings = {"bootstrap.servers": bootstrap_servers, "group.id": "g", "enable.auto.commit": False}
        consumer = confluent_kafka.Consumer(settings)
        consumer.assign([confluent_kafka.TopicPartition(topic, 0, 0)])
        assert consumer.poll(60).value() == b"hello"
        consumer.close()

    def test_own_broker(headrace_broker):
        headrace_broker.create_topic("orders", partitions=4)
        roundtrip(headrace_broker.bootstrap_servers, headrace_broker.create_topic("one"))

    def test_own_secure_broker(headrace_secure_broker):
        topic = headrace_secure_broker.create_topic("orders")
        producer = confluent_kafka.Producer({**headrace_secure_broker.client_settings(), "log_level": 0})
        producer.produce(topic, b"hello")
        assert producer.flush(60) == 0

    def test_own_topic(headrace_topic, headrace_session_broker):
        roundtrip(headrace_session_broker.bootstrap_servers, headrace_topic)

    def test_another_topic(headrace_topic, headrace_session_broker):
        roundtrip(headrace_session_broker.bootstrap_servers, headrace_topic)

    def test_brokers_differ(headrace_broker, headrace_session_broker):
        assert headrace_broker.bootstrap_servers != headrace_session_broker.bootstrap_servers
"""

USERS_TEST_OF_A_CLUSTER = """
    from headrace import Consumer, Producer

    def test_own_cluster(headrace_cluster):
        topic = headrace_cluster.create_topic("orders", partitions=1, replicas=3)
        servers = headrace_cluster.bootstrap_servers
        assert (headrace_cluster.node_ids, len(servers.split(","))) == ((1, 2, 3), 3)
        headrace_cluster.kill(headrace_cluster.leader(topic, 0))
        with Producer(servers) as producer:
            producer.send(topic, b"hello")
        with Consumer(topic, bootstrap_servers=servers, auto_offset_reset="earliest") as consumer:
            assert next(consumer).value == b"hello"
"""


@pytest.mark.parametrize("workers", [0, 2])
def test_a_users_project_gets_brokers_and_topics(pytester: pytest.Pytester, workers: int) -> None:
    outcome = run(pytester, USERS_TESTS, *(["-n", str(workers)] if workers else []))
    outcome.assert_outcomes(passed=5)


def test_a_users_project_gets_a_cluster(pytester: pytest.Pytester) -> None:
    run(pytester, USERS_TEST_OF_A_CLUSTER).assert_outcomes(passed=1)


def run(pytester: pytest.Pytester, tests: str, *arguments: str) -> pytest.RunResult:
    (Path(pytester.path) / "test_users.py").write_text(textwrap.dedent(tests))
    return pytester.runpytest_subprocess("-p", "no:randomly", "-q", *arguments)
