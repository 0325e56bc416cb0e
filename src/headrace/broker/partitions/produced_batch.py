"""The checks of a batch that a producer sent, from its header to its sequence; a good one is staged in the replica."""

from collections.abc import Mapping

from headrace.broker.partitions.append_result import NO_APPEND_TIME, AppendedBatch, AppendResult, RejectedBatch
from headrace.broker.partitions.record_rules import NOTHING_PREPARED, PreparedRecords
from headrace.broker.partitions.replica import ACKS_ALL, Replica
from headrace.log.errors import SequenceRejected
from headrace.model.errors import ErrorCode
from headrace.model.ids import NO_TIMESTAMP
from headrace.wire.errors import InflationLimit
from headrace.wire.records.header import (
    ATTRIBUTES,
    BASE_TIMESTAMP,
    COMPRESSION_MASK,
    HEADER,
    HEADER_SIZE,
    MAX_TIMESTAMP,
    PRODUCER_ID,
    RECORD_COUNT,
    TRANSACTIONAL_BIT,
    HeaderFields,
)
from headrace.wire.records.validation import check_produced

_NONE = ErrorCode.NONE
_NO_RECORDS = RejectedBatch(ErrorCode.INVALID_RECORD)
_TOO_SHORT = RejectedBatch(ErrorCode.CORRUPT_MESSAGE)
_INVALID_TIMESTAMP = RejectedBatch(ErrorCode.INVALID_TIMESTAMP)
_unpack_header = HEADER.unpack_from


def append_produced(
    replica: Replica,
    frame: memoryview,
    start: int,
    end: int,
    api_version: int,
    acks: int,
    wall_ms: int,
    has_transactional_id: bool = False,
    prepared: Mapping[int, PreparedRecords] = NOTHING_PREPARED,
) -> AppendResult:
    """Check the record set in `frame[start:end]` and stage it for this turn's write.

    Records that take too long to check on the loop are accepted only with the work of a helper in `prepared`.
    """
    if start < 0 or end - start < HEADER_SIZE:
        return _NO_RECORDS if start < 0 or end <= start else _TOO_SHORT
    batch = frame[start:end]
    fields: HeaderFields = _unpack_header(batch)
    if not replica.serves:
        return RejectedBatch(replica.refusal)
    if replica.space.full:
        return _reject_for_now(replica, fields, ErrorCode.KAFKA_STORAGE_ERROR)
    if acks == ACKS_ALL and not replica.role.acks_all_allowed:
        return _reject_for_now(replica, fields, ErrorCode.NOT_ENOUGH_REPLICAS)
    config = replica.config
    error = check_produced(batch, fields, api_version=api_version, max_message_bytes=config.message_bytes_max)
    if error is not _NONE:
        return RejectedBatch(error)
    if config.log_append_time:
        append_time = wall_ms
    else:
        append_time = NO_APPEND_TIME
        # Per batch, by the first and the largest timestamp, which its header has.
        if fields[MAX_TIMESTAMP] - wall_ms > config.timestamp_after_ms_max or (
            wall_ms - fields[BASE_TIMESTAMP] > config.timestamp_before_ms_max and fields[BASE_TIMESTAMP] != NO_TIMESTAMP
        ):
            return _INVALID_TIMESTAMP
    by_helper = prepared.get(start) if prepared else None
    return _append_checked(replica, batch, fields, append_time, wall_ms, has_transactional_id, by_helper)


def _append_checked(
    replica: Replica,
    batch: memoryview,
    fields: HeaderFields,
    append_time: int,
    wall_ms: int,
    has_transactional_id: bool,
    by_helper: PreparedRecords | None,
) -> AppendResult:
    """Check the records and the producer of a batch whose header is in order, and stage it."""
    rules = replica.rules
    try:
        if rules.checks_records:
            rejected = rules.rejection(batch, fields, by_helper)
            if rejected is not None:
                return rejected
        if fields[PRODUCER_ID] >= 0:
            result = _admit_producer(replica, fields, append_time, has_transactional_id)
            if result is not None:
                return result
        if rules.codec is not None and fields[ATTRIBUTES] & COMPRESSION_MASK != rules.codec:
            stored = rules.stored(batch, fields, by_helper)
            if isinstance(stored, ErrorCode):
                return _reject_unstored(replica, fields, stored)
            batch = memoryview(stored)
            fields = _unpack_header(batch)
    except InflationLimit:
        return _reject_for_now(replica, fields, ErrorCode.NOT_ENOUGH_REPLICAS)  # `record_hold` has a helper do it
    base_offset = replica.log.stage(batch, fields, replica.role.leader_epoch, wall_ms)
    replica.unseen_bytes += len(batch)
    return AppendedBatch(base_offset, append_time, base_offset + fields[RECORD_COUNT])


def _admit_producer(
    replica: Replica, fields: HeaderFields, append_time: int, has_transactional_id: bool
) -> AppendResult | None:
    """Check the batch against the state of its producer: None to append it, the first result for a retry."""
    producers = replica.log.producers
    if fields[ATTRIBUTES] & TRANSACTIONAL_BIT or producers.open:
        error = replica.verifications.refusal(fields, has_transactional_id=has_transactional_id)
        if error is not _NONE:
            return RejectedBatch(error)
    try:
        original = producers.admit(fields)
    except SequenceRejected as rejected:
        return RejectedBatch(rejected.error)
    if original < 0:
        return None
    if replica.config.log_append_time:
        append_time = producers.duplicate_timestamp
    return AppendedBatch(original, append_time, original + fields[RECORD_COUNT])


def _reject_unstored(replica: Replica, fields: HeaderFields, error: ErrorCode) -> RejectedBatch:
    """Reject a batch that could not be recompressed, perhaps only for lack of memory in the helper."""
    return _reject_for_now(replica, fields, error) if error is ErrorCode.NOT_ENOUGH_REPLICAS else RejectedBatch(error)


def _reject_for_now(replica: Replica, fields: HeaderFields, error: ErrorCode) -> RejectedBatch:
    """Reject a batch that the producer will send again; until then, reject the later batches of its sequence."""
    replica.log.producers.note_refused_batch(fields)
    return RejectedBatch(error)
