"""Quotas of a cluster: set at any broker, in force at every broker and after a change of the controller."""

import pytest

from headrace.wire.apis import ApiKey
from headrace.wire.messages import alter_client_quotas as alter
from headrace.wire.messages import describe_client_quotas as describe
from headrace.wire.messages.create_topics import CreateTopicsRequest, CreateTopicsRequestTopic

from .three_brokers import Three

LONG_MS = 30_000


@pytest.fixture(scope="module")
def three():
    return Three()


def change(key, limit):
    entity = alter.AlterClientQuotasRequestEntity(entity_type="user", entity_name=None)
    op = alter.AlterClientQuotasRequestOp(key=key, value=limit or 0.0, remove=limit is None)
    return alter.AlterClientQuotasRequest(
        entries=(alter.AlterClientQuotasRequestEntry(entity=(entity,), ops=(op,)),), validate_only=False
    )


def limits(three, virtual):
    response = three.ask(virtual, ApiKey.DESCRIBE_CLIENT_QUOTAS, 1, describe.DescribeClientQuotasRequest())
    return [{value.key: value.value for value in entry.values} for entry in response.entries]


def create(three, virtual, name):
    topic = CreateTopicsRequestTopic(name=name, num_partitions=15, replication_factor=1)
    return three.ask(virtual, ApiKey.CREATE_TOPICS, 7, CreateTopicsRequest(topics=(topic,), timeout_ms=LONG_MS))


def controller(three):
    (active,) = [each for each in three.cluster.nodes if each.running.broker.controller.is_active]
    return active


def test_any_broker_sets_quotas_of_all_and_forwards_what_they_limit(three):
    other = next(each for each in three.cluster.nodes if each is not controller(three))
    (entry,) = three.ask(other, ApiKey.ALTER_CLIENT_QUOTAS, 1, change("controller_mutation_rate", 1.0)).entries
    assert entry.error_code == 0, entry.error_message
    three.world.run_until(lambda: all(each.running.broker.image.client_quotas for each in three.cluster.nodes))
    for each in three.cluster.nodes:
        assert limits(three, each) == [{"controller_mutation_rate": 1.0}]
    response = create(three, other, "many")
    assert response.topics[0].error_code == 0
    assert 3_000 < response.throttle_time_ms <= 4_000, "11 are saved up"
    refused = create(three, controller(three), "more")
    assert refused.topics[0].error_code == 89
    (entry,) = three.ask(other, ApiKey.ALTER_CLIENT_QUOTAS, 1, change("controller_mutation_rate", None)).entries
    assert entry.error_code == 0
    assert limits(three, other) == []
    assert create(three, other, "free").throttle_time_ms == 0
