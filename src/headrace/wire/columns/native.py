"""The compiled helper, if it was built: it locates the same positions as numpy, several times faster for small records.

It is loaded by ctypes, so a call handles the whole group and releases the interpreter lock.
"""

import ctypes
from functools import cache
from typing import Any

import numpy

from headrace.wire.columns.opened import BatchRow, Group, Int64s
from headrace.wire.columns.places import Places
from headrace.wire.compiled import column_library
from headrace.wire.errors import CorruptBatch

_COUNT = BatchRow._fields.index("record_count")
_REFUSED = "a record does not match its declared size"


class Helper:
    def __init__(self, library: Any) -> None:
        self._places = library.headrace_find_places
        self._headers = library.headrace_find_headers
        self._places.restype = self._headers.restype = ctypes.c_int64
        pointer, number = ctypes.c_void_p, ctypes.c_int64
        self._places.argtypes = (pointer, pointer, number, pointer, number)
        self._headers.argtypes = (pointer, pointer, pointer, pointer, number, pointer, number)

    def find_places(self, group: Group) -> Places:
        """Locate fields as `places.find_places` does."""
        plain = numpy.frombuffer(group.plain, numpy.uint8)
        rows = numpy.ascontiguousarray(group.rows)
        assert (rows[:, 0] >= 0).all()
        assert (rows[:, 1] <= len(plain)).all()
        capacity = int(rows[:, _COUNT].sum())
        found = numpy.empty((len(Places._fields), capacity), numpy.int64)
        count = self._places(plain.ctypes.data, rows.ctypes.data, len(rows), found.ctypes.data, capacity)
        if count != capacity:
            raise CorruptBatch(_REFUSED)
        return Places(*found)

    def find_headers(self, group: Group, places: Places) -> Int64s:
        """Locate headers as `places.find_headers` does."""
        plain = numpy.frombuffer(group.plain, numpy.uint8)
        at, counts, ends = (
            numpy.ascontiguousarray(each) for each in (places.headers_at, places.header_count, places.end)
        )
        capacity = int(counts.sum())
        found = numpy.empty((capacity, 4), numpy.int64)
        count = self._headers(
            plain.ctypes.data,
            at.ctypes.data,
            counts.ctypes.data,
            ends.ctypes.data,
            len(at),
            found.ctypes.data,
            capacity,
        )
        if count != capacity:
            raise CorruptBatch(_REFUSED)
        return found


@cache
def load() -> Helper | None:
    """Load the helper; None if it was not built or is for another kind of machine."""
    library = column_library()
    try:
        return None if library is None else Helper(library)
    except AttributeError:
        return None
