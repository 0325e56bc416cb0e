"""The batches of records that were read: codec, checksum and producer, from the headers as the brokers store them.

The records are fetched a second time, as bytes, because the consumer that read them keeps no headers.
"""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from anyio.to_thread import run_sync

from headrace.client.blocking.raw import RawFetcher
from headrace.manager.cluster_address import ClusterAddress
from headrace.manager.limits import ADMIN_TIMEOUT_MS, BATCH_DETAILS_BYTES_MAX
from headrace.wire.records.compression import Compression
from headrace.wire.records.header import (
    ATTRIBUTES,
    BASE_OFFSET,
    BASE_SEQUENCE,
    COMPRESSION_MASK,
    CRC,
    HEADER,
    HEADER_SIZE,
    LAST_OFFSET_DELTA,
    LEADER_EPOCH,
    LENGTH,
    LOG_OVERHEAD,
    PRODUCER_EPOCH,
    PRODUCER_ID,
    TRANSACTIONAL_BIT,
    HeaderFields,
)

SEQUENCES = 1 << 31
"""Sequences begin again at 0 after this number."""


class BatchDetails(NamedTuple):
    """The fields of the header of a batch, and the sequence of one of its records."""

    base_offset: int
    last_offset: int
    leader_epoch: int
    codec: str
    size: int | None
    """Bytes; null if a mask hides something of the record, because both could tell what."""
    crc: int | None
    transactional: bool
    producer_id: int
    """-1 without an idempotent producer, as are epoch and sequence."""
    producer_epoch: int
    sequence: int


async def add_batches(
    cluster: ClusterAddress, topic: str, records: Sequence[dict[str, Any]], *, is_masked: bool
) -> None:
    """Add the member `batch` to each record; it is null for those beyond BATCH_DETAILS_BYTES_MAX."""
    ranges: dict[tuple[str, int], tuple[int, int]] = {}
    for record in records:
        place, offset = (topic, record["partition"]), record["offset"]
        first, end = ranges.get(place, (offset, offset + 1))
        ranges[place] = min(first, offset), max(end, offset + 1)
    headers = await run_sync(partial(_headers, cluster, ranges)) if ranges else {}
    for record in records:
        record["batch"] = _details(headers.get(record["partition"], []), record["offset"], is_masked=is_masked)


def _headers(
    cluster: ClusterAddress, ranges: Mapping[tuple[str, int], tuple[int, int]]
) -> dict[int, list[HeaderFields]]:
    """Return the headers of the batches in these ranges by partition, in order."""
    found: dict[int, list[HeaderFields]] = {}
    size = 0
    with RawFetcher(**cluster.options()) as fetcher:
        for piece in fetcher.fetch(ranges, timeout_ms=ADMIN_TIMEOUT_MS, held_bytes_max=BATCH_DETAILS_BYTES_MAX):
            position, headers = 0, found.setdefault(piece.partition.partition, [])
            while position + HEADER_SIZE <= len(piece.data):
                fields: HeaderFields = HEADER.unpack_from(piece.data, position)
                headers.append(fields)
                position += LOG_OVERHEAD + fields[LENGTH]
            size += len(piece.data)
            if size >= BATCH_DETAILS_BYTES_MAX:
                break
    return found


def _details(headers: Sequence[HeaderFields], offset: int, *, is_masked: bool) -> dict[str, Any] | None:
    place = bisect_right(headers, offset, key=lambda fields: fields[BASE_OFFSET]) - 1
    if place < 0 or offset > headers[place][BASE_OFFSET] + headers[place][LAST_OFFSET_DELTA]:
        return None
    fields = headers[place]
    base, sequence = fields[BASE_OFFSET], fields[BASE_SEQUENCE]
    details = BatchDetails(
        base_offset=base,
        last_offset=base + fields[LAST_OFFSET_DELTA],
        leader_epoch=fields[LEADER_EPOCH],
        codec=Compression(fields[ATTRIBUTES] & COMPRESSION_MASK).name.lower(),
        size=None if is_masked else LOG_OVERHEAD + fields[LENGTH],
        crc=None if is_masked else fields[CRC],
        transactional=bool(fields[ATTRIBUTES] & TRANSACTIONAL_BIT),
        producer_id=fields[PRODUCER_ID],
        producer_epoch=fields[PRODUCER_EPOCH],
        sequence=sequence if sequence < 0 else (sequence + offset - base) % SEQUENCES,
    )
    return details._asdict()
