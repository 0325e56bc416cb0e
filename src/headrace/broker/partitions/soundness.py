"""Whether batches hold the records they declare (`headrace.validate.records`): on the loop, or by a helper for many."""

from collections.abc import Iterable, Iterator
from enum import IntEnum

from headrace.broker.partitions.keys import (
    INFLATION_TIMES_MAX,
    OPENED_ON_LOOP_BYTES_MAX,
    OPENED_ON_LOOP_PACKED_BYTES_MAX,
)
from headrace.model.configs import ConfigEntry
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
"""More than any request has: nothing is ever walked."""
CONFIG_NAME = "headrace.validate.records"
PLAINLY_WALKED_RECORDS_MAX = 100
"""Records that Python walks in well under a millisecond."""
WALKED_ON_LOOP_RECORDS_MAX = WALKED_RECORDS_MAX if has_request_helper() else PLAINLY_WALKED_RECORDS_MAX
"""Records of one request that are walked on the loop; a helper walks more."""


class Validation(IntEnum):
    """How far the batches of a topic are looked at; each level includes the ones before it."""

    HEADER = 0
    UNCOMPRESSED = 1
    ALL = 2


def validation_of(config_text: str | None) -> Validation:
    """The level that a topic asks for; without a word of it, as much as costs little in this installation."""
    if config_text is not None:
        return Validation[config_text.upper()]
    return Validation.UNCOMPRESSED if has_request_helper() else Validation.HEADER


def with_level_in_force(entries: Iterable[ConfigEntry]) -> Iterator[ConfigEntry]:
    """Configs as they are described: the level without a value is the one that this installation has for it."""
    for entry in entries:
        if entry.key.name == CONFIG_NAME and entry.value is None:
            yield entry._replace(value=validation_of(None).name.lower())
        else:
            yield entry


def must_walk(validation: Validation, fields: HeaderFields) -> bool:
    return validation is Validation.ALL or (
        validation is Validation.UNCOMPRESSED and not fields[ATTRIBUTES] & COMPRESSION_MASK
    )


def walk_free_bytes(validation: Validation) -> int:
    """Of record sets up to this size together no header has to be read to know that the loop has time to walk them."""
    if validation is Validation.HEADER:
        return WALK_FREE_BYTES_ALWAYS
    return WALKED_ON_LOOP_RECORDS_MAX * RECORD_BYTES_MIN if validation is Validation.UNCOMPRESSED else 0


def records_error_on_loop(batch: memoryview, fields: HeaderFields) -> ErrorCode:
    """NONE for a batch whose records are sound; InflationLimit for one that takes too long to walk for the loop."""
    if fields[RECORD_COUNT] > WALKED_ON_LOOP_RECORDS_MAX:
        raise InflationLimit(f"more than {WALKED_ON_LOOP_RECORDS_MAX} records")
    if fields[ATTRIBUTES] & COMPRESSION_MASK and len(batch) > OPENED_ON_LOOP_PACKED_BYTES_MAX:
        raise InflationLimit(f"more than {OPENED_ON_LOOP_PACKED_BYTES_MAX} bytes before they are inflated")
    return _walked(batch, OPENED_ON_LOOP_BYTES_MAX)


def records_error_by_helper(batch: memoryview, message_bytes_max: int) -> ErrorCode:
    """The same, however long it takes; MESSAGE_TOO_LARGE for records that inflate too far: clients then split them."""
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
