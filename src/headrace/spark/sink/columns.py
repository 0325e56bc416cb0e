"""Arrow's binary columns as numpy arrays, and back, without copying; and many columns joined row by row."""

from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

Column: TypeAlias = "pa.Array[Any]"

_NOTHING = pa.scalar(b"", pa.binary())


def binary_parts(column: Column) -> tuple[NDArray[np.int32], NDArray[np.uint8]]:
    """Where each row of a binary column begins, and the end of the last; and the bytes these places are in."""
    buffers: list[Any] = column.buffers()
    offsets = np.frombuffer(buffers[1], dtype=np.int32, count=len(column) + 1, offset=column.offset * 4)
    return offsets, np.frombuffer(buffers[2] or b"", dtype=np.uint8)


def binary_column(offsets: NDArray[np.int32], content: Any) -> Column:
    """The column whose rows lie between these places of the content, which is a buffer or an array of bytes."""
    places: Any = offsets
    buffer = content if isinstance(content, pa.Buffer) else pa.py_buffer(content)
    return pa.Array.from_buffers(pa.binary(), len(offsets) - 1, [None, pa.py_buffer(places), buffer])


def lengths_of(column: Column) -> NDArray[np.int64]:
    """How many bytes each row of a binary column has, -1 for a null."""
    offsets, _ = binary_parts(column)
    lengths = np.diff(offsets).astype(np.int64)
    if column.null_count:
        lengths[column.is_null().to_numpy(zero_copy_only=False)] = -1
    return lengths


def joined(*parts: Any) -> Column:
    """Row by row the bytes of all columns, a null giving none. The rows lie one behind the other in the result."""
    join: Any = pc.binary_join_element_wise
    column: Column = join(*parts, _NOTHING, null_handling="replace", null_replacement=b"")
    return column


def as_binary(column: Column) -> Column:
    """Text as its bytes."""
    return column if column.type == pa.binary() else column.cast(pa.binary())
