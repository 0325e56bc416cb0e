"""Frames that are none: too long, negative, cut off, preceded by noise, or full of tagged fields."""

import random
import socket
import struct

import pytest

from headrace.wire.apis import ApiKey
from headrace.wire.messages.api_versions import ApiVersionsRequest
from headrace.wire.primitives.writers import unsigned_varint
from tests.hostile import frames
from tests.hostile.ground import FRAME_BYTES_MAX, Ground

pytestmark = pytest.mark.process

CONNECTIONS = 20
RESIDENT_GROWTH_MAX = 16 << 20
TLS_HELLO = bytes.fromhex("16030100c8010000c40303")
SEED = 8


def _refused_at_once(ground: Ground, payload: bytes) -> None:
    """Every connection that sends it is closed and counted."""
    with ground.attacked() as attack_lasts:
        while attack_lasts():
            before = ground.metrics()["headrace_protocol_errors_total"]
            for _ in range(CONNECTIONS):
                with ground.connect() as connection:
                    connection.send(payload)
                    assert connection.is_closed_by_broker()
            assert ground.metrics()["headrace_protocol_errors_total"] == before + CONNECTIONS


@pytest.mark.parametrize("size", [FRAME_BYTES_MAX + 1, 2**31 - 1, -1, -(2**31), 0, 7])
def test_sizes_that_no_frame_has(ground: Ground, size: int) -> None:
    _refused_at_once(ground, frames.SIZE.pack(size) + bytes(64))


@pytest.mark.parametrize("noise", [b"GET / HTTP/1.1\r\n\r\n", TLS_HELLO, b"\xff" * 100], ids=["http", "tls", "ones"])
def test_garbage_before_a_frame(ground: Ground, noise: bytes) -> None:
    _refused_at_once(ground, noise + frames.api_versions())


def test_garbage_between_frames(ground: Ground) -> None:
    with ground.attacked() as attack_lasts:
        while attack_lasts():
            with ground.connect() as connection:
                connection.send(frames.api_versions() + TLS_HELLO + frames.api_versions())
                connection.receive_frame()  # of the first, or nothing: the connection ends with the garbage
                assert connection.is_closed_by_broker()


def test_frames_cut_off_by_a_close_or_a_reset(ground: Ground) -> None:
    whole = frames.api_versions() + frames.metadata(["target"])
    source = random.Random(SEED)
    with ground.attacked() as attack_lasts:
        while attack_lasts():
            for _ in range(CONNECTIONS):
                with ground.connect() as connection:
                    connection.send(whole[: source.randrange(len(whole))])
                    if source.random() < 0.5:
                        reset = struct.pack("ii", 1, 0)
                        connection.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, reset)
    ground.wait_until_alone()


def test_memory_follows_the_bytes_received_not_the_length_declared(ground: Ground) -> None:
    before = ground.resident_bytes()
    connections = [ground.connect() for _ in range(50)]
    with ground.attacked() as attack_lasts:
        for connection in connections:
            connection.send(frames.SIZE.pack(FRAME_BYTES_MAX - 1) + struct.pack(">hhih", ApiKey.PRODUCE, 9, 1, -1))
        while attack_lasts():
            assert ground.resident_bytes() - before < RESIDENT_GROWTH_MAX
    for connection in connections:
        connection.close()


def _flexible_header(tags: bytes) -> bytes:
    """A request of a flexible version whose header has these tagged fields."""
    whole = frames.frame(ApiKey.API_VERSIONS, 3, ApiVersionsRequest(client_software_name="x"))
    client_id_end = 4 + 8 + 2 + len(b"hostile")
    assert whole[client_id_end] == 0
    body = whole[4:client_id_end] + tags + whole[client_id_end + 1 :]
    return frames.SIZE.pack(len(body)) + body


@pytest.mark.parametrize(
    "tags",
    [
        unsigned_varint(2**32 - 1),
        unsigned_varint(60_000) + b"\x01\x00" * 60_000,
        b"\x01\x01" + unsigned_varint(2**31 - 1),
        b"\xff" * 1000,
    ],
    ids=["count", "many", "long", "varint"],
)
def test_tagged_fields_without_end(ground: Ground, tags: bytes) -> None:
    _refused_at_once(ground, _flexible_header(tags))


@pytest.mark.parametrize(("key", "version"), [(-1, 0), (9999, 0), (3, 99), (3, -1), (1, 0)])
def test_apis_and_versions_that_are_not_served(ground: Ground, key: int, version: int) -> None:
    body = struct.pack(">hhih", key, version, 1, -1) + bytes(20)
    _refused_at_once(ground, frames.SIZE.pack(len(body)) + body)
