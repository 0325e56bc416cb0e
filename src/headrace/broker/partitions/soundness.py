"""The check that a batch holds the records that its header declares (`headrace.validate.records`)."""

from collections.abc import Iterable, Iterator
from enum import IntEnum

from headrace.broker.partitions.keys import (
    INFLATION_TIMES_MAX,
    OPENED_ON_LOOP_BYTES_MAX,
    OPENED_ON_LOOP_PACKED_BYTES_MAX,
)
from headrace.model.configs import LayeredConfig
from headrace.model.errors import ErrorCode
from headrace.wire.compiled import has_request_helper
from headrace.wire.errors import InflationLimit, ProtocolError
from headrace.wire.records.compression import INFLATED_BYTES_MAX
from headrace.wire.records.header import (
    ATTRIBUTES,
    BASE_TIMESTAMP,
    COMPRESSION_MASK,
    HEADER,
    HEADER_SIZE,
    RECORD_COUNT,
    HeaderFields,
)
from headrace.wire.records.reader import RECORD_BYTES_MIN, open_records
from headrace.wire.records.walk import are_sound
from headrace.wire.repeats import WALKED_RECORDS_MAX

WALK_FREE_BYTES_ALWAYS = 1 << 62
"""More bytes than any request has: its records are never walked."""
CONFIG_NAME = "headrace.validate.records"
PLAINLY_WALKED_RECORDS_MAX = 100
"""Records that Python code walks in well under a millisecond."""
WALKED_ON_LOOP_RECORDS_MAX = WALKED_RECORDS_MAX if has_request_helper() else PLAINLY_WALKED_RECORDS_MAX
"""Records of one request that are walked on the loop. With more, a helper walks them."""


class Validation(IntEnum):
    """Levels of checks on the batches of a topic. Each includes the levels before it."""

    HEADER = 0
    UNCOMPRESSED = 1
    ALL = 2


def validation_of(config_text: str | None) -> Validation:
    """Return the level that a topic config asks for; without a value, the highest that is cheap here."""
    if config_text is not None:
        return Validation[config_text.upper()]
    return Validation.UNCOMPRESSED if has_request_helper() else Validation.HEADER


def with_level_in_force(entries: Iterable[LayeredConfig]) -> Iterator[LayeredConfig]:
    """Yield the configs for DescribeConfigs, with the level of this installation where a topic has no value."""
    for entry in entries:
        if entry.key.name == CONFIG_NAME and entry.value is None:
            yield entry._replace(value=validation_of(None).name.lower())
        else:
            yield entry


def must_walk(validation: Validation, fields: HeaderFields) -> bool:
    """Return whether the level asks for a walk over the records of this batch."""
    return validation is Validation.ALL or (
        validation is Validation.UNCOMPRESSED and not fields[ATTRIBUTES] & COMPRESSION_MASK
    )


def walk_free_bytes(validation: Validation) -> int:
    """Return the size up to which the loop has time to walk all record sets of a request, whatever they contain."""
    if validation is Validation.HEADER:
        return WALK_FREE_BYTES_ALWAYS
    return WALKED_ON_LOOP_RECORDS_MAX * RECORD_BYTES_MIN if validation is Validation.UNCOMPRESSED else 0


def records_error_on_loop(batch: memoryview, fields: HeaderFields) -> ErrorCode:
    """Walk the records; return NONE if they are sound. Raise InflationLimit if that takes too long for the loop."""
    if fields[RECORD_COUNT] > WALKED_ON_LOOP_RECORDS_MAX:
        raise InflationLimit(f"more than {WALKED_ON_LOOP_RECORDS_MAX} records")
    if fields[ATTRIBUTES] & COMPRESSION_MASK and len(batch) > OPENED_ON_LOOP_PACKED_BYTES_MAX:
        raise InflationLimit(f"more than {OPENED_ON_LOOP_PACKED_BYTES_MAX} bytes before they are inflated")
    return _walked(batch, OPENED_ON_LOOP_BYTES_MAX)


def records_error_by_helper(batch: memoryview, message_bytes_max: int) -> ErrorCode:
    """Walk the records in any time that takes; MESSAGE_TOO_LARGE, on which clients split, if they inflate too far."""
    try:
        return _walked(batch, min(INFLATION_TIMES_MAX * message_bytes_max, INFLATED_BYTES_MAX))
    except InflationLimit:
        return ErrorCode.MESSAGE_TOO_LARGE


def _walked(batch: memoryview, inflated_bytes_max: int) -> ErrorCode:
    fields: HeaderFields = HEADER.unpack_from(batch)
    plain: bytes | memoryview = batch[HEADER_SIZE:]
    if fields[ATTRIBUTES] & COMPRESSION_MASK:
        try:
            _, plain = open_records(batch, inflated_bytes_max)
        except InflationLimit:
            raise
        except ProtocolError:
            return ErrorCode.INVALID_RECORD
    sound = are_sound(plain, fields[RECORD_COUNT], fields[BASE_TIMESTAMP])
    return ErrorCode.NONE if sound else ErrorCode.INVALID_RECORD
