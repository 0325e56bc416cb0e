"""The table of topic configs: every one that Kafka 4 describes, then Headrace's own."""
# ruff: noqa: E501  (one row is one line)

from headrace.model.configs.definition import INT64_MAX, ConfigTable, ConfigType, row

BOOLEAN, STRING, INT, LONG = ConfigType.BOOLEAN, ConfigType.STRING, ConfigType.INT, ConfigType.LONG
DOUBLE, LIST = ConfigType.DOUBLE, ConfigType.LIST

MINUTE_MS = 60_000
HOUR_MS = 60 * MINUTE_MS
DAY_MS = 24 * HOUR_MS

SEGMENT_BYTES_DEFAULT = 1 << 30
SEGMENT_BYTES_MIN = 14
"""Kafka 3's minimum. Kafka 4 asks for 1 MiB; tests that must see a segment roll need less."""
MESSAGE_BYTES_MAX_DEFAULT = 1_048_588
INDEX_BYTES_DEFAULT = 10 << 20
INDEX_INTERVAL_BYTES_DEFAULT = 4096
SEGMENT_DELETE_DELAY_MS_DEFAULT = MINUTE_MS

COMPRESSION_TYPES = ("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer")
CLEANUP_POLICIES = ("compact", "delete")
TIMESTAMP_TYPES = ("CreateTime", "LogAppendTime")
VALIDATIONS = ("header", "uncompressed", "all")


def _throttled_replicas(text: str) -> str | None:
    """`*`, or a list of partition:broker pairs."""
    for item in text.split(",") if text not in ("", "*") else ():
        partition, colon, broker = item.strip().partition(":")
        if not (colon and partition.isdecimal() and broker.isdecimal()):
            return 'must be "*" or a list like 0:1,1:2 (partition:broker)'
    return None


# Name, type, default, one sentence; then the broker configs that give the default, the most specific first.
_RETENTION = (
    row("cleanup.policy", LIST, ("delete",), "What becomes of old segments: delete drops them by age and size, compact keeps the last record of each key.", choices=CLEANUP_POLICIES, broker=(("log.cleanup.policy", 1),)),
    row("retention.ms", LONG, 7 * DAY_MS, "How long a closed segment is kept after its newest record, in milliseconds; -1 keeps it for ever.", low=-1, broker=(("log.retention.ms", 1), ("log.retention.minutes", MINUTE_MS), ("log.retention.hours", HOUR_MS))),
    row("retention.bytes", LONG, -1, "How many bytes a partition keeps before its oldest segments are deleted; -1 sets no limit.", low=-1, broker=(("log.retention.bytes", 1),)),
    row("local.retention.ms", LONG, -2, "How long segments stay on local disk once tiered; -2 follows retention.ms.", low=-2, honoured=False, broker=(("log.local.retention.ms", 1),)),
    row("local.retention.bytes", LONG, -2, "How many bytes stay on local disk once tiered; -2 follows retention.bytes.", low=-2, honoured=False, broker=(("log.local.retention.bytes", 1),)),
    row("remote.storage.enable", BOOLEAN, False, "Whether closed segments are copied to remote storage.", refusal="tiered storage is not served, segments stay on the disks of the broker"),
    row("remote.log.copy.disable", BOOLEAN, False, "Whether copying to remote storage is paused.", honoured=False),
    row("remote.log.delete.on.disable", BOOLEAN, False, "Whether remote data is deleted when remote storage is turned off.", honoured=False),
    row("file.delete.delay.ms", LONG, SEGMENT_DELETE_DELAY_MS_DEFAULT, "How long a deleted segment's files wait before they leave the disk.", low=0, broker=(("log.segment.delete.delay.ms", 1),)),
)  # fmt: skip

_COMPACTION = (
    row("delete.retention.ms", LONG, DAY_MS, "How long compaction keeps the marker of a deleted key.", low=0, broker=(("log.cleaner.delete.retention.ms", 1),)),
    row("max.compaction.lag.ms", LONG, INT64_MAX, "The longest a record may stay uncompacted.", low=1, broker=(("log.cleaner.max.compaction.lag.ms", 1),)),
    row("min.compaction.lag.ms", LONG, 0, "The shortest time a record stays uncompacted.", low=0, broker=(("log.cleaner.min.compaction.lag.ms", 1),)),
    row("headrace.compact.request", STRING, "", "Any new value asks for a compaction now, also of what min.cleanable.dirty.ratio would let wait; headrace compact sets it to the time."),
    row("min.cleanable.dirty.ratio", DOUBLE, 0.5, "The share of uncompacted bytes from which a log is compacted.", low=0, high=1, broker=(("log.cleaner.min.cleanable.ratio", 1),)),
)  # fmt: skip

