"""Entry point of this package: decode fetched bytes into groups with the positions of their fields.

`helper` is the result of `native.load()`: the compiled helper, or None to use numpy.
"""

from collections.abc import Iterator
from typing import NamedTuple

from headrace.wire.columns.arrow import within
from headrace.wire.columns.native import Helper
from headrace.wire.columns.opened import GROUP_BYTES, Group, Hides, Int64s, hides_control, open_groups
from headrace.wire.columns.places import Places, find_headers, find_places
from headrace.wire.records.compression import INFLATED_BYTES_MAX


class Decoded(NamedTuple):
    plain: bytes | memoryview
    places: Places
    headers: Int64s | None
    """A row per header of all records, if headers were requested."""


def decode(
    data: bytes | bytearray | memoryview,
    *,
    begin: int,
    end: int,
    hides: Hides = hides_control,
    with_headers: bool = False,
    helper: Helper | None = None,
    group_bytes: int = GROUP_BYTES,
    inflated_bytes_max: int = INFLATED_BYTES_MAX,
) -> Iterator[Decoded]:
    """Yield the records with offsets in the range, in groups of a bounded size; damage raises `CorruptBatch`."""
    for group in open_groups(
        data, begin=begin, end=end, hides=hides, group_bytes=group_bytes, inflated_bytes_max=inflated_bytes_max
    ):
        yield _decoded(group, begin, end, with_headers, helper)


def _decoded(group: Group, begin: int, end: int, with_headers: bool, helper: Helper | None) -> Decoded:
    every = find_places(group) if helper is None else helper.find_places(group)
    places = within(every, begin, end)
    headers = None
    if with_headers:
        headers = find_headers(bytes(group.plain), places) if helper is None else helper.find_headers(group, places)
    return Decoded(group.plain, places, headers)
