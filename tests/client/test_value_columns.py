import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.client.core.value_columns import values_of
from headrace.wire.errors import CorruptBatch
from headrace.wire.records.builder import NewRecord, build_batch
from headrace.wire.records.compression import Compression
from headrace.wire.records.header import RECORD_COUNT
from headrace.wire.records.reader import open_records, records

headers = st.lists(st.tuples(st.text(max_size=3), st.none() | st.binary(max_size=3)), max_size=2)
some_record = st.tuples(
    st.integers(0, 200), st.none() | st.binary(max_size=5), st.none() | st.binary(max_size=200), headers
)
runs = st.lists(st.tuples(some_record, st.integers(1, 90), st.integers(0, 3)), min_size=1, max_size=6)


def plain_of(new: list[NewRecord]) -> tuple[bytes, int, list[bytes | None]]:
    batch = build_batch(new, compression=Compression.NONE)
    fields, plain = open_records(batch, 1 << 30)
    return plain, fields[RECORD_COUNT], [record.value for record in records(batch)]


@given(runs)
def test_the_values_are_those_of_the_records(described: list) -> None:
    new, now = [], 1_000
    for (step, key, value, some), repeats, drift in described:
        now += step
        for number in range(repeats):
            now += drift
            own = bytes(len(value)) if value is not None and number % 7 == 0 else value
            new.append(NewRecord(now, key, own, tuple(some)))
    plain, count, values = plain_of(new)
    assert values_of(plain, count) in (values, None)


def test_long_runs_over_the_widths_of_numbers() -> None:
    new = [NewRecord(1_000 + number // 3, b"k", b"%06d" % number) for number in range(20_000)]
    plain, count, values = plain_of(new)
    assert values_of(plain, count) == values


@given(st.binary(max_size=80), st.integers(0, 20))
def test_bytes_that_are_no_records_raise(plain: bytes, count: int) -> None:
    try:
        values_of(plain, count)
    except CorruptBatch:
        return


@given(st.data())
def test_damaged_records_give_values_or_an_error(data: st.DataObject) -> None:
    plain, count, _ = plain_of([NewRecord(1_000, None, b"v" * 10) for _ in range(30)])
    place = data.draw(st.integers(0, len(plain) - 1))
    damaged = plain[:place] + bytes([data.draw(st.integers(0, 255))]) + plain[place + 1 :]
    try:
        values = values_of(damaged, count)
    except CorruptBatch:
        return
    assert values is None or len(values) == count


def test_a_wrong_count() -> None:
    plain, count, _ = plain_of([NewRecord(1, None, b"v")] * 20)
    for wrong in (count - 1, count + 1):
        with pytest.raises(CorruptBatch):
            values_of(plain, wrong)
