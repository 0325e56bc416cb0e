"""Messages between replicas as bytes: a format version, the kind of the message, and its fields in MessagePack.

Bytes that are no message of a correct replica raise ProtocolError.
"""

import msgspec

from headrace.core.raft.entries import LogEntry, StateSnapshot
from headrace.core.raft.ids import ReplicaKey
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
from headrace.core.raft.settings import (
    APPEND_BYTES_MAX,
    APPEND_ENTRIES_MAX,
    PROPOSAL_BYTES_MAX,
    SNAPSHOT_CHUNK_BYTES_MAX,
    VOTERS_MAX,
)
from headrace.wire.errors import ProtocolError

FORMAT_VERSION = 0
DIRECTORY_ID_CHARACTERS_MAX = 64
ENTRY_OVERHEAD_BYTES = 128
"""Names and numbers of an encoded entry."""

MESSAGE_BYTES_MAX = PROPOSAL_BYTES_MAX + APPEND_BYTES_MAX + ENTRY_OVERHEAD_BYTES * (APPEND_ENTRIES_MAX + 1)
"""The longest message: an append request with an entry of the largest size, or with many small ones."""

NUMBER_MAX = 2**62
"""Terms, indexes, positions and rounds are below it."""

_HEADER_BYTES = 2
_KINDS: tuple[type[Message], ...] = (
    VoteRequest,
    VoteResponse,
    AppendRequest,
    AppendResponse,
    SnapshotRequest,
    SnapshotResponse,
    ElectionRequest,
    JoinRequest,
    JoinResponse,
)
"""Kinds of messages by their number."""

_NUMBERS = {kind: number for number, kind in enumerate(_KINDS)}
_DECODERS = tuple(msgspec.msgpack.Decoder(kind) for kind in _KINDS)
_ENCODER = msgspec.msgpack.Encoder()


def encode_message(message: Message) -> bytes:
    return bytes((FORMAT_VERSION, _NUMBERS[type(message)])) + _ENCODER.encode(message)


def decode_message(content: bytes | memoryview) -> Message:
    """Return the message; raise ProtocolError if the bytes are damaged, too long or of a newer release."""
    if not _HEADER_BYTES <= len(content) <= MESSAGE_BYTES_MAX:
        raise ProtocolError(f"a message of {len(content)} bytes: expected {_HEADER_BYTES} to {MESSAGE_BYTES_MAX}")
    version, number = content[0], content[1]
    if version != FORMAT_VERSION or number >= len(_KINDS):
        raise ProtocolError(
            f"a message of format {version} and kind {number} is unknown; "
            "its sender may run a newer release of headrace"
        )
    try:
        message: Message = _DECODERS[number].decode(content[_HEADER_BYTES:])
    except (msgspec.MsgspecError, ValueError, RecursionError) as wrong:
        raise ProtocolError(f"a {_KINDS[number].__name__} cannot be decoded: {wrong}") from None
    if not _is_sound(message):
        raise ProtocolError(f"a {_KINDS[number].__name__} has values outside their limits")
    return message


def _is_sound(message: Message) -> bool:
    """Return whether every value of the message, and of what it contains, is within its limits."""
    return all(_is_sound_value(getattr(message, name)) for name in message.__dataclass_fields__)


def _is_sound_value(value: object) -> bool:
    match value:
        case ReplicaKey():
            return 0 <= value.node_id < 2**31 and len(value.directory_id) <= DIRECTORY_ID_CHARACTERS_MAX
        case int():
            return 0 <= value < NUMBER_MAX
        case bytes():
            return len(value) <= SNAPSHOT_CHUNK_BYTES_MAX
        case StateSnapshot():
            return 0 <= value.index < NUMBER_MAX and 0 <= value.term < NUMBER_MAX and _are_sound_voters(value.voters)
        case tuple():
            return all(isinstance(entry, LogEntry) and _is_sound_entry(entry) for entry in value)
    return value is None


def _is_sound_entry(entry: LogEntry) -> bool:
    return (
        0 < entry.index < NUMBER_MAX
        and 0 <= entry.term < NUMBER_MAX
        and len(entry.payload) <= PROPOSAL_BYTES_MAX
        and _are_sound_voters(entry.voters)
    )


def _are_sound_voters(voters: tuple[ReplicaKey, ...]) -> bool:
    return len(voters) <= VOTERS_MAX and all(map(_is_sound_value, voters))
