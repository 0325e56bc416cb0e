"""Answers leave in the order of their requests, whole, whatever the peer takes at a time."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.broker.net.connection import ResponseSlot
from headrace.broker.net.sender import Sender
from headrace.model.limits import COPIED_RANGE_BYTES_MAX, LARGE_RESPONSE_BYTES
from headrace.ports.disk import FileRange
from headrace.sim.disk import VirtualDisk
from headrace.sim.entropy import SeededEntropy
from headrace.sim.trace import Trace
from tests.broker.transports import ScriptedTransport, connection

MORE = 0x8000
PENDING = 1
FILE_BYTES = 100_000


class Sending:
    def __init__(self):
        self.disk = VirtualDisk(SeededEntropy(1), Trace())
        self.file = self.disk.open("segment", create=True)
        self.content = bytes(place * 7 % 256 for place in range(FILE_BYTES))
        self.disk.write_vector(self.file, [self.content], 0)
        self.transport = ScriptedTransport(disk=self.disk)
        self.connection = connection(self.transport)
        self.sender = Sender(self.disk, more_flag=MORE)
        self.expected = b""

    def answer(self, parts, waits=0):
        answer = ResponseSlot(self.connection, parts, waits)
        self.connection.responses.append(answer)
        return answer

    def slice(self, position, length):
        return FileRange(self.file, position, length)

    def bytes_of(self, parts):
        if not isinstance(parts, list):
            return bytes(parts)
        return b"".join(
            self.content[part.position : part.position + part.length] if isinstance(part, FileRange) else bytes(part)
            for part in parts
        )

    def drain(self):
        """Send as the loop does: what is ready, then what is left whenever the peer has room again."""
        sent = self.sender.send_ready(self.connection)
        while self.connection.unsent:
            self.transport.room = 1 << 40
            sent += self.sender.send_unsent(self.connection)
        return sent


def test_answers_completed_out_of_order_leave_in_order():
    sending = Sending()
    answers = [sending.answer(None, PENDING) for _ in range(4)]
    answers[2].complete(b"third")
    assert sending.sender.send_ready(sending.connection) == 0
    answers[0].complete([b"fi", b"rst"])
    sending.sender.send_ready(sending.connection)
    assert sending.transport.sent == b"first"
    answers[3].complete(b"fourth")
    answers[1].complete(b"second")
    sending.sender.send_ready(sending.connection)
    assert sending.transport.sent == b"firstsecondthirdfourth"
    assert not sending.connection.responses


def test_an_answer_that_waits_for_an_acknowledgement_holds_up_those_behind_it():
    sending = Sending()
    first = sending.answer(b"acked", 2)
    sending.answer(b"next")
    assert sending.sender.send_ready(sending.connection) == 0
    first.waits -= 1
    assert sending.sender.send_ready(sending.connection) == 0
    first.waits -= 1
    assert sending.sender.send_ready(sending.connection) == 9
    assert sending.transport.sent == b"ackednext"


def test_the_answers_of_a_turn_are_one_send():
    sending = Sending()
    for _ in range(50):
        sending.answer(b"0123456789")
    sending.sender.send_ready(sending.connection)
    assert sending.transport.calls == [("send", 500, 0)]


def test_a_large_slice_goes_from_its_file_and_its_head_waits_for_it():
    sending = Sending()
    parts = [b"head", sending.slice(10, COPIED_RANGE_BYTES_MAX + 1), b"tail"]
    sending.answer(parts)
    sending.drain()
    assert sending.transport.sent == sending.bytes_of(parts)
    assert sending.transport.calls == [("send", 4, MORE), ("slice", COPIED_RANGE_BYTES_MAX + 1, 0), ("send", 4, 0)]


def test_small_slices_are_sent_with_their_heads_in_one_call():
    sending = Sending()
    parts = [b"head", sending.slice(5, COPIED_RANGE_BYTES_MAX), b"middle", sending.slice(0, 1), b"tail"]
    sending.answer(b"before")
    sending.answer(parts)
    sending.answer(b"after")
    sending.drain()
    assert sending.transport.sent == b"before" + sending.bytes_of(parts) + b"after"
    assert [kind for kind, _, _ in sending.transport.calls] == ["send"]


def test_what_the_peer_has_no_room_for_stays_and_follows():
    sending = Sending()
    parts = [b"h" * 10, sending.slice(0, 50_000), b"t" * 10]
    sending.answer(parts)
    sending.transport.room = 20_000
    assert sending.sender.send_ready(sending.connection) == 20_000
    later = sending.answer(b"later")
    sending.transport.room = 0
    assert sending.sender.send_unsent(sending.connection) == 0
    sending.transport.room = 35_000
    sending.sender.send_unsent(sending.connection)
    assert not sending.connection.unsent
    assert sending.connection.responses[0] is later
    sending.sender.send_ready(sending.connection)
    assert sending.transport.sent == sending.bytes_of(parts) + b"later"


def test_a_large_answer_leaves_behind_the_small_ones_of_its_turn_with_what_became_ready_since():
    sending = Sending()
    parts = [b"head", sending.slice(0, LARGE_RESPONSE_BYTES + 1), b"tail"]
    sending.answer(parts)
    assert sending.sender.send_ready(sending.connection) == 0
    assert not sending.transport.calls
    sending.answer(b"next")
    sending.sender.send_more(sending.connection, FILE_BYTES)
    assert sending.transport.sent == sending.bytes_of(parts) + b"next"
    assert not sending.connection.unsent


def test_no_more_than_the_limit_is_sent_of_files_large_or_small():
    sending = Sending()
    parts = [sending.slice(0, FILE_BYTES), *(sending.slice(10 * place, 10_000) for place in range(20)), b"tail"]
    sending.answer(parts)
    sending.sender.send_ready(sending.connection)
    sizes = []
    while sending.connection.unsent:
        sizes.append(sending.sender.send_more(sending.connection, 40_000))
    assert sending.transport.sent == sending.bytes_of(parts)
    assert sizes[:2] == [40_000, 40_000]
    assert max(sizes) < 40_000 + 10_000  # what is copied is not cut
    assert len(sizes) >= 7


@pytest.mark.slow
@given(
    st.lists(
        st.one_of(
            st.binary(min_size=1, max_size=40),
            st.lists(
                st.one_of(
                    st.binary(max_size=30),
                    st.tuples(st.integers(0, 50_000), st.sampled_from([1, 700, 16_384, 16_385, 40_000])),
                ),
                min_size=1,
                max_size=5,
            ),
        ),
        max_size=8,
    ),
    st.lists(st.sampled_from([0, 1, 3, 100, 17_000, 60_000]), min_size=1),
    st.sampled_from([1 << 40, 1, 1000, 16_384]),
    st.sampled_from([1 << 40, 1, 5_000, 70_000]),
)
def test_every_byte_leaves_once_and_in_order(answers, rooms, send_once, bytes_max):
    sending = Sending()
    sending.transport.send_once = max(send_once, 50)
    expected = b""
    for parts in answers:
        if isinstance(parts, list):
            parts = [sending.slice(*part) if isinstance(part, tuple) else part for part in parts]
        expected += sending.bytes_of(parts)
        sending.answer(parts)
    sending.transport.room = rooms[0]
    total = sending.sender.send_ready(sending.connection)
    for room in rooms[1:]:
        sending.transport.room = room
        if sending.connection.unsent:
            total += sending.sender.send_more(sending.connection, bytes_max)
    total += sending.drain()
    assert sending.transport.sent == expected
    assert total == len(expected)


def test_empty_parts_are_no_obstacle():
    sending = Sending()
    sending.answer([b"", b"x", b""])
    sending.drain()
    assert sending.transport.sent == b"x"


@pytest.mark.parametrize("parts", [b"small", [b"head", FileRange(0, 0, 50_000)]])
def test_a_broken_connection_raises(parts):
    sending = Sending()
    if isinstance(parts, list):
        parts = [parts[0], sending.slice(0, 50_000)]
    sending.answer(parts)
    sending.transport.trouble = BrokenPipeError()
    with pytest.raises(BrokenPipeError):
        sending.sender.send_ready(sending.connection)


@pytest.mark.parametrize("length", [1000, 50_000])
def test_a_file_that_ends_early_breaks_the_connection_instead_of_its_framing(length):
    sending = Sending()
    sending.answer([b"head", sending.slice(FILE_BYTES - 10, length), b"tail"])
    with pytest.raises(OSError, match=rf"ends before position {FILE_BYTES - 10 + length}, .*headrace log verify"):
        sending.drain()


def test_bytes_held_up_are_counted_until_they_leave():
    sending = Sending()
    held = sending.connection
    first = sending.answer(None, PENDING)
    for _ in range(3):
        sending.answer(None, PENDING).complete(b"x" * 1000)
    assert held.held_bytes == 3000
    assert held.is_full(3000)
    first.complete([b"parts of files take no memory"])
    last = sending.answer(None, PENDING)
    sending.drain()
    assert held.held_bytes == 0
    sending.answer(None, PENDING).complete(b"y" * 500)
    last.complete(b"z" * 100)
    assert held.held_bytes == 600
    sending.drain()
    assert held.held_bytes == 0


def test_bytes_before_a_fetch_are_not_held_for_ever():
    sending = Sending()
    for _ in range(100):
        sending.answer(None, PENDING).complete(b"m" * 1000)
        sending.answer(None, PENDING).complete([b"f"])
        parked = sending.answer(None, PENDING)
        sending.drain()
        assert sending.connection.held_bytes <= 1000
        parked.complete([b"p"])
        parked = sending.answer(None, PENDING)
        sending.drain()
        sending.connection.responses.clear()
