"""Requests whose work grows with a count: it is done in slices, so that others are served between them."""

import os
import socket
import struct
from collections.abc import Mapping
from functools import partial

import pytest

from headrace.wire.apis import ApiKey
from headrace.wire.messages.delete_topics import DeleteTopicsRequest
from headrace.wire.primitives.writers import unsigned_varint
from tests.hostile import frames
from tests.hostile.ground import Ground

pytestmark = pytest.mark.process

FETCHED_PARTITIONS = 10_000
TOPIC_NAMES = 30_000
MANY_BYTES = 8 << 20
RESIDENT_GROWTH_MAX = 64 << 20
SCRAPED_PARTITIONS = int(os.environ.get("HOSTILE_PARTITIONS", "400"))


def test_fetches_of_ten_thousand_partitions(ground: Ground) -> None:
    request = frames.fetch("target", range(FETCHED_PARTITIONS), wait_ms=0, bytes_min=0)
    with ground.attacked() as attack_lasts, ground.connect() as connection:
        while attack_lasts():
            connection.send(request)
            answer = connection.receive_frame()
            assert answer is not None
            assert len(answer) > FETCHED_PARTITIONS * 20


def test_thousands_of_topic_names(ground: Ground) -> None:
    request = frames.metadata([f"name-{number}" for number in range(TOPIC_NAMES)])
    with ground.attacked() as attack_lasts, ground.connect() as connection:
        while attack_lasts():
            connection.send(request)
            answer = connection.receive_frame()
            assert answer is not None
            assert len(answer) > TOPIC_NAMES * 20


def has_more_errors_than(before: float, found: Mapping[str, float]) -> bool:
    return found["headrace_protocol_errors_total"] > before


def _refused(ground: Ground, request: bytes) -> None:
    resident = ground.resident_bytes()
    with ground.attacked() as attack_lasts:
        while attack_lasts():
            refused = ground.metrics()["headrace_protocol_errors_total"]
            with ground.connect() as connection:
                try:
                    connection.send(request)
                except (BrokenPipeError, ConnectionResetError):
                    pass  # the broker need not read it all
                assert connection.is_closed_by_broker()
            ground.wait_until(partial(has_more_errors_than, refused), "a protocol error")
    assert ground.resident_bytes() - resident < RESIDENT_GROWTH_MAX


def test_more_than_a_hundred_thousand_topic_names(ground: Ground) -> None:
    _refused(ground, frames.metadata([f"name-{number}" for number in range(100_001)]))


def _of_many_elements(key: int, version: int, head: bytes, element: bytes) -> bytes:
    """A flexible request that is nothing but an array of the smallest elements there are."""
    count = MANY_BYTES // len(element)
    body = struct.pack(">hhih", key, version, 1, -1) + b"\0" + head + unsigned_varint(count + 1) + element * count
    return frames.SIZE.pack(len(body) + 16) + body + bytes(16)


def test_millions_of_elements_of_two_bytes(ground: Ground) -> None:
    """20 MB of empty topic names once took eleven seconds of the loop and 700 MB."""
    _refused(ground, _of_many_elements(ApiKey.METADATA, 9, b"", b"\x01\x00"))


def test_millions_of_empty_topics_in_a_produce_request(ground: Ground) -> None:
    """Produce may be large, for its records; its topics may not be millions."""
    _refused(ground, _of_many_elements(ApiKey.PRODUCE, 9, b"\0" + struct.pack(">hi", 1, 1000), b"\x01\x01\x00"))


def test_scrapes_of_thousands_of_partitions(ground: Ground) -> None:
    ground.create_topic("scraped", partitions=SCRAPED_PARTITIONS)
    with ground.attacked() as attack_lasts:
        while attack_lasts():
            pages = [_begin_scrape(ground) for _ in range(4)]
            for page in pages:
                assert _read(page).count(b'topic="scraped"') >= SCRAPED_PARTITIONS
    with ground.connect() as connection:
        connection.call(ApiKey.DELETE_TOPICS, 5, DeleteTopicsRequest(topic_names=("scraped",), timeout_ms=30_000))


def _begin_scrape(ground: Ground) -> socket.socket:
    page = socket.create_connection(ground.metrics_address, 30)
    page.sendall(b"GET /metrics HTTP/1.1\r\nHost: test\r\n\r\n")
    return page


def _read(page: socket.socket) -> bytes:
    with page:
        received = bytearray()
        while more := page.recv(1 << 16):
            received += more
        return bytes(received)
