"""From bytes to frames: whatever the slices, every frame comes once, whole and in order, in bounded memory."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.broker.net.buffers import BufferPool
from headrace.model.limits import (
    LARGE_FRAME_BEGUN_BYTES,
    LARGE_FRAME_BYTES,
    LARGE_FRAME_FIRST_BYTES,
    RECEIVE_ARENA_BYTES,
    RECEIVE_ONCE_BYTES,
    REQUESTS_IN_FLIGHT_MAX,
    TURN_WORK_MS_MAX,
)
from headrace.wire.errors import ProtocolError
from tests.broker.frame_receivers import FRAME_BYTES_MAX, MANY_BYTES, Receiving, declared
from tests.broker.transports import ScriptedTransport, connection, frame


def contents(*sizes):
    return [bytes([place % 251]) * size for place, size in enumerate(sizes, 1)]


def test_frames_cut_at_every_byte():
    whole = contents(8, 100, 9)
    stream = b"".join(map(frame, whole))
    for cut in range(len(stream) + 1):
        receiving, sender = Receiving(), connection()
        receiving.feed(sender, stream[:cut])
        receiving.feed(sender, stream[cut:])
        assert receiving.contents(sender) == whole
        assert sender.rest is None


def test_one_byte_at_a_time():
    whole = contents(8, 50, 8)
    receiving, sender = Receiving(), connection()
    for byte in b"".join(map(frame, whole)):
        receiving.feed(sender, bytes([byte]))
    assert receiving.contents(sender) == whole


def test_many_frames_in_one_read_and_a_rest():
    whole = contents(*[20] * 500)
    receiving, sender = Receiving(), connection()
    stream = b"".join(map(frame, whole))
    receiving.feed(sender, stream + stream[:13])
    assert receiving.contents(sender) == whole
    assert sender.rest == stream[:13]
    receiving.feed(sender, stream[13:])
    assert receiving.contents(sender) == whole * 2


@pytest.mark.slow
@given(
    st.lists(st.sampled_from([8, 9, 300, 5000, LARGE_FRAME_BYTES, LARGE_FRAME_BYTES + 1, 700_000]), max_size=12),
    st.lists(st.sampled_from([1, 3, 17, 4096, 100_000, 262_144]), min_size=1, max_size=8),
    st.integers(1, 3),
)
def test_any_frames_of_several_peers_in_any_slices(sizes, slices, peers):
    receiving = Receiving()
    senders = [connection(ScriptedTransport(token)) for token in range(peers)]
    whole: dict[Any, list[Any]] = {sender: [] for sender in senders}
    for place, content in enumerate(contents(*sizes)):
        sender = senders[place % peers]
        whole[sender].append(content)
        sender.transport.incoming += frame(content)
    turn = 0
    while any(sender.transport.incoming for sender in senders):
        for sender in senders:
            sender.transport.receive_once = max(64, slices[turn % len(slices)])
            turn += 1
            if sender.transport.incoming:
                receiving.receiver.receive(sender)
        receiving.end_turn()
    for sender in senders:
        assert receiving.contents(sender) == whole[sender]
        assert sender.rest is None
        assert sender.frame is None
    assert receiving.pool.lent_bytes == 0


# Sizes that cannot be


@pytest.mark.parametrize("size", [-1, -(2**31), 0, 1, 7, FRAME_BYTES_MAX + 1, 2**31 - 1])
def test_impossible_sizes_are_refused(size):
    receiving, sender = Receiving(), connection()
    sender.transport.incoming += frame(b"x" * 8) + size.to_bytes(4, "big", signed=True) + bytes(20)
    with pytest.raises(ProtocolError, match=str(size)):
        receiving.receiver.receive(sender)
    receiving.end_turn()
    assert receiving.contents(sender) == [b"x" * 8], "what came before it was good"
    receiving.receiver.discard(sender)
    assert receiving.pool.lent_bytes == 0


@pytest.mark.parametrize("size", [8, LARGE_FRAME_BYTES, LARGE_FRAME_BYTES + 1, FRAME_BYTES_MAX])
def test_the_smallest_and_the_largest_frame(size):
    receiving, sender = Receiving(), connection()
    receiving.feed(sender, frame(b"f" * size))
    assert receiving.contents(sender) == [b"f" * size]
    assert receiving.pool.lent_bytes == 0


# The arena


def test_a_full_arena_leaves_the_rest_for_the_next_turn():
    receiving = Receiving()
    peers = RECEIVE_ARENA_BYTES // RECEIVE_ONCE_BYTES + 2
    senders = [connection(ScriptedTransport(token)) for token in range(peers)]
    content = b"z" * (RECEIVE_ONCE_BYTES // 4 - 4)
    for sender in senders:
        sender.transport.incoming += frame(content) * 8
    received = [receiving.receiver.receive(sender) for sender in senders]
    assert sum(received) <= RECEIVE_ARENA_BYTES
    assert received[-1] == 0
    receiving.end_turn()
    while any(sender.transport.incoming for sender in senders):
        for sender in reversed(senders):
            if sender.transport.incoming:
                receiving.receiver.receive(sender)
        receiving.end_turn()
    for sender in senders:
        assert receiving.contents(sender) == [content] * 8


def test_one_peer_is_given_a_share_of_the_turn():
    receiving, sender = Receiving(), connection()
    sender.transport.incoming += frame(b"a" * 1000) * 2000
    assert receiving.receiver.receive(sender) == RECEIVE_ONCE_BYTES


def test_pipelined_frames_that_take_long_wait_for_the_next_turn():
    receiving, sender = Receiving(), connection()
    receiving.frame_takes_ms = TURN_WORK_MS_MAX / 2
    whole = contents(8, 50, 9, 8, 20)
    sender.transport.incoming += b"".join(map(frame, whole))
    receiving.receiver.receive(sender)
    turns = []
    while True:
        turns.append(len(receiving._views))
        receiving.end_turn()
        put_off = receiving.receiver.take_put_off()
        if not put_off:
            break
        assert put_off == [sender]
        receiving.receiver.now_ms = receiving.time_ms
        assert receiving.receiver.resume(sender)
    assert turns == [2, 2, 1]
    assert receiving.contents(sender) == whole
    assert sender.rest is None


def test_a_frame_that_takes_long_puts_nothing_off_when_it_is_the_only_one():
    receiving, sender = Receiving(), connection()
    receiving.frame_takes_ms = 10 * TURN_WORK_MS_MAX
    receiving.feed(sender, frame(b"x" * 9))
    assert receiving.contents(sender) == [b"x" * 9]
    assert receiving.receiver.take_put_off() == []


# Large frames


def test_a_buffer_grows_with_the_bytes_received_not_with_the_length_declared():
    receiving, sender = Receiving(), connection()
    receiving.feed(sender, declared(FRAME_BYTES_MAX) + b"1" * 100)
    assert receiving.pool.lent_bytes <= LARGE_FRAME_FIRST_BYTES
    received = 100
    while received < FRAME_BYTES_MAX:
        piece = min(100_000, FRAME_BYTES_MAX - received)
        receiving.feed(sender, b"1" * piece)
        received += piece
        assert receiving.pool.lent_bytes <= max(LARGE_FRAME_FIRST_BYTES, 2 * received)
    assert receiving.contents(sender) == [b"1" * FRAME_BYTES_MAX]
    assert receiving.pool.lent_bytes == 0


def test_a_peer_that_sent_a_large_frame_gets_its_size_at_once_and_others_do_not():
    receiving, sender, stranger = Receiving(), connection(), connection(ScriptedTransport(2))
    receiving.feed(sender, frame(b"2" * 3_000_000))
    receiving.feed(sender, declared(3_000_000) + b"2" * LARGE_FRAME_BEGUN_BYTES)
    assert receiving.pool.lent_bytes == 4 << 20
    receiving.feed(stranger, declared(3_000_000) + b"2" * LARGE_FRAME_BEGUN_BYTES)
    assert receiving.pool.lent_bytes == (4 << 20) + LARGE_FRAME_FIRST_BYTES


def test_a_frame_that_has_sent_little_gets_no_buffer():
    receiving, sender = Receiving(), connection()
    receiving.feed(sender, declared(FRAME_BYTES_MAX) + b"n" * (LARGE_FRAME_BEGUN_BYTES - 5))
    assert receiving.pool.lent_bytes == 0
    receiving.feed(sender, b"n")
    assert receiving.pool.lent_bytes == LARGE_FRAME_FIRST_BYTES


def test_buffers_are_reused_and_those_kept_are_bounded():
    pool = BufferPool(lent_bytes_max=MANY_BYTES, kept_bytes_max=1 << 20)
    first = pool.take(200_000)
    pool.give_back(first)
    assert pool.take(150_000) is first
    buffers = [pool.take(1 << 20) for _ in range(8)]
    for buffer in buffers:
        pool.give_back(buffer)
    again = [pool.take(1 << 20) for _ in range(8)]
    assert sum(any(one is other for other in buffers) for one in again) == 1


def test_the_pool_refuses_above_its_limit_but_never_the_only_one():
    pool = BufferPool(lent_bytes_max=1 << 20, kept_bytes_max=0)
    only = pool.take(4 << 20)
    assert len(only) == 4 << 20
    assert pool.take(1) is None
    larger = pool.take_larger(only, 8 << 20)
    assert larger is not None, "the only one may grow as well"
    pool.give_back(only)
    assert pool.take_larger(larger, 16 << 20) is not None
    pool.give_back(larger)
    assert pool.lent_bytes == 16 << 20


def test_a_starved_frame_waits_for_a_buffer_and_then_comes():
    receiving = Receiving(lent_bytes_max=512 << 10)
    holder, starving = connection(), connection(ScriptedTransport(2))
    receiving.feed(holder, frame(b"h" * 400_000)[:300_000])
    assert receiving.pool.lent_bytes == 512 << 10
    receiving.feed(starving, declared(200_000) + b"s" * 20_000)
    assert starving.starved
    assert starving.frame is None
    assert receiving.receiver.take_starved() == [], "nothing came back yet"
    receiving.feed(holder, frame(b"h" * 400_000)[300_000:])
    assert receiving.receiver.take_starved() == [starving]
    assert receiving.receiver.take_starved() == []
    starving.starved = False
    assert receiving.receiver.resume(starving)
    assert starving.frame is not None
    receiving.feed(starving, b"s" * 180_000)
    assert receiving.contents(starving) == [b"s" * 200_000]
    assert receiving.contents(holder) == [b"h" * 400_000]
    assert receiving.pool.lent_bytes == 0


def test_a_starved_peer_that_leaves_is_forgotten():
    receiving = Receiving(lent_bytes_max=256 << 10)
    holder = connection()
    receiving.feed(holder, declared(200_000) + b"h" * 100_000)
    for token in range(100):
        starving = connection(ScriptedTransport(token + 2))
        receiving.feed(starving, declared(200_000) + b"s" * 20_000)
        receiving.receiver.discard(starving)
    receiving.receiver.discard(holder)
    assert receiving.receiver.take_starved() == []
    assert receiving.pool.lent_bytes == 0


def test_a_frame_that_cannot_grow_waits_until_it_can():
    receiving = Receiving(lent_bytes_max=1 << 20)
    growing, other = connection(), connection(ScriptedTransport(2))
    receiving.feed(other, declared(300_000) + b"o" * 260_000)
    receiving.feed(growing, declared(700_000) + b"g" * 200_000)
    growing.transport.incoming += b"g" * 500_000
    while not growing.starved:
        receiving.receiver.receive(growing)
        receiving.end_turn()
    assert growing.frame is not None
    receiving.feed(other, b"o" * 40_000)
    assert receiving.contents(other) == [b"o" * 300_000]
    assert receiving.receiver.take_starved() == [growing]
    growing.starved = False
    receiving.feed(growing, b"")
    assert receiving.contents(growing) == [b"g" * 700_000]
    assert receiving.gave_way == []
    assert receiving.pool.lent_bytes == 0


def test_kept_buffers_that_are_not_used_go_back_to_the_system():
    pool = BufferPool(lent_bytes_max=MANY_BYTES, kept_bytes_max=MANY_BYTES)
    buffers = [pool.take(1 << 20) for _ in range(8)]
    for buffer in buffers:
        pool.give_back(buffer)
    pool.trim()
    assert pool.kept_bytes == 8 << 20, "all were used since the last time"
    pool.give_back(pool.take(1 << 20))
    pool.trim()
    assert pool.kept_bytes == 1 << 20
    pool.trim()
    assert pool.kept_bytes == 0


def test_kept_and_lent_buffers_stay_below_the_limit_together():
    pool = BufferPool(lent_bytes_max=4 << 20, kept_bytes_max=MANY_BYTES)
    for buffer in [pool.take(1 << 20) for _ in range(4)]:
        pool.give_back(buffer)
    assert pool.kept_bytes == 4 << 20
    taken = [pool.take(1 << 16) for _ in range(20)]
    assert pool.lent_bytes + pool.kept_bytes <= 4 << 20
    for buffer in taken:
        pool.give_back(buffer)
    assert pool.lent_bytes + pool.kept_bytes <= 4 << 20


def test_an_unfinished_large_frame_gives_its_buffer_back():
    receiving, sender = Receiving(), connection()
    receiving.feed(sender, declared(1_000_000) + b"u" * 600_000)
    assert receiving.pool.lent_bytes > 0
    receiving.receiver.discard(sender)
    assert receiving.pool.lent_bytes == 0


# The end of a stream, and too many requests


@pytest.mark.parametrize("before", [b"", b"\0\0", declared(100) + b"x", declared(1_000_000) + b"x" * 300_000])
def test_the_end_of_the_stream_is_reported_wherever_it_comes(before):
    receiving, sender = Receiving(), connection()
    receiving.feed(sender, before)
    sender.transport.ended = True
    assert receiving.receiver.receive(sender) == -1


@pytest.mark.parametrize("before", [b"", declared(100) + b"x", declared(1_000_000) + b"x" * 300_000])
def test_nothing_to_read_changes_nothing(before):
    receiving, sender = Receiving(), connection()
    receiving.feed(sender, before)
    rest = sender.rest
    with pytest.raises(BlockingIOError):
        receiving.receiver.receive(sender)
    assert sender.rest == rest


def test_frames_beyond_the_unanswered_limit_wait_in_the_rest():
    receiving, sender = Receiving(), connection()
    receiving.answered = False
    whole = contents(*[10] * (REQUESTS_IN_FLIGHT_MAX + 30))
    receiving.feed(sender, b"".join(map(frame, whole)))
    assert receiving.contents(sender) == whole[:REQUESTS_IN_FLIGHT_MAX]
    assert len(sender.rest) == 30 * 14
    for _ in range(10):
        sender.responses.popleft()
    assert receiving.receiver.resume(sender)
    receiving.end_turn()
    assert receiving.contents(sender) == whole[: REQUESTS_IN_FLIGHT_MAX + 10]
    sender.responses.clear()
    assert receiving.receiver.resume(sender)
    receiving.end_turn()
    assert receiving.contents(sender) == whole
    assert sender.rest is None


def test_a_large_frame_is_not_begun_beyond_the_unanswered_limit():
    receiving, sender = Receiving(), connection()
    receiving.answered = False
    receiving.feed(sender, frame(b"s" * 10) * REQUESTS_IN_FLIGHT_MAX + declared(300_000) + b"l" * 1000)
    assert receiving.pool.lent_bytes == 0
    sender.responses.clear()
    assert receiving.receiver.resume(sender)
    receiving.feed(sender, b"l" * 299_000)
    assert receiving.contents(sender)[-1] == b"l" * 300_000


def test_a_peer_that_is_owed_too_many_bytes_is_not_served():
    receiving, sender = Receiving(held_bytes_max=1000), connection()
    sender.held_bytes = 1000
    receiving.feed(sender, frame(b"w" * 10))
    assert receiving.contents(sender) == []
    sender.held_bytes = 999
    assert receiving.receiver.resume(sender)
    receiving.end_turn()
    assert receiving.contents(sender) == [b"w" * 10]
