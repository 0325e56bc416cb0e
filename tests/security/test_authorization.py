"""A broker with an authorizer: each client may do what the rules allow, at once and on open connections too."""

import time

import confluent_kafka
import confluent_kafka.admin as librdkafka_admin
import pytest

from headrace.client import Admin, Consumer, NewTopic, Producer
from headrace.client.errors import BrokerError, ClientError
from headrace.core.access.acls import AccessRule, PatternType, Permission, RuleFilter
from headrace.model.access import CLUSTER_NAME, AclResourceType, Operation
from headrace.model.errors import ErrorCode
from headrace.testing import EmbeddedBroker

from .stock import CLIENTS, WAIT_MS, own_settings

pytestmark = pytest.mark.process

NAMES = ("admin", "writer", "reader", "stranger")
JAAS = "org.apache.kafka.common.security.plain.PlainLoginModule required " + " ".join(
    f'user_{name}="pw-{name}"' for name in NAMES
)
TOPIC, GROUP, CLUSTER = AclResourceType.TOPIC, AclResourceType.GROUP, AclResourceType.CLUSTER
ANYTHING = RuleFilter(AclResourceType.ANY, None, PatternType.ANY, None, None, Operation.ANY, Permission.ANY)
SOON_S = 30


@pytest.fixture(scope="module")
def broker():
    configs = {
        "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
        "sasl.enabled.mechanisms": "PLAIN",
        "sasl.jaas.config": f"{JAAS};",
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:admin",
    }
    with EmbeddedBroker(config=configs) as broker:
        yield broker


def settings(name):
    return {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.username": name,
        "sasl.password": f"pw-{name}",
    }


def admin_of(broker, name="admin"):
    return Admin(broker.bootstrap_servers, **own_settings(settings(name)), timeout_ms=WAIT_MS)


def allow(admin, principal, kind, name, *operations, pattern=PatternType.LITERAL, permission=Permission.ALLOW):
    rules = [AccessRule(kind, name, pattern, f"User:{principal}", "*", each, permission) for each in operations]
    assert not any(outcome.error for outcome in admin.create_access_rules(rules).values())


@pytest.fixture(autouse=True)
def no_rules(broker):
    yield
    with admin_of(broker) as admin:
        admin.delete_access_rules(ANYTHING)


@pytest.mark.parametrize("client", CLIENTS)
def test_stock_clients_with_rules_write_and_read(broker, client):
    topic = f"allowed-{client}"
    with admin_of(broker) as admin:
        admin.create_topics([NewTopic(topic)])
        allow(admin, "reader", TOPIC, "allowed-", Operation.READ, Operation.WRITE, pattern=PatternType.PREFIXED)
        allow(admin, "reader", GROUP, "*", Operation.READ)
        allow(admin, "reader", CLUSTER, CLUSTER_NAME, Operation.IDEMPOTENT_WRITE)
    assert CLIENTS[client](broker.bootstrap_servers, topic, [b"one", b"two"], settings("reader")) == [b"one", b"two"]


def error_of(call):
    with pytest.raises(ClientError) as raised:
        call()
    return str(raised.value)


def test_without_rules_a_client_learns_nothing_and_changes_nothing(broker):
    with admin_of(broker) as admin, admin_of(broker, "stranger") as stranger:
        admin.create_topics([NewTopic("secret")])
        assert stranger.topics() == ()
        for name in ("secret", "does-not-exist"):
            (found,) = stranger.topics([name])
            assert found.error == ErrorCode.TOPIC_AUTHORIZATION_FAILED
        (outcome,) = stranger.create_topics([NewTopic("mine")]).values()
        assert outcome.error == ErrorCode.TOPIC_AUTHORIZATION_FAILED
        (outcome,) = stranger.delete_topics(["secret"]).values()
        assert outcome.error == ErrorCode.TOPIC_AUTHORIZATION_FAILED
        assert stranger.groups() == ()
        assert "CLUSTER_AUTHORIZATION_FAILED" in error_of(lambda: stranger.access_rules(ANYTHING))
        assert "CLUSTER_AUTHORIZATION_FAILED" in error_of(lambda: stranger.delete_access_rules(ANYTHING))
        assert "CLUSTER_AUTHORIZATION_FAILED" in error_of(stranger.scram_users)
        rule = AccessRule(TOPIC, "*", PatternType.LITERAL, "User:stranger", "*", Operation.ALL, Permission.ALLOW)
        (outcome,) = stranger.create_access_rules([rule]).values()
        assert outcome.error == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        assert [topic.name for topic in admin.topics() if not topic.internal and topic.name in ("secret", "mine")] == [
            "secret"
        ]
        assert admin.access_rules(ANYTHING) == ()


def produce(broker, name, topic):
    """The error of one record that this client produces."""
    errors = []
    producer = confluent_kafka.Producer(
        {"bootstrap.servers": broker.bootstrap_servers, "message.timeout.ms": WAIT_MS, **settings(name)}
    )
    producer.produce(topic, b"x", on_delivery=lambda error, _message: errors.append(error))
    assert producer.flush(WAIT_MS / 1000) == 0
    return errors[0]


