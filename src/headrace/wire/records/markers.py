"""Write and read transaction markers: the control batch that ends a producer's transaction on a partition.

A marker is one record. Its key has a version and the type (abort 0, commit 1), its value a version and the epoch of the
coordinator that wrote it. Later versions may add fields, which are ignored.
"""

from struct import Struct
from typing import NamedTuple

from headrace.wire.errors import CorruptBatch
from headrace.wire.records.builder import BatchBuilder
from headrace.wire.records.header import ATTRIBUTES, CONTROL_BIT, HeaderFields
from headrace.wire.records.reader import ControlType, records

_VERSION = 0
_KEY = Struct(">hh")
_VALUE = Struct(">hi")


class Marker(NamedTuple):
    commit: bool
    coordinator_epoch: int


def control_batch(
    *, producer_id: int, producer_epoch: int, commit: bool, coordinator_epoch: int, timestamp: int
) -> bytearray:
    """Return the batch that commits or aborts the producer's records in a partition."""
    builder = BatchBuilder()
    kind = ControlType.COMMIT if commit else ControlType.ABORT
    builder.append(timestamp, _KEY.pack(_VERSION, kind), _VALUE.pack(_VERSION, coordinator_epoch))
    return builder.build(producer_id=producer_id, producer_epoch=producer_epoch, transactional=True, control=True)


def read_marker(batch: bytes | bytearray | memoryview) -> Marker | None:
    """Decode a control batch; None for a type that ends no transaction, CorruptBatch for an undecodable one."""
    for record in records(batch):
        if record.key is None or len(record.key) < _KEY.size:
            raise CorruptBatch("the key of a control record is too short")
        version, kind = _KEY.unpack_from(record.key)
        if version < 0:
            raise CorruptBatch(f"a control record has the unknown version {version}")
        if kind not in (ControlType.ABORT, ControlType.COMMIT):
            return None
        if record.value is None or len(record.value) < _VALUE.size:
            raise CorruptBatch("the value of a transaction marker is too short")
        version, coordinator_epoch = _VALUE.unpack_from(record.value)
        if version < 0:
            raise CorruptBatch(f"a transaction marker has the unknown version {version}")
        return Marker(kind == ControlType.COMMIT, coordinator_epoch)
    return None


def is_marker(fields: HeaderFields) -> bool:
    """Return whether the batch is a control batch, or was one before compaction emptied it."""
    return bool(fields[ATTRIBUTES] & CONTROL_BIT)
