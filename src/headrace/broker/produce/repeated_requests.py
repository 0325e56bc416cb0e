"""The short path: a request that equals an earlier one of its connection except for the records.

A producer sends the same topic, partition, acks and timeout again and again, and only the records differ. To parse
those fields and to encode their response each time would be more than half of the cost of a small request; to compare
them is one dictionary lookup. A request that is not recognised goes through all stages, which is always correct.
"""

from struct import Struct

from headrace.broker.client_quotas import ClientQuotas
from headrace.broker.metrics import PRODUCE_KEY, Metrics
from headrace.broker.net.connection import Connection, ResponseSlot
from headrace.broker.partitions.append_result import NO_APPEND_TIME, RejectedBatch
from headrace.broker.partitions.produced_batch import append_produced
from headrace.broker.partitions.replica import Replica
from headrace.broker.produce.parse import ProduceRequest
from headrace.broker.services import TurnClock
from headrace.wire.apis import ApiKey
from headrace.wire.produce import FLEXIBLE_FROM, single_partition_layout, with_throttle_time
from headrace.wire.records.header import RECORD_COUNT
from headrace.wire.repeats import SHAPE_AT, read_repeat
from headrace.wire.scan import varint_bytes

SHAPES_PER_CONNECTION_MAX = 64
_LENGTH_BYTES = 4


class ProduceShape:
    """A request for one partition without its records, and its response without the offsets."""

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
        self, partition: Replica, request: ProduceRequest, layout: Struct, prefix: bytes, suffix: bytes
    ) -> None:
        self.partition = partition
        self.version = request.version
        self.key_and_version = ApiKey.PRODUCE << 16 | request.version
        """The first four bytes of the request, read as one number."""
        self.acks = request.acks
        self.timeout_ms = request.timeout_ms
        self.layout = layout
        self.prefix = prefix
        self.suffix = suffix
        self.size = layout.size - _LENGTH_BYTES
        self.is_transactional = request.transactional_id is not None
        """True if the request has a transactional id. Its authorization is not checked again."""
        self.error_at = 2 * _LENGTH_BYTES + len(prefix)


def remember_shape(connection: Connection, request: ProduceRequest, partition: Replica) -> None:
    """Keep the shape of a request with one record set, which begins at `connection.request_at` in its frame."""
    version = request.version
    topic, [(_, records_start, records_end)] = request.topics[0]
    response = single_partition_layout(version, topic, partition.index)
    if response is None:
        return
    shapes = connection.produce_shapes
    length_at = records_start - _LENGTH_BYTES
    if version >= FLEXIBLE_FROM:
        length_at = records_start - len(varint_bytes(records_end - records_start + 1))
    request_at = connection.request_at
    if length_at - request_at != connection.produce_shape_bytes or len(shapes) >= SHAPES_PER_CONNECTION_MAX:
        shapes.clear()
        connection.produce_shape_bytes = length_at - request_at
    shapes[bytes(request.frame[request_at + SHAPE_AT : length_at])] = ProduceShape(partition, request, *response)


class RepeatedRequests:
    def __init__(self, metrics: Metrics, turn: TurnClock, quotas: ClientQuotas) -> None:
        self._requests = metrics.requests
        self._turn = turn
        self._quotas = quotas

    def handle(self, connection: Connection, buffer: memoryview, position: int, end: int) -> int:
        """HOT. Append the records of the request at `position` and encode the response; return the end of the request.

        Return 0, with nothing appended, for a request that is not recognised and for rejected records: the request
        then goes through all stages, which find the error and answer.
        """
        repeat = read_repeat(buffer, position, end, connection.produce_shapes, connection.produce_shape_bytes)
        if repeat is None:
            return 0
        shape: ProduceShape
        shape, key_and_version, correlation_id, records_at, stop, fields, request_end = repeat
        if key_and_version != shape.key_and_version:
            return 0
        partition, acks, wall_ms = shape.partition, shape.acks, self._turn.turn_wall_ms
        base_offset, append_time = -1, NO_APPEND_TIME
        if fields is not None:
            base_offset = partition.append_next(buffer[records_at:stop], fields, acks, wall_ms)
            end_offset = base_offset + fields[RECORD_COUNT]
        if base_offset < 0:
            result = append_produced(
                partition, buffer, records_at, stop, shape.version, acks, wall_ms, shape.is_transactional
            )
            if isinstance(result, RejectedBatch):
                return 0
            base_offset, append_time, end_offset = result.base_offset, result.append_time, result.end_offset
        self._requests[PRODUCE_KEY] += 1
        suffix = shape.suffix
        if connection.metered is not None:
            self._quotas.produced(connection, request_end - position - _LENGTH_BYTES)
            if connection.muted_until_ms:
                suffix = with_throttle_time(shape.version, suffix, self._quotas.throttle_time_ms(connection))
        if acks == 0:
            partition.confirm_later(ResponseSlot(connection, None, 0), end_offset, acks, 0, 0)
            return request_end
        log_start_offset = partition.log.start_offset
        parts = shape.layout.pack(
            shape.size, correlation_id, shape.prefix, 0, base_offset, append_time, log_start_offset, suffix
        )
        slot = ResponseSlot(connection, parts, 0)
        partition.confirm_later(slot, end_offset, acks, shape.error_at, shape.timeout_ms)
        connection.responses.append(slot)
        if not connection.dirty:
            connection.mark_dirty()
        return request_end
