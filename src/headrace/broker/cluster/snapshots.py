"""Snapshots of the metadata image: whole files that replace the log before them, named as in Kafka."""

import re
from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

from headrace.broker.cluster.metadata_batches import build_metadata_batch, read_metadata_batches
from headrace.core.controller.image import MetadataImage
from headrace.core.controller.records import Record, SnapshotHeaderRecord
from headrace.log.files import read_whole, unlink_if_present, write_atomically
from headrace.ports.disk import Disk
from headrace.wire.errors import CorruptBatch, ProtocolError

RECORDS_PER_BATCH = 1_000
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
    """Write a snapshot in a helper; the image must be a copy of its own. A crash leaves a complete file or none."""
    changes = list(image.snapshot_records())
    header = SnapshotHeaderRecord(name.end_offset, name.term, len(changes), wall_ms)
    parts: list[bytearray] = []
    remaining: Iterator[Record] = iter((header, *changes))
    written = 0
    while group := list(islice(remaining, RECORDS_PER_BATCH)):
        parts.append(
            build_metadata_batch(
                group,
                metadata_version=image.metadata_version,
                base_offset=written,
                term=name.term,
                wall_ms=wall_ms,
            )
        )
        written += len(group)
    write_atomically(disk, f"{folder}/{name.file_name}", b"".join(parts))


def load_snapshot(disk: Disk, folder: str, name: SnapshotName) -> MetadataImage:
    """Load the image; raise ProtocolError if the file is not complete."""
    content = read_whole(disk, f"{folder}/{name.file_name}", SNAPSHOT_BYTES_MAX)
    changes = read_metadata_batches(content, first_offset=0)
    header = next(changes, None)
    if not isinstance(header, SnapshotHeaderRecord) or (header.end_offset, header.term) != name:
        raise CorruptBatch(f"{name.file_name} does not begin with the header of its name")
    image = MetadataImage()
    for record in changes:
        image.apply(record)
    if image.version != header.record_count:
        raise CorruptBatch(f"{name.file_name} holds {image.version} records, its header says {header.record_count}")
    image.version = name.end_offset  # from here on the version counts offsets of the log
    return image


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
