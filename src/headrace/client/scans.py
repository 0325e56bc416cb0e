"""The values of scans: which files hold what of a partition, and until when. They can be pickled and sent about."""

from typing import NamedTuple

FEATURE = "headrace.scan.version"
"""The finalized feature of clusters whose brokers give their files."""


class ScanSegment(NamedTuple):
    base_offset: int
    end_offset: int
    """The first offset that is not in it, or not wanted any more."""
    file_name: str
    size_bytes: int
    """Of whole batches below the scan's end; the file may go on behind them."""
    max_timestamp: int
    """-1 if it has none; nothing is known of the least."""
    is_closed: bool


class AbortedRange(NamedTuple):
    """Transactional batches of the producer in this range, its ends included, are not to be read."""

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
    """As meta.properties of the directory has it."""
    directory: str
    folder: str
    """Of the files, below the directory."""
    leader_epoch: int
    start_offset: int
    end_offset: int
    """The high watermark, or the last stable offset for readers of committed records: what the scan covers."""
    high_watermark: int
    last_stable_offset: int
    leader_epochs: tuple[EpochStart, ...]
    segments: tuple[ScanSegment, ...]
    aborted: tuple[AbortedRange, ...]


class ScanLease(NamedTuple):
    node: int
    lease_id: bytes
    lease_ms: int
    """It must be renewed within this time."""


class ScanManifest(NamedTuple):
    cluster_id: str
    leases: tuple[ScanLease, ...]
    """One of every broker that has given files."""
    partitions: tuple[ScanPartition, ...]
