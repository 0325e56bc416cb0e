"""Table of topic configs: all configs of Kafka 4, then those of Headrace itself."""
# ruff: noqa: E501  (one row is one line)

from headrace.model.configs.definition import INT64_MAX, ConfigTable, ConfigType, row

BOOLEAN, STRING, INT, LONG = ConfigType.BOOLEAN, ConfigType.STRING, ConfigType.INT, ConfigType.LONG
DOUBLE, LIST = ConfigType.DOUBLE, ConfigType.LIST

MINUTE_MS = 60_000
HOUR_MS = 60 * MINUTE_MS
DAY_MS = 24 * HOUR_MS

SEGMENT_BYTES_DEFAULT = 1 << 30
SEGMENT_BYTES_MIN = 14
"""Kafka 3's minimum. Kafka 4 requires 1 MiB; tests that wait for a segment to roll need less."""
MESSAGE_BYTES_MAX_DEFAULT = 1_048_588
INDEX_BYTES_DEFAULT = 10 << 20
INDEX_INTERVAL_BYTES_DEFAULT = 4096
SEGMENT_DELETE_DELAY_MS_DEFAULT = MINUTE_MS

COMPRESSION_TYPES = ("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer")
CLEANUP_POLICIES = ("compact", "delete")
TIMESTAMP_TYPES = ("CreateTime", "LogAppendTime")
VALIDATIONS = ("header", "uncompressed", "all")


def _throttled_replicas(text: str) -> str | None:
    """Check a list of partition:broker pairs, or `*`."""
    for item in text.split(",") if text not in ("", "*") else ():
        partition, colon, broker = item.strip().partition(":")
        if not (colon and partition.isdecimal() and broker.isdecimal()):
            return 'must be "*" or a list like 0:1,1:2 (partition:broker)'
    return None


# Name, type, default, one sentence; then the broker configs that set the default, most specific first.
_RETENTION = (
    row("cleanup.policy", LIST, ("delete",), "The cleanup policy of old segments: delete removes them by age and size, compact keeps the last record of each key.", choices=CLEANUP_POLICIES, broker=(("log.cleanup.policy", 1),)),
    row("retention.ms", LONG, 7 * DAY_MS, "The time that a closed segment is kept after its newest record, in milliseconds; -1 keeps it forever.", low=-1, broker=(("log.retention.ms", 1), ("log.retention.minutes", MINUTE_MS), ("log.retention.hours", HOUR_MS))),
    row("retention.bytes", LONG, -1, "The size of a partition above which its oldest segments are deleted; -1 means no limit.", low=-1, broker=(("log.retention.bytes", 1),)),
    row("local.retention.ms", LONG, -2, "The time that tiered segments stay on the local disk; -2 uses retention.ms.", low=-2, honoured=False, broker=(("log.local.retention.ms", 1),)),
    row("local.retention.bytes", LONG, -2, "The size of tiered segments that stay on the local disk; -2 uses retention.bytes.", low=-2, honoured=False, broker=(("log.local.retention.bytes", 1),)),
    row("remote.storage.enable", BOOLEAN, False, "Whether closed segments are copied to remote storage.", refusal="tiered storage is not supported, segments stay on the disks of the broker"),
    row("remote.log.copy.disable", BOOLEAN, False, "Whether copying to remote storage is paused.", honoured=False),
    row("remote.log.delete.on.disable", BOOLEAN, False, "Whether remote data is deleted when remote storage is disabled.", honoured=False),
    row("file.delete.delay.ms", LONG, SEGMENT_DELETE_DELAY_MS_DEFAULT, "The delay before the files of a deleted segment are removed from the disk.", low=0, broker=(("log.segment.delete.delay.ms", 1),)),
)  # fmt: skip

_COMPACTION = (
    row("delete.retention.ms", LONG, DAY_MS, "The time that compaction keeps tombstones.", low=0, broker=(("log.cleaner.delete.retention.ms", 1),)),
    row("max.compaction.lag.ms", LONG, INT64_MAX, "The maximum time that a record stays uncompacted.", low=1, broker=(("log.cleaner.max.compaction.lag.ms", 1),)),
    row("min.compaction.lag.ms", LONG, 0, "The minimum time that a record stays uncompacted.", low=0, broker=(("log.cleaner.min.compaction.lag.ms", 1),)),
    row("headrace.compact.request", STRING, "", "A new value starts a compaction, regardless of min.cleanable.dirty.ratio; headrace compact sets it to the current time."),
    row("min.cleanable.dirty.ratio", DOUBLE, 0.5, "The ratio of uncompacted bytes from which a log is compacted.", low=0, high=1, broker=(("log.cleaner.min.cleanable.ratio", 1),)),
)  # fmt: skip

