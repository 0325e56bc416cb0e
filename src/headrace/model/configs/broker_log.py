"""Rows of the broker table for logs: their directories, and the defaults of topic configs."""
# ruff: noqa: E501  (one row is one line)

from headrace.model.configs.definition import INT64_MAX, ConfigType, Scope, row
from headrace.model.configs.topic import (
    CLEANUP_POLICIES,
    COMPRESSION_TYPES,
    DAY_MS,
    HOUR_MS,
    INDEX_BYTES_DEFAULT,
    INDEX_INTERVAL_BYTES_DEFAULT,
    MESSAGE_BYTES_MAX_DEFAULT,
    MINUTE_MS,
    SEGMENT_BYTES_DEFAULT,
    SEGMENT_BYTES_MIN,
    SEGMENT_DELETE_DELAY_MS_DEFAULT,
    TIMESTAMP_TYPES,
    VALIDATIONS,
)

BOOLEAN, STRING, INT, LONG = ConfigType.BOOLEAN, ConfigType.STRING, ConfigType.INT, ConfigType.LONG
DOUBLE, LIST = ConfigType.DOUBLE, ConfigType.LIST
CLUSTER = Scope.CLUSTER_WIDE

_PLACE = (
    row("log.dir", STRING, "./headrace-data", "The log directory, if log.dirs is not set."),
    row("log.dirs", LIST, None, "The log directories, separated by commas; partitions are distributed over them."),
    row("num.recovery.threads.per.data.dir", INT, 2, "The number of threads per log directory for recovery at startup.", low=1, scope=CLUSTER, honoured=False),
    row("log.dir.failure.timeout.ms", LONG, 30_000, "The time in which a broker must report a failed log directory before it stops.", low=1, honoured=False),
)  # fmt: skip

_RETENTION = (
    row("log.cleanup.policy", LIST, ("delete",), "The default of the topic config cleanup.policy.", choices=CLEANUP_POLICIES, scope=CLUSTER),
    row("log.retention.ms", LONG, None, "The default of the topic config retention.ms; overrides log.retention.minutes and log.retention.hours.", low=-1, scope=CLUSTER),
    row("log.retention.minutes", INT, None, "Like log.retention.ms, in minutes; overrides log.retention.hours.", low=-1),
    row("log.retention.hours", INT, 168, "Like log.retention.ms, in hours.", low=-1),
    row("log.retention.bytes", LONG, -1, "The default of the topic config retention.bytes.", low=-1, scope=CLUSTER),
    row("log.retention.check.interval.ms", LONG, 5 * MINUTE_MS, "The interval of the check for segments to delete.", low=1),
    row("log.segment.delete.delay.ms", LONG, SEGMENT_DELETE_DELAY_MS_DEFAULT, "The default of the topic config file.delete.delay.ms.", low=0, scope=CLUSTER),
    row("log.local.retention.ms", LONG, -2, "The default of the topic config local.retention.ms.", low=-2, scope=CLUSTER, honoured=False),
    row("log.local.retention.bytes", LONG, -2, "The default of the topic config local.retention.bytes.", low=-2, scope=CLUSTER, honoured=False),
)  # fmt: skip

_COMPACTION = (
    row("log.cleaner.enable", BOOLEAN, True, "Whether the log cleaner runs; without it, compacted topics are not compacted."),
    row("log.cleaner.threads", INT, 1, "The number of log cleaner processes.", low=0, scope=CLUSTER),
    row("log.cleaner.io.max.bytes.per.second", DOUBLE, 1.7976931348623157e308, "The maximum bytes per second that compaction reads and writes.", low=0, scope=CLUSTER),
    row("log.cleaner.dedupe.buffer.size", LONG, 128 << 20, "The memory for the deduplication of keys, for all log cleaners together.", low=1, scope=CLUSTER),
    row("log.cleaner.io.buffer.size", INT, 512 << 10, "The memory for I/O buffers, for all log cleaners together.", low=0, scope=CLUSTER, honoured=False),
    row("log.cleaner.io.buffer.load.factor", DOUBLE, 0.9, "The maximum load factor of the deduplication table.", low=0, high=1, scope=CLUSTER),
    row("log.cleaner.backoff.ms", LONG, 15_000, "The time that the log cleaner sleeps when there are no logs to compact.", low=0, scope=CLUSTER),
    row("log.cleaner.min.cleanable.ratio", DOUBLE, 0.5, "The default of the topic config min.cleanable.dirty.ratio.", low=0, high=1, scope=CLUSTER),
    row("log.cleaner.delete.retention.ms", LONG, DAY_MS, "The default of the topic config delete.retention.ms.", low=0, scope=CLUSTER),
    row("log.cleaner.min.compaction.lag.ms", LONG, 0, "The default of the topic config min.compaction.lag.ms.", low=0, scope=CLUSTER),
    row("log.cleaner.max.compaction.lag.ms", LONG, INT64_MAX, "The default of the topic config max.compaction.lag.ms.", low=1, scope=CLUSTER),
)  # fmt: skip

