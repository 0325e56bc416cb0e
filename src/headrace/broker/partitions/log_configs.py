"""The config of a partition's log: that of its topic, with what the broker sets for all logs."""

from headrace.log.config import LogConfig
from headrace.model.configs.values import BrokerConfig, TopicConfig

PREALLOCATION_BYTES_MIN = 4 << 20


def log_config(topic: TopicConfig, broker: BrokerConfig) -> LogConfig:
    return LogConfig(
        segment_bytes=topic.segment_bytes,
        segment_ms=min(topic.segment_ms, topic.max_compaction_lag_ms) if topic.cleanup_compact else topic.segment_ms,
        segment_index_bytes=topic.segment_index_bytes,
        index_interval_bytes=topic.index_interval_bytes,
        retention_ms=topic.retention_ms,
        retention_bytes=topic.retention_bytes,
        delete=topic.cleanup_delete,
        compact=topic.cleanup_compact,
        delete_retention_ms=topic.delete_retention_ms,
        min_compaction_lag_ms=topic.min_compaction_lag_ms,
        max_compaction_lag_ms=topic.max_compaction_lag_ms,
        min_cleanable_dirty_ratio=topic.min_cleanable_dirty_ratio,
        file_delete_delay_ms=topic.file_delete_delay_ms,
        flush_messages=topic.flush_messages,
        flush_ms=topic.flush_ms,
        max_message_bytes=topic.message_bytes_max,
        replicated_batch_bytes_max=max(topic.message_bytes_max, broker.frame_bytes_max),
        append_time=topic.log_append_time,
        preallocate=broker.preallocate_bytes > 0,
        preallocation_bytes_min=min(PREALLOCATION_BYTES_MIN, broker.preallocate_bytes),
        preallocation_bytes_max=broker.preallocate_bytes,
        unclean_tail_bytes_max=broker.unclean_tail_bytes_max,
    )
