"""The two decoders of columns against the plain reader: the same records, or the same refusal, for any bytes."""

import shutil
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy
import pyarrow
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from headrace.client.core.partition_reader import AbortedTransactions
from headrace.wire.columns.arrow import text_column, timestamp_column
from headrace.wire.columns.native import Helper
from headrace.wire.columns.opened import hides_control
from headrace.wire.errors import ProtocolError
from headrace.wire.records import header
from headrace.wire.records.builder import NewRecord, build_batch, encode_varint
from headrace.wire.records.compression import Compression
from headrace.wire.records.markers import control_batch
from headrace.wire.records.reader import Record, batches, check_batch, records
from tests.wire.records.column_helpers import compiled_helper, decoded_records
from tests.wire.records.forged import with_body, with_header

INT64 = range(-(2**63), 2**63)

byte_strings = st.none() | st.binary(max_size=30) | st.integers(64, 300).map(bytes) | st.just(bytes(20_000))
header_lists = st.lists(st.tuples(st.text(max_size=10), st.none() | st.binary(max_size=10)), max_size=3)
record_lists = st.lists(
    st.builds(
        NewRecord,
        timestamp=st.integers(0, 2**40) | st.integers(-1, 300),
        key=byte_strings,
        value=byte_strings,
        headers=st.just(()) | header_lists.map(tuple),
    ),
    min_size=1,
    max_size=20,
)
equal_records = st.builds(
    lambda count, size, step: [NewRecord(each * step, b"key", bytes(size)) for each in range(count)],
    st.integers(1, 400),
    st.sampled_from([0, 3, 60, 100, 1000]),
    st.sampled_from([0, 1, 100]),
)


@pytest.fixture(
    scope="module",
    params=[
        "numpy",
        pytest.param(
            "compiled",
            marks=pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler: install gcc or clang"),
        ),
    ],
)
def helper(request: pytest.FixtureRequest) -> Helper | None:
    return compiled_helper() if request.param == "compiled" else None


def read_plainly(data: bytes, begin: int, end: int, aborted: list[tuple[int, int]] | None) -> list[Record]:
    """Return what a consumer makes of a fetch, batch by batch and record by record."""
    hides = AbortedTransactions(aborted).hides if aborted is not None else hides_control
    found: list[Record] = []
    for batch in batches(data):
        fields = check_batch(batch)
        last_offset = fields[header.BASE_OFFSET] + fields[header.LAST_OFFSET_DELTA]
        if not hides(batch, fields) and last_offset >= begin and fields[header.BASE_OFFSET] < end:
            found += [each for each in records(batch) if begin <= each.offset < end]
    return found


def read_as_columns(
    data: bytes, begin: int, end: int, aborted: list[tuple[int, int]] | None, helper: Helper | None
) -> list[Record]:
    hides = AbortedTransactions(aborted).hides if aborted is not None else hides_control
    return decoded_records(data, helper, begin=begin, end=end, hides=hides)


def outcome(read: Callable[[], list[Record]]) -> list[Record] | str:
    try:
        found = read()
    except ProtocolError:
        return "refused"
    fits = all(each.offset in INT64 and each.timestamp in INT64 for each in found)
    return found if fits else "refused"


def build_all(lists: list[list[NewRecord]], codecs: list[int], first_offset: int) -> bytearray:
    data, offset = bytearray(), first_offset
    for new, codec in zip(lists, codecs, strict=False):
        data += build_batch(new, base_offset=offset, compression=codec)
        offset += len(new)
    return data


@pytest.mark.slow
@given(
    lists=st.lists(record_lists | equal_records, min_size=1, max_size=5),
    codecs=st.lists(st.sampled_from(list(Compression)), min_size=5, max_size=5) | st.just([0] * 5),
    first_offset=st.integers(0, 2**60),
    skipped=st.integers(0, 30),
    wanted=st.integers(0, 1000),
)
def test_generated_batches_are_read_alike(
    helper: Helper | None,
    lists: list[list[NewRecord]],
    codecs: list[int],
    first_offset: int,
    skipped: int,
    wanted: int,
) -> None:
    data = bytes(build_all(lists, codecs, first_offset))
    begin, end = first_offset + skipped, first_offset + wanted
    expected = read_plainly(data, begin, end, None)
    assert read_as_columns(data, begin, end, None, helper) == expected


@given(
    new=record_lists | equal_records,
    codec=st.sampled_from(list(Compression)),
    flips=st.lists(st.tuples(st.integers(0, 30_000), st.integers(0, 255)), max_size=3),
    cut=st.integers(0, 40),
    lies=st.dictionaries(
        st.sampled_from(["RECORD_COUNT", "LAST_OFFSET_DELTA", "BASE_TIMESTAMP", "MAX_TIMESTAMP", "ATTRIBUTES"]),
        st.sampled_from([0, 1, 2, 5, 7, 8, 16, 32, 2**15 - 1]) | st.integers(-(2**15), 2**15 - 1),
        max_size=1,
    ),
)
def test_damage_below_a_right_checksum_is_read_or_refused_alike(
    helper: Helper | None,
    new: list[NewRecord],
    codec: int,
    flips: list[tuple[int, int]],
    cut: int,
    lies: dict[str, int],
) -> None:
    batch = build_batch(new, compression=codec)
    damaged = bytearray(batch[: max(header.HEADER_SIZE, len(batch) - cut)])
    for place, byte in flips:
        if len(damaged) > header.HEADER_SIZE:
            damaged[header.HEADER_SIZE + place % (len(damaged) - header.HEADER_SIZE)] = byte
    data = bytes(with_header(damaged, LENGTH=len(damaged) - header.LOG_OVERHEAD, **lies))
    expected = outcome(lambda: read_plainly(data, 0, 2**62, None))
    assert outcome(partial(read_as_columns, data, 0, 2**62, None, helper)) == expected


