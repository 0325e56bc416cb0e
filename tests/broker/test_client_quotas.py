"""Quotas of users and client ids: throttle times, muted connections and rates, on a virtual broker."""

import pytest

from headrace.core.quotas.entities import FETCH_RATE, PRODUCE_RATE
from headrace.wire.apis import ApiKey
from headrace.wire.messages import alter_client_quotas as alter
from headrace.wire.messages import describe_client_quotas as describe
from headrace.wire.messages import metadata
from tests.broker.virtual import VirtualBroker, produce_frame, produce_request, values_of

EXACT, DEFAULT, ANY_NAME = 0, 1, 2
ANYONE = {"user": None}


def set_quotas(client, entity, *, validate_only=False, **limits):
    return alter_quotas(client, (entity, limits), validate_only=validate_only)[0]


def alter_quotas(client, *changes, validate_only=False):
    """`changes` are (names by type, limits by key); the limit None removes."""
    entries = tuple(
        alter.AlterClientQuotasRequestEntry(
            entity=tuple(
                alter.AlterClientQuotasRequestEntity(entity_type=kind, entity_name=name)
                for kind, name in (entity.items() if isinstance(entity, dict) else entity)
            ),
            ops=tuple(
                alter.AlterClientQuotasRequestOp(key=key, value=limit or 0.0, remove=limit is None)
                for key, limit in (limits.items() if isinstance(limits, dict) else limits)
            ),
        )
        for entity, limits in changes
    )
    request = alter.AlterClientQuotasRequest(entries=entries, validate_only=validate_only)
    return client.ask(ApiKey.ALTER_CLIENT_QUOTAS, 1, request).entries


def describe_quotas(client, *parts, strict=False):
    components = tuple(
        describe.DescribeClientQuotasRequestComponent(entity_type=kind, match_type=match_type, match=name)
        for kind, match_type, name in parts
    )
    request = describe.DescribeClientQuotasRequest(components=components, strict=strict)
    return client.ask(ApiKey.DESCRIBE_CLIENT_QUOTAS, 1, request)


def found(response):
    return {
        tuple((each.entity_type, each.entity_name) for each in entry.entity): {
            value.key: value.value for value in entry.values
        }
        for entry in response.entries
    }


@pytest.fixture
def broker():
    return VirtualBroker().with_topic("t")


# Throttling

RATE = 10_000


