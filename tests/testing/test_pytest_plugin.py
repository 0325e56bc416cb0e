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

    def test_own_topic(headrace_topic, headrace_session_broker):
        roundtrip(headrace_session_broker.bootstrap_servers, headrace_topic)

    def test_another_topic(headrace_topic, headrace_session_broker):
        roundtrip(headrace_session_broker.bootstrap_servers, headrace_topic)

    def test_brokers_differ(headrace_broker, headrace_session_broker):
        assert headrace_broker.bootstrap_servers != headrace_session_broker.bootstrap_servers
"""


@pytest.mark.parametrize("workers", [0, 2])
def test_a_users_project_gets_brokers_and_topics(pytester: pytest.Pytester, workers: int) -> None:
    (Path(pytester.path) / "test_users.py").write_text(textwrap.dedent(USERS_TESTS))
    arguments = ["-p", "no:randomly", "-q"] + (["-n", str(workers)] if workers else [])
    outcome = pytester.runpytest_subprocess(*arguments)
    outcome.assert_outcomes(passed=4)
