"""Targets of the record batches: the reader with every compression, and the unpacking by itself.

An input of the reader is a byte of choices, then batches. One choice mends length and checksum of the first batch, so
that mutation also reaches what stands behind them.
"""

from struct import Struct

from headrace.model.errors import ErrorCode
from headrace.wire.errors import ProtocolError
from headrace.wire.records import validation
from headrace.wire.records.builder import NewRecord, build_batch
from headrace.wire.records.compression import Compression, compress, decompress
from headrace.wire.records.header import (
    BASE_OFFSET,
    CRC_AT,
    HEADER,
    HEADER_SIZE,
    LAST_OFFSET_DELTA,
    LENGTH_AT,
    LOG_OVERHEAD,
    RECORD_COUNT,
    checksum,
)
from headrace.wire.records.reader import (
    batches,
    check_batch,
    control_type,
    first_at_or_after,
    is_control,
    max_timestamp_record,
    records,
)
from headrace.wire.records.walk import are_sound, are_sound_plainly
from tools.fuzz.target import Target, require

INFLATED_BYTES_MAX = 256 * 1024
"""Far less than a broker allows, so that a bomb is met within a short input."""

BATCHES_MAX = 64
MENDED_BIT, TRUNCATED_END_BIT = 0x01, 0x02
NOW_MS = 1_700_000_000_000

_LENGTH = Struct(">i")
_CRC = Struct(">I")
_SOURCES = tuple(
    f"wire/records/{name}.py"
    for name in ("reader", "validation", "compression", "lz4_frames", "zstd_frames", "header", "walk")
)


def targets() -> list[Target]:
    return [
        Target(name="batch-reader", read=read_batches, seeds=batch_seeds, sources=_SOURCES),
        Target(name="record-walk", read=read_walked, seeds=_walked_seeds, sources=_SOURCES[6:]),
        Target(name="decompression", read=read_packed, seeds=_packed_seeds, sources=_SOURCES[2:5]),
    ]


def mend(content: bytearray, position: int = 0) -> None:
    """Make the length and checksum of the batch at `position` true, whatever else is wrong with it."""
    if len(content) - position >= HEADER_SIZE:
        declared = LOG_OVERHEAD + _LENGTH.unpack_from(content, position + LENGTH_AT)[0]
        if not HEADER_SIZE <= declared <= len(content) - position:
            declared = len(content) - position
            _LENGTH.pack_into(content, position + LENGTH_AT, declared - LOG_OVERHEAD)
        content[position + 16] = 2
        _CRC.pack_into(content, position + CRC_AT, checksum(memoryview(content)[position : position + declared]))


def read_batches(data: bytes) -> bool:
    if not data:
        return False
    content = bytearray(data[1:])
    if data[0] & MENDED_BIT:
        mend(content)
    read = 0
    _read_as_one(memoryview(content))
    try:
        for batch in batches(content, allow_truncated_end=bool(data[0] & TRUNCATED_END_BIT)):
            require(HEADER_SIZE <= len(batch) <= len(content), "a batch lies inside its buffer")
            _check_as_produced(batch)
            _read_batch(batch)
            read += 1
            if read >= BATCHES_MAX:
                break
    except ProtocolError:
        return False
    return read > 0


def _read_as_one(content: memoryview) -> None:
    """The whole input as the record set of a producer, and as the one batch a caller believes it to be."""
    if len(content) >= HEADER_SIZE:
        _check_as_produced(content)
    try:
        check_batch(content)
        if is_control(content):
            for record in records(content, inflated_bytes_max=INFLATED_BYTES_MAX):
                control_type(record)
    except ProtocolError:
        pass


def _check_as_produced(batch: memoryview) -> None:
    fields = HEADER.unpack_from(batch)
    error = validation.check_produced(batch, fields, api_version=9, max_message_bytes=INFLATED_BYTES_MAX)
    if error is ErrorCode.NONE:
        require(check_batch(batch) == fields, "what is stored has a good checksum")
    try:
        validation.keyless_records(batch, inflated_bytes_max=INFLATED_BYTES_MAX)
    except ProtocolError:
        pass


