"""Targets that open folders: a partition's segments and the cluster's metadata, made of mutated bytes.

Whatever the bytes, opening ends, raises only what it documents, believes no length, and serves no batch from the
unclean tail whose checksum is wrong. A recovered log takes new batches, and recovers again to the same.
"""

from functools import cache

from headrace.broker.cluster.committed_metadata import CommittedMetadata
from headrace.broker.cluster.metadata_log import MetadataDamaged, MetadataLog
from headrace.broker.cluster.quorum_state import save_quorum_state
from headrace.broker.cluster.snapshots import SnapshotName, write_snapshot
from headrace.core.controller import records as metadata
from headrace.core.controller.changes import ChangeBuilder
from headrace.core.controller.image import MetadataImage
from headrace.core.raft.entries import EntryKind, HardState, LogEntry
from headrace.core.raft.ids import DirectoryId, Index, ReplicaKey, Term
from headrace.log.config import LogConfig
from headrace.log.errors import LogError
from headrace.log.partition_log import PartitionLog
from headrace.model.ids import LeaderEpoch, NodeId, TopicId, TopicPartition
from headrace.wire.errors import ProtocolError
from headrace.wire.records.builder import NewRecord, build_batch
from headrace.wire.records.header import BASE_OFFSET, HEADER, LAST_OFFSET_DELTA
from headrace.wire.records.markers import Marker, control_batch
from headrace.wire.records.reader import batches, check_batch
from tools.fuzz import damage
from tools.fuzz.memory_disk import MemoryDisk
from tools.fuzz.target import Finding, Target, require

FOLDER = "data/orders-0"
PARTITION = TopicPartition("orders", 0)
TOPIC_ID = TopicId(bytes(range(16)))
NOW_MS = 1_700_000_000_000
CONFIG = LogConfig(segment_bytes=700, index_interval_bytes=100, preallocate=False, snapshot_interval_bytes=300)
READ_BYTES = 400
READS_MAX = 64
CHOICES_BYTES = 3
CLEAN_BIT, AGAIN_BIT, CHECKPOINT_BIT = 0x80, 0x40, 0x20
METADATA_PARENT = "data"
METADATA_REPLICA = ReplicaKey(NodeId(1), DirectoryId("directory"))

Files = dict[str, bytearray]

_LOG_SOURCES = tuple(
    f"log/{name}.py"
    for name in (
        "recovery",
        "replay",
        "walk",
        "segment",
        "index",
        "leader_epochs",
        "producer_snapshot",
        "older_reads",
        "transaction_index",
        "transactions",
    )
)


def targets() -> list[Target]:
    return [
        Target(name="segment-recovery", read=read_segments, seeds=_segment_seeds, sources=_LOG_SOURCES),
        Target(
            name="metadata-recovery",
            read=read_metadata,
            seeds=_metadata_seeds,
            sources=(
                "broker/cluster/metadata_log.py",
                "broker/cluster/snapshots.py",
                "broker/cluster/metadata_batches.py",
                "broker/cluster/quorum_state.py",
                "core/controller/changes.py",
                "core/controller/image.py",
            ),
        ),
    ]


# a partition


def read_segments(data: bytes) -> bool:
    """Three bytes of choices (which folder and how it was left, recovery point, start offset), then damage."""
    if len(data) < CHOICES_BYTES:
        return False
    templates = segment_templates()
    files = {name: bytearray(content) for name, content in templates[(data[0] & 0x0F) % len(templates)].items()}
    damage.apply(data[CHOICES_BYTES:], files)
    clean = bool(data[0] & CLEAN_BIT)
    recovery_point = data[1] % 32 if data[0] & CHECKPOINT_BIT else 0
    disk = MemoryDisk(files)
    try:
        log = _open(disk, clean=clean, recovery_point=recovery_point, start_offset=data[2] % 64 if data[2] > 127 else 0)
    except LogError:
        return False
    if clean or recovery_point:
        _read_doubtful(log)
    else:
        content = _read_checked(log)
        if data[0] & AGAIN_BIT:
            _append_and_recover_again(disk, log, content)
    _search_times(log)
    log.close(clean=False)
    log.files.close_all()
    require(not disk.open_count, "a closed log leaves no file open")
    return True


def _open(disk: MemoryDisk, *, clean: bool, recovery_point: int, start_offset: int) -> PartitionLog:
    return PartitionLog.open(
        disk,
        FOLDER,
        PARTITION,
        TOPIC_ID,
        CONFIG,
        recovery_point=recovery_point,
        start_offset=start_offset,
        clean_shutdown=clean,
        wall_ms=NOW_MS,
    )


