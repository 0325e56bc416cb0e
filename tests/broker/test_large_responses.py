"""Large responses: sent at once to a client that is alone, in pieces while others are served."""

from typing import Any

import pytest

from headrace.broker.net.connection import ResponseSlot
from headrace.model.limits import SENT_BESIDE_OTHERS_BYTES_MAX
from headrace.ports.disk import FileRange
from headrace.sim import streams
from tests.broker.virtual import VirtualBroker

LARGE_BYTES = 4 << 20


@pytest.fixture
def large(monkeypatch):
    """A broker with 4 MB to fetch at once, and sockets that take all of it."""
    monkeypatch.setattr(streams, "WINDOW_BYTES_MAX", 1 << 30)
    broker = VirtualBroker(settings={"message.max.bytes": str(LARGE_BYTES)}).with_topic("large").with_topic("small")
    client = broker.client()
    assert client.produce_error("large", 0, client.batch(b"x" * (LARGE_BYTES - 1000))) == 0
    broker.pass_time(1000)  # no client has been served for a while
    return broker


def ask_for_large(client):
    return client.send_fetch(("large", 0, 0), bytes_max=2 * LARGE_BYTES, partition_bytes=2 * LARGE_BYTES)


def sent_per_turn(broker, client, correlation, each_turn=lambda: None):
    sizes = []
    while not client.has_answer(correlation):
        each_turn()
        before = broker.metrics.bytes_out
        broker.steps(1)
        sizes.append(broker.metrics.bytes_out - before)
    return sizes


def test_a_large_answer_is_sent_at_once_to_who_is_alone(large):
    client = large.client()
    assert max(sent_per_turn(large, client, ask_for_large(client))) > LARGE_BYTES // 2


def test_a_large_answer_is_sent_in_pieces_while_others_are_served(large):
    writer, clients = large.client(), [large.client() for _ in range(3)]
    writer.produce("small")
    asked = [ask_for_large(client) for client in clients]
    sizes = sent_per_turn(large, clients[0], asked[0], lambda: writer.send_produce("small"))
    assert max(sizes) < SENT_BESIDE_OTHERS_BYTES_MAX + 10_000
    for client, correlation in zip(clients, asked, strict=True):
        assert len(client.wait(correlation).responses[0].partitions[0].records) > LARGE_BYTES - 1000
    large.pass_time(1000)
    assert max(sent_per_turn(large, clients[0], ask_for_large(clients[0]))) > LARGE_BYTES // 2  # alone again


def test_small_answers_of_a_turn_leave_before_large_ones(large, monkeypatch):
    order: list[Any] = []
    reader, others = large.client(), large.client()
    large.steps()
    loop = large.node.loop
    first, second = tuple(loop.connections.all())[-2:]
    file = large.machine.disk.open("data/large-0/00000000000000000000.log")
    for connection, parts in ((first, [FileRange(file, 0, LARGE_BYTES // 2)]), (second, b"small")):
        connection.responses.append(ResponseSlot(connection, None, 1))
        connection.responses[0].complete(parts)
        monkeypatch.setattr(connection, "transport", NotedTransport(connection.transport, order))
    loop._send_responses()
    large.steps()
    assert order[:2] == [second.token, first.token]
    assert (len(reader.connection.receive()), others.connection.receive()) == (LARGE_BYTES // 2, b"small")


class NotedTransport:
    """Notes whose turn it was to send."""

    def __init__(self, transport, order):
        self._transport = transport
        self._order = order

    def __getattr__(self, name):
        if name.startswith("send"):
            self._order.append(self._transport.token)
        return getattr(self._transport, name)