@given(body=st.binary(max_size=80), count=st.integers(0, 12))
@example(body=encode_varint(16) + b"\x00" + b"\xff" * 9 + b"\x01" + b"\x00\x01\x01\x00", count=1)
@example(body=encode_varint(16) + b"\x00" + b"\xff" * 9 + b"\x7f" + b"\x00\x01\x01\x00", count=1)
def test_any_body_is_read_or_refused_alike(helper: Helper | None, body: bytes, count: int) -> None:
    data = bytes(with_body(body, count))
    expected = outcome(lambda: read_plainly(data, 0, 2**62, None))
    assert outcome(partial(read_as_columns, data, 0, 2**62, None, helper)) == expected


@given(data=st.binary(max_size=200), cut=st.integers(1, 90))
def test_garbage_and_cut_batches_are_refused(helper: Helper | None, data: bytes, cut: int) -> None:
    whole = bytes(build_batch([NewRecord(1, b"k", b"v" * 100)]))
    for bad in (whole + data, whole[:-cut], data):
        if bad and bad != whole:
            expected = outcome(partial(read_plainly, bad, 0, 2**62, None))
            assert outcome(partial(read_as_columns, bad, 0, 2**62, None, helper)) == expected


def test_every_flipped_bit_is_seen(helper: Helper | None) -> None:
    whole = bytes(build_batch([NewRecord(5, b"key", b"value", [("name", b"x")])]))
    for place in range(header.CRC_AT, len(whole)):
        damaged = bytearray(whole)
        damaged[place] ^= 1 << place % 8
        with pytest.raises(ProtocolError, match="checksum"):
            decoded_records(damaged, helper)


@given(
    steps=st.lists(
        st.tuples(st.integers(1, 3), st.sampled_from(["records", "commit", "abort", "plain"])), min_size=1, max_size=25
    )
)
def test_transactions_are_read_alike(helper: Helper | None, steps: list[tuple[int, str]]) -> None:
    """Producers write, commit and abort in any order; both isolation levels are compared."""
    data = bytearray()
    offset = 0
    opened: dict[Any, Any] = {}
    aborted: list[Any] = []
    for producer, step in steps:
        if step in ("records", "plain"):
            is_open = step == "records"
            new = [NewRecord(each, b"%d" % producer, b"%d" % each) for each in range(producer)]
            data += build_batch(new, base_offset=offset, producer_id=producer if is_open else -1, transactional=is_open)
            if is_open:
                opened.setdefault(producer, offset)
            offset += len(new)
            continue
        marker = control_batch(
            producer_id=producer, producer_epoch=0, commit=step == "commit", coordinator_epoch=0, timestamp=7
        )
        header.stamp(marker, base_offset=offset, leader_epoch=0)
        data += marker
        offset += 1
        if producer in opened:
            first = opened.pop(producer)
            if step == "abort":
                aborted.append((producer, first))
    for list_ in (aborted, None):
        expected = read_plainly(bytes(data), 0, offset, list_)
        assert read_as_columns(bytes(data), 0, offset, list_, helper) == expected


def test_the_time_of_the_log_is_given_to_all_records(helper: Helper | None) -> None:
    batch = build_batch([NewRecord(each, None, b"v") for each in range(3)])
    header.stamp_append_time(batch, 77_000)
    assert [each.timestamp for each in decoded_records(batch, helper)] == [77_000] * 3


def test_times_that_microseconds_cannot_hold_stay_within_them() -> None:
    wanted = numpy.array([-(2**63), -1, 0, 1_500, 2**63 - 1])
    assert timestamp_column(wanted).view(pyarrow.int64()).to_pylist() == [
        -9223372036854775000,
        -1_000,
        0,
        1_500_000,
        9223372036854775000,
    ]


def test_names_of_headers_that_are_not_text_are_given_all_the_same(helper: Helper | None) -> None:
    name = b"\xff\xfe"
    tail = encode_varint(1) + encode_varint(2) + name + encode_varint(-1)
    body = b"\x00\x00\x00" + encode_varint(-1) + encode_varint(-1) + tail
    (record,) = decoded_records(with_body(encode_varint(len(body)) + body, 1), helper)
    assert record.headers == (("��", None),)


def test_text_is_taken_over_as_it_is() -> None:
    assert text_column(pyarrow.array([b"a", None], pyarrow.binary())).to_pylist() == ["a", None]
