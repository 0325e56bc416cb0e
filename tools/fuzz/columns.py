"""Target of the columns: numpy and, where it was built, the compiled helper, held against each other and the reader.

An input is that of the batch reader, without a cut-off end.
"""

from importlib.util import find_spec

from headrace.wire.errors import ProtocolError
from headrace.wire.records.reader import Record, batches, check_batch, is_control, records
from tools.fuzz.records import INFLATED_BYTES_MAX, MENDED_BIT, batch_seeds, mend
from tools.fuzz.target import Target, require

INT64 = range(-(2**63), 2**63)
OFFSET_MAX = 2**63 - 1
_SOURCES = tuple(f"wire/columns/{name}.py" for name in ("opened", "places", "arrow", "decoding"))


def targets() -> list[Target]:
    """None where Arrow is not installed, as in the environment of the guided fuzzer."""
    if find_spec("pyarrow") is None:
        return []
    return [Target(name="batch-columns", read=read_columns, seeds=batch_seeds, sources=_SOURCES)]


def read_columns(data: bytes) -> bool:
    from headrace.wire.columns import native

    if not data:
        return False
    content = bytearray(data[1:])
    if data[0] & MENDED_BIT:
        mend(content)
    expected = _plainly(bytes(content))
    require(_as_columns(bytes(content), None) == expected, "numpy finds what the reader finds")
    helper = native.load()
    if helper is not None:
        require(_as_columns(bytes(content), helper) == expected, "the helper finds what the reader finds")
    return bool(expected)


def _plainly(content: bytes) -> list[Record] | None:
    found: list[Record] = []
    try:
        for batch in batches(content):
            fields = check_batch(batch)
            if not is_control(batch):
                found += records(batch, inflated_bytes_max=INFLATED_BYTES_MAX)
            if not 0 <= fields[0] <= fields[0] + fields[6] < OFFSET_MAX:
                return None
    except ProtocolError:
        return None
    return found if all(each.timestamp in INT64 for each in found) else None


def _as_columns(content: bytes, helper: object) -> list[Record] | None:
    from headrace.wire.columns.arrow import binary_column, headers_column
    from headrace.wire.columns.decoder import decode

    found: list[Record] = []
    try:
        for plain, places, headers in decode(
            content,
            begin=0,
            end=OFFSET_MAX,
            with_headers=True,
            helper=helper,  # type: ignore[arg-type]
            inflated_bytes_max=INFLATED_BYTES_MAX,
        ):
            assert headers is not None
            lists = headers_column(plain, places, headers).to_pylist()
            found += map(
                Record,
                places.offset.tolist(),
                places.timestamp_ms.tolist(),
                binary_column(plain, places.key_at, places.key_size).to_pylist(),
                binary_column(plain, places.value_at, places.value_size).to_pylist(),
                [tuple((each["key"], each["value"]) for each in row or ()) for row in lists],
            )
    except ProtocolError:
        return None
    return found
