"""Transaction markers: Kafka's bytes, and what is refused."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.wire.errors import CorruptBatch
from headrace.wire.records.builder import NewRecord, build_batch
from headrace.wire.records.header import ATTRIBUTES, BASE_SEQUENCE, PRODUCER_EPOCH, PRODUCER_ID
from headrace.wire.records.markers import Marker, control_batch, is_marker, read_marker
from headrace.wire.records.reader import check_batch, records


@given(
    producer_id=st.integers(0, 2**63 - 1),
    epoch=st.integers(0, 2**15 - 1),
    commit=st.booleans(),
    coordinator_epoch=st.integers(-1, 2**31 - 1),
)
def test_a_marker_says_what_it_was_built_of(producer_id: int, epoch: int, commit: bool, coordinator_epoch: int) -> None:
    batch = control_batch(
        producer_id=producer_id,
        producer_epoch=epoch,
        commit=commit,
        coordinator_epoch=coordinator_epoch,
        timestamp=1_700_000_000_000,
    )
    fields = check_batch(batch)
    assert is_marker(fields)
    assert (fields[PRODUCER_ID], fields[PRODUCER_EPOCH], fields[BASE_SEQUENCE]) == (producer_id, epoch, -1)
    assert fields[ATTRIBUTES] == 0x30, "control and transactional, nothing else"
    assert read_marker(batch) == Marker(commit, coordinator_epoch)
    [record] = records(batch)
    assert record.key == struct.pack(">hh", 0, int(commit))
    assert record.value == struct.pack(">hi", 0, coordinator_epoch)


def control(key: bytes | None, value: bytes | None) -> bytearray:
    return build_batch([NewRecord(0, key, value)], producer_id=1, producer_epoch=0, transactional=True, control=True)


def test_later_versions_are_read_as_far_as_they_are_known() -> None:
    batch = control(struct.pack(">hhq", 3, 1, 77), struct.pack(">hiq", 5, 9, 77))
    assert read_marker(batch) == Marker(True, 9)


def test_other_kinds_end_no_transaction() -> None:
    assert read_marker(control(struct.pack(">hh", 0, 2), b"")) is None


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (None, struct.pack(">hi", 0, 1)),
        (b"\x00\x00\x00", struct.pack(">hi", 0, 1)),
        (struct.pack(">hh", -1, 1), struct.pack(">hi", 0, 1)),
        (struct.pack(">hh", 0, 1), None),
        (struct.pack(">hh", 0, 1), b"\x00\x00\x00\x00\x00"),
        (struct.pack(">hh", 0, 1), struct.pack(">hi", -2, 1)),
    ],
)
def test_one_that_says_nothing_is_corrupt(key: bytes | None, value: bytes | None) -> None:
    with pytest.raises(CorruptBatch):
        read_marker(control(key, value))
