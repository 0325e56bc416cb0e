"""Quotas of users and client ids: throttle times, muted connections and rates, on a virtual broker."""

import pytest

from headrace.broker import client_quotas
from headrace.core.quotas.entities import FETCH_RATE, MUTATION_RATE, PRODUCE_RATE, REQUEST_PERCENTAGE
from headrace.model.errors import ErrorCode
from headrace.model.limits import CLIENT_ID_KEPT_BYTES_MAX
from headrace.wire import frames
from headrace.wire.apis import ApiKey, codec
from headrace.wire.messages import alter_client_quotas as alter
from headrace.wire.messages import create_partitions, create_topics, delete_topics, metadata
from headrace.wire.messages import describe_client_quotas as describe
from tests.broker.virtual import VirtualBroker, new_topic, produce_frame, produce_request, values_of

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
    count = len(broker.node.loop.connections)
    timers = len(broker.node._timers)
    client.close()
    broker.run_until(lambda: len(broker.node.loop.connections) < count)
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
    assert all(each.metered is None for each in broker.node.loop.connections.all())


def test_a_broker_stops_while_clients_are_muted(broker):
    admin, client = broker.client(), broker.client()
    set_quotas(admin, ANYONE, **{PRODUCE_RATE: 1})
    client.produce("t", content=large(client))
    client.send_produce("t")
    broker.restart()
    other = broker.client()
    assert other.wait(other.send_produce("t", content=large(other))).throttle_time_ms > 1_000


def test_the_mean_rate_of_a_consumer_is_the_limit(broker):
    admin, reader = broker.client(), broker.client()
    for _ in range(30):
        admin.produce("t", content=admin.batch(*[b"x" * 100] * 20))
    set_quotas(admin, ANYONE, **{FETCH_RATE: RATE})
    asked, began, counted = reader.send_fetch(("t", 0, 0)), now(broker), []
    while now(broker) < began + 52_000:
        broker.steps(1)
        if reader.has_answer(asked):
            records = reader.wait(asked).responses[0].partitions[0].records
            counted.append((now(broker) - began, len(records)))
            asked = reader.send_fetch(("t", 0, 0))
    total = sum(size for at, size in counted if 20_000 <= at < 50_000)
    assert total / 30 == pytest.approx(RATE, rel=0.05)


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


# Changes of partitions


def create(client, *names, version=7, partitions=5, validate_only=False):
    request = create_topics.CreateTopicsRequest(
        topics=tuple(new_topic(name, partitions) for name in names), timeout_ms=30_000, validate_only=validate_only
    )
    response = client.ask(ApiKey.CREATE_TOPICS, version, request)
    return [topic.error_code for topic in response.topics], response.throttle_time_ms


def delete(client, *names, version=5):
    request = delete_topics.DeleteTopicsRequest(topic_names=names, timeout_ms=30_000)
    response = client.ask(ApiKey.DELETE_TOPICS, version, request)
    return [topic.error_code for topic in response.responses], response.throttle_time_ms


def grow(client, name, count, version=3):
    topic = create_partitions.CreatePartitionsRequestTopic(name=name, count=count, assignments=None)
    request = create_partitions.CreatePartitionsRequest(topics=(topic,), timeout_ms=30_000)
    response = client.ask(ApiKey.CREATE_PARTITIONS, version, request)
    return [result.error_code for result in response.results], response.throttle_time_ms


BEYOND = ErrorCode.THROTTLING_QUOTA_EXCEEDED


def test_partitions_beyond_the_quota_are_refused(broker):
    """11 seconds of one partition per second are saved up; the topic that makes a debt is still created."""
    admin, client = broker.client(), broker.client()
    set_quotas(admin, ANYONE, **{MUTATION_RATE: 1})
    codes, throttle_time_ms = create(client, "a", "b", "c", "d")
    assert codes == [0, 0, 0, BEYOND]
    assert 3_000 < throttle_time_ms <= 4_000
    assert admin.metadata("c", "d").topics[1].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    began = now(broker)
    assert delete(client, "a")[0] == [0], "the connection was muted until the debt was paid"
    assert now(broker) - began > 2_500
    other = broker.client()
    assert grow(other, "b", 20) == ([BEYOND], pytest.approx(4_500, abs=700))
    assert grow(other, "b", 20)[0] == [0]
    assert broker.metrics.throttled_requests[MUTATION_RATE] >= 3


def test_older_versions_are_carried_out_and_wait(broker):
    admin, client = broker.client(), broker.client()
    set_quotas(admin, ANYONE, **{MUTATION_RATE: 1})
    codes, throttle_time_ms = create(client, "a", "b", "c", "d", version=5)
    assert codes == [0, 0, 0, 0]
    assert 8_000 < throttle_time_ms <= 9_000
    codes, throttle_time_ms = delete(client, "a", version=4)
    assert codes == [0]
    assert throttle_time_ms > 3_000