def large(client):
    """A batch of 2.5 seconds of the quota."""
    return client.batch(b"x" * (RATE * 5 // 2))


def now(broker):
    return broker.machine.clock.monotonic_ms()


@pytest.mark.parametrize("version", [5, 9])
def test_a_producer_is_muted_and_learns_for_how_long(broker, version):
    admin, client = broker.client(), broker.client()
    client.produce("t", version=version)
    client.produce("t", version=version)
    assert not set_quotas(admin, ANYONE, **{PRODUCE_RATE: RATE}).error_code
    content = large(client)
    began = now(broker)
    first = client.send_produce("t", content=content, version=version)
    second = client.send_produce("t", content=content, version=version)
    assert 1_300 < client.wait(first).throttle_time_ms <= 1_600
    assert now(broker) - began < 500
    broker.steps()
    assert not client.has_answer(second)
    assert 2_300 < client.wait(second).throttle_time_ms <= 2_600
    assert 1_300 < now(broker) - began < 2_000
    assert admin.metadata("t", version=3).throttle_time_ms == 0
    assert broker.metrics.throttled_requests[PRODUCE_RATE] == 2
    assert broker.metrics.throttled_ms[PRODUCE_RATE] > 3_500


def test_the_next_request_of_any_api_waits_and_its_response_carries_no_time(broker):
    admin, client = broker.client(), broker.client()
    set_quotas(admin, ANYONE, **{PRODUCE_RATE: RATE})
    client.produce("t", content=large(client), acks=1)
    asked = client.send(ApiKey.METADATA, 3, metadata.MetadataRequest(topics=()))
    broker.steps()
    assert not client.has_answer(asked)
    assert client.wait(asked).throttle_time_ms == 0


def test_a_producer_that_wants_no_response_is_muted_too(broker):
    admin, client = broker.client(), broker.client()
    set_quotas(admin, ANYONE, **{PRODUCE_RATE: RATE})
    request = produce_request([("t", [(0, large(client))])], acks=0)
    client.send_bytes(produce_frame(request))
    broker.steps(5)
    asked = client.send(ApiKey.METADATA, 3, metadata.MetadataRequest(topics=()))
    began = now(broker)
    client.wait(asked)
    assert now(broker) - began > 1_000
    assert broker.partition("t").log.end_offset == 1


def test_a_consumer_gets_one_window_and_is_muted_for_what_a_batch_has_beyond_it(broker):
    admin, writer, reader = broker.client(), broker.client(), broker.client()
    writer.produce("t", content=large(writer))
    writer.produce("t", content=large(writer))
    set_quotas(admin, ANYONE, **{FETCH_RATE: RATE})
    response = reader.wait(reader.send_fetch(("t", 0, 0)))
    assert values_of(response.responses[0].partitions[0].records) == [b"x" * (RATE * 5 // 2)]
    assert 1_300 < response.throttle_time_ms <= 1_600
    began = now(broker)
    again = reader.wait(reader.send_fetch(("t", 0, 1), bytes_min=1 << 20, wait_ms=1))
    assert values_of(again.responses[0].partitions[0].records, 1)
    assert now(broker) - began > 1_300
    assert broker.metrics.throttled_requests[FETCH_RATE] == 2


def test_a_muted_client_that_hangs_up_is_forgotten(broker):
    admin, client = broker.client(), broker.client()
    set_quotas(admin, ANYONE, **{PRODUCE_RATE: 1})
    client.produce("t", content=large(client))
    count = broker.node.loop.connection_count
    timers = len(broker.node._timers)
    client.close()
    broker.run_until(lambda: broker.node.loop.connection_count < count)
    assert len(broker.node._timers) <= timers


def test_a_higher_quota_sets_the_muted_free(broker):
    admin, client = broker.client(), broker.client()
    set_quotas(admin, ANYONE, **{PRODUCE_RATE: 1})
    assert client.wait(client.send_produce("t", content=large(client))).throttle_time_ms == 600_000
    asked = client.send_produce("t")
    broker.steps()
    assert not client.has_answer(asked)
    set_quotas(admin, ANYONE, **{PRODUCE_RATE: None})
    began = now(broker)
    assert client.wait(asked).throttle_time_ms == 0
    assert now(broker) - began < 1_000
    assert all(each.metered is None for each in broker.node.loop._connections.values())


def test_a_broker_stops_while_clients_are_muted(broker):
    admin, client = broker.client(), broker.client()
    set_quotas(admin, ANYONE, **{PRODUCE_RATE: 1})
    client.produce("t", content=large(client))
    client.send_produce("t")
    broker.restart()
    other = broker.client()
    assert other.wait(other.send_produce("t", content=large(other))).throttle_time_ms > 1_000


@pytest.mark.parametrize("clients", [1, 3])
def test_the_mean_rate_is_the_limit_for_all_that_share_it(broker, clients):
    admin, sharing = broker.client(), [broker.client() for _ in range(clients)]
    set_quotas(admin, ANYONE, **{PRODUCE_RATE: RATE})
    content = admin.batch(b"x" * (RATE * 2 // 5))
    asked = {client: client.send_produce("t", content=content) for client in sharing}
    began, counted = now(broker), []
    while now(broker) < began + 52_000:
        broker.steps(1)
        for client, correlation in asked.items():
            if client.has_answer(correlation):
                client.wait(correlation)
                counted.append(now(broker) - began)
                asked[client] = client.send_produce("t", content=content)
    size = len(content)
    total = sum(size for at in counted if 20_000 <= at < 50_000)
    assert total / 30 == pytest.approx(RATE, rel=0.05)
