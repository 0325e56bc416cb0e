"""What one client may hold of a broker: connections that are idle, slow, half sent, or too many are closed."""

import time
from pathlib import Path

from headrace.wire.apis import ApiKey
from headrace.wire.frames import request_frame
from headrace.wire.messages.metadata import MetadataRequest
from tests.broker_process.broker_process import BrokerProcess
from tests.broker_process.raw_connection import RawConnection

METADATA_VERSION = 9
ALL_TOPICS = MetadataRequest(topics=None)
SHORT_MS = 500
CHECK_SLACK_S = 4.0
"""Connections are looked at once a second, on a busy machine a little later."""


def _ask(connection: RawConnection) -> None:
    assert connection.call(ApiKey.METADATA, METADATA_VERSION, ALL_TOPICS).brokers


def test_an_idle_connection_is_closed_and_a_busy_one_is_not(tmp_path: Path) -> None:
    with BrokerProcess(tmp_path, settings={"connections.max.idle.ms": "2000"}) as broker:
        with RawConnection(broker.bootstrap_servers) as idle, RawConnection(broker.bootstrap_servers) as busy:
            _ask(idle)
            idle.socket.settimeout(0.1)
            began = time.monotonic()
            closed = False
            while not closed and time.monotonic() - began < 2.0 + CHECK_SLACK_S:
                _ask(busy)
                try:
                    closed = idle.is_closed_by_broker()
                except TimeoutError:
                    continue
            assert closed
            assert time.monotonic() - began >= 1.9
            _ask(busy)


def test_a_request_that_is_never_finished_is_given_up(tmp_path: Path) -> None:
    with BrokerProcess(tmp_path, settings={"headrace.slow.client.timeout.ms": str(SHORT_MS)}) as broker:
        with RawConnection(broker.bootstrap_servers) as half, RawConnection(broker.bootstrap_servers) as other:
            half.send(b"\x00\x00\x10\x00" + b"\x00" * 100)
            began = time.monotonic()
            assert half.is_closed_by_broker()
            assert time.monotonic() - began < CHECK_SLACK_S
            _ask(other)


def test_a_request_may_come_in_pieces(tmp_path: Path) -> None:
    body = bytes.fromhex("ffffffff")  # topics: null
    frame = request_frame(ApiKey.METADATA, 1, 7, "slow", body)
    with BrokerProcess(tmp_path) as broker, RawConnection(broker.bootstrap_servers) as connection:
        for byte in frame:
            connection.send(bytes([byte]))
        answer = connection.receive_frame()
        assert answer is not None
        assert answer[:4] == (7).to_bytes(4, "big")


def test_connections_above_the_limit_are_refused(tmp_path: Path) -> None:
    with BrokerProcess(tmp_path, settings={"max.connections": "3"}) as broker:
        held = [RawConnection(broker.bootstrap_servers) for _ in range(3)]
        for connection in held:
            _ask(connection)
        with RawConnection(broker.bootstrap_servers) as refused:
            assert refused.is_closed_by_broker()
        _ask(held[0])
        held[0].close()
        held[0] = _connect_again(broker)
        for connection in held:
            _ask(connection)
            connection.close()


def _connect_again(broker: BrokerProcess) -> RawConnection:
    """The end of the closed one may reach the broker after the next has come."""
    deadline = time.monotonic() + CHECK_SLACK_S
    while time.monotonic() < deadline:
        connection = RawConnection(broker.bootstrap_servers)
        try:
            _ask(connection)
        except (AssertionError, ConnectionError):
            connection.close()
        else:
            return connection
    raise AssertionError("the place of a closed connection was not given to another")


def test_connections_of_one_address_are_limited(tmp_path: Path) -> None:
    with BrokerProcess(tmp_path, settings={"max.connections.per.ip": "2"}) as broker:
        with RawConnection(broker.bootstrap_servers) as first, RawConnection(broker.bootstrap_servers) as second:
            _ask(first)
            _ask(second)
            with RawConnection(broker.bootstrap_servers) as third:
                assert third.is_closed_by_broker()
            _ask(first)


def test_a_hundred_connections_come_and_go(tmp_path: Path) -> None:
    with BrokerProcess(tmp_path) as broker:
        for _ in range(2):
            connections = [RawConnection(broker.bootstrap_servers) for _ in range(100)]
            for connection in connections:
                connection.send_request(ApiKey.METADATA, METADATA_VERSION, ALL_TOPICS)
            for connection in connections:
                assert connection.receive(ApiKey.METADATA, METADATA_VERSION).brokers
                connection.close()
        with RawConnection(broker.bootstrap_servers) as connection:
            _ask(connection)
        broker.stop()
        assert "error" not in broker.complaints()
