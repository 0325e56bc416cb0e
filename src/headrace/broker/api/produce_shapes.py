"""Recognising a producer's next request by the bytes it has in common with the last.

A producer sends the same topic, partition, acks and timeout again and again, and only the records differ. Reading
those fields and building their answer anew would be more than half of the cost of a small request; comparing them
is a dictionary lookup. What is not recognised takes the long way, which is always right.
"""

from struct import Struct

from headrace.broker.net.connection import Connection
from headrace.broker.partitions.leader import LedPartition
from headrace.wire.apis import ApiKey
from headrace.wire.produce import FLEXIBLE_FROM, single_partition_layout
from headrace.wire.repeats import SHAPE_AT
from headrace.wire.scan import varint_bytes

SHAPES_PER_CONNECTION_MAX = 64
_LENGTH_BYTES = 4


class ProduceShape:
    """Everything of a request for one partition but its records, and the answer to it but the offsets."""

    __slots__ = (
        "acks",
        "error_at",
        "is_transactional",
        "key_and_version",
        "layout",
        "partition",
        "prefix",
        "size",
        "suffix",
        "timeout_ms",
        "version",
    )

    def __init__(
        self,
        partition: LedPartition,
        version: int,
        acks: int,
        timeout_ms: int,
        layout: Struct,
        prefix: bytes,
        suffix: bytes,
        *,
        is_transactional: bool,
    ) -> None:
        self.partition = partition
        self.version = version
        self.key_and_version = ApiKey.PRODUCE << 16 | version
        """As they stand at the begin of the request, read as one number."""
        self.acks = acks
        self.timeout_ms = timeout_ms
        self.layout = layout
        self.prefix = prefix
        self.suffix = suffix
        self.size = layout.size - _LENGTH_BYTES
        self.is_transactional = is_transactional
        """Whether it names a transactional id; who may write within transactions is not asked again."""
        self.error_at = 2 * _LENGTH_BYTES + len(prefix)


def remember(
    connection: Connection,
    frame: memoryview,
    records_start: int,
    records_end: int,
    *,
    partition: LedPartition,
    topic: bytes,
    version: int,
    acks: int,
    timeout_ms: int,
    is_transactional: bool,
) -> None:
    """Keep the shape of the request that begins at `connection.request_at`, its one record set at `records_start`."""
    answer = single_partition_layout(version, topic, partition.index)
    if answer is None:
        return
    shapes = connection.produce_shapes
    length_at = records_start - _LENGTH_BYTES
    if version >= FLEXIBLE_FROM:
        length_at = records_start - len(varint_bytes(records_end - records_start + 1))
    request_at = connection.request_at
    if length_at - request_at != connection.produce_shape_bytes or len(shapes) >= SHAPES_PER_CONNECTION_MAX:
        shapes.clear()
        connection.produce_shape_bytes = length_at - request_at
    shapes[bytes(frame[request_at + SHAPE_AT : length_at])] = ProduceShape(
        partition, version, acks, timeout_ms, *answer, is_transactional=is_transactional
    )
