"""Quotas and stock clients: they wait, learn for how long, and lose nothing; other users are not affected."""

import asyncio
import time

import aiokafka
import confluent_kafka
import confluent_kafka.admin as librdkafka_admin
import kafka
import kafka.admin
import pytest
from kafka.errors import ThrottlingQuotaExceededError
from kafka.protocol.admin import AlterClientQuotasRequest, DescribeClientQuotasRequest

import headrace.aio
from headrace.client import Admin, EntityQuotas, NewTopic
from headrace.client.errors import InvalidArgument
from headrace.model.errors import ErrorCode
from headrace.testing import EmbeddedBroker

from .stock import WAIT_MS, WAIT_S, own_settings

pytestmark = pytest.mark.process

NAMES = ("admin", "writer", "reader")
JAAS = "org.apache.kafka.common.security.plain.PlainLoginModule required " + " ".join(
    f'user_{name}="pw-{name}"' for name in NAMES
)
RATE = 100_000
RECORD = b"x" * 10_000
RECORDS = 30
"""Three seconds of the quota, of which the first is saved up."""
SECONDS_MIN = 1.7
"""The two seconds that are left, less what rounding may take."""


@pytest.fixture(scope="module")
def broker():
    configs = {
        "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
        "sasl.enabled.mechanisms": "PLAIN",
        "sasl.jaas.config": f"{JAAS};",
        "auto.create.topics.enable": "true",
    }
    with EmbeddedBroker(config=configs) as broker:
        yield broker


@pytest.fixture
def admin(broker):
    with Admin(broker.bootstrap_servers, **own_settings(settings("admin")), timeout_ms=WAIT_MS) as admin:
        yield admin
        found = admin.client_quotas()
        admin.alter_client_quotas(
            [EntityQuotas(entity=each.entity, limits=dict.fromkeys(each.limits)) for each in found]
        )


def settings(name):
    return {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.username": name,
        "sasl.password": f"pw-{name}",
    }


def python_settings(broker, name):
    return {
        "bootstrap_servers": broker.bootstrap_servers,
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "PLAIN",
        "sasl_plain_username": name,
        "sasl_plain_password": f"pw-{name}",
    }


def limit(admin, entity, **limits):
    (outcome,) = admin.alter_client_quotas([EntityQuotas(entity=entity, limits=limits)])
    assert not outcome.error, outcome.message


def written(broker, topic, user, throttled):
    """The seconds that librdkafka needs to get its records acknowledged."""
    producer = confluent_kafka.Producer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "batch.num.messages": 1,
            "throttle_cb": lambda event: throttled.append(event.throttle_time),
            **settings(user),
        }
    )
    failed = []
    began = time.monotonic()
    for _ in range(RECORDS):
        producer.produce(topic, RECORD, on_delivery=lambda error, _message: failed.append(error) if error else None)
    assert producer.flush(WAIT_S) == 0
    assert not failed
    elapsed = time.monotonic() - began
    producer.poll(0)
    return elapsed


def test_librdkafka_writes_at_the_rate_of_its_user(broker, admin):
    admin.create_topics([NewTopic("written")])
    limit(admin, {"user": "writer"}, producer_byte_rate=RATE)
    throttled: list[float] = []
    free: list[float] = []
    assert written(broker, "written", "writer", throttled) > SECONDS_MIN
    assert any(throttled), "throttle_cb gets the throttle times of the broker"
    written(broker, "written", "reader", free)
    assert not any(free), "another user has no quota"
    limit(admin, {"user": "writer"}, producer_byte_rate=None)
    lifted: list[float] = []
    written(broker, "written", "writer", lifted)
    assert not any(lifted)


def test_kafka_python_reads_at_the_rate_of_its_client_id(broker, admin):
    admin.create_topics([NewTopic("read")])
    written(broker, "read", "writer", [])
    limit(admin, {"client-id": "slow"}, consumer_byte_rate=RATE)
    consumer = kafka.KafkaConsumer(client_id="slow", **python_settings(broker, "reader"), consumer_timeout_ms=WAIT_MS)
    consumer.assign([kafka.TopicPartition("read", 0)])
    consumer.seek_to_beginning()
    began = time.monotonic()
    found = [message.value for _, message in zip(range(RECORDS), consumer, strict=False)]
    consumer.close()
    assert found == [RECORD] * RECORDS
    assert time.monotonic() - began > SECONDS_MIN - 1, "the last response, of a window at most, comes before its debt"


def test_aiokafka_writes_at_the_default_rate_of_all_users(broker, admin):
    admin.create_topics([NewTopic("awaited")])
    limit(admin, {"user": None}, producer_byte_rate=RATE)

    async def run():
        async with aiokafka.AIOKafkaProducer(**python_settings(broker, "writer")) as producer:
            began = time.monotonic()
            for _ in range(RECORDS):
                await producer.send_and_wait("awaited", RECORD)
            return time.monotonic() - began

    assert asyncio.run(run()) > SECONDS_MIN


