"""Produce to compacted topics: requests whose records take long to open wait while a helper opens them.

Such topics take records with keys only, so their batches are opened. Few records that inflate little are opened on the
loop. For more, the request is held with its bytes copied, because the memory they were received in is used again, and
so is every Produce request that its connection sends behind it: they are carried out in the order they came.
"""

from collections import deque
from collections.abc import Mapping
from typing import TYPE_CHECKING

from headrace.broker.api.produce import proceed
from headrace.broker.net.connection import Answer, Connection
from headrace.broker.partitions.keys import (
    NOTHING_OPENED,
    OPENED_ON_LOOP_RECORDS_MAX,
    Keyless,
    keyless_on_loop,
    keyless_places,
)
from headrace.broker.partitions.leader import LedPartition
from headrace.model.errors import ErrorCode
from headrace.wire.errors import InflationLimit
from headrace.wire.produce import TOPIC_IDS_FROM, ProduceRequest, copied
from headrace.wire.records.header import ATTRIBUTES, COMPRESSION_MASK, HEADER, HEADER_SIZE, RECORD_COUNT

if TYPE_CHECKING:
    from headrace.broker.broker import Broker

OPENING_BYTES_MAX = 64 << 20
"""Of all requests held here together. Above it they are refused for now, and their producers send them again."""
OPENING_PER_CONNECTION_MAX = 64
OPENED_ON_LOOP_SETS_MAX = 4
"""Compressed record sets of one request that are opened on the loop."""

_FOR_NOW = ErrorCode.NOT_ENOUGH_REPLICAS

_LargeSet = tuple[int, int, int]
"""(where it begins in the frame, where it ends, its topic's max.message.bytes)."""


class _Opening:
    """One request and the place of its answer. `opened` is there when a helper is through with it."""

    __slots__ = ("answer", "opened", "refusal", "request")

    def __init__(self, request: ProduceRequest, answer: Answer) -> None:
        self.request = request
        self.answer = answer
        self.opened: Mapping[int, Keyless] | None = None
        self.refusal = ErrorCode.NONE


class Openings:
    """The held requests of every connection, in order."""

    def __init__(self, broker: "Broker") -> None:
        self._broker = broker
        self._queues: dict[Connection, deque[_Opening]] = {}
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
        opening = _Opening(request, Answer(connection, None, 1 if request.acks else 0))
        if request.acks:
            connection.answers.append(opening.answer)
        if queue is None:
            queue = self._queues[connection] = deque()
        queue.append(opening)
        self.bytes += len(request.frame)
        self._open(connection, opening)
        return True

    def _open(self, connection: Connection, opening: _Opening) -> None:
        large, frame = self._large_sets(opening.request), opening.request.frame
        if not large:
            opening.opened = NOTHING_OPENED
            return

        def open_records() -> dict[int, Keyless]:
            return {start: keyless_places(frame[start:end], bytes_max) for start, end, bytes_max in large}

        def completed(opened: dict[int, Keyless] | None, _error: BaseException | None) -> None:
            opening.opened = NOTHING_OPENED if opened is None else opened
            if opened is None:  # too much is asked of the helpers
                opening.refusal = _FOR_NOW
                self._turn_away(opening.request)
            self._go_on(connection)

        self._broker.spawner.submit(open_records, completed)

    def _go_on(self, connection: Connection) -> None:
        """Carry out the first requests, as far as they are opened."""
        queue = self._queues[connection]
        while queue and (opened := queue[0].opened) is not None:
            opening = queue.popleft()
            self.bytes -= len(opening.request.frame)
            request = opening.request._replace(opened=opened)
            proceed(self._broker, connection, request, opening.refusal, opening.answer)
            connection.mark_dirty()
        if not queue:
            del self._queues[connection]

    def _large_sets(self, request: ProduceRequest) -> list[_LargeSet]:
        """The record sets that a helper has to open."""
        frame = request.frame
        large: list[_LargeSet] = []
        records = compressed = 0
        sets = self._compacted_sets(request)
        for _partition, start, _end in sets:
            fields = HEADER.unpack_from(frame, start)
            records += max(fields[RECORD_COUNT], 0)
            compressed += bool(fields[ATTRIBUTES] & COMPRESSION_MASK)
        many = records > OPENED_ON_LOOP_RECORDS_MAX or compressed > OPENED_ON_LOOP_SETS_MAX
        for partition, start, end in sets:
            bytes_max = partition.config.message_bytes_max
            if many or not _is_opened_on_loop(frame[start:end], bytes_max):
                large.append((start, end, bytes_max))
        return large

    def _turn_away(self, request: ProduceRequest) -> None:
        """What is behind a refused batch in its producer's sequence must not get ahead of it."""
        for partition, start, end in self._compacted_sets(request):
            partition.log.producers.turned_away(HEADER.unpack_from(request.frame[start:end]))

    def _compacted_sets(self, request: ProduceRequest) -> list[tuple[LedPartition, int, int]]:
        partitions = self._broker.partitions
        find_topic = partitions.by_id.get if request.version >= TOPIC_IDS_FROM else partitions.by_name.get
        found: list[tuple[LedPartition, int, int]] = []
        for topic_key, record_sets in request.topics:
            topic = find_topic(topic_key)
            for index, start, end in record_sets:
                partition = partitions.partition_of(topic, index)
                if not isinstance(partition, LedPartition) or not partition.config.cleanup_compact:
                    continue
                if start >= 0 and end - start >= HEADER_SIZE:
                    found.append((partition, start, end))
        return found


def _is_opened_on_loop(batch: memoryview, message_bytes_max: int) -> bool:
    try:
        keyless_on_loop(batch, message_bytes_max)
    except InflationLimit:
        return False
    return True
