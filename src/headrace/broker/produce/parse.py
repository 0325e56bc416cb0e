"""The parse stage: a Produce request as offsets into its frame. Only the names are copied."""

from collections.abc import Mapping
from typing import NamedTuple

from headrace.broker.partitions.record_rules import NOTHING_PREPARED, PreparedRecords
from headrace.wire.produce import PartitionSpan, TopicSpans, scan_request


class ProduceRequest(NamedTuple):
    """A request that does not take the short path. The spans in `topics` are offsets into `frame`."""

    frame: memoryview
    version: int
    correlation_id: int
    transactional_id: bytes | None
    acks: int
    timeout_ms: int
    topics: list[TopicSpans]
    prepared: Mapping[int, PreparedRecords] = NOTHING_PREPARED
    """Results of a helper for some of the record sets, by their start in `frame`."""


def parse_request(frame: memoryview, position: int, end: int, version: int, correlation_id: int) -> ProduceRequest:
    """Parse the body in `frame[position:end]`; raise ProtocolError if it is malformed."""
    return ProduceRequest(frame, version, correlation_id, *scan_request(frame, position, end, version))


def copied(request: ProduceRequest) -> ProduceRequest:
    """Copy the record sets, for a request that outlives its turn: the receive buffer is reused after the turn."""
    parts: list[memoryview] = []
    size = 0
    topics: list[TopicSpans] = []
    for topic, record_sets in request.topics:
        spans: list[PartitionSpan] = []
        for partition, start, end in record_sets:
            if start < 0:
                spans.append((partition, start, end))
                continue
            parts.append(request.frame[start:end])
            spans.append((partition, size, size + end - start))
            size += end - start
        topics.append((topic, spans))
    return request._replace(frame=memoryview(bytearray().join(parts)), topics=topics)


def record_bytes(request: ProduceRequest) -> int:
    """Return the size of all record sets, which is the memory that `copied` takes."""
    return sum(end - start for _, record_sets in request.topics for _, start, end in record_sets if start >= 0)
