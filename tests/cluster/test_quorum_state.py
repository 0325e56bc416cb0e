"""The file with the term and the vote: read back exactly, or refused."""

import pytest

from headrace.broker.cluster.quorum_state import decode_quorum_state, encode_quorum_state
from headrace.core.raft.entries import HardState
from headrace.core.raft.ids import DirectoryId, ReplicaKey, Term
from headrace.log.errors import CorruptFile
from headrace.model.ids import NodeId

VOTED = HardState(term=Term(7), voted_for=ReplicaKey(NodeId(3), DirectoryId("a-directory")))


@pytest.mark.parametrize("state", [HardState(), HardState(term=Term(2**31 - 1)), VOTED])
def test_a_state_is_read_as_it_was_written(state: HardState) -> None:
    assert decode_quorum_state(encode_quorum_state(state)) == state


def test_no_single_changed_bit_gives_another_state() -> None:
    content = encode_quorum_state(VOTED)
    for position in range(len(content) - 1):  # the last byte ends the line
        for bit in range(8):
            damaged = bytearray(content)
            damaged[position] ^= 1 << bit
            try:
                found = decode_quorum_state(bytes(damaged))
            except CorruptFile:
                continue
            assert found == VOTED, f"bit {bit} of byte {position}"


@pytest.mark.parametrize("content", [b"", b"{}", b"\x00" * 80, encode_quorum_state(VOTED)[:-9], b"[" * 5_000])
def test_what_is_not_a_state_is_refused(content: bytes) -> None:
    with pytest.raises(CorruptFile):
        decode_quorum_state(content)


def test_a_file_of_a_newer_release_is_refused() -> None:
    with pytest.raises(CorruptFile):
        decode_quorum_state(encode_quorum_state(VOTED).replace(b'"data_version":1', b'"data_version":2'))
