"""The hold for record work: requests wait here while a helper checks or recompresses their records.

The batches of a compacted topic are opened to look for keys. A topic with a `compression.type` of its own has batches
of other codecs recompressed. `headrace.validate.records` has records walked. The loop does only a little of this itself
and leaves the rest to a helper. Meanwhile the request is held with its bytes copied, because the receive buffer is
reused after the turn. Every later Produce request of the connection is held too, so that requests take effect in the
order in which they arrived.
"""

from collections import deque
from collections.abc import Mapping
from typing import NamedTuple

from headrace.broker.net.connection import Connection, ResponseSlot
from headrace.broker.partitions import soundness
from headrace.broker.partitions.codecs import Stored, is_recompressed_on_loop, stored_by_helper
from headrace.broker.partitions.keys import OPENED_ON_LOOP_RECORDS_MAX, keyless_on_loop, keyless_places
from headrace.broker.partitions.record_rules import NOTHING_PREPARED, PreparedRecords
from headrace.broker.partitions.replica import Replica
from headrace.broker.produce.answer import Confirmations
from headrace.broker.produce.parse import ProduceRequest, copied, record_bytes
from headrace.broker.produce.transaction_hold import TransactionHold
from headrace.broker.services import PartitionLookup
from headrace.model.errors import ErrorCode
from headrace.ports.spawner import Lane, Spawner
from headrace.wire.errors import InflationLimit
from headrace.wire.produce import TOPIC_IDS_FROM
from headrace.wire.records.compression import Compression
from headrace.wire.records.header import ATTRIBUTES, COMPRESSION_MASK, HEADER, HEADER_SIZE, RECORD_COUNT

RECORDS_HELD_BYTES_MAX = 64 << 20
"""Bytes of all Produce requests that wait for helpers to check, decompress or compress their records. Above it requests
are rejected with a retriable error.
"""
HELD_PER_CONNECTION_MAX = 64
PREPARED_AT_ONCE_MAX = 1
"""Requests that helpers work on at the same time."""
PREPARED_ON_LOOP_SETS_MAX = 4
"""Record sets of one request that the loop decompresses, and the same number that it recompresses."""

_RETRY_LATER = ErrorCode.NOT_ENOUGH_REPLICAS
"""An error that producers of every age retry without looking for another leader."""


class _RecordSet(NamedTuple):
    """A record set whose records have to be looked at before the append, and why."""

    partition: Replica
    start: int
    end: int
    needs_keys: bool
    codec: Compression | None
    """The codec to store it under; None if it keeps its own."""
    walks: bool
    """True if its records are walked and that may take long."""


class _HeldRequest:
    """A request with its response's place. `prepared` is set when no helper has to work on it any more."""

    __slots__ = ("bytes", "error", "large_sets", "prepared", "request", "slot")

    def __init__(self, request: ProduceRequest, slot: ResponseSlot, large_sets: list[_RecordSet]) -> None:
        self.request = request
        self.slot = slot
        self.large_sets = large_sets
        self.prepared: Mapping[int, PreparedRecords] | None = None if large_sets else NOTHING_PREPARED
        self.error = ErrorCode.NONE
        self.bytes = len(request.frame)
        """Memory that it occupies: the copy of the request and the results of the helper."""


