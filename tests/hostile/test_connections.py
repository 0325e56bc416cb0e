"""Connections that take and do not give: slow, half open, never reading, thousands of them, stormy, parked."""

import os
import resource
import socket
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from headrace.wire.apis import ApiKey
from headrace.wire.messages.produce import ProduceRequest
from tests.hostile import frames
from tests.hostile.ground import Ground

pytestmark = pytest.mark.process

DESCRIPTORS_FOR_OTHERS = 500
CONNECT_S_MAX = 60.0
MANY_CONNECTIONS = min(
    int(os.environ.get("HOSTILE_CONNECTIONS", "1500")),
    resource.getrlimit(resource.RLIMIT_NOFILE)[1] - DESCRIPTORS_FOR_OTHERS,
)
"""As many as the machine's limit of open files lets a test and a broker have."""

STORM_CONNECTIONS = int(os.environ.get("HOSTILE_STORM", "1000"))
PIPELINED = 10_000
PARKED_PER_CONNECTION = 20
PARKED_CONNECTIONS = 50
BYTES_PER_IDLE_CONNECTION_MAX = 16 << 10
UNREAD_GROWTH_MAX = 64 << 20
RESET = struct.pack("ii", 1, 0)


@contextmanager
def _connections(ground: Ground, count: int) -> Iterator[list[socket.socket]]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(max(soft, count + DESCRIPTORS_FOR_OTHERS), hard), hard))
    opened: list[socket.socket] = []
    try:
        opened.extend(socket.create_connection(ground.address, CONNECT_S_MAX) for _ in range(count))
        yield opened
    finally:
        for connection in opened:
            connection.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_one_byte_a_second(ground: Ground) -> None:
    """A frame that does not get whole in the slow client's time is not waited for."""
    timed_out = ground.metrics()["headrace_connections_timed_out_total"]
    request = frames.api_versions()
    with _connections(ground, 100) as connections, ground.attacked() as attack_lasts:
        for sent in range(4):
            for connection in connections:
                try:
                    connection.send(request[sent : sent + 1])
                except (BrokenPipeError, ConnectionResetError):
                    pass  # closed as too slow already
            time.sleep(1.0)
        ground.wait_until(
            lambda found: found["headrace_connections_timed_out_total"] >= timed_out + len(connections), "the time-outs"
        )
        while attack_lasts():
            time.sleep(0.01)


def test_half_closed_sockets(ground: Ground) -> None:
    """A client that announces the end of its requests is answered or closed, and not kept."""
    with ground.attacked() as attack_lasts:
        while attack_lasts():
            for _ in range(20):
                with ground.connect() as connection:
                    connection.send(
                        frames.api_versions() + frames.fetch("target", range(8), wait_ms=10**6, bytes_min=1)
                    )
                    connection.socket.shutdown(socket.SHUT_WR)
                    while connection.receive_frame() is not None:
                        pass
    ground.wait_until_alone()
    ground.wait_until(lambda found: found["headrace_fetches_parked"] <= 1, "the end of the parked fetches")


def test_readers_that_never_read(ground: Ground) -> None:
    """Answers that a client does not take are not piled up: it is not read from, then disconnected."""
    before, timed_out = ground.resident_bytes(), ground.metrics()["headrace_connections_timed_out_total"]
    with ground.connect() as writer:
        for _ in range(8):  # something to be sent
            batch = frames.good_batch(records=1, value=bytes(500_000))
            writer.call(ApiKey.PRODUCE, frames.PRODUCE_VERSION, frames.produce_request("target", bytes(batch)))
    request = frames.fetch("target", range(1), wait_ms=0, bytes_min=0) + frames.metadata(None)
    with _connections(ground, 20) as connections, ground.attacked() as attack_lasts:
        for connection in connections:
            connection.setblocking(False)
        while attack_lasts():
            for connection in connections:
                try:
                    connection.send(request * 50)
                except (BlockingIOError, BrokenPipeError, ConnectionResetError):
                    pass  # no room, or disconnected already
            assert ground.resident_bytes() - before < UNREAD_GROWTH_MAX
        ground.wait_until(
            lambda found: found["headrace_connections_timed_out_total"] >= timed_out + len(connections), "the time-outs"
        )


