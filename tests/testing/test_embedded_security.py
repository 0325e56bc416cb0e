"""An embedded broker with TLS and SCRAM: stock clients connect with the settings that it gives, and others do not."""

import stat
from pathlib import Path

import confluent_kafka
import pytest

from headrace.cli.broker import load_config
from headrace.client import Admin, Producer
from headrace.client.errors import AuthenticationFailed, BrokerError
from headrace.core.access.acls import AccessRule, PatternType, Permission
from headrace.model.access import AclResourceType, Operation
from headrace.operations.local_nodes import LocalNode, node_command
from headrace.testing import BrokerSecurity, EmbeddedBroker

pytestmark = pytest.mark.process

WAIT_S = 60


def send(settings, topic):
    producer = confluent_kafka.Producer({**settings, "log_level": 0})
    errors = []
    producer.produce(topic, b"hello", callback=lambda error, _message: errors.append(error))
    assert producer.flush(WAIT_S) == 0
    return errors[0]


@pytest.mark.parametrize("is_process", [False, True])
def test_tls_and_scram_in_one_line(is_process):
    with EmbeddedBroker(security=BrokerSecurity(), process=is_process) as broker:
        topic = broker.create_topic("orders")
        settings = broker.client_settings()
        assert settings["security.protocol"] == "SASL_SSL"
        assert send(settings, topic) is None
        with Producer(config=settings) as producer:
            producer.send(topic, b"hello")
        with pytest.raises(AuthenticationFailed), Admin(config={**settings, "sasl.password": "wrong"}) as admin:
            admin.topics()
        if is_process:
            arguments = Path(f"/proc/{broker.process_id}/cmdline").read_bytes().decode()
            assert "alice-secret" not in arguments
    assert not Path(settings["ssl.ca.location"]).exists()


def test_users_and_access_rules():
    users = {"admin": "a", "bob": "b"}
    security = BrokerSecurity(
        users=users, tls=False, mechanism="SCRAM-SHA-256", access_rules=True, super_users=("admin",)
    )
    with EmbeddedBroker(security=security) as broker:
        topic = broker.create_topic("orders")
        with Producer(config={**broker.client_settings("bob"), "enable.idempotence": "false"}) as producer:
            with pytest.raises(BrokerError):
                producer.send(topic, b"hello").result()
        with Admin(config=broker.client_settings("admin")) as admin:
            kind, literal = AclResourceType.TOPIC, PatternType.LITERAL
            rule = AccessRule(kind, topic, literal, "User:bob", "*", Operation.WRITE, Permission.ALLOW)
            assert not admin.create_access_rules([rule])[rule].error
        assert send(broker.client_settings("bob"), topic) is None


def test_without_security_the_settings_are_the_address():
    with EmbeddedBroker() as broker:
        assert broker.client_settings() == {"bootstrap.servers": broker.bootstrap_servers}
        with pytest.raises(ValueError, match=r"security=BrokerSecurity\(\)"):
            broker.client_settings("alice")


def test_passwords_of_a_cluster_are_in_a_private_file(tmp_path):
    node = LocalNode(1, 9092, 9093, str(tmp_path / "broker-1"))
    configs = {"sasl.jaas.config": 'PlainLoginModule required user_alice="hush";', "num.partitions": "3"}
    command = node_command(node, [node], controllers=1, configs=configs)
    assert "num.partitions=3" in command
    assert not any("hush" in word for word in command)
    file = Path(command[command.index("--config") + 1])
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert load_config(file, (), None, None).layers.static["sasl.jaas.config"] == configs["sasl.jaas.config"]


def test_what_is_wrong():
    for wrong, advice in (
        ({"users": {}}, "lets no client in"),
        ({"mechanism": "PLAIN"}, "SCRAM-SHA-512"),
        ({"super_users": ("root",)}, "not one of the users"),
    ):
        with pytest.raises(ValueError, match=advice):
            BrokerSecurity(**wrong)
    with (
        EmbeddedBroker(security=BrokerSecurity(tls=False)) as broker,
        pytest.raises(ValueError, match="there are alice"),
    ):
        broker.client_settings("eve")
    assert "alice-secret" not in repr(BrokerSecurity())