class RecordHold:
    """The held requests of every connection, in the order of their arrival."""

    def __init__(self, next_stage: TransactionHold, *, partitions: PartitionLookup, spawner: Spawner) -> None:
        self._next_stage = next_stage
        self._partitions = partitions
        self._spawner = spawner
        self._queues: dict[Connection, deque[_HeldRequest]] = {}
        self._to_prepare: deque[_HeldRequest] = deque()
        self._preparing = 0
        self.bytes = 0

    def __len__(self) -> int:
        return sum(map(len, self._queues.values()))

    def accept(self, request: ProduceRequest, slot: ResponseSlot) -> Confirmations:
        """Pass the request on, or hold it and return no confirmations."""
        connection = slot.connection
        queue = self._queues.get(connection)
        if queue is None and not self._large_sets(request):
            return self._next_stage.accept(request, slot)
        is_crowded = queue is not None and len(queue) >= HELD_PER_CONNECTION_MAX
        if is_crowded or self.bytes + record_bytes(request) > RECORDS_HELD_BYTES_MAX:
            self._note_rejected(request)
            return self._next_stage.accept(request, slot, _RETRY_LATER)
        # The short path must not append the next request before this one.
        connection.produce_shapes.clear()
        request = copied(request)
        held = _HeldRequest(request, slot, self._large_sets(request))
        if queue is None:
            queue = self._queues[connection] = deque()
        queue.append(held)
        self.bytes += held.bytes
        if held.large_sets:
            self._to_prepare.append(held)
            self._prepare_next()
        return []

    # Helpers

    def _prepare_next(self) -> None:
        while self._to_prepare and self._preparing < PREPARED_AT_ONCE_MAX:
            self._preparing += 1
            self._prepare(self._to_prepare.popleft())

    def _prepare(self, held: _HeldRequest) -> None:
        frame = held.request.frame
        wanted = [(record_set, record_set.partition.config.message_bytes_max) for record_set in held.large_sets]

        def prepare_records() -> dict[int, PreparedRecords]:
            """Recompress as many as there is memory for. The rest gets a retriable error and comes again alone."""
            prepared: dict[int, PreparedRecords] = {}
            room = RECORDS_HELD_BYTES_MAX
            for (_partition, start, end, needs_keys, codec, walks), bytes_max in wanted:
                batch = frame[start:end]
                records_error = soundness.records_error_by_helper(batch, bytes_max) if walks else None
                keyless = keyless_places(batch, bytes_max) if needs_keys else None
                stored: Stored | None = None
                if codec is not None:
                    stored = stored_by_helper(batch, codec, bytes_max) if room > 0 else _RETRY_LATER
                prepared[start] = PreparedRecords(keyless, codec, stored, records_error)
                room -= _bytes_made(prepared[start])
            return prepared

        def completed(prepared: dict[int, PreparedRecords] | None, _error: BaseException | None) -> None:
            self._preparing -= 1
            try:
                self._prepared(held, prepared)
            finally:
                self._prepare_next()

        self._spawner.submit(prepare_records, completed, Lane.RECORDS)

    def _prepared(self, held: _HeldRequest, prepared: dict[int, PreparedRecords] | None) -> None:
        connection = held.slot.connection
        made = sum(map(_bytes_made, (prepared or NOTHING_PREPARED).values()))
        is_first = self._queues[connection][0] is held
        if prepared is None or (self.bytes + made > RECORDS_HELD_BYTES_MAX and not is_first):
            held.prepared, held.error = NOTHING_PREPARED, _RETRY_LATER
            self._note_rejected(held.request)
        else:
            held.prepared = prepared
            held.bytes += made
            self.bytes += made
        self._release_first(connection)

    def _release_first(self, connection: Connection) -> None:
        """Pass on the requests at the head of the connection's queue that are prepared."""
        queue = self._queues[connection]
        while queue and (prepared := queue[0].prepared) is not None:
            held = queue.popleft()
            self.bytes -= held.bytes
            self._next_stage.accept(held.request._replace(prepared=prepared), held.slot, held.error)
        if not queue:
            del self._queues[connection]

    def _note_rejected(self, request: ProduceRequest) -> None:
        """Keep later batches of a producer's sequence from being appended before the ones that are rejected here."""
        for record_set in self._sets_with_work(request):
            fields = HEADER.unpack_from(request.frame, record_set.start)
            record_set.partition.log.producers.note_refused_batch(fields)

    # Record sets

    def _large_sets(self, request: ProduceRequest) -> list[_RecordSet]:
        """Return the record sets that a helper has to work on."""
        frame = request.frame
        sets = self._sets_with_work(request)
        if not sets:
            return sets
        records = walked = compressed = recompressed = 0
        for record_set in sets:
            fields = HEADER.unpack_from(frame, record_set.start)
            records += max(fields[RECORD_COUNT], 0) if record_set.needs_keys else 0
            walked += max(fields[RECORD_COUNT], 0) if record_set.walks else 0
            compressed += bool(fields[ATTRIBUTES] & COMPRESSION_MASK)
            recompressed += record_set.codec is not None
        if (
            records > OPENED_ON_LOOP_RECORDS_MAX
            or walked > soundness.WALKED_ON_LOOP_RECORDS_MAX
            or max(compressed, recompressed) > PREPARED_ON_LOOP_SETS_MAX
        ):
            return sets
        return [record_set for record_set in sets if not _is_quick(frame, record_set)]

    def _sets_with_work(self, request: ProduceRequest) -> list[_RecordSet]:
        partitions, frame = self._partitions, request.frame
        find_topic = partitions.by_id.get if request.version >= TOPIC_IDS_FROM else partitions.by_name.get
        size = 0
        found: list[_RecordSet] = []
        for topic_key, record_sets in request.topics:
            topic = find_topic(topic_key)
            for index, start, end in record_sets:
                partition = partitions.partition_of(topic, index)
                if not isinstance(partition, Replica) or start < 0 or end - start < HEADER_SIZE:
                    continue
                rules = partition.rules
                needs_keys, codec = rules.needs_keys, rules.codec
                if codec is not None and HEADER.unpack_from(frame, start)[ATTRIBUTES] & COMPRESSION_MASK == codec:
                    codec = None
                size += end - start
                walks = size > rules.walk_free_bytes and soundness.must_walk(
                    rules.validation, HEADER.unpack_from(frame, start)
                )
                if needs_keys or codec is not None or walks:
                    found.append(_RecordSet(partition, start, end, needs_keys, codec, walks))
        return found


def _bytes_made(prepared: PreparedRecords) -> int:
    return len(prepared.stored) if isinstance(prepared.stored, bytearray) else 0


def _is_quick(frame: memoryview, record_set: _RecordSet) -> bool:
    """Return whether the loop itself has time for the record set."""
    partition, start, end, needs_keys, codec, walks = record_set
    batch = frame[start:end]
    if walks:
        try:
            soundness.records_error_on_loop(batch, HEADER.unpack_from(batch))
        except InflationLimit:
            return False
    if needs_keys:
        try:
            keyless_on_loop(batch, partition.config.message_bytes_max)
        except InflationLimit:
            return False
    return codec is None or is_recompressed_on_loop(batch, HEADER.unpack_from(batch), codec)