_SEGMENTS = (
    row("log.segment.bytes", INT, SEGMENT_BYTES_DEFAULT, "The default of the topic config segment.bytes.", low=SEGMENT_BYTES_MIN, scope=CLUSTER),
    row("log.roll.ms", LONG, None, "The default of the topic config segment.ms; overrides log.roll.hours.", low=1, scope=CLUSTER),
    row("log.roll.hours", INT, 168, "Like log.roll.ms, in hours.", low=1),
    row("log.roll.jitter.ms", LONG, None, "The default of the topic config segment.jitter.ms; overrides log.roll.jitter.hours.", low=0, honoured=False, scope=CLUSTER),
    row("log.roll.jitter.hours", INT, 0, "Like log.roll.jitter.ms, in hours.", low=0, honoured=False),
    row("log.index.size.max.bytes", INT, INDEX_BYTES_DEFAULT, "The default of the topic config segment.index.bytes.", low=4, scope=CLUSTER),
    row("log.index.interval.bytes", INT, INDEX_INTERVAL_BYTES_DEFAULT, "The default of the topic config index.interval.bytes.", low=0, scope=CLUSTER),
    row("log.flush.interval.messages", LONG, INT64_MAX, "The default of the topic config flush.messages; 1 syncs before every acknowledgement.", low=1, scope=CLUSTER),
    row("log.flush.interval.ms", LONG, None, "The default of the topic config flush.ms.", low=0, scope=CLUSTER),
    row("log.flush.scheduler.interval.ms", LONG, INT64_MAX, "The default of the topic config flush.ms if log.flush.interval.ms is not set.", low=0),
    row("log.flush.offset.checkpoint.interval.ms", INT, MINUTE_MS, "The interval at which recovery points are written to disk.", low=0),
    row("log.flush.start.offset.checkpoint.interval.ms", INT, MINUTE_MS, "The interval at which log start offsets are written to disk.", low=0),
    row("log.preallocate", BOOLEAN, False, "The default of the topic config preallocate.", scope=CLUSTER, honoured=False),
    row("log.initial.task.delay.ms", LONG, 30_000, "The delay of background work on logs after the start.", low=0, honoured=False),
)  # fmt: skip

_MESSAGES = (
    row("headrace.validate.records", STRING, None, "The default of the topic config headrace.validate.records.", choices=VALIDATIONS, scope=CLUSTER),
    row("compression.type", STRING, "producer", "The default of the topic config compression.type.", choices=COMPRESSION_TYPES, scope=CLUSTER),
    row("compression.gzip.level", INT, -1, "The default of the topic config compression.gzip.level.", low=-1, high=9, scope=CLUSTER, honoured=False),
    row("compression.lz4.level", INT, 9, "The default of the topic config compression.lz4.level.", low=1, high=17, scope=CLUSTER, honoured=False),
    row("compression.zstd.level", INT, 3, "The default of the topic config compression.zstd.level.", low=-131_072, high=22, scope=CLUSTER, honoured=False),
    row("message.max.bytes", INT, MESSAGE_BYTES_MAX_DEFAULT, "The default of the topic config max.message.bytes.", low=0, scope=CLUSTER),
    row("log.message.timestamp.type", STRING, "CreateTime", "The default of the topic config message.timestamp.type.", choices=TIMESTAMP_TYPES, scope=CLUSTER),
    row("log.message.timestamp.before.max.ms", LONG, INT64_MAX, "The default of the topic config message.timestamp.before.max.ms.", low=0, scope=CLUSTER),
    row("log.message.timestamp.after.max.ms", LONG, HOUR_MS, "The default of the topic config message.timestamp.after.max.ms.", low=0, scope=CLUSTER),
)  # fmt: skip

LOG_ROWS = (*_PLACE, *_RETENTION, *_COMPACTION, *_SEGMENTS, *_MESSAGES)
