import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.client.core import record_layouts
from headrace.client.core.record_layouts import LAYOUTS_MAX, Columns, columns_of, keys_of, values_of
from headrace.wire.errors import CorruptBatch
from headrace.wire.records.builder import NewRecord, build_batch
from headrace.wire.records.compression import Compression
from headrace.wire.records.header import LAST_OFFSET_DELTA, RECORD_COUNT, HeaderFields, stamp_append_time
from headrace.wire.records.reader import Record, open_records, records

headers = st.lists(st.tuples(st.text(max_size=3), st.none() | st.binary(max_size=3)), max_size=2)
some_record = st.tuples(
    st.integers(0, 200), st.none() | st.binary(max_size=5), st.none() | st.binary(max_size=200), headers
)
runs = st.lists(st.tuples(some_record, st.integers(1, 90), st.integers(0, 3)), min_size=1, max_size=6)


@pytest.fixture(autouse=True)
def _shapes(monkeypatch):
    monkeypatch.setattr(record_layouts, "_LAYOUTS", record_layouts._RecordLayouts())


def opened(new: list[NewRecord], *, append_time_ms: int | None = None) -> tuple[HeaderFields, bytes, list[Record]]:
    batch = bytearray(build_batch(new, compression=Compression.NONE))
    if append_time_ms is not None:
        stamp_append_time(batch, append_time_ms)
    return *open_records(batch, 1 << 30), list(records(batch))


def column_by_column(found: list[Record]) -> Columns:
    return Columns(*([record[place] for record in found] for place in range(5)))


def learned(fields: HeaderFields, plain: bytes, runs_max: int = 8) -> Columns | None:
    """The columns, read as often as layouts can become known."""
    columns = None
    for _ in range(2 * runs_max):
        columns = columns_of(fields, plain)
    return columns


@given(runs)
def test_the_columns_are_those_of_the_records(described: list) -> None:
    new, now = [], 1_000
    for (step, key, value, some), repeats, drift in described:
        now += step
        for number in range(repeats):
            now += drift
            own = bytes(len(value)) if value is not None and number % 7 == 0 else value
            new.append(NewRecord(now, key, own, tuple(some)))
    fields, plain, found = opened(new)
    expected = column_by_column(found)
    assert learned(fields, plain) in (expected, None)
    for shown in (plain, memoryview(plain)):
        assert values_of(shown, len(found)) in (expected.values, None)
        assert keys_of(shown, len(found)) in (expected.keys, None)


@pytest.mark.slow
def test_long_runs_over_the_widths_of_numbers() -> None:
    fields, plain, found = opened([NewRecord(1_000 + n * 3, b"k", b"%06d" % n, (("h", b"x"),)) for n in range(20_000)])
    columns = learned(fields, plain, runs_max=12)
    assert columns == column_by_column(found)
    assert values_of(plain, len(found)) == columns.values
    assert keys_of(plain, len(found)) == columns.keys


@pytest.mark.parametrize(("key", "value"), [(None, b"v"), (b"k", None), (None, None), (b"", b"")])
def test_nulls_and_times_of_the_log(key: bytes | None, value: bytes | None) -> None:
    fields, plain, found = opened([NewRecord(5 - n, key, value) for n in range(40)], append_time_ms=777)
    columns = learned(fields, plain)
    assert columns == column_by_column(found)
    assert set(columns.timestamps) == {777}


def test_a_shape_is_learned_when_it_comes_again() -> None:
    fields, plain, found = opened([NewRecord(1, None, b"v" * 50)] * 20)
    assert values_of(plain, 20) is None
    assert values_of(plain, 20) == [record.value for record in found]
    assert columns_of(fields, plain) is not None


def test_shapes_that_never_come_again_are_forgotten() -> None:
    for size in range(2 * LAYOUTS_MAX + 5):
        _fields, plain, _found = opened([NewRecord(1, None, bytes(size))] * 10)
        assert values_of(plain, 10) is None
    assert len(record_layouts._LAYOUTS._known) <= LAYOUTS_MAX


def test_mixed_sizes_are_not_taken_for_runs() -> None:
    _fields, plain, _found = opened([NewRecord(1, None, bytes(n % 5)) for n in range(50)])
    assert [values_of(plain, 50) for _ in range(3)] == [None] * 3
    assert not record_layouts._LAYOUTS._known


@given(st.binary(max_size=80), st.integers(0, 20))
def test_bytes_that_are_no_records_raise(plain: bytes, count: int) -> None:
    for _ in range(3):
        try:
            values_of(plain, count)
        except CorruptBatch:
            return


@given(st.data())
def test_damaged_records_give_columns_or_an_error(data: st.DataObject) -> None:
    fields, plain, _found = opened([NewRecord(1_000, None, b"v" * 10) for _ in range(30)])
    learned(fields, plain)
    place = data.draw(st.integers(0, len(plain) - 1))
    damaged = plain[:place] + bytes([data.draw(st.integers(0, 255))]) + plain[place + 1 :]
    try:
        columns = columns_of(fields, damaged)
        values = values_of(damaged, 30)
    except CorruptBatch:
        return
    assert values is None or len(values) == 30
    assert columns is None or set(map(len, columns)) == {30}


def test_offsets_outside_of_the_batch() -> None:
    fields, plain, _found = opened([NewRecord(1, None, b"v")] * 30)
    learned(fields, plain)
    smaller: list[int] = list(fields)
    smaller[LAST_OFFSET_DELTA] = 20
    with pytest.raises(CorruptBatch, match="does not match its declared size"):
        columns_of(tuple(smaller), plain)


def test_a_wrong_count() -> None:
    fields, plain, _found = opened([NewRecord(1, None, b"v")] * 20)
    learned(fields, plain)
    for wrong in (fields[RECORD_COUNT] - 1, fields[RECORD_COUNT] + 1):
        with pytest.raises(CorruptBatch):
            values_of(plain, wrong)


def test_a_batch_that_compaction_left_without_records() -> None:
    """It is kept for the numbers of its producer, and comes behind batches whose layout is known."""
    fields, plain, _found = opened([NewRecord(1, b"k", b"v")] * 20)
    learned(fields, plain)
    emptied: list[int] = list(fields)
    emptied[RECORD_COUNT] = 0
    assert columns_of(tuple(emptied), b"") == Columns([], [], [], [], [])
    assert values_of(b"", 0) == keys_of(b"", 0) == []
