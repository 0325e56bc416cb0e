"""Produce (0): record sets in, base offsets out. The hottest path of the broker: tuples and offsets, no messages."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from headrace.broker.api.produce_shapes import remember
from headrace.broker.net.connection import Answer, Connection
from headrace.broker.partitions.leader import ACKS_ALL, NO_APPEND_TIME, LedPartition, LedTopic
from headrace.core.controller.names import INTERNAL_TOPICS
from headrace.model.access import Operation, ResourceType
from headrace.model.errors import ErrorCode
from headrace.wire.apis import ApiKey
from headrace.wire.produce import (
    TOPIC_IDS_FROM,
    TRANSACTIONAL_ID_FROM,
    PartitionAnswer,
    ProduceRequest,
    encode_response,
    scan_request,
)
from headrace.wire.records.header import RECORD_COUNT
from headrace.wire.records.validation import KEYLESS_RECORDS_MAX
from headrace.wire.repeats import read_repeat

if TYPE_CHECKING:
    from headrace.broker.broker import Broker

_NONE = ErrorCode.NONE
_PRODUCE = int(ApiKey.PRODUCE)  # HOT: a member of an enum takes a tenth of a microsecond to look up
_PARKED = 1
Confirmation = tuple[LedPartition, int]
"""(the partition, the offset behind the last record)."""


def handle_repeat(broker: "Broker", connection: Connection, buffer: memoryview, position: int, end: int) -> int:
    """HOT. A request like one before it, with other records, is recognised by its bytes: append, seal the answer.

    Its end; 0 when it is another one, or its records are refused, which the long way finds and answers.
    """
    repeat = read_repeat(buffer, position, end, connection.produce_shapes, connection.produce_shape_bytes)
    if repeat is None:
        return 0
    shape, key_and_version, correlation_id, records_at, stop, fields, request_end = repeat
    if key_and_version != shape.key_and_version:
        return 0
    partition, acks, wall_ms = shape.partition, shape.acks, broker.turn_wall_ms
    base_offset, append_time = -1, NO_APPEND_TIME
    if fields is not None:
        base_offset = partition.append_next(buffer[records_at:stop], fields, acks, wall_ms)
        end_offset = base_offset + fields[RECORD_COUNT]
    if base_offset < 0:
        error, base_offset, append_time, end_offset = partition.append(
            buffer, records_at, stop, shape.version, acks, wall_ms, shape.is_transactional
        )
        if error is not _NONE:
            return 0
    broker.metrics.requests[_PRODUCE] += 1
    if acks == 0:
        partition.confirm_later(Answer(connection, None, 0), end_offset, acks, 0, 0)
        return request_end
    log_start_offset = partition.log.start_offset
    parts = shape.layout.pack(
        shape.size, correlation_id, shape.prefix, 0, base_offset, append_time, log_start_offset, shape.suffix
    )
    answer = Answer(connection, parts, 0)
    partition.confirm_later(answer, end_offset, acks, shape.error_at, shape.timeout_ms)
    connection.answers.append(answer)
    if not connection.dirty:
        connection.mark_dirty()
    return request_end


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
    wall_ms = broker.turn_wall_ms
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
