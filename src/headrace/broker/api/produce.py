"""Produce (0): record sets in, base offsets out. The hottest path of the broker: tuples and offsets, no messages."""

from collections.abc import Mapping
from struct import Struct
from typing import TYPE_CHECKING

from headrace.broker.api.produce_shapes import SHAPE_AT, remember
from headrace.broker.net.connection import Answer, Connection
from headrace.broker.partitions.leader import ACKS_ALL, NO_APPEND_TIME, LedPartition, LedTopic
from headrace.core.controller.names import INTERNAL_TOPICS
from headrace.model.access import Operation, ResourceType
from headrace.model.errors import ErrorCode
from headrace.wire.apis import ApiKey
from headrace.wire.produce import (
    FLEXIBLE_FROM,
    TOPIC_IDS_FROM,
    TRANSACTIONAL_ID_FROM,
    PartitionAnswer,
    ProduceRequest,
    encode_response,
    scan_request,
)
from headrace.wire.records.validation import KEYLESS_RECORDS_MAX
from headrace.wire.scan import unsigned_varint

if TYPE_CHECKING:
    from headrace.broker.broker import Broker

_HEAD = Struct(">ii")
_LEAST_BEHIND_SHAPE = 4
"""A length of one byte, and three times no tagged fields; or a length of four bytes."""
_NONE = ErrorCode.NONE
_PRODUCE = int(ApiKey.PRODUCE)
_PARKED = 1
Confirmation = tuple[LedPartition, int]
"""(the partition, the offset behind the last record)."""


def handle_repeated(broker: "Broker", connection: Connection, frame: memoryview, start: int, end: int) -> bool:
    """HOT. A request like one before it, with other records, is recognised by its bytes: append, seal the answer.

    False when it is another one, or its records are refused, which the long way finds and answers.
    """
    length_at = start + connection.produce_shape_bytes
    shape = connection.produce_shapes.get(bytes(frame[start + SHAPE_AT : length_at]))
    if shape is None or length_at + _LEAST_BEHIND_SHAPE > end:
        return False
    partition, acks = shape.partition, shape.acks
    key_and_version, correlation_id = _HEAD.unpack_from(frame, start)
    if key_and_version != shape.key_and_version or partition.offline:
        return False
    if shape.version >= FLEXIBLE_FROM:
        low, high = frame[length_at], frame[length_at + 1]
        if high < 0x80 <= low:  # most lengths have two bytes
            length, records_at = low & 0x7F | high << 7, length_at + 2
        else:
            length, records_at = unsigned_varint(frame, length_at, end)
        stop = records_at + length - 1
        # No tagged fields of the partition, the topic, the request.
        as_before = stop + 3 == end and not (frame[stop] or frame[stop + 1] or frame[stop + 2])
    else:
        records_at = length_at + 4
        stop = records_at + int.from_bytes(frame[length_at:records_at], "big", signed=True)
        as_before = stop == end
    if not as_before:
        return False
    error, base_offset, append_time, end_offset = partition.append(
        frame, records_at, stop, shape.version, acks, broker.clock.wall_ms(), shape.is_transactional
    )
    if error is not _NONE:
        return False
    if acks == 0:
        partition.confirm_later(Answer(connection, None, 0), end_offset, acks, 0, 0)
        return True
    log_start_offset = partition.log.start_offset
    parts = shape.layout.pack(
        shape.size, correlation_id, shape.prefix, 0, base_offset, append_time, log_start_offset, shape.suffix
    )
    answer = Answer(connection, parts, 0)
    partition.confirm_later(answer, end_offset, acks, shape.error_at, shape.timeout_ms)
    connection.answers.append(answer)
    if not connection.dirty:
        connection.mark_dirty()
    return True


def handle(
    broker: "Broker",
    connection: Connection,
    frame: memoryview,
    position: int,
    end: int,
    version: int,
    correlation_id: int,
) -> None:
    transactional_id, acks, timeout_ms, topics = scan_request(frame, position, end, version)
    request = ProduceRequest(frame, version, correlation_id, transactional_id, acks, timeout_ms, topics)
    refusal = _refusal(version, acks)
    if refusal is _NONE:
        held = broker.openings.takes(connection, request)
        if held is True:
            return
        refusal = held or _NONE
    answer = Answer(connection, None, _PARKED if acks else 0)
    if acks:
        connection.answers.append(answer)
    confirmations = proceed(broker, connection, request, refusal, answer)
    if len(topics) == len(confirmations) == 1 and confirmations[0] is not None and broker.access.open_to_all:
        topic, [(_, records_start, records_end)] = topics[0]
        remember(
            connection,
            frame,
            records_start,
            records_end,
            partition=confirmations[0][0],
            topic=topic,
            version=version,
            acks=acks,
            timeout_ms=timeout_ms,
            is_transactional=transactional_id is not None,
        )


