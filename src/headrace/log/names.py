"""The names of files and folders in a log directory, as Kafka spells them."""

import re

from headrace.model.ids import TopicPartition

LOG = ".log"
INDEX = ".index"
TIME_INDEX = ".timeindex"
SNAPSHOT = ".snapshot"
DELETED = ".deleted"
TEMPORARY = ".tmp"
TRANSACTION_INDEX = ".txnindex"
CLEANED = ".cleaned"
SWAP = ".swap"

INDEXES = (INDEX, TIME_INDEX, TRANSACTION_INDEX)
SEGMENT_FILES = (LOG, *INDEXES, SNAPSHOT)
"""All that may begin with a segment's base offset."""

LEADER_EPOCHS = "leader-epoch-checkpoint"
PARTITION_METADATA = "partition.metadata"
META_PROPERTIES = "meta.properties"
RECOVERY_POINTS = "recovery-point-offset-checkpoint"
START_OFFSETS = "log-start-offset-checkpoint"
START_OFFSETS_COPY = "headrace-log-start-offset-checkpoint"
"""The same once more: nothing else says which records were deleted."""
HIGH_WATERMARKS = "replication-offset-checkpoint"
CLEANER_OFFSETS = "cleaner-offset-checkpoint"
UPTIME = "headrace-uptime-checkpoint"
CLEAN_SHUTDOWN = ".kafka_cleanshutdown"
LOCK = ".lock"
RESERVE = ".headrace-reserve"
COMPACTED = ".headrace-compacted"
"""In a partition's folder: compaction has been at work, so that offsets may be missing."""
REPAIRED = ".headrace-repaired"
"""In a partition's folder: its owner has accepted that records are missing, in the middle or at the end."""
UNSYNCED = ".headrace-unsynced"
"""In a partition's folder: a sync failed, and what it was to cover has not been written again since."""
SCANS = ".headrace-scans"
"""In a log directory: second names of segments, for jobs that read them outside the broker."""
KNOWN_DIRECTORIES = "headrace-directories"

DELETE_FOLDER = "-delete"
STRAY_FOLDER = "-stray"
FOLDER_NAME_BYTES_MAX = 255

_SEGMENT_FILE = re.compile(r"(\d{20})\.(log|index|timeindex|txnindex|snapshot)")
_PARTITION_FOLDER = re.compile(r"([A-Za-z0-9._-]+)-(\d{1,10})")


def segment_stem(folder: str, base_offset: int) -> str:
    """The path of a segment's files without their suffix."""
    return f"{folder}/{base_offset:020d}"


def parse_segment_file(name: str) -> tuple[int, str] | None:
    """Base offset and suffix of a segment's file; None for any other name."""
    match = _SEGMENT_FILE.fullmatch(name)
    return (int(match[1]), f".{match[2]}") if match else None


def cleaned(path: str, unique: str) -> str:
    """Where compaction writes a segment's file; Kafka, too, removes at its start what ends like this."""
    return f"{path}.{unique}{CLEANED}"


def parse_partition_folder(name: str) -> TopicPartition | None:
    if name.endswith((DELETE_FOLDER, STRAY_FOLDER)):
        return None
    match = _PARTITION_FOLDER.fullmatch(name)
    return TopicPartition(match[1], int(match[2])) if match else None


def retired_folder(topic_partition: TopicPartition, unique_hex: str, suffix: str) -> str:
    """Where a partition's folder goes to be removed; the topic's name is cut so that the whole fits a file name."""
    tail = f"-{topic_partition.partition}.{unique_hex}{suffix}"
    return topic_partition.topic[: FOLDER_NAME_BYTES_MAX - len(tail)] + tail
