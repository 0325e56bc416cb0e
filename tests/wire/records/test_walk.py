"""The walk over the records of a batch: the compiled one gives what Python's gives, whatever the bytes."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from headrace.wire.errors import CorruptBatch
from headrace.wire.records import header
from headrace.wire.records.builder import NewRecord, build_batch
from headrace.wire.records.reader import records
from headrace.wire.records.walk import are_sound_plainly
from tests.wire.compiled_module import compiled_module, needs_compiler
from tests.wire.records.forged import with_body

pytestmark = needs_compiler

INT64_MAX = 2**63 - 1
optional_bytes = st.none() | st.binary(max_size=200)
new_records = st.builds(
    NewRecord,
    st.integers(0, 2**62),
    optional_bytes,
    optional_bytes,
    st.lists(st.tuples(st.text(max_size=5), optional_bytes), max_size=3).map(tuple),
)


def number(value: int, *, padding: int = 0) -> bytes:
    """A zigzag number, with `padding` bytes more than it needs."""
    value = value << 1 if value >= 0 else (-value << 1) - 1
    encoded = bytearray()
    while value >= 0x80:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    for _ in range(padding):
        encoded[-1] |= 0x80
        encoded.append(0)
    return bytes(encoded)


def record(
    place: int = 0, *, time: bytes = b"\0", delta: bytes = b"", key: bytes = b"\x01", headers: bytes = b"\0"
) -> bytes:
    body = b"\0" + time + (delta or number(place)) + key + b"\x02v" + headers
    return number(len(body)) + body


def both(plain: bytes, count: int, base_timestamp: int = 0) -> bool:
    found = are_sound_plainly(plain, count, base_timestamp)
    assert compiled_module().are_sound(plain, count, base_timestamp) is found
    assert compiled_module().are_sound(memoryview(plain), count, base_timestamp) is found
    return found


@given(st.lists(new_records, min_size=1, max_size=20))
def test_what_is_built_is_sound(made: list[NewRecord]) -> None:
    batch = bytes(build_batch(made))
    assert both(batch[header.HEADER_SIZE :], len(made), header.HEADER.unpack_from(batch)[header.BASE_TIMESTAMP])


@pytest.mark.slow
@given(
    made=st.lists(new_records, min_size=1, max_size=6),
    changes=st.lists(st.tuples(st.integers(0, 10_000), st.integers(0, 255)), max_size=3),
    cut=st.integers(0, 20),
    more=st.binary(max_size=4),
    count=st.integers(-1, 8),
    base_timestamp=st.sampled_from([0, -1, INT64_MAX, -INT64_MAX - 1]),
)
def test_both_agree_on_damaged_records(
    made: list[NewRecord],
    changes: list[tuple[int, int]],
    cut: int,
    more: bytes,
    count: int,
    base_timestamp: int,
) -> None:
    plain = bytearray(build_batch(made)[header.HEADER_SIZE :])
    for position, byte in changes:
        plain[position % len(plain)] = byte
    both(bytes(plain[: len(plain) - cut]) + more, count if count else len(made), base_timestamp)


@given(st.binary(max_size=60), st.integers(-1, 10))
@example(b"", 0)
@example(b"\xff" * 30, 1)
def test_both_agree_on_any_bytes(plain: bytes, count: int) -> None:
    both(plain, count)


@given(st.lists(st.sampled_from([0, 1, 2, 0x7F, 0x80, 0xFF, 12, 14, 16, 20]), max_size=40), st.integers(1, 3))
def test_both_agree_on_bytes_that_resemble_records(plain: list[int], count: int) -> None:
    both(bytes(plain), count)


@given(st.lists(new_records, min_size=1, max_size=6), st.data())
def test_what_is_sound_can_be_read(made: list[NewRecord], data: st.DataObject) -> None:
    plain = bytearray(build_batch(made)[header.HEADER_SIZE :])
    plain[data.draw(st.integers(0, len(plain) - 1))] = data.draw(st.integers(0, 255))
    batch = with_body(bytes(plain), len(made))
    if both(bytes(plain), len(made)):
        assert [each.offset for each in records(batch)] == list(range(len(made)))


@pytest.mark.parametrize(
    ("plain", "count", "sound"),
    [
        (record(), 1, True),
        (record() + record(1), 2, True),
        (record() + record(), 2, False),
        (record(1) + record(0), 2, False),
        (record(), 0, False),
        (record() + b"\0", 1, False),
        (record(delta=number(0, padding=4)), 1, True),
        (record(delta=number(0, padding=5)), 1, False),
        (record(time=number(5, padding=8)), 1, True),
        (record(time=number(5, padding=9)), 1, True),
        (record(time=number(5, padding=10)), 1, False),
        (record(time=number(INT64_MAX)), 1, True),
        (record(key=number(-2)), 1, True),
        (record(key=number(2**31)), 1, False),
        (record(headers=number(1) + number(0) + number(-1)), 1, True),
        (record(headers=number(1) + number(-1) + number(-1)), 1, False),
        (record(headers=number(2) + number(0) + number(-1)), 1, False),
        (record(headers=number(-1)), 1, False),
        (record(headers=number(2**31 - 1)), 1, False),
    ],
)
def test_rules(plain: bytes, count: int, sound: bool) -> None:
    assert both(plain, count) is sound


def test_a_time_beyond_64_bits() -> None:
    assert both(record(time=number(1)), 1, INT64_MAX - 1)
    assert not both(record(time=number(1)), 1, INT64_MAX)
    assert not both(record(time=number(-1)), 1, -INT64_MAX - 1)


def test_every_cut_of_a_batch_is_found() -> None:
    plain = bytes(build_batch([NewRecord(1, b"k", b"v" * 100, (("h", b"1"),))] * 3)[header.HEADER_SIZE :])
    assert both(plain, 3)
    assert not any(both(plain[:size], 3) for size in range(len(plain)))
    with pytest.raises(CorruptBatch):
        list(records(with_body(plain[:-1], 3)))
