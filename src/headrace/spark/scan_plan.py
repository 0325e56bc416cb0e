"""Decide which parts of a batch read come from segment files and which from the broker, at one vector of offsets."""

from collections.abc import Mapping, Sequence
from dataclasses import fields
from time import time
from typing import NamedTuple
from uuid import UUID

from pyspark.sql.datasource import InputPartition

from headrace.client.blocking.scans import Scans
from headrace.client.config import AdminConfig, ClientConfig, ConsumerConfig
from headrace.client.errors import ClientError
from headrace.client.scans import AbortedRange, ScanLease, ScanManifest, ScanPartition, ScanSegment
from headrace.client.types import IsolationLevel
from headrace.model.ids import TopicPartition
from headrace.spark.log_once import log_once
from headrace.spark.range_planner import OffsetRange, split_ranges
from headrace.spark.range_reader import RangePartition
from headrace.spark.source_options import SourceOptions

PIECE_BYTES = 128 * 1024 * 1024
"""Target bytes of files per task, as Spark uses for its own files; small segments are combined, large ones split."""


class FilePart(NamedTuple):
    """The wanted offsets of one segment file."""

    segment: ScanSegment
    begin: int
    end: int


class FilePlace(NamedTuple):
    """Where the files of a partition are, and the identity that they must have."""

    cluster_id: str
    directory: str
    directory_id: str
    folder: str
    topic_id: bytes
    aborted: tuple[AbortedRange, ...]
    leases: tuple[ScanLease, ...]
    planned_s: float
    """When the leases began, by the clock of the planning machine."""


class ScanPiece(InputPartition):
    """Consecutive parts of files for one task. The broker can serve the same range."""

    def __init__(self, wanted: OffsetRange, place: FilePlace, parts: tuple[FilePart, ...]) -> None:
        super().__init__(tuple(wanted))
        self.wanted = wanted
        self.place = place
        self.parts = parts


def client_config(options: SourceOptions) -> AdminConfig:
    """Return a client config with the same brokers and the same security."""
    config = ConsumerConfig.from_names(options.settings)
    return AdminConfig(**{each.name: getattr(config, each.name) for each in fields(ClientConfig)})


def plan_scan(
    ranges: Sequence[OffsetRange], options: SourceOptions, topic_ids: Mapping[str, str]
) -> list[InputPartition]:
    """Plan files where the broker shares them, and the broker for the rest; the ids are of the topics seen earlier."""
    manifest = _manifest(ranges, options)
    planned = _planned(ranges, manifest, options, topic_ids, options.partition_records_max)
    least = options.partitions_min or 0
    if len(planned) < least:
        total = sum(each.end - each.begin for each in ranges)
        planned = _planned(ranges, manifest, options, topic_ids, max(1, total // least))
    return planned


def _planned(
    ranges: Sequence[OffsetRange],
    manifest: ScanManifest | None,
    options: SourceOptions,
    topic_ids: Mapping[str, str],
    records_max: int | None,
) -> list[InputPartition]:
    found = {TopicPartition(each.topic, each.partition): each for each in manifest.partitions} if manifest else {}
    planned: list[InputPartition] = []
    for wanted in ranges:
        topic_id = topic_ids.get(wanted.partition.topic, "")
        scanned = found.get(wanted.partition)
        if scanned is not None and topic_id not in ("", str(UUID(bytes=scanned.topic_id))):
            scanned = None  # The topic was deleted and created again in between; the reader of the range reports it.
        parts = _parts(wanted, scanned, with_open=options.scan == "direct") if scanned is not None else []
        if manifest is not None and scanned is not None and parts:
            planned += _pieces(wanted.partition, _place(manifest, scanned), parts, records_max)
        left = split_ranges(_left(wanted, parts), partitions_min=None, records_max=records_max)
        planned += [RangePartition(each, topic_id) for each in left]
    return planned


def _manifest(ranges: Sequence[OffsetRange], options: SourceOptions) -> ScanManifest | None:
    if not ranges:
        return None
    with Scans(config=client_config(options)) as scans:
        try:
            if not scans.supported():
                log_once(
                    f'option "scan" is {options.scan}, but this broker does not share its files; reading '
                    "through the broker"
                )
                return None
            isolation = IsolationLevel[options.isolation.upper()]
            return scans.scan_manifest([each.partition for each in ranges], isolation_level=isolation)
        except ClientError as error:
            log_once(
                f'option "scan" is {options.scan}, but the files are not available ({error}); reading through '
                "the broker"
            )
            return None


def _place(manifest: ScanManifest, scanned: ScanPartition) -> FilePlace:
    leases = tuple(lease for lease in manifest.leases if lease.node == scanned.node)
    return FilePlace(
        manifest.cluster_id,
        scanned.directory,
        scanned.directory_id,
        scanned.folder,
        scanned.topic_id,
        scanned.aborted,
        leases,
        time(),
    )


def _parts(wanted: OffsetRange, scanned: ScanPartition, *, with_open: bool) -> list[FilePart]:
    """Return the parts of the range in files; parts of the active segment only if requested."""
    parts: list[FilePart] = []
    for segment in sorted(scanned.segments):
        begin = max(wanted.begin, segment.base_offset, scanned.start_offset)
        end = min(wanted.end, segment.end_offset, scanned.end_offset)
        if begin < end and (segment.is_closed or with_open):
            parts.append(FilePart(segment, begin, end))
    return parts


def _left(wanted: OffsetRange, parts: Sequence[FilePart]) -> list[OffsetRange]:
    """Return the ranges that no file part covers."""
    left: list[OffsetRange] = []
    begin = wanted.begin
    for part in parts:
        if begin < part.begin:
            left.append(OffsetRange(wanted.partition, begin, part.begin))
        begin = part.end
    if begin < wanted.end:
        left.append(OffsetRange(wanted.partition, begin, wanted.end))
    return left


def _pieces(
    partition: TopicPartition, place: FilePlace, parts: Sequence[FilePart], records_max: int | None
) -> list[InputPartition]:
    pieces: list[InputPartition] = []
    together: list[FilePart] = []
    size = 0

    def close() -> None:
        nonlocal size
        if together:
            wanted = OffsetRange(partition, together[0].begin, together[-1].end)
            aborted = tuple(each for each in place.aborted if _meets(each, wanted))
            pieces.append(ScanPiece(wanted, place._replace(aborted=aborted), tuple(together)))
        together.clear()
        size = 0

    for part in (cut for each in parts for cut in _cut(each, records_max)):
        follows = not together or together[-1].end == part.begin
        is_long = records_max is not None and together and part.end - together[0].begin > records_max
        if size + _bytes(part) > PIECE_BYTES or not follows or is_long:
            close()
        together.append(part)
        size += _bytes(part)
    close()
    return pieces


def _meets(aborted: AbortedRange, wanted: OffsetRange) -> bool:
    return aborted.first_offset < wanted.end and aborted.last_offset >= wanted.begin


def _cut(part: FilePart, records_max: int | None) -> list[FilePart]:
    count = -(-_bytes(part) // PIECE_BYTES)
    whole = [OffsetRange(TopicPartition("", 0), part.begin, part.end)]
    cut = split_ranges(whole, partitions_min=count, records_max=records_max)
    return [part._replace(begin=each.begin, end=each.end) for each in cut]


def _bytes(part: FilePart) -> int:
    """Estimate the bytes, as if all records of the segment had one size."""
    segment = part.segment
    return segment.size_bytes * (part.end - part.begin) // max(1, segment.end_offset - segment.base_offset)
