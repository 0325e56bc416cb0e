"""Configuration of one partition's log: its topic configs and its internal limits."""

from dataclasses import dataclass

MEBIBYTE = 1 << 20
DAY_MS = 86_400_000
UNLIMITED = -1
NEVER = (1 << 63) - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class LogConfig:
    segment_bytes: int = 1 << 30
    segment_ms: int = 7 * DAY_MS
    segment_index_bytes: int = 10 * MEBIBYTE
    index_interval_bytes: int = 4096
    retention_ms: int = 7 * DAY_MS
    retention_bytes: int = UNLIMITED
    delete: bool = True
    compact: bool = False
    delete_retention_ms: int = DAY_MS
    min_compaction_lag_ms: int = 0
    max_compaction_lag_ms: int = NEVER
    min_cleanable_dirty_ratio: float = 0.5
    file_delete_delay_ms: int = 60_000
    flush_messages: int = NEVER
    flush_ms: int = NEVER
    max_message_bytes: int = 1_048_588
    replicated_batch_bytes_max: int = 100 * MEBIBYTE
    """Limit on a batch from a leader, whose topic may have had a higher limit than it has now."""
    append_time: bool = False
    preallocate: bool = True
    preallocation_bytes_min: int = 4 * MEBIBYTE
    preallocation_bytes_max: int = 64 * MEBIBYTE
    unclean_tail_bytes_max: int = 64 * MEBIBYTE
    """Limit on the bytes that recovery scans after a crash; the broker moves the recovery point at half of it."""
    snapshot_interval_bytes: int = 32 * MEBIBYTE
    """Bytes appended before a flush also writes a producer snapshot and syncs the indexes."""
