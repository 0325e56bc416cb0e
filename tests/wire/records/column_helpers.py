"""Both decoders of columns, and what they give in the shape of the plain reader's records."""

import ctypes
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

from headrace.wire.columns.arrow import binary_column, headers_column
from headrace.wire.columns.decoder import decode
from headrace.wire.columns.native import Helper
from headrace.wire.columns.opened import Hides, hides_control
from headrace.wire.records.reader import Record
from tools import build_native

OFFSET_MAX = 2**63 - 1


@cache
def compiled_helper() -> Helper:
    """Built for this run, whether or not the environment has one."""
    library = build_native.build(build_native.PLACES, Path(mkdtemp(prefix="headrace-native-")) / "_places.so")
    helper = Helper(ctypes.CDLL(str(library)))
    library.unlink()
    library.parent.rmdir()
    return helper


def decoded_records(
    data: bytes | bytearray,
    helper: Helper | None,
    *,
    begin: int = 0,
    end: int = OFFSET_MAX,
    hides: Hides = hides_control,
    group_bytes: int = 4096,
) -> list[Record]:
    """Every record of the columns, built the slow way."""
    found: list[Record] = []
    for plain, places, headers in decode(
        data, begin=begin, end=end, hides=hides, with_headers=True, helper=helper, group_bytes=group_bytes
    ):
        assert headers is not None
        keys = binary_column(plain, places.key_at, places.key_size).to_pylist()
        values = binary_column(plain, places.value_at, places.value_size).to_pylist()
        lists = headers_column(plain, places, headers)
        lists.validate(full=True)
        for row in zip(
            places.offset.tolist(), places.timestamp_ms.tolist(), keys, values, lists.to_pylist(), strict=True
        ):
            pairs = tuple((each["key"], each["value"]) for each in row[4] or ())
            found.append(Record(*row[:4], pairs))
    return found
