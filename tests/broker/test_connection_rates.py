"""Rates and numbers of connections, of the broker, of a listener and of an address (KIP-612)."""

from contextlib import suppress

import pytest

from headrace.core.quotas.entities import CONNECTION_RATE, PRODUCE_RATE
from headrace.model.errors import ErrorCode
from tests.broker.test_client_quotas import set_quotas
from tests.broker.virtual import BROKER_RESOURCE, HOST, VirtualBroker

RATE = 5
OF_BROKER, OF_LISTENER = "max.connection.creation.rate", "listener.name.plaintext.max.connection.creation.rate"


def now(broker):
    return broker.machine.clock.monotonic_ms()


def produce_ms(broker, writer):
    began = now(broker)
    assert writer.produce_error("t") == 0
    return now(broker) - began


def opened(broker):
    return broker.metrics.connections_opened


@pytest.mark.parametrize("config", [OF_BROKER, OF_LISTENER])
def test_connections_beyond_the_rate_wait(config):
    broker = VirtualBroker(settings={config: str(RATE)})
    clients = [broker.client() for _ in range(20)]
    broker.steps()
    assert RATE <= opened(broker) <= RATE + 2, "one window is saved up"
    before, began = opened(broker), now(broker)
    broker.run_until(lambda: now(broker) - began >= 2_000)
    assert opened(broker) - before == pytest.approx(2 * RATE, abs=1)
    assert broker.metrics.accept_pauses > 5
    for client in clients:
        assert client.metadata().brokers[0].host == HOST, "all of them are served in the end"
    assert not any(client.is_closed() for client in clients)


def test_another_listener_is_not_delayed():
    settings = {
        "listeners": f"PLAINTEXT://{HOST}:9092,OTHER://{HOST}:9094",
        "advertised.listeners": f"PLAINTEXT://{HOST}:9092,OTHER://{HOST}:9094",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,OTHER:PLAINTEXT",
        "listener.name.other.max.connection.creation.rate": "1",
        "listener.name.plaintext.max.connections": "3",
    }
    broker = VirtualBroker(settings=settings)
    for _ in range(10):
        broker.world.connect(HOST, 9094)
    clients = [broker.client() for _ in range(5)]
    broker.steps()
    assert [client.is_closed() for client in clients].count(True) == 2, "of this listener"
    assert 3 + 1 <= opened(broker) <= 3 + 3


def test_the_rate_can_be_changed_and_0_accepts_nothing():
    broker = VirtualBroker()
    admin = broker.client()
    assert admin.alter_configs(BROKER_RESOURCE, "", {OF_BROKER: "0"}) == 0
    late = broker.client()
    broker.pass_time(5_000)
    assert opened(broker) == 1
    assert admin.alter_configs(BROKER_RESOURCE, "", {OF_BROKER: "100"}) == 0
    assert late.metadata().brokers
    assert admin.alter_configs(BROKER_RESOURCE, "", {OF_BROKER: "-1"}) == ErrorCode.INVALID_REQUEST


def test_two_thousand_attempts_a_second_disturb_no_other_client():
    broker = VirtualBroker(settings={OF_BROKER: "50"}).with_topic("t")
    writer = broker.client()
    writer.produce("t")
    before, began, alone_ms = opened(broker), now(broker), produce_ms(broker, writer)
    times_ms = []
    for attempts in range(0, 2_000, 50):
        for _ in range(50):
            with suppress(ConnectionRefusedError):  # the queue of the system is full
                broker.world.connect(HOST, 9092)
        times_ms.append(produce_ms(broker, writer))
        broker.run_until(lambda due=began + attempts / 2: now(broker) >= due)
    seconds = (now(broker) - began) / 1_000
    assert opened(broker) - before == pytest.approx(50 * (seconds + 1), abs=3)
    assert max(times_ms) <= 3 * alone_ms + 20


# Addresses


def test_an_address_beyond_its_rate_is_closed_after_a_delay():
    broker = VirtualBroker()
    admin = broker.client()
    assert not set_quotas(admin, {"ip": "10.0.0.1"}, **{CONNECTION_RATE: RATE}).error_code
    attacking = [broker.client(from_host="10.0.0.1") for _ in range(20)]
    others = [broker.client(from_host="10.0.0.2") for _ in range(20)]
    for other in others:
        assert other.metadata().brokers
    broker.pass_time(1_000)
    assert RATE <= [client.is_closed() for client in attacking].count(False) <= RATE + 3
    assert broker.metrics.throttled_requests[CONNECTION_RATE] == [c.is_closed() for c in attacking].count(True)
    for client in attacking:
        client.close()
    broker.pass_time(1_000)
    assert "10.0.0.1" not in broker.node.loop.clients.by_host
    assert broker.client(from_host="10.0.0.1").metadata().brokers


def test_the_default_of_addresses_holds_for_each_of_them():
    broker = VirtualBroker()
    admin = broker.client()
    set_quotas(admin, {"ip": None}, **{CONNECTION_RATE: 2})
    set_quotas(admin, {"ip": "10.0.0.9"}, **{CONNECTION_RATE: 100})
    set_quotas(admin, {"user": None}, **{PRODUCE_RATE: 100})
    clients = {
        host: [broker.client(from_host=host) for _ in range(10)] for host in ("10.0.0.1", "10.0.0.2", "10.0.0.9")
    }
    broker.steps()
    broker.pass_time(1_000)
    left = {host: [client.is_closed() for client in each].count(False) for host, each in clients.items()}
    assert left["10.0.0.1"] in (3, 4)
    assert left["10.0.0.2"] in (3, 4)
    assert left["10.0.0.9"] == 10
    set_quotas(admin, {"ip": None}, **{CONNECTION_RATE: None})
    set_quotas(admin, {"ip": "10.0.0.9"}, **{CONNECTION_RATE: None})
    late = [broker.client(from_host="10.0.0.1") for _ in range(10)]
    assert all(client.metadata().brokers for client in late)


def test_a_broker_stops_while_it_delays_closes():
    broker = VirtualBroker()
    set_quotas(broker.client(), {"ip": None}, **{CONNECTION_RATE: 1})
    clients = [broker.client() for _ in range(10)]
    broker.steps(5)
    broker.restart()
    assert all(client.is_closed() for client in clients)


def test_an_address_may_have_a_limit_of_its_own():
    settings = {"max.connections.per.ip": "2", "max.connections.per.ip.overrides": "10.0.0.1:4, 10.0.0.2:0"}
    broker = VirtualBroker(settings=settings)
    clients = {host: [broker.client(from_host=host) for _ in range(6)] for host in ("10.0.0.1", "10.0.0.2", "10.0.0.3")}
    broker.steps()
    left = [[client.is_closed() for client in each].count(False) for each in clients.values()]
    assert left == [4, 0, 2]
    admin = clients["10.0.0.1"][0]
    assert admin.alter_configs(BROKER_RESOURCE, "", {"max.connections.per.ip.overrides": "here:4"}) != 0
