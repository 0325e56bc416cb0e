"""The walk over a leader's batches: the compiled one accepts what the plain one accepts, whatever the bytes."""

import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.wire.records.batch_walk import (
    LEADER_EPOCH_MAX,
    BatchFault,
    WalkBounds,
    fault_at,
    walk_batches_plainly,
)
from headrace.wire.records.builder import NewRecord, build_batch
from headrace.wire.records.header import CRC_AT, HEADER, checksum, stamp
from tests.wire.compiled_module import compiled_module, needs_compiler

EDGES = [-(1 << 63), -(1 << 31), -2, -1, 0, 1, 2, 49, 61, (1 << 31) - 2, (1 << 31) - 1, (1 << 63) - 2, (1 << 63) - 1]
FIELD_BITS = (64, 32, 32, 8, 0, 16, 32, 64, 64, 64, 16, 32, 32)
"""Of the header's fields; the checksum is not set to a number but made right or left wrong."""


@st.composite
def record_sets(draw: st.DrawFn) -> tuple[bytearray, WalkBounds]:
    offset = draw(st.sampled_from([0, 5, 1 << 40]))
    epoch = draw(st.integers(0, 3))
    bounds = WalkBounds(
        offset,
        draw(st.sampled_from([-1, 0, epoch])),
        draw(st.sampled_from([LEADER_EPOCH_MAX, epoch + 1])),
        draw(st.sampled_from([1 << 20, 100])),
        draw(st.booleans()),
    )
    content = bytearray()
    for _ in range(draw(st.integers(0, 4))):
        count = draw(st.integers(1, 3))
        batch = build_batch(
            [NewRecord(1000 + draw(st.integers(0, 9)), None, bytes(draw(st.sampled_from([0, 10, 2000]))))] * count,
            producer_id=draw(st.sampled_from([-1, 7])),
            producer_epoch=0,
            base_sequence=0,
        )
        offset += draw(st.sampled_from([0, 0, 0, 4, -1]))
        epoch += draw(st.sampled_from([0, 0, 1]))
        stamp(batch, base_offset=max(offset, 0), leader_epoch=epoch)
        _change(draw, batch)
        content += batch
        offset += count
    return content[: len(content) - draw(st.sampled_from([0, 0, 0, 1, 30]))], bounds


def _change(draw: st.DrawFn, batch: bytearray) -> None:
    """Set a field of the header, with or without a matching checksum, or flip a bit."""
    how = draw(st.sampled_from(["nothing", "nothing", "field", "field and checksum", "bit"]))
    if how == "bit":
        at = draw(st.integers(0, len(batch) - 1))
        batch[at] ^= 1 << draw(st.integers(0, 7))
    elif how != "nothing":
        fields = list(HEADER.unpack_from(batch))
        field = draw(st.sampled_from([place for place, bits in enumerate(FIELD_BITS) if bits]))
        bound = 1 << (FIELD_BITS[field] - 1)
        fields[field] = draw(st.sampled_from([edge for edge in EDGES if -bound <= edge < bound]))
        HEADER.pack_into(batch, 0, *fields)
        if how == "field and checksum":
            batch[CRC_AT : CRC_AT + 4] = checksum(batch).to_bytes(4)


@needs_compiler
@given(record_sets())
@settings(max_examples=400, deadline=None)
def test_the_compiled_walk_is_the_plain_one(given: tuple[bytearray, WalkBounds]) -> None:
    content, bounds = given
    view = memoryview(content)
    assert compiled_module().walk_batches(view, bounds) == walk_batches_plainly(view, bounds)


@given(record_sets())
@settings(max_examples=200, deadline=None)
def test_a_walk_stops_exactly_at_a_fault(given: tuple[bytearray, WalkBounds]) -> None:
    content, bounds = given
    view = memoryview(content)
    places, noted, end = walk_batches_plainly(view, bounds)
    assert sum(size for _, _, _, size in places) == end
    at = bounds
    if places:
        epochs = [HEADER.unpack_from(view, position)[2] for position, _ in noted]
        at = bounds._replace(next_offset=places[-1][1] + 1, leader_epoch=max([bounds.leader_epoch, *epochs]))
    if end < len(view):
        fault, text = fault_at(view, end, at)
        assert fault is not BatchFault.NONE
        assert text


@needs_compiler
def test_the_compiled_walk_refuses_other_arguments() -> None:
    walk = compiled_module().walk_batches
    for arguments in ((b"",), (b"", (1, 2)), (b"", [0, 0, 0, 0, 0]), (None, WalkBounds(0, 0)), (b"", (None,) * 5)):
        with pytest.raises(TypeError):
            walk(*arguments)


@needs_compiler
def test_the_compiled_walk_keeps_no_references() -> None:
    content = build_batch([NewRecord(1, None, b"a")], producer_id=1 << 40, producer_epoch=0, base_sequence=0)
    stamp(content, base_offset=0, leader_epoch=0)
    view, bounds = memoryview(content), WalkBounds(0, -1)
    before = sys.getrefcount(view), sys.getrefcount(bounds)
    for _ in range(100):
        places, noted, end = compiled_module().walk_batches(view, bounds)
    (header,) = (header for _, header in noted)
    assert sys.getrefcount(places) == 2
    assert sys.getrefcount(header) == 3
    assert end == len(content)
    assert (sys.getrefcount(view), sys.getrefcount(bounds)) == before
