"""The result of appending one record set to a partition."""

from msgspec import Struct

from headrace.model.errors import ErrorCode

NO_APPEND_TIME = -1
"""The append time in a response for a topic whose timestamps are the producer's."""


class AppendedBatch(Struct, frozen=True, gc=False):
    """The record set is staged for this turn's write, or was appended before if it is a retry."""

    base_offset: int
    append_time: int
    """In milliseconds; NO_APPEND_TIME unless the topic uses log append time."""
    end_offset: int
    """The offset after the last record."""


class RejectedBatch(Struct, frozen=True):
    """Nothing of the record set was staged."""

    error: ErrorCode
    keyless: list[int] = []
    """Indexes in the batch of the records without a key, when those are the reason; empty otherwise."""


AppendResult = AppendedBatch | RejectedBatch
