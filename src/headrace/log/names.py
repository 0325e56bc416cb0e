"""Names of files and folders in a log directory, as Kafka spells them."""

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
"""Every suffix that may follow a segment's base offset."""

LEADER_EPOCHS = "leader-epoch-checkpoint"
PARTITION_METADATA = "partition.metadata"
META_PROPERTIES = "meta.properties"
CLUSTER_KEY = "cluster.key"
"""In the home directory: the secret by which the nodes of a cluster recognise each other."""
RECOVERY_POINTS = "recovery-point-offset-checkpoint"
START_OFFSETS = "log-start-offset-checkpoint"
START_OFFSETS_COPY = "headrace-log-start-offset-checkpoint"
"""A second copy of the start offsets: no other file records which records were deleted."""
HIGH_WATERMARKS = "replication-offset-checkpoint"
CLEANER_OFFSETS = "cleaner-offset-checkpoint"
UPTIME = "headrace-uptime-checkpoint"
CLEAN_SHUTDOWN = ".kafka_cleanshutdown"
LOCK = ".lock"
RESERVE = ".headrace-reserve"
COMPACTED = ".headrace-compacted"
"""In a partition's folder: compaction has run, so offsets may be missing."""
REPAIRED = ".headrace-repaired"
"""In a partition's folder: the operator has accepted that records are missing, in the middle or at the end."""
UNSYNCED = ".headrace-unsynced"
"""In a partition's folder: a sync failed, and the bytes it covered have not been written again since."""
TRUNCATION = ".headrace-truncation"
"""In a partition's folder: a truncation that is not finished, or one before which recovery points may be stored."""
SCANS = ".headrace-scans"
"""In a log directory: hard links to segments, for jobs that read them outside the broker."""
KNOWN_DIRECTORIES = "headrace-directories"

DELETE_FOLDER = "-delete"
STRAY_FOLDER = "-stray"
FOLDER_NAME_BYTES_MAX = 255

_SEGMENT_FILE = re.compile(r"(\d{20})\.(log|index|timeindex|txnindex|snapshot)")
_PARTITION_FOLDER = re.compile(r"([A-Za-z0-9._-]+)-(\d{1,10})")


def segment_stem(folder: str, base_offset: int) -> str:
    """Return the path of a segment's files without the suffix."""
    return f"{folder}/{base_offset:020d}"


def parse_segment_file(name: str) -> tuple[int, str] | None:
    """Return the base offset and suffix of a segment's file; None for any other name."""
    match = _SEGMENT_FILE.fullmatch(name)
    return (int(match[1]), f".{match[2]}") if match else None


def cleaned(path: str, unique: str) -> str:
    """Return the path at which compaction writes a segment's file; at start, Kafka too removes files with this
    suffix.
    """
    return f"{path}.{unique}{CLEANED}"


def parse_partition_folder(name: str) -> TopicPartition | None:
    if name.endswith((DELETE_FOLDER, STRAY_FOLDER)):
        return None
    match = _PARTITION_FOLDER.fullmatch(name)
    return TopicPartition(match[1], int(match[2])) if match else None


def retired_folder(topic_partition: TopicPartition, unique_hex: str, suffix: str) -> str:
    """Return the path to which a partition's folder is renamed for removal; the topic name is shortened to fit a file
    name.
    """
    tail = f"-{topic_partition.partition}.{unique_hex}{suffix}"
    return topic_partition.topic[: FOLDER_NAME_BYTES_MAX - len(tail)] + tail
