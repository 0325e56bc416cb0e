"""Snapshots of the metadata image: whole files that replace the log before them, named as in Kafka."""

import re
from collections.abc import Iterator
from typing import NamedTuple

from headrace.broker.cluster.metadata_batches import as_voters, read_snapshot_records
from headrace.core.controller.image import MetadataImage
from headrace.core.controller.records import SnapshotHeaderRecord, encode_record
from headrace.core.raft.ids import Voters
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


class LoadedSnapshot(NamedTuple):
    name: SnapshotName
    image: MetadataImage
    voters: Voters
    """The voter set at the end offset; empty in a snapshot of an earlier release."""


def write_snapshot(
    disk: Disk, folder: str, name: SnapshotName, image: MetadataImage, *, voters: Voters, wall_ms: int
) -> None:
    """Write the whole image; a crash leaves the file whole or not at all. Runs in a helper, on a copy of the image."""
    write_atomically(disk, f"{folder}/{name.file_name}", b"".join(_batches(name, image, voters, wall_ms)))


def _batches(name: SnapshotName, image: MetadataImage, voters: Voters, wall_ms: int) -> Iterator[bytearray]:
    version = image.metadata_version
    encoded = [encode_record(record, version) for record in image.snapshot_records()]
    header = SnapshotHeaderRecord(name.end_offset, name.term, len(encoded), wall_ms, voters)
    builder = BatchBuilder()
    written = 0
    for value in (encode_record(header, version), *encoded):
        if builder.count == RECORDS_PER_BATCH or (builder.count and builder.plain_bytes + len(value) > BATCH_BYTES):
            yield builder.build(base_offset=written, leader_epoch=name.term)
            written += builder.count
            builder = BatchBuilder()
        builder.append(wall_ms, None, value)
    yield builder.build(base_offset=written, leader_epoch=name.term)


def load_snapshot(disk: Disk, folder: str, name: SnapshotName) -> LoadedSnapshot:
    """Return what a snapshot holds; raise ProtocolError if the file is not whole."""
    loading = SnapshotLoading(read_whole(disk, f"{folder}/{name.file_name}", SNAPSHOT_BYTES_MAX), name)
    for _ in loading.slices():
        pass
    return loading.loaded()


class SnapshotLoading:
    """Fills an empty image from a snapshot."""

    def __init__(self, content: bytes, name: SnapshotName) -> None:
        self._content = content
        self._name = name
        self._image = MetadataImage()
        self._voters: Voters = ()
        self._is_complete = False

    def slices(self) -> Iterator[None]:
        """Apply a batch of records at each step, so that a loop can do other work between."""
        applied = 0
        header: SnapshotHeaderRecord | None = None
        for batch in batches(self._content):
            for record in read_snapshot_records(batch, first_offset=applied):
                if applied:
                    self._image.apply(record)
                elif isinstance(record, SnapshotHeaderRecord) and (record.end_offset, record.term) == self._name:
                    header = record
                else:
                    break
                applied += 1
            if header is None:
                break
            yield
        name = self._name.file_name
        if header is None:
            raise CorruptBatch(f"{name} does not begin with the header of its name")
        if applied != header.record_count + 1:
            raise CorruptBatch(f"{name} holds {applied - 1} records, its header says {header.record_count}")
        self._image.version = self._name.end_offset
        self._voters = as_voters(header.voters)
        self._is_complete = True

    def loaded(self) -> LoadedSnapshot:
        assert self._is_complete, "the slices must end first"
        return LoadedSnapshot(self._name, self._image, self._voters)


def newest_whole_snapshot(disk: Disk, folder: str) -> tuple[LoadedSnapshot, list[str]] | None:
    """Return the newest snapshot that can be read, and the damage of newer ones."""
    damaged: list[str] = []
    for name in reversed(list_snapshots(disk, folder)):
        try:
            return load_snapshot(disk, folder, name), damaged
        except ProtocolError as wrong:
            damaged.append(f"{folder}/{name.file_name}: {wrong}")
    if damaged:
        raise CorruptBatch("; ".join(damaged))
    return None


def drop_old_snapshots(disk: Disk, folder: str) -> None:
    """Delete all but the newest snapshots; runs in a helper."""
    for name in list_snapshots(disk, folder)[:-SNAPSHOTS_KEPT]:
        unlink_if_present(disk, f"{folder}/{name.file_name}")