def test_what_fails_or_is_only_validated_costs_nothing(broker):
    admin, client = broker.client(), broker.client()
    set_quotas(admin, ANYONE, **{MUTATION_RATE: 1})
    for _ in range(3):
        assert create(client, "t", partitions=10) == ([ErrorCode.TOPIC_ALREADY_EXISTS], 0)
        assert create(client, "new", partitions=100, validate_only=True) == ([0], 0)
        assert delete(client, "missing") == ([ErrorCode.UNKNOWN_TOPIC_OR_PARTITION], 0)
    assert create(client, "new", partitions=10) == ([0], 0)


def test_topics_that_a_client_refers_to_count_too():
    broker = VirtualBroker(settings={"auto.create.topics.enable": "true", "num.partitions": "10"})
    admin, client = broker.client(), broker.client()
    set_quotas(admin, ANYONE, **{MUTATION_RATE: 1})
    assert client.metadata("a", "b", allow_creation=True).topics[1].error_code == 0
    assert client.metadata("c", allow_creation=True).topics[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    broker.pass_time(10_000)
    assert client.metadata("c", allow_creation=True).topics[0].error_code == 0


# Request time


def test_time_of_the_loop_is_charged_to_its_client(broker, monkeypatch):
    """Each look at the clock advances it by 20 ms, which all requests of a client take then."""
    admin, client = broker.client(), broker.client()
    client.metadata("t")
    set_quotas(admin, {"client-id": "test"}, **{REQUEST_PERCENTAGE: 10})
    clock, quotas = broker.machine.clock, broker.node.broker.client_quotas

    class SlowClock:
        def monotonic_ms(self):
            broker.world.time.advance(20)
            return clock.monotonic_ms()

    first = client.metadata("t")
    assert first.throttle_time_ms == 0
    assert broker.metrics.throttled_requests[REQUEST_PERCENTAGE] == 0
    monkeypatch.setattr(quotas, "_clock", SlowClock())
    throttle_times = [client.metadata("t").throttle_time_ms for _ in range(6)]
    assert max(throttle_times) > 0
    assert max(throttle_times) <= 1_000, "a wait is at most one window"
    assert broker.metrics.throttled_requests[REQUEST_PERCENTAGE] > 0
    other = set_quotas(admin, {"client-id": "test"}, **{REQUEST_PERCENTAGE: None})
    assert not other.error_code
    assert client.metadata("t").throttle_time_ms == 0


@pytest.mark.parametrize("api", ["metadata", "fetch"])
def test_work_of_later_turns_is_charged_to_its_client(api):
    """Both requests are for 300 partitions, 100 of which are processed in a turn."""
    broker = VirtualBroker(settings={"num.partitions": "1"})
    client = broker.client()
    for first in range(0, 300, 100):
        create(client, *(f"t{number}" for number in range(first, first + 100)), partitions=1)
    set_quotas(client, {"client-id": "test"}, **{REQUEST_PERCENTAGE: 50})
    quotas, turns = broker.node.broker.client_quotas, []
    charge = quotas._charge_time

    def counted(connection):
        turns.append(broker.node.loop.turn_began_ms)
        charge(connection)

    quotas._charge_time = counted
    if api == "metadata":
        request = metadata.MetadataRequest(topics=None)
        assert len(client.ask(ApiKey.METADATA, 12, request).topics) == 300
    else:
        wanted = [(f"t{number}", 0, 0) for number in range(300)]
        assert len(client.wait(client.send_fetch(*wanted)).responses) == 300
    assert len(set(turns)) >= 3, "not only those in which it was received and answered"


# Requests that cannot be


def test_what_cannot_be_changed_says_why(broker):
    client = broker.client()
    twice = (("user", "a"), ("user", "b"))
    entries = alter_quotas(
        client,
        ({"user": "a"}, {PRODUCE_RATE: 0.0}),
        ({"user": "b"}, {"producer_rate": 1.0}),
        ({"user": "c", "ip": "10.0.0.1"}, {PRODUCE_RATE: 1.0}),
        (twice, {PRODUCE_RATE: 1.0}),
        ({"user": "d"}, ((PRODUCE_RATE, 1.0), (PRODUCE_RATE, 2.0))),
        ({"user": "e"}, {PRODUCE_RATE: 1.0}),
        ({"user": "f"}, {PRODUCE_RATE: None}),
    )
    assert [entry.error_code for entry in entries] == [ErrorCode.INVALID_REQUEST] * 5 + [0, 0]
    assert all(entry.error_message for entry in entries[:5])
    assert [(each.entity_type, each.entity_name) for each in entries[3].entity] == list(twice)
    assert found(describe_quotas(client)) == {(("user", "e"),): {PRODUCE_RATE: 1.0}}


def test_filters_by_the_wire(broker):
    client = broker.client()
    alter_quotas(
        client,
        ({"user": "a"}, {PRODUCE_RATE: 1.0, FETCH_RATE: 2.0}),
        ({"user": "a", "client-id": None}, {PRODUCE_RATE: 3.0}),
        ({"ip": None}, {"connection_creation_rate": 4.0}),
    )
    assert len(found(describe_quotas(client))) == 3
    assert found(describe_quotas(client, strict=True)) == {}
    assert found(describe_quotas(client, ("user", EXACT, "a"), strict=True)) == {
        (("user", "a"),): {PRODUCE_RATE: 1.0, FETCH_RATE: 2.0}
    }
    assert len(found(describe_quotas(client, ("user", ANY_NAME, None)))) == 2
    assert len(found(describe_quotas(client, ("ip", DEFAULT, None)))) == 1
    assert describe_quotas(client, ("topic", EXACT, "t")).error_code == ErrorCode.UNSUPPORTED_VERSION
    refused = describe_quotas(client, ("user", EXACT, "a"), ("user", EXACT, "b"))
    assert (refused.error_code, refused.entries) == (ErrorCode.INVALID_REQUEST, None)
    assert refused.error_message


def test_strangers_may_not_change_quotas_of_a_broker_without_an_authorizer(broker):
    stranger = broker.client(from_host="10.9.8.7")
    assert set_quotas(stranger, ANYONE, **{PRODUCE_RATE: 1}).error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    assert found(describe_quotas(stranger)) == {}


def test_quotas_outlive_a_restart_and_snapshots(broker):
    set_quotas(broker.client(), ANYONE, **{PRODUCE_RATE: RATE})
    broker.restart()
    client = broker.client()
    assert found(describe_quotas(client)) == {(("user", None),): {PRODUCE_RATE: float(RATE)}}
    assert client.wait(client.send_produce("t", content=large(client))).throttle_time_ms > 1_000


def test_the_number_of_buckets_is_limited(broker, monkeypatch):
    """A client may take another client id for each request."""
    monkeypatch.setattr(client_quotas, "QUOTA_BUCKETS_MAX", 20)
    monkeypatch.setattr(client_quotas, "QUOTA_CLIENTS_MAX", 10)
    client = broker.client()
    set_quotas(client, {"client-id": None}, **{PRODUCE_RATE: RATE})
    for number in range(100):
        body = codec(ApiKey.METADATA).encode_request(metadata.MetadataRequest(topics=()), 3)
        client.send_bytes(frames.request_frame(ApiKey.METADATA, 3, number, f"id{number}" * 100, body))
        broker.steps(3)
    quotas = broker.node.broker.client_quotas
    assert len(quotas._buckets) <= 20
    assert len(quotas._clients) <= 10
    (connection,) = [each for each in broker.node.loop.connections.all() if each.metered.client_id != b"test"]
    assert len(connection.metered.client_id) == CLIENT_ID_KEPT_BYTES_MAX


# What it costs


def test_without_quotas_of_clients_nothing_is_charged(broker, monkeypatch):
    client = broker.client()
    set_quotas(client, {"ip": "10.0.0.1"}, connection_creation_rate=5)
    for name in ("identify", "produced", "fetched", "fetch_bytes_max", "timed"):
        monkeypatch.setattr(client_quotas.ClientQuotas, name, None)
    for _ in range(3):
        assert client.produce_error("t") == 0
    assert len(client.read_all("t")) == 3


def test_the_quota_of_a_connection_is_looked_up_once(broker, monkeypatch):
    client = broker.client()
    set_quotas(client, ANYONE, **{PRODUCE_RATE: 1e9})
    looked_up = []
    look_up = client_quotas.quota_of_client

    def counted(quotas, key, user, client_id):
        looked_up.append(key)
        return look_up(quotas, key, user, client_id)

    monkeypatch.setattr(client_quotas, "quota_of_client", counted)
    for _ in range(5):
        assert client.produce_error("t") == 0
        assert client.metadata("t").topics[0].error_code == 0
    assert sorted(looked_up) == sorted({PRODUCE_RATE, FETCH_RATE, REQUEST_PERCENTAGE})
    set_quotas(client, {"user": "other"}, **{PRODUCE_RATE: 1})
    client.produce("t")
    assert len(looked_up) == 6, "again after a change of quotas"
