"""Snapshots of the metadata image: whole files that replace the log before them, named as in Kafka."""

import re
from collections.abc import Iterator
from typing import NamedTuple

from headrace.broker.cluster.metadata_batches import read_metadata_batches
from headrace.core.controller.image import MetadataImage
from headrace.core.controller.records import SnapshotHeaderRecord, encode_record
from headrace.log.files import read_whole, unlink_if_present, write_atomically
from headrace.ports.disk import Disk
from headrace.wire.errors import CorruptBatch, ProtocolError
from headrace.wire.records.builder import BatchBuilder
from headrace.wire.records.reader import batches

RECORDS_PER_BATCH = 1_000
BATCH_BYTES = 64 << 10
"""Records of a batch together, unless one alone is larger: loading a batch takes a few milliseconds at most."""

SNAPSHOT_BYTES_MAX = 1 << 30
SNAPSHOTS_KEPT = 2
"""The newest, and the one before it in case the newest turns out to be damaged."""

_NAME = re.compile(r"(\d{20})-(\d{10})\.checkpoint")


class SnapshotName(NamedTuple):
    end_offset: int
    """The first offset of the log that the snapshot does not contain."""
    term: int

    @property
    def file_name(self) -> str:
        return f"{self.end_offset:020d}-{self.term:010d}.checkpoint"


def list_snapshots(disk: Disk, folder: str) -> list[SnapshotName]:
    """Oldest first."""
    matches = (_NAME.fullmatch(name) for name in disk.list_directory(folder))
    return sorted(SnapshotName(int(match[1]), int(match[2])) for match in matches if match)


def write_snapshot(disk: Disk, folder: str, name: SnapshotName, image: MetadataImage, wall_ms: int) -> None:
    """Write the whole image; a crash leaves the file whole or not at all. Runs in a helper, on a copy of the image."""
    write_atomically(disk, f"{folder}/{name.file_name}", b"".join(_batches(name, image, wall_ms)))


def _batches(name: SnapshotName, image: MetadataImage, wall_ms: int) -> Iterator[bytearray]:
    version = image.metadata_version
    encoded = [encode_record(record, version) for record in image.snapshot_records()]
    header = SnapshotHeaderRecord(name.end_offset, name.term, len(encoded), wall_ms)
    builder = BatchBuilder()
    written = 0
    for value in (encode_record(header, version), *encoded):
        if builder.count == RECORDS_PER_BATCH or (builder.count and builder.plain_bytes + len(value) > BATCH_BYTES):
            yield builder.build(base_offset=written, leader_epoch=name.term)
            written += builder.count
            builder = BatchBuilder()
        builder.append(wall_ms, None, value)
    yield builder.build(base_offset=written, leader_epoch=name.term)


def load_snapshot(disk: Disk, folder: str, name: SnapshotName) -> MetadataImage:
    """Return the image that a snapshot holds; raise ProtocolError if the file is not whole."""
    image = MetadataImage()
    content = read_whole(disk, f"{folder}/{name.file_name}", SNAPSHOT_BYTES_MAX)
    for _ in load_slices(image, content, name):
        pass
    return image


def load_slices(image: MetadataImage, content: bytes, name: SnapshotName) -> Iterator[None]:
    """Fill an empty image from a snapshot, a batch of records at each step, so that a loop can do other work between.

    The image is complete when the iterator ends, and must not be used before.
    """
    applied = 0
    header: SnapshotHeaderRecord | None = None
    for batch in batches(content):
        for record in read_metadata_batches(batch, first_offset=applied):
            if applied:
                image.apply(record)
            elif isinstance(record, SnapshotHeaderRecord) and (record.end_offset, record.term) == name:
                header = record
            else:
                break
            applied += 1
        if header is None:
            break
        yield
    if header is None:
        raise CorruptBatch(f"{name.file_name} does not begin with the header of its name")
    if image.version != header.record_count:
        raise CorruptBatch(f"{name.file_name} holds {image.version} records, its header says {header.record_count}")
    image.version = name.end_offset  # from here on it counts the offsets of the log


def newest_whole_snapshot(disk: Disk, folder: str) -> tuple[SnapshotName, MetadataImage, list[str]] | None:
    """Return the newest snapshot that can be read, its image, and the damage of newer ones."""
    damaged: list[str] = []
    for name in reversed(list_snapshots(disk, folder)):
        try:
            return name, load_snapshot(disk, folder, name), damaged
        except ProtocolError as wrong:
            damaged.append(f"{folder}/{name.file_name}: {wrong}")
    if damaged:
        raise CorruptBatch("; ".join(damaged))
    return None


def drop_old_snapshots(disk: Disk, folder: str) -> None:
    """Delete all but the newest snapshots; runs in a helper."""
    for name in list_snapshots(disk, folder)[:-SNAPSHOTS_KEPT]:
        unlink_if_present(disk, f"{folder}/{name.file_name}")