def _read_batch(batch: memoryview) -> None:
    fields = check_batch(batch)
    base, last = fields[BASE_OFFSET], fields[BASE_OFFSET] + fields[LAST_OFFSET_DELTA]
    found = list(records(batch, inflated_bytes_max=INFLATED_BYTES_MAX))
    require(len(found) == fields[RECORD_COUNT], "as many records as the header says")
    require(all(base <= record.offset <= last for record in found), "offsets lie inside the batch")
    size = sum(len(record.key or b"") + len(record.value or b"") for record in found)
    require(size <= INFLATED_BYTES_MAX, "records inflate to no more than the limit")
    newest = max_timestamp_record(batch, inflated_bytes_max=INFLATED_BYTES_MAX)
    if found:
        require(newest is not None and newest.timestamp == max(r.timestamp for r in found), "the newest record")
        wanted = found[len(found) // 2].timestamp
        first = first_at_or_after(batch, wanted, inflated_bytes_max=INFLATED_BYTES_MAX)
        require(first is None or first.timestamp >= wanted, "the first record at a time is not older")


def batch_seeds() -> list[bytes]:
    seeds = []
    for codec in Compression:
        plain = build_batch(
            [NewRecord(NOW_MS + number, b"k%d" % number, b"value " * number) for number in range(6)], compression=codec
        )
        headers = build_batch(
            [NewRecord(NOW_MS, None, None, (("h", b"1"), ("größe", None))), NewRecord(NOW_MS + 9, b"", b"")],
            compression=codec,
            producer_id=77,
            producer_epoch=1,
            base_sequence=5,
        )
        marker = build_batch(
            [NewRecord(NOW_MS, b"\0\0\0\1", b"\0" * 6)],
            producer_id=7,
            producer_epoch=0,
            transactional=True,
            control=True,
        )
        large = build_batch([NewRecord(NOW_MS, b"k" * 200, b"v" * 1000)], compression=codec)
        for content in (plain, headers, plain + headers, large, marker):
            seeds += [bytes((choices,)) + bytes(content) for choices in (0, MENDED_BIT, TRUNCATED_END_BIT)]
        seeds.append(bytes((MENDED_BIT,)) + _bomb(codec))
    return seeds


def _bomb(codec: int) -> bytes:
    """A batch whose records inflate beyond the limit."""
    batch = build_batch([NewRecord(NOW_MS, None, b"")], compression=Compression.NONE)
    content = bytearray(batch[:HEADER_SIZE]) + compress(codec, bytes(INFLATED_BYTES_MAX + 1))
    content[22] = codec
    return bytes(content[:6000])


def read_walked(data: bytes) -> bool:
    """Bytes as the records of a batch: a byte for their count, then the records. Compiled or not, the walk agrees."""
    if not data:
        return False
    sound = are_sound_plainly(data[1:], data[0], NOW_MS)
    require(are_sound(data[1:], data[0], NOW_MS) is sound, "both walks give the same answer")
    if sound:
        batch = bytearray(HEADER_SIZE) + data[1:]
        HEADER.pack_into(
            batch, 0, 0, len(batch) - LOG_OVERHEAD, -1, 2, 0, 0, data[0] - 1, NOW_MS, NOW_MS, -1, -1, -1, data[0]
        )
        require([each.offset for each in records(batch)] == list(range(data[0])), "sound records can be read")
    return sound


def _walked_seeds() -> list[bytes]:
    made = (
        [NewRecord(NOW_MS, None, None)],
        [NewRecord(NOW_MS + number, b"k%d" % number, b"value " * number) for number in range(6)],
        [NewRecord(NOW_MS, b"", b"v" * 300, (("h", b"1"), ("größe", None)))] * 2,
    )
    return [bytes((len(each),)) + bytes(build_batch(each)[HEADER_SIZE:]) for each in made]


def read_packed(data: bytes) -> bool:
    if not data:
        return False
    try:
        plain = decompress(data[0] % (len(Compression) + 1), memoryview(data)[1:], INFLATED_BYTES_MAX)
    except ProtocolError:
        return False
    require(len(plain) <= INFLATED_BYTES_MAX, "nothing inflates beyond the limit")
    return True


def _packed_seeds() -> list[bytes]:
    contents = (b"", b"x", b"headrace " * 40, bytes(3000), bytes(INFLATED_BYTES_MAX + 1))
    return [bytes((codec,)) + compress(codec, plain)[:6000] for codec in Compression for plain in contents]
