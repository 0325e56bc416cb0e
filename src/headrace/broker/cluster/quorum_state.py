"""The file `quorum-state` of the metadata folder: the term of this replica and its vote, with the field names of Kafka.

A replica that forgot its vote could vote twice in a term. So a damaged or missing file is refused, never replaced.
"""

from typing import Annotated

import msgspec

from headrace.core.raft.entries import HardState
from headrace.core.raft.ids import DirectoryId, ReplicaKey, Term
from headrace.log.errors import CorruptFile
from headrace.log.files import read_whole, write_atomically
from headrace.model.ids import NodeId
from headrace.ports.disk import Disk
from headrace.wire.checksum import crc32c

QUORUM_STATE = "quorum-state"
DATA_VERSION = 1
FILE_BYTES_MAX = 4_096
TERM_MAX = 2**31 - 1
"""The largest leader epoch that a batch can carry."""
NO_NODE = -1

_Term = Annotated[int, msgspec.Meta(ge=0, le=TERM_MAX)]


class _Fields(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    data_version: int
    leaderEpoch: _Term
    votedId: int
    votedDirectoryId: str


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    state: _Fields
    checksum: int
    """CRC32C of the state as it is written."""


_DECODER = msgspec.json.Decoder(_File)


def encode_quorum_state(hard_state: HardState) -> bytes:
    voted_for = hard_state.voted_for or ReplicaKey(NodeId(NO_NODE), DirectoryId(""))
    state = _Fields(DATA_VERSION, hard_state.term, voted_for.node_id, voted_for.directory_id)
    return msgspec.json.encode(_File(state, crc32c(msgspec.json.encode(state)))) + b"\n"


def decode_quorum_state(content: bytes) -> HardState:
    try:
        found = _DECODER.decode(content)
    except (msgspec.MsgspecError, ValueError, RecursionError) as wrong:
        raise CorruptFile(f"it cannot be decoded: {wrong}") from None
    if found.checksum != crc32c(msgspec.json.encode(found.state)):
        raise CorruptFile("its checksum is wrong")
    state = found.state
    if state.data_version != DATA_VERSION:
        raise CorruptFile(f"version {state.data_version} is unknown; a newer release of headrace may have written it")
    voted_for = ReplicaKey(NodeId(state.votedId), DirectoryId(state.votedDirectoryId))
    return HardState(term=Term(state.leaderEpoch), voted_for=voted_for if state.votedId != NO_NODE else None)


def load_quorum_state(disk: Disk, folder: str) -> HardState | None:
    """Return the stored state, or None if there is no file; raise CorruptFile if it is damaged."""
    path = f"{folder}/{QUORUM_STATE}"
    if not disk.exists(path):
        return None
    try:
        return decode_quorum_state(read_whole(disk, path, FILE_BYTES_MAX))
    except CorruptFile as wrong:
        raise CorruptFile(f"{path} is damaged: {wrong}") from None


def save_quorum_state(disk: Disk, folder: str, hard_state: HardState) -> None:
    """Replace the file durably; runs in a helper."""
    write_atomically(disk, f"{folder}/{QUORUM_STATE}", encode_quorum_state(hard_state))
