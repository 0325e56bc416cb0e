"""Values of scans: the files of a partition, their offsets, and the lease. They can be pickled."""

from typing import NamedTuple

FEATURE = "headrace.scan.version"
"""The finalized feature of clusters whose brokers share their segment files."""


class ScanSegment(NamedTuple):
    base_offset: int
    end_offset: int
    """The first offset after the segment, or the end of the scan."""
    file_name: str
    size_bytes: int
    """Bytes of the whole batches below the scan's end; the file may continue after them."""
    max_timestamp: int
    """-1 if unknown; the smallest timestamp is never known."""
    is_closed: bool


class AbortedRange(NamedTuple):
    """Transactional batches of the producer in this range, both ends included, must be skipped."""

    producer_id: int
    first_offset: int
    last_offset: int


class EpochStart(NamedTuple):
    epoch: int
    start_offset: int


class ScanPartition(NamedTuple):
    topic: str
    partition: int
    topic_id: bytes
    node: int
    directory_id: str
    """As in meta.properties of the directory."""
    directory: str
    folder: str
    """The folder of the files, below the directory."""
    leader_epoch: int
    start_offset: int
    end_offset: int
    """End of the scan: the high watermark, or the last stable offset for readers of committed records."""
    high_watermark: int
    last_stable_offset: int
    leader_epochs: tuple[EpochStart, ...]
    segments: tuple[ScanSegment, ...]
    aborted: tuple[AbortedRange, ...]


class ScanLease(NamedTuple):
    node: int
    lease_id: bytes
    lease_ms: int
    """The lease must be renewed within this time."""


class ScanManifest(NamedTuple):
    cluster_id: str
    leases: tuple[ScanLease, ...]
    """One lease per broker that shares files."""
    partitions: tuple[ScanPartition, ...]
