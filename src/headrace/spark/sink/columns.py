"""Conversions between Arrow's binary columns and numpy arrays without copying, and the row-wise join of columns."""

from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

Column: TypeAlias = "pa.Array[Any]"

_NOTHING = pa.scalar(b"", pa.binary())


def binary_parts(column: Column) -> tuple[NDArray[np.int32], NDArray[np.uint8]]:
    """Return the offsets of the rows of a binary column, with the end of the last, and the bytes they refer to."""
    buffers: list[Any] = column.buffers()
    offsets = np.frombuffer(buffers[1], dtype=np.int32, count=len(column) + 1, offset=column.offset * 4)
    return offsets, np.frombuffer(buffers[2] or b"", dtype=np.uint8)


def binary_column(offsets: NDArray[np.int32], content: Any) -> Column:
    """Return the column whose rows lie between these offsets of the content, a buffer or an array of bytes."""
    buffered: Any = offsets
    buffer = content if isinstance(content, pa.Buffer) else pa.py_buffer(content)
    return pa.Array.from_buffers(pa.binary(), len(offsets) - 1, [None, pa.py_buffer(buffered), buffer])


def lengths_of(column: Column) -> NDArray[np.int64]:
    """Return the length of each row of a binary column, -1 for a null."""
    offsets, _ = binary_parts(column)
    lengths = np.diff(offsets).astype(np.int64)
    if column.null_count:
        lengths[column.is_null().to_numpy(zero_copy_only=False)] = -1
    return lengths


def joined(*parts: Any) -> Column:
    """Concatenate the columns row by row; a null adds nothing. The rows of the result are consecutive in memory."""
    join: Any = pc.binary_join_element_wise
    column: Column = join(*parts, _NOTHING, null_handling="replace", null_replacement=b"")
    return column


def as_binary(column: Column) -> Column:
    """Return a column of text as its bytes."""
    return column if column.type == pa.binary() else column.cast(pa.binary())
