"""Produce to topics that open records: requests for which that takes long wait while a helper does it.

Compacted topics take records with keys only, so their batches are opened; topics with a `compression.type` of their own
store them under it, so that batches under another are compressed anew; `headrace.validate.records` has the records of
batches walked. Little of either is done on the loop. For more,
the request is held with its bytes copied, because the memory they were received in is used again, and so is every
Produce request that its connection sends behind it: they are carried out in the order they came.
"""

from collections import deque
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from headrace.broker.api.produce import proceed
from headrace.broker.net.connection import Answer, Connection
from headrace.broker.partitions import soundness
from headrace.broker.partitions.codecs import Stored, is_recompressed_on_loop, stored_by_helper
from headrace.broker.partitions.keys import OPENED_ON_LOOP_RECORDS_MAX, keyless_on_loop, keyless_places
from headrace.broker.partitions.leader import NOTHING_OPENED, LedPartition
from headrace.model.errors import ErrorCode
from headrace.ports.spawner import Lane
from headrace.wire.errors import InflationLimit
from headrace.wire.produce import TOPIC_IDS_FROM, OpenedRecords, ProduceRequest, copied
from headrace.wire.records.compression import Compression
from headrace.wire.records.header import ATTRIBUTES, COMPRESSION_MASK, HEADER, HEADER_SIZE, RECORD_COUNT

if TYPE_CHECKING:
    from headrace.broker.broker import Broker

OPENING_BYTES_MAX = 64 << 20
"""Of all requests held here together. Above it they are refused for now, and their producers send them again."""
OPENING_PER_CONNECTION_MAX = 64
OPENED_AT_ONCE_MAX = 1
"""Requests that helpers work on."""
OPENED_ON_LOOP_SETS_MAX = 4
"""Compressed record sets of one request that are opened on the loop, and such as are compressed there."""

_FOR_NOW = ErrorCode.NOT_ENOUGH_REPLICAS


class _RecordSet(NamedTuple):
    """One that has to be opened, and what for."""

    partition: LedPartition
    start: int
    end: int
    needs_keys: bool
    codec: Compression | None
    """To store it under; None if it stays as it is."""
    walks: bool
    """Whether its records are walked, and that may take long."""


class _Opening:
    """One request and the place of its answer. `opened` is there when a helper is through with it."""

    __slots__ = ("answer", "bytes", "connection", "large", "opened", "refusal", "request")

    def __init__(
        self, connection: Connection, request: ProduceRequest, answer: Answer, large: list[_RecordSet]
    ) -> None:
        self.connection = connection
        self.request = request
        self.answer = answer
        self.large = large
        self.opened: Mapping[int, OpenedRecords] | None = None if large else NOTHING_OPENED
        self.refusal = ErrorCode.NONE
        self.bytes = len(request.frame)
        """That it keeps: of the request, and of what a helper made of it."""


