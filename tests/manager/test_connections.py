"""The clients of brokers over HTTP, with their rates."""

import pytest

from headrace.client import Consumer, Producer
from headrace.client.types import ClientConnection
from headrace.manager.connection_rates import _rates, _Sample
from headrace.model.ids import TopicPartition
from headrace.testing import EmbeddedBroker
from tests.manager.manager_process import ManagerProcess


def connection(
    number: int, bytes_in: int, *, address: str = "127.0.0.1:5", connected_ms: int = 9_000
) -> ClientConnection:
    return ClientConnection(
        node_id=1, connection_id=number, listener="PLAINTEXT", address=address, client_id="c", software_name="",
        software_version="", principal="User:ANONYMOUS", connected_ms=connected_ms, idle_ms=0, bytes_in=bytes_in,
        bytes_out=2 * bytes_in, errors=0, topics_written=(), topics_read=(),
    )  # fmt: skip


def sample(at_seconds: float, *found: ClientConnection) -> _Sample:
    counts = {(each.node_id, each.connection_id, each.address): (each.bytes_in, each.bytes_out) for each in found}
    return _Sample(at_seconds, found, counts)


def test_rates_are_those_between_two_samples() -> None:
    reused = connection(2, 50, address="127.0.0.1:6", connected_ms=500)
    before = sample(10, connection(1, 1_000), connection(2, 9_000))
    after = sample(14, connection(1, 3_000), reused)
    assert [(each.bytes_in_per_second, each.bytes_out_per_second) for each in _rates(before, after)] == [
        (500, 1_000),
        (50, 100),
    ]


@pytest.mark.process
def test_connected_clients_are_listed(manager: ManagerProcess, broker: EmbeddedBroker, topic: str) -> None:
    with (
        Producer(broker.bootstrap_servers, client_id="listed-writer") as producer,
        Consumer(
            bootstrap_servers=broker.bootstrap_servers, client_id="listed-reader", auto_offset_reset="earliest"
        ) as consumer,
    ):
        producer.send(topic, b"x" * 1_000).result()
        consumer.assign([TopicPartition(topic, number) for number in range(3)])
        assert consumer.poll(timeout_ms=30_000)
        found = manager.call("GET", "/v1/connections", params={"topic": topic})
        (writer,) = [each for each in found if each["client_id"] == "listed-writer"]
        (reader,) = [each for each in found if each["client_id"] == "listed-reader"]
        assert writer["topics_written"] == [topic]
        assert reader["topics_read"] == [topic]
        assert writer["bytes_in"] > 1_000
        assert reader["bytes_out"] > 1_000
        assert writer["library"] == reader["library"] == "headrace"
        assert writer["address"].startswith("127.0.0.1:")
        assert writer["bytes_in_per_second"] >= 0
        assert manager.call("GET", "/v1/connections", params={"broker": 77}) == []