def proceed(
    broker: "Broker", connection: Connection, request: ProduceRequest, refusal: ErrorCode, answer: Answer
) -> list[Confirmation | None]:
    """Carry out a request that has its place among the answers; nothing yet, if its transaction is to be verified."""
    if request.transactional_id is not None and refusal is _NONE:
        held = broker.held_produces.takes(connection, request, answer)
        if held is True:
            return []
        refusal = held or _NONE
    confirmations = carry_out(broker, connection, request, refusal or {}, answer)
    if request.acks:
        connection.mark_dirty()
    return confirmations


Refusals = ErrorCode | Mapping[tuple[bytes, int], ErrorCode]
"""One for the whole request, or some by topic and partition."""


def carry_out(
    broker: "Broker", connection: Connection, request: ProduceRequest, refusals: Refusals, answer: Answer
) -> list[Confirmation | None]:
    """Append what may be, and fill in the answer; the place behind each record set that was appended."""
    frame, version, correlation_id, transactional_id, acks, timeout_ms, topics, opened = request
    wall_ms = broker.clock.wall_ms()
    find_topic = broker.partitions.by_id.get if version >= TOPIC_IDS_FROM else broker.partitions.by_name.get
    refusal, refused = (refusals, {}) if isinstance(refusals, ErrorCode) else (_NONE, refusals)
    answers: list[tuple[bytes, list[PartitionAnswer]]] = []
    confirmations: list[Confirmation | None] = []
    refused_records: dict[int, list[int]] = {}
    failed = False
    for topic, record_sets in topics:
        led_topic = find_topic(topic)
        topic_error = refusal or _topic_error(broker, connection, led_topic, version)
        results: list[PartitionAnswer] = []
        for index, start, stop in record_sets:
            partition = topic_error or refused.get((topic, index)) or broker.partitions.partition_of(led_topic, index)
            if isinstance(partition, LedPartition):
                error, base_offset, append_time, end_offset = partition.append(
                    frame, start, stop, version, acks, wall_ms, transactional_id is not None, opened
                )
                if error is _NONE:
                    results.append((index, 0, base_offset, append_time, partition.log.start_offset))
                    confirmations.append((partition, end_offset))
                    continue
                blamed = partition.take_blamed() if error is ErrorCode.INVALID_RECORD else None
                if blamed and sum(map(len, refused_records.values())) < KEYLESS_RECORDS_MAX:
                    refused_records[len(confirmations)] = blamed
            else:
                error = partition
            broker.metrics.produce_errors[error] += 1
            results.append((index, error, -1, NO_APPEND_TIME, -1))
            confirmations.append(None)
            failed = True
        answers.append((topic, results))
    broker.metrics.request_errors[_PRODUCE] += failed
    if acks == 0:
        _finish_unanswered(connection, confirmations, failed)
        return confirmations
    answer.parts, errors_at = encode_response(version, correlation_id, answers, 0, refused_records)
    answer.waits = 0
    for confirmation, error_at in zip(confirmations, errors_at, strict=True):
        if confirmation is not None:
            confirmation[0].confirm_later(answer, confirmation[1], acks, error_at, timeout_ms)
    return confirmations


def _finish_unanswered(connection: Connection, confirmations: list[Confirmation | None], failed: bool) -> None:
    """With acks=0 nothing is said; a failure shows by a closed connection, so that the client asks again who leads."""
    unsaid = Answer(connection, None, 0)
    for confirmation in confirmations:
        if confirmation is not None:
            confirmation[0].confirm_later(unsaid, confirmation[1], 0, 0, 0)
    connection.closing = connection.closing or failed


def _refusal(version: int, acks: int) -> ErrorCode:
    """An error that holds for the whole request."""
    if version < TRANSACTIONAL_ID_FROM:
        return ErrorCode.UNSUPPORTED_VERSION  # message formats before v2 are not stored
    if acks not in (ACKS_ALL, 0, 1):
        return ErrorCode.INVALID_REQUIRED_ACKS
    return _NONE


def _topic_error(broker: "Broker", connection: Connection, topic: LedTopic | None, version: int) -> ErrorCode:
    if topic is None:
        return ErrorCode.UNKNOWN_TOPIC_ID if version >= TOPIC_IDS_FROM else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if topic.name in INTERNAL_TOPICS:
        return ErrorCode.INVALID_TOPIC_EXCEPTION  # what coordinators know must not change behind their back
    if broker.access.open_to_all:
        return _NONE
    if broker.access.authorize(connection.principal, Operation.WRITE, ResourceType.TOPIC, topic.name):
        return _NONE
    return ErrorCode.TOPIC_AUTHORIZATION_FAILED
