"""Messages as bytes: every kind there and back, and garbage refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.core.raft.entries import EntryKind, LogEntry, StateSnapshot
from headrace.core.raft.ids import ANY_DIRECTORY, DirectoryId, Index, ReplicaKey, Term
from headrace.core.raft.message_codec import MESSAGE_BYTES_MAX, decode_message, encode_message
from headrace.core.raft.messages import (
    AppendRequest,
    AppendResponse,
    ElectionRequest,
    JoinRequest,
    JoinResponse,
    Message,
    SnapshotRequest,
    SnapshotResponse,
    VoteRequest,
    VoteResponse,
)
from headrace.core.raft.settings import PROPOSAL_BYTES_MAX, SNAPSHOT_CHUNK_BYTES_MAX
from headrace.model.ids import NodeId
from headrace.wire.errors import ProtocolError

ONE, TWO = (ReplicaKey(NodeId(number), DirectoryId(f"directory-{number}")) for number in (1, 2))
TERM = Term(3)
SNAPSHOT = StateSnapshot(index=Index(9), term=TERM, voters=(ONE, TWO))
ENTRIES = (
    LogEntry(term=Term(2), index=Index(5), payload=b"\x00\xff" * 9),
    LogEntry(term=TERM, index=Index(6), kind=EntryKind.VOTERS, voters=(ONE, TWO)),
)
MESSAGES: list[Message] = [
    VoteRequest(source=ONE, to=TWO, term=TERM, last_term=Term(2), last_index=Index(8), pre_vote=True, forced=True),
    VoteResponse(source=ONE, to=TWO, term=TERM, granted=True),
    AppendRequest(
        source=ONE,
        to=TWO,
        term=TERM,
        previous_term=Term(2),
        previous_index=Index(4),
        commit_index=Index(4),
        round=7,
        entries=ENTRIES,
    ),
    AppendResponse(
        source=ONE,
        to=TWO,
        term=TERM,
        accepted=False,
        index=Index(4),
        round=7,
        rejected_index=Index(6),
        hint_term=Term(1),
    ),
    SnapshotRequest(source=ONE, to=TWO, term=TERM, snapshot=SNAPSHOT, position=5, chunk=b"bytes", is_last=True),
    SnapshotResponse(source=ONE, to=TWO, term=TERM, snapshot_index=Index(9), position=5),
    ElectionRequest(source=ONE, to=TWO, term=TERM),
    JoinRequest(source=ONE, to=ReplicaKey(NodeId(2), ANY_DIRECTORY)),
    JoinResponse(source=ONE, to=TWO, leader=NodeId(2)),
    JoinResponse(source=ONE, to=TWO, leader=None),
]


@pytest.mark.parametrize("message", MESSAGES, ids=lambda message: type(message).__name__)
def test_a_message_is_read_as_it_was_written(message: Message) -> None:
    assert decode_message(encode_message(message)) == message
    assert decode_message(memoryview(encode_message(message))) == message


def test_the_largest_entry_fits_in_a_message() -> None:
    entry = LogEntry(term=TERM, index=Index(5), payload=bytes(PROPOSAL_BYTES_MAX))
    request = AppendRequest(
        source=ONE,
        to=TWO,
        term=TERM,
        previous_term=Term(2),
        previous_index=Index(4),
        commit_index=Index(4),
        round=7,
        entries=(entry,),
    )
    assert decode_message(encode_message(request)) == request


@pytest.mark.parametrize(
    "message",
    [
        VoteResponse(source=ONE, to=TWO, term=Term(-1), granted=True),
        VoteResponse(source=ONE, to=ReplicaKey(NodeId(-5), DirectoryId("d")), term=TERM, granted=True),
        VoteResponse(source=ONE, to=ReplicaKey(NodeId(1), DirectoryId("d" * 65)), term=TERM, granted=True),
        SnapshotResponse(source=ONE, to=TWO, term=TERM, snapshot_index=Index(2**62), position=5),
        SnapshotRequest(
            source=ONE,
            to=TWO,
            term=TERM,
            snapshot=SNAPSHOT,
            position=0,
            chunk=bytes(SNAPSHOT_CHUNK_BYTES_MAX + 1),
            is_last=False,
        ),
        SnapshotRequest(
            source=ONE,
            to=TWO,
            term=TERM,
            snapshot=StateSnapshot(voters=(ONE,) * 10),
            position=0,
            chunk=b"",
            is_last=False,
        ),
    ],
)
def test_values_outside_their_limits_are_refused(message: Message) -> None:
    with pytest.raises(ProtocolError, match="limits"):
        decode_message(encode_message(message))


@pytest.mark.parametrize("content", [b"", b"\x00", b"\x01\x00\x80", b"\x00\x09\x80", bytes(MESSAGE_BYTES_MAX + 1)])
def test_unknown_kinds_and_lengths_are_refused(content: bytes) -> None:
    with pytest.raises(ProtocolError):
        decode_message(content)


@given(kind=st.integers(0, 9), content=st.binary(max_size=300))
def test_garbage_is_refused_or_is_a_message(kind: int, content: bytes) -> None:
    try:
        decode_message(bytes((0, kind)) + content)
    except ProtocolError:
        pass


@given(st.sampled_from(MESSAGES), st.integers(0, 400), st.integers(0, 255))
def test_a_changed_byte_is_refused_or_gives_a_message(message: Message, position: int, value: int) -> None:
    content = bytearray(encode_message(message))
    content[position % len(content)] = value
    try:
        decode_message(bytes(content))
    except ProtocolError:
        pass