class Openings:
    """The held requests of every connection, in order."""

    def __init__(self, broker: "Broker") -> None:
        self._broker = broker
        self._queues: dict[Connection, deque[_Opening]] = {}
        self._to_open: deque[_Opening] = deque()
        self._opened_now = 0
        self.bytes = 0

    def __len__(self) -> int:
        return sum(map(len, self._queues.values()))

    def takes(self, connection: Connection, request: ProduceRequest) -> bool | ErrorCode:
        """Whether the request is held now; an error if all of it is refused."""
        queue = self._queues.get(connection)
        if queue is None and not self._large_sets(request):
            return False
        size = sum(end - start for _, record_sets in request.topics for _, start, end in record_sets if start >= 0)
        if self.bytes + size > OPENING_BYTES_MAX or (queue is not None and len(queue) >= OPENING_PER_CONNECTION_MAX):
            self._turn_away(request)
            return _FOR_NOW
        # The next requests must not be recognised and appended before this one.
        connection.produce_shapes.clear()
        request = copied(request)
        answer = Answer(connection, None, 1 if request.acks else 0)
        opening = _Opening(connection, request, answer, self._large_sets(request))
        if request.acks:
            connection.answers.append(answer)
        if queue is None:
            queue = self._queues[connection] = deque()
        queue.append(opening)
        self.bytes += opening.bytes
        if opening.large:
            self._to_open.append(opening)
            self._open_next()
        return True

    def _open_next(self) -> None:
        while self._to_open and self._opened_now < OPENED_AT_ONCE_MAX:
            self._opened_now += 1
            self._open(self._to_open.popleft())

    def _open(self, opening: _Opening) -> None:
        frame = opening.request.frame
        wanted = [
            (start, end, needs_keys, codec, walks, partition.config.message_bytes_max)
            for partition, start, end, needs_keys, codec, walks in opening.large
        ]

        def open_records() -> dict[int, OpenedRecords]:
            """As many as there is room for: the rest is refused for now, and comes again without these."""
            opened: dict[int, OpenedRecords] = {}
            room = OPENING_BYTES_MAX
            for start, end, needs_keys, codec, walks, bytes_max in wanted:
                batch = frame[start:end]
                records_error = soundness.records_error_by_helper(batch, bytes_max) if walks else None
                keyless = keyless_places(batch, bytes_max) if needs_keys else None
                stored: Stored | None = None
                if codec is not None:
                    stored = stored_by_helper(batch, codec, bytes_max) if room > 0 else _FOR_NOW
                opened[start] = OpenedRecords(keyless, codec, stored, records_error)
                room -= _bytes_made(opened[start])
            return opened

        def completed(opened: dict[int, OpenedRecords] | None, _error: BaseException | None) -> None:
            self._opened_now -= 1
            try:
                self._opened(opening, opened)
            finally:
                self._open_next()

        self._broker.spawner.submit(open_records, completed, Lane.RECORDS)

    def _opened(self, opening: _Opening, opened: dict[int, OpenedRecords] | None) -> None:
        made = sum(map(_bytes_made, (opened or NOTHING_OPENED).values()))
        is_next = self._queues[opening.connection][0] is opening
        if opened is None or (self.bytes + made > OPENING_BYTES_MAX and not is_next):  # too much is asked of us
            opening.opened, opening.refusal = NOTHING_OPENED, _FOR_NOW
            self._turn_away(opening.request)
        else:
            opening.opened = opened
            opening.bytes += made
            self.bytes += made
        self._go_on(opening.connection)

    def _go_on(self, connection: Connection) -> None:
        """Carry out the first requests, as far as they are opened."""
        queue = self._queues[connection]
        while queue and (opened := queue[0].opened) is not None:
            opening = queue.popleft()
            self.bytes -= opening.bytes
            request = opening.request._replace(opened=opened)
            proceed(self._broker, connection, request, opening.refusal, opening.answer)
            connection.mark_dirty()
        if not queue:
            del self._queues[connection]

    def _large_sets(self, request: ProduceRequest) -> list[_RecordSet]:
        """The record sets that a helper has to open."""
        frame = request.frame
        sets = self._sets_to_open(request)
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
            or max(compressed, recompressed) > OPENED_ON_LOOP_SETS_MAX
        ):
            return sets
        return [record_set for record_set in sets if not _is_opened_on_loop(frame, record_set)]

    def _turn_away(self, request: ProduceRequest) -> None:
        """What is behind a refused batch in its producer's sequence must not get ahead of it."""
        for record_set in self._sets_to_open(request):
            fields = HEADER.unpack_from(request.frame, record_set.start)
            record_set.partition.log.producers.turned_away(fields)

    def _sets_to_open(self, request: ProduceRequest) -> list[_RecordSet]:
        partitions, frame = self._broker.partitions, request.frame
        find_topic = partitions.by_id.get if request.version >= TOPIC_IDS_FROM else partitions.by_name.get
        size = 0
        found: list[_RecordSet] = []
        for topic_key, record_sets in request.topics:
            topic = find_topic(topic_key)
            for index, start, end in record_sets:
                partition = partitions.partition_of(topic, index)
                if not isinstance(partition, LedPartition) or start < 0 or end - start < HEADER_SIZE:
                    continue
                needs_keys, codec = partition.config.cleanup_compact, partition.codec
                if codec is not None and HEADER.unpack_from(frame, start)[ATTRIBUTES] & COMPRESSION_MASK == codec:
                    codec = None
                size += end - start
                walks = size > partition.walk_free_bytes and soundness.must_walk(
                    partition.validation, HEADER.unpack_from(frame, start)
                )
                if needs_keys or codec is not None or walks:
                    found.append(_RecordSet(partition, start, end, needs_keys, codec, walks))
        return found


def _bytes_made(opened: OpenedRecords) -> int:
    return len(opened.stored) if isinstance(opened.stored, bytearray) else 0


def _is_opened_on_loop(frame: memoryview, record_set: _RecordSet) -> bool:
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
