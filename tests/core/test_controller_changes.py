"""A decision as one payload of the metadata log."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.core.controller.changes import CHANGE, ChangeBuilder, decode_change
from headrace.core.controller.records import (
    METADATA_VERSION_LATEST,
    RECORD_TYPES,
    ConfigRecord,
    FeatureLevelRecord,
    Record,
    RecordError,
    encode_record,
)


def payload(records: list[Record]) -> bytes:
    builder = ChangeBuilder(METADATA_VERSION_LATEST)
    for record in records:
        builder.add([record])
    return builder.build()


@given(st.lists(st.builds(FeatureLevelRecord, name=st.text(), level=st.integers(0, 99)), min_size=1))
def test_a_change_is_read_as_it_was_written(records: list[Record]) -> None:
    assert decode_change(payload(records)) == tuple(records)


def test_a_single_record_is_stored_as_earlier_releases_did() -> None:
    record = ConfigRecord(2, "orders", "retention.ms", "1")
    assert payload([record]) == encode_record(record)


def test_no_record_type_has_the_number_of_a_change() -> None:
    assert CHANGE not in {each.number for each in RECORD_TYPES}


@pytest.mark.parametrize(
    "content", [b"", bytes((CHANGE,)), bytes((CHANGE, 1)), bytes((CHANGE, 0)), bytes((CHANGE, 0, 7))]
)
def test_bytes_that_are_no_change_are_refused(content: bytes) -> None:
    with pytest.raises(RecordError):
        decode_change(content)


@given(st.binary(max_size=200))
def test_any_bytes_are_refused_or_read(content: bytes) -> None:
    try:
        decode_change(bytes((CHANGE, 0)) + content)
    except RecordError:
        pass
