"""Recognising a producer's next request by the bytes it has in common with the last.

A producer sends the same topic, partition, acks and timeout again and again, and only the records differ. Reading
those fields and building their answer anew would be more than half of the cost of a small request; comparing them
is a dictionary lookup. What is not recognised takes the long way, which is always right.
"""

from struct import Struct

from headrace.broker.net.connection import Connection
from headrace.broker.partitions.leader import LedPartition
from headrace.wire.produce import FLEXIBLE_FROM, single_partition_layout

SHAPES_PER_CONNECTION_MAX = 64
_LENGTH_BYTES = 4


class ProduceShape:
    """Everything of a request for one partition but its records, and the answer to it but the offsets."""

    __slots__ = ("acks", "error_at", "layout", "partition", "prefix", "size", "suffix", "timeout_ms", "version")

    def __init__(
        self,
        partition: LedPartition,
        version: int,
        acks: int,
        timeout_ms: int,
        layout: Struct,
        prefix: bytes,
        suffix: bytes,
    ) -> None:
        self.partition = partition
        self.version = version
        self.acks = acks
        self.timeout_ms = timeout_ms
        self.layout = layout
        self.prefix = prefix
        self.suffix = suffix
        self.size = layout.size - _LENGTH_BYTES
        self.error_at = 2 * _LENGTH_BYTES + len(prefix)


def remember(
    connection: Connection,
    frame: memoryview,
    position: int,
    records_start: int,
    *,
    partition: LedPartition,
    topic: bytes,
    version: int,
    acks: int,
    timeout_ms: int,
) -> None:
    """Keep the shape of a request whose body begins at `position` and whose one record set at `records_start`."""
    answer = single_partition_layout(version, topic, partition.index)
    if answer is None:
        return
    shapes = connection.produce_shapes
    length_at = records_start - _LENGTH_BYTES
    if version >= FLEXIBLE_FROM:
        # The varint of the length ends where the records begin; its bytes but the last have the high bit set.
        length_at = records_start - 1
        while frame[length_at - 1] & 0x80:
            length_at -= 1
    if length_at - position != connection.produce_shape_bytes or len(shapes) >= SHAPES_PER_CONNECTION_MAX:
        shapes.clear()
        connection.produce_shape_bytes = length_at - position
    shapes[bytes(frame[position:length_at])] = ProduceShape(partition, version, acks, timeout_ms, *answer)