def test_kafka_python_asks_for_quotas_and_changes_them(broker, admin):
    client = kafka.KafkaAdminClient(**python_settings(broker, "admin"))

    def ask(request):
        return client._manager.run(client._manager.send, request)

    def alter(entity, key, value, remove=False):
        entry = AlterClientQuotasRequest.EntryData
        parts = [entry.EntityData(entity_type=kind, entity_name=name) for kind, name in entity]
        ops = [entry.OpData(key=key, value=value, remove=remove)]
        return ask(AlterClientQuotasRequest(entries=[entry(entity=parts, ops=ops)], validate_only=False)).entries[0]

    assert alter([("user", "alice"), ("client-id", None)], "consumer_byte_rate", 1_000.0).error_code == 0
    assert alter([("user", "alice")], "consumer_byte_rate", 0.0).error_code == ErrorCode.INVALID_REQUEST
    component = DescribeClientQuotasRequest.ComponentData(entity_type="user", match_type=0, match="alice")
    response = ask(DescribeClientQuotasRequest(components=[component], strict=False))
    (entry,) = response.entries
    assert {(each.entity_type, each.entity_name) for each in entry.entity} == {("user", "alice"), ("client-id", None)}
    assert [(each.key, each.value) for each in entry.values] == [("consumer_byte_rate", 1_000.0)]
    assert alter([("user", "alice"), ("client-id", None)], "consumer_byte_rate", 0.0, remove=True).error_code == 0
    assert admin.client_quotas() == ()
    client.close()


def test_own_client_lists_and_changes_quotas(broker, admin):
    limit(admin, {"user": "alice"}, producer_byte_rate=1_000, request_percentage=12.5)
    limit(admin, {"user": "alice", "client-id": None}, producer_byte_rate=500)
    limit(admin, {"ip": "127.0.0.9"}, connection_creation_rate=7)
    found = {tuple(sorted(each.entity.items())): dict(each.limits) for each in admin.client_quotas()}
    assert found == {
        (("user", "alice"),): {"producer_byte_rate": 1_000.0, "request_percentage": 12.5},
        (("client-id", None), ("user", "alice")): {"producer_byte_rate": 500.0},
        (("ip", "127.0.0.9"),): {"connection_creation_rate": 7.0},
    }
    assert len(admin.client_quotas({"user": "alice"})) == 2
    assert len(admin.client_quotas({"user": "alice"}, strict=True)) == 1
    assert len(admin.client_quotas(any_name=["ip"])) == 1
    assert len(admin.client_quotas({"client-id": None}, any_name=["user"])) == 1
    change = EntityQuotas(entity={"user": "bob"}, limits={"producer_byte_rate": 5})
    assert [outcome.error for outcome in admin.alter_client_quotas([change], validate_only=True)] == [ErrorCode.NONE]
    assert admin.client_quotas({"user": "bob"}) == ()
    with pytest.raises(InvalidArgument, match="no type of entity"):
        admin.client_quotas({"users": "alice"})

    async def listed():
        async with headrace.aio.Admin(broker.bootstrap_servers, **own_settings(settings("admin"))) as other:
            (outcome,) = await other.alter_client_quotas([change])
            assert not outcome.error
            return await other.client_quotas({"user": "bob"})

    assert asyncio.run(listed()) == (EntityQuotas(entity={"user": "bob"}, limits={"producer_byte_rate": 5.0}),)


def test_logins_are_charged_to_no_user(broker, admin):
    limit(admin, {"user": "ANONYMOUS"}, request_percentage=0.001)
    throttled = broker._runner._node.metrics.throttled_requests
    before = dict(throttled)
    with Admin(broker.bootstrap_servers, **own_settings(settings("reader")), timeout_ms=WAIT_MS) as other:
        other.cluster()
    assert throttled == before
    limit(admin, {"user": "reader"}, request_percentage=0.001)
    with Admin(broker.bootstrap_servers, **own_settings(settings("reader")), timeout_ms=WAIT_MS) as other:
        other.cluster()
    assert throttled["request_percentage"] > before.get("request_percentage", 0)


def test_topics_beyond_the_quota_wait_or_are_refused(broker, admin):
    """librdkafka asks in a version that is carried out and waits afterwards, kafka-python in one that is refused."""
    limit(admin, {"user": "writer"}, controller_mutation_rate=1)
    patient = librdkafka_admin.AdminClient({"bootstrap.servers": broker.bootstrap_servers, **settings("writer")})
    topics = [librdkafka_admin.NewTopic("patient", num_partitions=51, replication_factor=1)]
    patient.create_topics(topics)["patient"].result(WAIT_S)  # 11 are saved up: 40 are a debt of 40 seconds
    eager = kafka.KafkaAdminClient(**python_settings(broker, "writer"))
    with pytest.raises(ThrottlingQuotaExceededError):
        eager.create_topics([kafka.admin.NewTopic("eager", num_partitions=1, replication_factor=1)])
    assert "eager" not in {topic.name for topic in admin.topics()}
    limit(admin, {"user": "writer"}, controller_mutation_rate=None)
    assert "patient" in patient.list_topics(timeout=WAIT_S).topics, "it waits no more"
    eager.close()