def test_a_producer_needs_write(broker):
    with admin_of(broker) as admin:
        admin.create_topics([NewTopic("to-write")])
        for name in ("to-write", "does-not-exist"):
            assert produce(broker, "writer", name).code() == confluent_kafka.KafkaError.TOPIC_AUTHORIZATION_FAILED
        allow(admin, "writer", TOPIC, "to-write", Operation.WRITE)
        assert produce(broker, "writer", "to-write") is None
        allow(admin, "writer", TOPIC, "to-", Operation.WRITE, pattern=PatternType.PREFIXED, permission=Permission.DENY)
        assert produce(broker, "writer", "to-write").code() == confluent_kafka.KafkaError.TOPIC_AUTHORIZATION_FAILED


def test_a_removed_rule_counts_on_open_connections(broker):
    with admin_of(broker) as admin:
        admin.create_topics([NewTopic("revoked")])
        allow(admin, "writer", TOPIC, "revoked", Operation.WRITE)
        allow(admin, "writer", CLUSTER, CLUSTER_NAME, Operation.IDEMPOTENT_WRITE)
        with Producer(bootstrap_servers=broker.bootstrap_servers, **own_settings(settings("writer"))) as producer:
            for _ in range(20):
                producer.send("revoked", b"x").result(timeout_ms=WAIT_MS)
            admin.delete_access_rules(ANYTHING)
            with pytest.raises(ClientError, match="TOPIC_AUTHORIZATION_FAILED"):
                producer.send("revoked", b"x").result(timeout_ms=WAIT_MS)


def test_a_consumer_needs_read_on_topic_and_group(broker):
    with admin_of(broker) as admin:
        admin.create_topics([NewTopic("to-read")])
        assert produce(broker, "admin", "to-read") is None

        def read(**options):
            common = {"bootstrap_servers": broker.bootstrap_servers, **own_settings(settings("reader")), **options}
            with Consumer("to-read", auto_offset_reset="earliest", consumer_timeout_ms=WAIT_MS, **common) as consumer:
                return next(iter(consumer)).value

        assert "TOPIC_AUTHORIZATION_FAILED" in error_of(read)
        allow(admin, "reader", TOPIC, "to-read", Operation.DESCRIBE)
        assert "TOPIC_AUTHORIZATION_FAILED" in error_of(read)
        allow(admin, "reader", TOPIC, "to-read", Operation.READ)
        assert read() == b"x"
        assert "GROUP_AUTHORIZATION_FAILED" in error_of(lambda: read(group_id="g"))
        allow(admin, "reader", GROUP, "g", Operation.READ)
        assert read(group_id="g") == b"x"


def test_a_producer_that_may_write_to_a_topic_may_be_idempotent(broker):
    with admin_of(broker) as admin:
        admin.create_topics([NewTopic("idempotent")])
        allow(admin, "writer", TOPIC, "idempotent", Operation.WRITE)
        with Producer(bootstrap_servers=broker.bootstrap_servers, **own_settings(settings("writer"))) as producer:
            producer.send("idempotent", b"x").result(timeout_ms=WAIT_MS)


def test_librdkafka_administers_rules(broker):
    client = librdkafka_admin.AdminClient({"bootstrap.servers": broker.bootstrap_servers, **settings("admin")})
    binding = librdkafka_admin.AclBinding(
        librdkafka_admin.ResourceType.TOPIC,
        "by-librdkafka",
        librdkafka_admin.ResourcePatternType.PREFIXED,
        "User:bob",
        "10.0.0.1",
        librdkafka_admin.AclOperation.READ,
        librdkafka_admin.AclPermissionType.DENY,
    )
    (created,) = client.create_acls([binding]).values()
    assert created.result(SOON_S) is None
    everything = librdkafka_admin.AclBindingFilter(
        librdkafka_admin.ResourceType.ANY,
        None,
        librdkafka_admin.ResourcePatternType.ANY,
        None,
        None,
        librdkafka_admin.AclOperation.ANY,
        librdkafka_admin.AclPermissionType.ANY,
    )
    assert client.describe_acls(everything).result(SOON_S) == [binding]
    (deleted,) = client.delete_acls([everything]).values()
    assert deleted.result(SOON_S) == [binding]


def test_authorized_operations_are_described(broker):
    with admin_of(broker) as admin, admin_of(broker, "reader") as reader:
        admin.create_topics([NewTopic("described")])
        allow(admin, "reader", TOPIC, "described", Operation.DESCRIBE)
        assert [topic.name for topic in reader.topics() if not topic.internal] == ["described"]


def test_without_an_authorizer_rules_are_refused():
    with EmbeddedBroker() as broker, Admin(broker.bootstrap_servers) as admin:
        with pytest.raises(BrokerError, match="SECURITY_DISABLED"):
            admin.access_rules(ANYTHING)


def test_rules_survive_a_restart(tmp_path):
    configs = {
        "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
        "sasl.enabled.mechanisms": "PLAIN",
        "sasl.jaas.config": f"{JAAS};",
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:admin",
    }
    rule = AccessRule(TOPIC, "kept", PatternType.LITERAL, "User:reader", "*", Operation.DESCRIBE, Permission.ALLOW)
    for attempt in range(2):
        with EmbeddedBroker(data_dir=str(tmp_path), config=configs) as broker:
            with admin_of(broker) as admin, admin_of(broker, "reader") as reader:
                if attempt == 0:
                    admin.create_topics([NewTopic("kept")])
                    admin.create_access_rules([rule])
                assert admin.access_rules(ANYTHING) == (rule,)
                deadline = time.monotonic() + SOON_S
                while not [topic.name for topic in reader.topics() if topic.name == "kept"]:
                    assert time.monotonic() < deadline