_SEGMENTS = (
    row("segment.bytes", INT, SEGMENT_BYTES_DEFAULT, "The size at which a segment is closed and the next one begun.", low=SEGMENT_BYTES_MIN, broker=(("log.segment.bytes", 1),)),
    row("segment.ms", LONG, 7 * DAY_MS, "The age at which a segment is closed even if it is not full.", low=1, broker=(("log.roll.ms", 1), ("log.roll.hours", HOUR_MS))),
    row("segment.jitter.ms", LONG, 0, "The most by which a segment's age limit is shortened at random, so that partitions do not all roll at once.", low=0, honoured=False, broker=(("log.roll.jitter.ms", 1), ("log.roll.jitter.hours", HOUR_MS))),
    row("segment.index.bytes", INT, INDEX_BYTES_DEFAULT, "The largest size of a segment's offset index; a full index closes the segment.", low=4, broker=(("log.index.size.max.bytes", 1),)),
    row("index.interval.bytes", INT, INDEX_INTERVAL_BYTES_DEFAULT, "How many bytes of log lie between two entries of the offset index.", low=0, broker=(("log.index.interval.bytes", 1),)),
    row("flush.messages", LONG, INT64_MAX, "How many records may be appended before they are synced to disk; 1 syncs before every acknowledgement.", low=1, broker=(("log.flush.interval.messages", 1),)),
    row("flush.ms", LONG, INT64_MAX, "How long records may wait to be synced to disk.", low=0, broker=(("log.flush.interval.ms", 1), ("log.flush.scheduler.interval.ms", 1))),
    row("preallocate", BOOLEAN, False, "Whether a whole segment is reserved on disk when it is begun; Headrace reserves busy segments piecewise in any case.", honoured=False, broker=(("log.preallocate", 1),)),
)  # fmt: skip

_MESSAGES = (
    row("compression.type", STRING, "producer", "The compression of stored batches; producer keeps what was sent. Batches under another codec are compressed anew.", choices=COMPRESSION_TYPES, broker=(("compression.type", 1),)),
    row("compression.gzip.level", INT, -1, "The gzip level when the broker compresses again.", low=-1, high=9, honoured=False, broker=(("compression.gzip.level", 1),)),
    row("compression.lz4.level", INT, 9, "The lz4 level when the broker compresses again.", low=1, high=17, honoured=False, broker=(("compression.lz4.level", 1),)),
    row("compression.zstd.level", INT, 3, "The zstd level when the broker compresses again.", low=-131_072, high=22, honoured=False, broker=(("compression.zstd.level", 1),)),
    row("headrace.validate.records", STRING, None, "How far batches are checked before they are stored: header looks at the header and the checksum, uncompressed also at the records of uncompressed batches, all at every record. Without a value it is uncompressed where the compiled helper is in use, and header elsewhere.", choices=VALIDATIONS, broker=(("headrace.validate.records", 1),)),
    row("max.message.bytes", INT, MESSAGE_BYTES_MAX_DEFAULT, "The largest record batch accepted, after compression.", low=0, broker=(("message.max.bytes", 1),)),
    row("message.timestamp.type", STRING, "CreateTime", "Whether a record carries the time its producer gave or the time it was appended.", choices=TIMESTAMP_TYPES, broker=(("log.message.timestamp.type", 1),)),
    row("message.timestamp.before.max.ms", LONG, INT64_MAX, "How far a record's time may lie behind the broker's.", low=0, broker=(("log.message.timestamp.before.max.ms", 1),)),
    row("message.timestamp.after.max.ms", LONG, HOUR_MS, "How far a record's time may lie ahead of the broker's.", low=0, broker=(("log.message.timestamp.after.max.ms", 1),)),
)  # fmt: skip

_REPLICATION = (
    row("min.insync.replicas", INT, 1, "How many replicas must hold a write before acks=all is answered.", low=1, broker=(("min.insync.replicas", 1),)),
    row("unclean.leader.election.enable", BOOLEAN, False, "Whether a replica that may lack acknowledged records can become leader when no other is left.", honoured=False, broker=(("unclean.leader.election.enable", 1),)),
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
