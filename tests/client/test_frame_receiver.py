"""Frames out of bytes that come in any pieces, some of them received where they stay."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.client.core.frame_receiver import GROWTH_BYTES, LARGE_BYTES_MIN, SPARES_MAX, Incoming
from headrace.client.errors import BadResponse

FRAME_BYTES_MAX = 8 * GROWTH_BYTES


def frame(size: int, fill: int = 7) -> bytes:
    return size.to_bytes(4, "big") + bytes([fill]) * size


def feed(incoming: Incoming, stream: bytes, pieces: list[int], *, use_room: bool = True) -> list[bytes]:
    """Give the stream in pieces of these sizes (again and again), as a connection does."""
    found: list[bytes] = []
    position = number = 0
    while position < len(stream):
        piece = stream[position : position + pieces[number % len(pieces)]]
        number += 1
        room = incoming.room() if use_room else None
        if room is None:
            frames = incoming.take(piece)
        else:
            piece = piece[: len(room)]
            room[: len(piece)] = piece
            frames = incoming.filled(len(piece))
        found += map(bytes, frames)
        position += len(piece)
    return found


@settings(max_examples=60)
@given(
    st.lists(st.sampled_from([4, 5, 300, LARGE_BYTES_MIN - 1, LARGE_BYTES_MIN, 3 * LARGE_BYTES_MIN]), max_size=5),
    st.lists(st.sampled_from([1_000, 4_099, 70_000, 1 << 20]), min_size=1, max_size=4),
    st.booleans(),
)
def test_frames_in_any_pieces(sizes: list[int], pieces: list[int], use_room: bool) -> None:
    stream = b"".join(frame(size, fill) for fill, size in enumerate(sizes))
    expected = [bytes([fill]) * size for fill, size in enumerate(sizes)]
    assert feed(Incoming("here", FRAME_BYTES_MAX), stream, pieces, use_room=use_room) == expected


def test_a_frame_that_grows() -> None:
    size = 3 * GROWTH_BYTES + 5
    incoming = Incoming("here", FRAME_BYTES_MAX)
    assert incoming.take(frame(size)[:10]) == []
    room = incoming.room()
    assert len(room) == GROWTH_BYTES - 6, "not all that was announced"
    assert feed(incoming, frame(size)[10:], [1 << 20]) == [b"\x07" * size]


def test_a_buffer_is_used_again_when_it_has_no_reader() -> None:
    incoming = Incoming("here", FRAME_BYTES_MAX)
    stream, held = frame(LARGE_BYTES_MIN), []
    for fill in range(10):
        incoming.take(stream[:100])
        room = incoming.room()
        assert room is not None
        room[:] = bytes([fill]) * len(room)
        held += incoming.filled(len(room))
        if fill >= 5:
            held.clear()
    assert len(incoming._spares) == SPARES_MAX
    incoming.take(stream[:100])
    assert len(incoming._spares) == SPARES_MAX - 1, "one of them is in use again"


def test_a_frame_that_is_held_does_not_change() -> None:
    incoming = Incoming("here", FRAME_BYTES_MAX)
    held = []
    for fill in range(2 * SPARES_MAX):
        held += incoming.take(frame(LARGE_BYTES_MIN, fill)[:9])
        held += incoming.take(frame(LARGE_BYTES_MIN, fill)[9:])
    assert [bytes(each) for each in held] == [bytes([fill]) * LARGE_BYTES_MIN for fill in range(2 * SPARES_MAX)]


@pytest.mark.parametrize("size", [-1, 0, 3, FRAME_BYTES_MAX + 1])
def test_sizes_that_are_refused(size: int) -> None:
    with pytest.raises(BadResponse, match="check that it is a Kafka broker"):
        Incoming("here", FRAME_BYTES_MAX).take(size.to_bytes(4, "big", signed=True))
