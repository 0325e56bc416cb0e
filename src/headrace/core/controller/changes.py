"""Changes of the metadata: the records of one decision, encoded as one payload of the metadata log.

A change is one entry of the log, so that a crash or a new leader keeps all of its records or none.
"""

from collections.abc import Sequence

import msgspec

from headrace.core.controller.records import Record, RecordError, decode_record, encode_record

CHANGE = 200
"""The first byte of a payload with several records; the payload of a single record begins with the record's type."""

_HEADER = bytes((CHANGE, 0))
_DECODER = msgspec.msgpack.Decoder(list[bytes])


class ChangeBuilder:
    """Encodes the records of a change as they are added, so that many records can be spread over several turns."""

    def __init__(self, metadata_version: int) -> None:
        self._metadata_version = metadata_version
        self._encoded: list[bytes] = []

    def add(self, records: Sequence[Record]) -> None:
        self._encoded += [encode_record(record, self._metadata_version) for record in records]

    def build(self) -> bytes:
        assert self._encoded, "a change has at least one record"
        if len(self._encoded) == 1:
            return self._encoded[0]
        return _HEADER + msgspec.msgpack.encode(self._encoded)


def decode_change(payload: bytes | memoryview) -> tuple[Record, ...]:
    """Return the records of one payload; raise RecordError if this release cannot read them."""
    if not payload or payload[0] != CHANGE:
        return (decode_record(payload),)
    if len(payload) < len(_HEADER) or payload[1] != _HEADER[1]:
        raise RecordError("a metadata change has an unknown version; a newer release of headrace may have written it")
    try:
        encoded = _DECODER.decode(payload[len(_HEADER) :])
    except (msgspec.MsgspecError, ValueError, RecursionError) as wrong:
        raise RecordError(f"a metadata change cannot be decoded: {wrong}") from None
    return tuple(decode_record(record) for record in encoded)