def test_thousands_of_connections(ground: Ground) -> None:
    before = ground.resident_bytes()
    with _connections(ground, MANY_CONNECTIONS) as connections:
        ground.wait_until(lambda found: found["headrace_connections"] >= MANY_CONNECTIONS, "every connection")
        grown = ground.resident_bytes() - before
        with ground.attacked() as attack_lasts:
            while attack_lasts():
                for connection in connections[::50]:
                    connection.sendall(frames.api_versions())
                    (size,) = frames.SIZE.unpack(connection.recv(4, socket.MSG_WAITALL))
                    assert len(connection.recv(size, socket.MSG_WAITALL)) == size
        assert grown / MANY_CONNECTIONS < BYTES_PER_IDLE_CONNECTION_MAX
    ground.wait_until_alone()


def test_a_storm_of_connections(ground: Ground) -> None:
    """Opened and torn down as fast as it goes, some with a reset, some in the middle of a frame."""
    opened = ground.metrics()["headrace_connections_opened_total"]
    storm = 0
    with ground.attacked() as attack_lasts:
        while attack_lasts() or storm < STORM_CONNECTIONS:
            for number in range(100):
                with socket.create_connection(ground.address, CONNECT_S_MAX) as connection:
                    if number % 2:
                        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
                    if number % 3:
                        connection.send(frames.api_versions()[: number % 17])
            storm += 100
    ground.wait_until_alone()
    assert ground.metrics()["headrace_connections_opened_total"] >= opened + storm * 0.9


def test_a_pipeline_of_ten_thousand_requests(ground: Ground) -> None:
    """All are answered, in order, however far ahead the client writes."""
    with ground.attacked() as attack_lasts:
        while attack_lasts():
            with ground.connect() as connection:
                requests = b"".join(
                    frames.api_versions(number) if number % 2 else frames.metadata(["target"], number)
                    for number in range(PIPELINED)
                )
                writer = threading.Thread(target=connection.send, args=(requests,))
                writer.start()
                for number in range(PIPELINED):
                    answer = connection.receive_frame()
                    assert answer is not None
                    assert int.from_bytes(answer[:4], "big") == number
                writer.join()


def test_requests_that_park_for_ever(ground: Ground) -> None:
    """A thousand fetches that wait for what never comes cost nothing, and nothing is left of them."""
    request = frames.fetch("target", range(1, 8), wait_ms=frames.FOR_EVER_MS, bytes_min=frames.FOR_EVER_MS, offset=0)
    parked = ground.metrics()["headrace_fetches_parked"]
    with _connections(ground, PARKED_CONNECTIONS) as connections, ground.attacked() as attack_lasts:
        for connection in connections:
            connection.sendall(request * PARKED_PER_CONNECTION)
        wanted = PARKED_CONNECTIONS * PARKED_PER_CONNECTION
        ground.wait_until(lambda found: found["headrace_fetches_parked"] >= wanted, "the parked fetches")
        while attack_lasts():
            time.sleep(0.01)
    ground.wait_until(lambda found: found["headrace_fetches_parked"] <= parked + 1, "the end of the parked fetches")


def test_acks_without_a_waiting_caller(ground: Ground) -> None:
    """acks=0 is never answered: bad batches close the connection, and good ones leave nothing behind."""
    good, bad = (
        frames.frame(
            ApiKey.PRODUCE,
            frames.PRODUCE_VERSION,
            ProduceRequest(acks=0, timeout_ms=1000, topic_data=frames.produce_request("target", batch).topic_data),
        )
        for batch in (bytes(frames.good_batch()), frames.with_wrong_checksum())
    )
    with ground.attacked() as attack_lasts:
        while attack_lasts():
            with ground.connect() as connection:
                connection.send(good * 20 + bad + good)
                assert connection.is_closed_by_broker()
