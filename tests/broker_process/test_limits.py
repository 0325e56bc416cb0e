"""Limits on what one client may hold of a broker: idle, slow, half-sent and too many connections are closed."""

import time
from contextlib import suppress
from pathlib import Path

import pytest

from headrace.wire.apis import ApiKey
from headrace.wire.frames import request_frame
from headrace.wire.messages.metadata import MetadataRequest
from tests.broker_process.broker_process import BrokerProcess
from tests.broker_process.raw_connection import RawConnection

pytestmark = pytest.mark.process

METADATA_VERSION = 9
ALL_TOPICS = MetadataRequest(topics=None)
IDLE_S = 2.0
LOOK_S = 0.1
SHORT_MS = 500
GIVEN_UP_S_MAX = 30.0
"""Connections are looked at once a second; half of the time that a slow client has by default."""

AGAIN_S_MAX = 60.0
RUNS_MAX = 10


def _ask(connection: RawConnection) -> None:
    assert connection.call(ApiKey.METADATA, METADATA_VERSION, ALL_TOPICS).brokers


def test_an_idle_connection_is_closed_and_a_busy_one_is_not(tmp_path: Path) -> None:
    with BrokerProcess(tmp_path, settings={"connections.max.idle.ms": str(int(IDLE_S * 1000))}) as broker:
        assert any(_closes_the_idle_one_only(broker) for _ in range(RUNS_MAX)), "no connection was busy on this machine"


def _closes_the_idle_one_only(broker: BrokerProcess) -> bool:
    """Return whether this run shows it: not if the machine has kept the busy one from asking for too long."""
    with RawConnection(broker.bootstrap_servers) as idle, RawConnection(broker.bootstrap_servers) as busy:
        began = asked = time.monotonic()
        _ask(idle)
        idle.socket.settimeout(LOOK_S)
        closed = False
        while True:
            asking = time.monotonic()
            try:
                _ask(busy)
            except (AssertionError, ConnectionError):
                if time.monotonic() - asked < IDLE_S:
                    raise
                return False
            asked = asking
            if closed:
                assert asked - began >= IDLE_S
                return True
            with suppress(TimeoutError):
                closed = idle.is_closed_by_broker()


def test_a_request_that_is_never_finished_is_given_up(tmp_path: Path) -> None:
    with BrokerProcess(tmp_path, settings={"headrace.slow.client.timeout.ms": str(SHORT_MS)}) as broker:
        with RawConnection(broker.bootstrap_servers) as half, RawConnection(broker.bootstrap_servers) as other:
            half.send(b"\x00\x00\x10\x00" + b"\x00" * 100)
            half.socket.settimeout(GIVEN_UP_S_MAX)
            assert half.is_closed_by_broker()
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
    deadline = time.monotonic() + AGAIN_S_MAX
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