_SEGMENTS = (
    row("segment.bytes", INT, SEGMENT_BYTES_DEFAULT, "The size at which a segment is rolled.", low=SEGMENT_BYTES_MIN, broker=(("log.segment.bytes", 1),)),
    row("segment.ms", LONG, 7 * DAY_MS, "The age at which a segment is rolled even if it is not full.", low=1, broker=(("log.roll.ms", 1), ("log.roll.hours", HOUR_MS))),
    row("segment.jitter.ms", LONG, 0, "The maximum random reduction of segment.ms, so that partitions do not all roll at once.", low=0, honoured=False, broker=(("log.roll.jitter.ms", 1), ("log.roll.jitter.hours", HOUR_MS))),
    row("segment.index.bytes", INT, INDEX_BYTES_DEFAULT, "The maximum size of the offset index of a segment; a full index rolls the segment.", low=4, broker=(("log.index.size.max.bytes", 1),)),
    row("index.interval.bytes", INT, INDEX_INTERVAL_BYTES_DEFAULT, "The number of log bytes between two entries of the offset index.", low=0, broker=(("log.index.interval.bytes", 1),)),
    row("flush.messages", LONG, INT64_MAX, "The number of records after which the log is synced to disk; 1 syncs before every acknowledgement.", low=1, broker=(("log.flush.interval.messages", 1),)),
    row("flush.ms", LONG, INT64_MAX, "The maximum time before records are synced to disk.", low=0, broker=(("log.flush.interval.ms", 1), ("log.flush.scheduler.interval.ms", 1))),
    row("preallocate", BOOLEAN, False, "Whether a new segment is preallocated as a whole; Headrace always preallocates busy segments in steps.", honoured=False, broker=(("log.preallocate", 1),)),
)  # fmt: skip

_MESSAGES = (
    row("compression.type", STRING, "producer", "The compression type of stored batches; producer keeps that of the producer. Batches with another type are recompressed.", choices=COMPRESSION_TYPES, broker=(("compression.type", 1),)),
    row("compression.gzip.level", INT, -1, "The gzip level when the broker recompresses batches.", low=-1, high=9, honoured=False, broker=(("compression.gzip.level", 1),)),
    row("compression.lz4.level", INT, 9, "The lz4 level when the broker recompresses batches.", low=1, high=17, honoured=False, broker=(("compression.lz4.level", 1),)),
    row("compression.zstd.level", INT, 3, "The zstd level when the broker recompresses batches.", low=-131_072, high=22, honoured=False, broker=(("compression.zstd.level", 1),)),
    row("headrace.validate.records", STRING, None, "The validation of batches before they are stored: header checks the header and the checksum, uncompressed also the records of uncompressed batches, all every record. Without a value it is uncompressed if the compiled helper is in use, and header otherwise.", choices=VALIDATIONS, broker=(("headrace.validate.records", 1),)),
    row("max.message.bytes", INT, MESSAGE_BYTES_MAX_DEFAULT, "The maximum size of a record batch, after compression.", low=0, broker=(("message.max.bytes", 1),)),
    row("message.timestamp.type", STRING, "CreateTime", "Whether the timestamp of a record is its create time or its log append time.", choices=TIMESTAMP_TYPES, broker=(("log.message.timestamp.type", 1),)),
    row("message.timestamp.before.max.ms", LONG, INT64_MAX, "The maximum time by which a record's timestamp may be before the broker's clock.", low=0, broker=(("log.message.timestamp.before.max.ms", 1),)),
    row("message.timestamp.after.max.ms", LONG, HOUR_MS, "The maximum time by which a record's timestamp may be after the broker's clock.", low=0, broker=(("log.message.timestamp.after.max.ms", 1),)),
)  # fmt: skip

_REPLICATION = (
    row("min.insync.replicas", INT, 1, "The minimum number of in-sync replicas for a write with acks=all; 2 by default for topics with three replicas or more. A topic with fewer replicas needs all of them.", low=1, broker=(("min.insync.replicas", 1),), replicated_default=2),
    row("unclean.leader.election.enable", BOOLEAN, False, "Whether a replica that may lack acknowledged records can become leader if no in-sync replica is left.", broker=(("unclean.leader.election.enable", 1),)),
    row("leader.replication.throttled.replicas", LIST, (), "Replicas whose outgoing replication is throttled, as partition:broker.", validator=_throttled_replicas, honoured=False),
    row("follower.replication.throttled.replicas", LIST, (), "Replicas whose incoming replication is throttled, as partition:broker.", validator=_throttled_replicas, honoured=False),
)  # fmt: skip

TOPIC_CONFIGS = ConfigTable(
    "topic",
    sorted((*_RETENTION, *_COMPACTION, *_SEGMENTS, *_MESSAGES, *_REPLICATION), key=lambda key: key.name),
    renamed={
        counterpart.name: key.name
        for key in (*_RETENTION, *_COMPACTION, *_SEGMENTS, *_MESSAGES, *_REPLICATION)
        for counterpart in key.counterparts
        if counterpart.name != key.name
    }
    | {"retention.minutes": "retention.ms", "retention.hours": "retention.ms"},
)