def _read_checked(log: PartitionLog) -> list[bytes]:
    """All of the log, as a reader sees it that verifies everything."""
    require(log.start_offset <= log.end_offset, "the log ends after it starts")
    found: list[bytes] = []
    offset = log.start_offset
    for _ in range(READS_MAX):
        part = log.read(offset, READ_BYTES, log.end_offset, True)
        if part is None:
            require(offset == log.end_offset, "the log is readable to its end")
            return found
        content = log.disk.read(part.file, part.length, part.position)
        require(len(content) == part.length > 0, "a slice lies inside its file")
        aborted = log.transactions.aborted(offset, part, log.end_offset)
        require(all(first < log.end_offset for _, first in aborted), "aborted transactions lie in the log")
        for batch in batches(content):
            fields = check_batch(batch)
            require(fields[BASE_OFFSET] + fields[LAST_OFFSET_DELTA] >= offset, "offsets rise")
            offset = fields[BASE_OFFSET] + fields[LAST_OFFSET_DELTA] + 1
            found.append(bytes(batch))
    raise Finding("reading the log does not end")


def _read_doubtful(log: PartitionLog) -> None:
    """Below the recovery point nothing was looked at again: a read may fail, but only as documented."""
    step = max((log.end_offset - log.start_offset) // 16, 1)
    for number in range(17):
        offset = min(log.start_offset + number * step, log.end_offset)
        try:
            part = log.read(offset, READ_BYTES, log.end_offset, True)
            if part is not None:
                require(part.position >= 0 and part.length > 0, "a slice has a place")
                log.transactions.aborted(offset, part, log.end_offset)
        except (LogError, OSError):
            pass


def _search_times(log: PartitionLog) -> None:
    for search in (log.offset_at_time(NOW_MS + 3, log.end_offset), log.max_timestamp_offset()):
        try:
            search()
        except (LogError, ProtocolError, OSError):
            pass


def _append_and_recover_again(disk: MemoryDisk, log: PartitionLog, content: list[bytes]) -> None:
    batch = build_batch([NewRecord(NOW_MS, b"k", b"after the recovery")])
    log.stage(memoryview(batch), HEADER.unpack_from(batch), max(log.epochs.latest, 0), NOW_MS)
    log.write_staged()
    end_offset = log.end_offset
    twin = MemoryDisk({name: bytearray(file) for name, file in disk.files.items()})
    again = _open(twin, clean=False, recovery_point=0, start_offset=log.start_offset)
    require(again.end_offset == end_offset, "a second recovery finds the same end")
    require(_read_checked(again) == [*content, bytes(batch)], "a second recovery finds the same batches")


@cache
def segment_templates() -> tuple[dict[str, bytes], ...]:
    return (
        _folder(batches_count=4, segments=False),
        _folder(batches_count=14, segments=True),
        _folder(batches_count=3, segments=False, zeros=400),
        _folder(batches_count=9, segments=True, zeros=200, flushed=True),
        {},
        _transacted_folder(),
    )


def _transacted_folder() -> dict[str, bytes]:
    """Transactions that are committed, aborted and open, across several segments."""
    files: Files = {}
    log = _open(MemoryDisk(files), clean=False, recovery_point=0, start_offset=0)
    for number in range(8):
        for producer in range(2):
            batch = build_batch(
                [NewRecord(NOW_MS, b"k", b"v" * 40)],
                producer_id=producer,
                producer_epoch=0,
                base_sequence=number,
                transactional=True,
            )
            log.stage(memoryview(batch), HEADER.unpack_from(batch), 0, NOW_MS)
        marker = control_batch(
            producer_id=number % 2, producer_epoch=0, commit=number % 4 == 3, coordinator_epoch=0, timestamp=NOW_MS
        )
        fields = HEADER.unpack_from(marker)
        log.transactions.stage_marker(memoryview(marker), fields, Marker(number % 4 == 3, 0), 0, NOW_MS)
        log.write_staged()
    log.close()
    return {name: bytes(content) for name, content in files.items()}


def _folder(*, batches_count: int, segments: bool, zeros: int = 0, flushed: bool = False) -> dict[str, bytes]:
    files: Files = {}
    config = CONFIG if segments else LogConfig(index_interval_bytes=100, preallocate=False)
    log = PartitionLog.open(
        MemoryDisk(files),
        FOLDER,
        PARTITION,
        TOPIC_ID,
        config,
        recovery_point=0,
        start_offset=0,
        clean_shutdown=False,
        wall_ms=NOW_MS,
    )
    for number in range(batches_count):
        batch = build_batch(
            [NewRecord(NOW_MS + number, b"key", b"value %d" % number) for _ in range(1 + number % 3)],
            producer_id=number % 2 - 1,
            producer_epoch=0,
            base_sequence=number,
            compression=number % 5,
        )
        log.stage(memoryview(batch), HEADER.unpack_from(batch), number // 4, NOW_MS)
        log.write_staged()
        if flushed and (work := log.flush_work()) is not None:
            work.run_inline()
    log.close(clean=not flushed)
    last = max(name for name in files if name.endswith(".log"))
    files[last].extend(bytes(zeros))
    return {name: bytes(content) for name, content in files.items()}


def _segment_seeds() -> list[bytes]:
    steps = bytes((0, 9, 0, 0, 0))
    return [
        bytes((flags | template, point, start)) + extra
        for template in range(6)
        for flags in (0, CLEAN_BIT, AGAIN_BIT, CHECKPOINT_BIT, AGAIN_BIT | CHECKPOINT_BIT)
        for point, start in ((0, 0), (5, 0), (9, 130))
        for extra in (
            b"",
            steps,
            *(bytes((file, kind, 0, 50 * file, 3)) * 2 for file in range(4) for kind in range(2, damage.KINDS)),
        )
    ]


# the metadata


def read_metadata(data: bytes) -> bool:
    if len(data) < CHOICES_BYTES:
        return False
    templates = _metadata_templates()
    files = {name: bytearray(content) for name, content in templates[(data[0] & 0x0F) % len(templates)].items()}
    damage.apply(data[CHOICES_BYTES:], files)
    disk = MemoryDisk(files)
    try:
        log, replay = MetadataLog.open(
            disk,
            METADATA_PARENT,
            me=METADATA_REPLICA,
            recovery_point=data[1] % 16 if data[0] & CHECKPOINT_BIT else 0,
            clean_shutdown=bool(data[0] & CLEAN_BIT),
            wall_ms=NOW_MS,
        )
        if replay.stored.entries:
            CommittedMetadata(replay.image).apply(replay.stored.entries, {})
    except (MetadataDamaged, ProtocolError, OSError):
        return False
    require(replay.image.version == log.end_offset, "the image is the sum of the log")
    again = MetadataImage()
    for record in replay.image.snapshot_records():
        again.apply(metadata.decode_record(metadata.encode_record(record)))
    require(again == replay.image, "an image can be written as records")
    return True


@cache
def _metadata_templates() -> tuple[dict[str, bytes], ...]:
    changes = metadata_changes()
    plain: Files = {}
    _write_metadata(plain, changes)
    snapshot: Files = {}
    _write_metadata(snapshot, changes)
    image = MetadataImage()
    for change in changes[:4]:
        image.apply(change)
    folder = next(iter(snapshot)).rpartition("/")[0]
    name = SnapshotName(3, 1)  # the voter set, and two entries with these changes
    write_snapshot(MemoryDisk(snapshot), folder, name, image, voters=(METADATA_REPLICA,), wall_ms=NOW_MS)
    return tuple({name: bytes(content) for name, content in files.items()} for files in (plain, snapshot))


def _write_metadata(files: Files, changes: list[metadata.Record]) -> None:
    disk = MemoryDisk(files)
    log, _ = MetadataLog.open(disk, METADATA_PARENT, me=METADATA_REPLICA, wall_ms=NOW_MS)
    save_quorum_state(disk, log.folder, HardState(term=Term(1), voted_for=METADATA_REPLICA))
    voters = LogEntry(term=Term(1), index=Index(1), kind=EntryKind.VOTERS, voters=(METADATA_REPLICA,))
    log.append([voters], NOW_MS)
    for begin in range(0, len(changes), 2):
        builder = ChangeBuilder(metadata.METADATA_VERSION_LATEST)
        builder.add(changes[begin : begin + 2])
        entry = LogEntry(term=Term(1), index=Index(log.end_offset + 1), payload=builder.build())
        log.append([entry], NOW_MS)


def metadata_changes() -> list[metadata.Record]:
    topic, other = TopicId(b"t" * 16), TopicId(b"u" * 16)
    node = NodeId(1)
    endpoint = metadata.Endpoint("PLAINTEXT", "127.0.0.1", 9092, "PLAINTEXT")
    return [
        metadata.FeatureLevelRecord(metadata.METADATA_VERSION, metadata.METADATA_VERSION_LATEST),
        metadata.RegisterBrokerRecord(node, b"i" * 16, 1, (endpoint,), None, "host"),
        metadata.TopicRecord("orders", topic),
        metadata.PartitionRecord(topic, 0, (node,), (node,), node, LeaderEpoch(0), 0, (b"d" * 16,)),
        metadata.ConfigRecord(metadata.ResourceKind.TOPIC, "orders", "retention.ms", "1000"),
        metadata.PartitionChangeRecord(topic, 0, leader=node),
        metadata.ProducerIdsRecord(node, 2000),
        metadata.TopicRecord("more", other),
        metadata.RemoveTopicRecord(other),
        metadata.ConfigRecord(metadata.ResourceKind.TOPIC, "orders", "retention.ms", None),
    ]


def _metadata_seeds() -> list[bytes]:
    return [
        bytes((flags | template, point, 0)) + extra
        for template in range(2)
        for flags in (0, CLEAN_BIT, CHECKPOINT_BIT)
        for point in (0, 6)
        for extra in (b"", *(bytes((file, kind, 0, 30, 3, 0, 12, 0, 0, 0)) for file in range(4) for kind in range(13)))
    ]
