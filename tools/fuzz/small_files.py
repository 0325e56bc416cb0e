"""Targets of the small files a node keeps: indexes, snapshots, checkpoints, identities, metadata records, configs."""

from collections.abc import Callable
from struct import Struct
from typing import TypeVar

import crc32c

from headrace.core.controller import records as metadata
from headrace.log import checkpoints, names, producer_snapshot
from headrace.log.errors import CorruptFile
from headrace.log.index import OFFSET_ENTRY, TIME_ENTRY, IndexFile
from headrace.log.leader_epochs import LeaderEpochs
from headrace.log.open_files import OpenFiles
from headrace.log.transaction_index import AbortedTransaction, TransactionIndex, encode
from headrace.model.configs import sources
from headrace.model.configs.definition import ConfigError
from headrace.model.ids import TopicId, TopicPartition
from tools.fuzz.memory_disk import MemoryDisk
from tools.fuzz.recovery import metadata_changes, segment_templates
from tools.fuzz.target import Target, require

INDEX_PATH = "data/orders-0/00000000000000000000.index"
NOW_MS = 1_700_000_000_000
_CRC = Struct(">hI")

T = TypeVar("T")


def targets() -> list[Target]:
    text = "log/checkpoints.py"
    return [
        Target(name="offset-index", read=_index_reader(OFFSET_ENTRY), seeds=_index_seeds, sources=("log/index.py",)),
        Target(name="time-index", read=_index_reader(TIME_ENTRY), seeds=_index_seeds, sources=("log/index.py",)),
        Target(
            name="producer-snapshot",
            read=read_producer_snapshot,
            seeds=_snapshot_seeds,
            sources=("log/producer_snapshot.py",),
        ),
        Target(
            name="transaction-index",
            read=read_transaction_index,
            seeds=_transaction_index_seeds,
            sources=("log/transaction_index.py",),
        ),
        Target(name="leader-epochs", read=read_epochs, seeds=_epoch_seeds, sources=("log/leader_epochs.py",)),
        Target(name="offset-checkpoint", read=read_offsets, seeds=_offset_seeds, sources=(text,)),
        Target(name="partition-metadata", read=read_identity, seeds=_identity_seeds, sources=(text,)),
        Target(name="meta-properties", read=read_properties, seeds=_property_seeds, sources=(text,)),
        Target(name="metadata-record", read=read_record, seeds=_record_seeds, sources=("core/controller/records.py",)),
        Target(
            name="config-properties",
            read=_config_reader(sources.parse_properties),
            seeds=_properties_file_seeds,
            sources=("model/configs/sources.py",),
        ),
        Target(
            name="config-toml",
            read=_config_reader(sources.parse_toml),
            seeds=_toml_seeds,
            sources=("model/configs/sources.py",),
        ),
    ]


def _or_none(decode: Callable[[bytes], T], content: bytes) -> T | None:
    try:
        return decode(content)
    except CorruptFile:
        return None


# indexes


def _index_reader(entry: Struct) -> Callable[[bytes], bool]:
    def read(data: bytes) -> bool:
        """The first byte is searched for; the rest is the file."""
        if not data:
            return False
        files = OpenFiles(MemoryDisk({INDEX_PATH: bytearray(data[1:])}))
        index = IndexFile(files, INDEX_PATH, entry, 1 << 20)
        if not index.load() or not index.is_ascending(thorough=True):
            return False
        value = data[0] - 2 if index.last is None else index.last[0] * data[0] // 200
        found = index.floor(value)
        require(found is None or found[0] <= value, "a floor is not above")
        by_second = index.floor_by_second(value)
        require(by_second is None or by_second[1] <= value, "a floor is not above")
        count = index.count_through(value)
        require(0 <= count <= len(index) and (found is None) == (count == 0), "what is counted is there")
        index.keep(count)
        require(index.last == found, "what is kept ends with the floor")
        return True

    return read


def _index_seeds() -> list[bytes]:
    lengths = (0, 1, 3, 200)
    offsets = [b"".join(OFFSET_ENTRY.pack(10 * n, 4000 * n) for n in range(1, length + 1)) for length in lengths]
    times = [b"".join(TIME_ENTRY.pack(NOW_MS + n, 10 * n) for n in range(1, length + 1)) for length in lengths]
    return [bytes((wanted,)) + content for content in (*offsets, *times) for wanted in (0, 100, 200, 255)]


def read_transaction_index(data: bytes) -> bool:
    """The first byte is searched for; the rest is the file."""
    if not data:
        return False
    index = TransactionIndex(OpenFiles(MemoryDisk({INDEX_PATH: bytearray(data[1:])})), INDEX_PATH)
    if not index.load(base_offset=0, next_offset=1 << 20):
        return False
    everything, offset = list(index.since(0)), data[0]
    require(len(everything) == len(index), "what is counted is there")
    found = list(index.since(offset))
    require(found == [entry for entry in everything if entry.last_offset >= offset], "a search finds all")
    index.keep_below(offset)
    require([*index.since(0), *found] == everything, "what is kept ends where the rest began")
    return True


def _transaction_index_seeds() -> list[bytes]:
    entries = [AbortedTransaction(7, 3 * n, 3 * n + 2, 3 * n + 3) for n in range(80)]
    return [bytes((wanted,)) + encode(entries[:length]) for length in (0, 1, 3, 80) for wanted in (0, 5, 100, 255)]


# states


def read_producer_snapshot(data: bytes) -> bool:
    """The first byte chooses whether the checksum is made true."""
    if not data:
        return False
    content = bytearray(data[1:])
    if data[0] & 1 and len(content) >= _CRC.size:
        _CRC.pack_into(content, 0, producer_snapshot.VERSION, crc32c.crc32c(bytes(content[_CRC.size :])))
    states = _or_none(producer_snapshot.decode, bytes(content))
    if states is None:
        return False
    states.describe()
    states.first_unstable_offset(5)
    states.expire(NOW_MS, 1)
    return True


def _snapshot_seeds() -> list[bytes]:
    found = [
        content for folder in segment_templates() for name, content in folder.items() if name.endswith(names.SNAPSHOT)
    ]
    return [bytes((mended,)) + content for mended in (0, 1) for content in (*found, found[-1][:-1])]


def read_epochs(data: bytes) -> bool:
    epochs = _or_none(LeaderEpochs.decode, data)
    if epochs is None:
        return False
    require(LeaderEpochs.decode(epochs.encode()).starts == epochs.starts, "epochs are written as they are read")
    epochs.end_of(3, 100)
    epochs.epoch_at(7)
    epochs.truncate_before(4)
    epochs.truncate_from(2)
    epochs.assign(9, 9)
    return True


def _epoch_seeds() -> list[bytes]:
    return [b"0\n0\n", b"0\n1\n0 0\n", b"0\n3\n0 0\n1 7\n4 100\n", b"0\n2\n1 5\n0 7\n", b"1\n0\n"]


# texts


def read_offsets(data: bytes) -> bool:
    offsets = _or_none(checkpoints.decode_offsets, data)
    if offsets is None:
        return False
    require(checkpoints.decode_offsets(checkpoints.encode_offsets(offsets)) == offsets, "written as it is read")
    return True


def _offset_seeds() -> list[bytes]:
    offsets = {TopicPartition("orders", 0): 5, TopicPartition("a.b_c-d", 11): 1 << 60}
    return [checkpoints.encode_offsets({}), checkpoints.encode_offsets(offsets), b"0\n1\norders 0 -1\n", b"0\n2\na 0 0"]


def read_identity(data: bytes) -> bool:
    topic_id = _or_none(checkpoints.decode_partition_metadata, data)
    if topic_id is None:
        return False
    require(len(topic_id) == checkpoints.UUID_BYTES, "a topic id has 16 bytes")
    require(
        checkpoints.decode_partition_metadata(checkpoints.encode_partition_metadata(topic_id)) == topic_id,
        "written as it is read",
    )
    return True


def _identity_seeds() -> list[bytes]:
    return [checkpoints.encode_partition_metadata(TopicId(content)) for content in (bytes(16), b"\xff" * 16, b"i" * 16)]


def read_properties(data: bytes) -> bool:
    properties = _or_none(checkpoints.decode_properties, data)
    if properties is None:
        return False
    try:
        checkpoints.decode_uuid(properties.get("directory.id", ""))
    except CorruptFile:
        pass
    return True


def _property_seeds() -> list[bytes]:
    identity = checkpoints.encode_uuid(b"d" * 16)
    return [f"#\nversion=1\ncluster.id=abc\nnode.id=1\ndirectory.id={identity}\n".encode(), b"", b"a=b", b"x"]


def read_record(data: bytes) -> bool:
    try:
        record = metadata.decode_record(data)
    except metadata.RecordError:
        return False
    require(metadata.decode_record(metadata.encode_record(record)) == record, "a record is written as it is read")
    return True


def _record_seeds() -> list[bytes]:
    return [metadata.encode_record(record) for record in metadata_changes()]


# configs


def _config_reader(parse: Callable[[str, str], list[sources.Setting]]) -> Callable[[bytes], bool]:
    def read(data: bytes) -> bool:
        """Text as the command line reads it: bytes that are no UTF-8 never come here, so they are replaced."""
        try:
            settings = parse(data.decode(errors="replace"), "file")
            sources.merged(settings)
        except ConfigError:
            return False
        return True

    return read


def _properties_file_seeds() -> list[bytes]:
    return [
        b"log.retention.ms=1000\nnode.id : 3\n# comment\n! other\n",
        b"listeners = PLAINTEXT://127.0.0.1:9092, \\\n   CONTROLLER://:9093\nlog.dirs=/tmp/\\u0041\\t\n",
        b"log.segment.bytes 1048576\r\nlog.cleanup.policy=compact,delete\rmessage.max.bytes=99",
        b"advertised.listeners=PLAINTEXT://[::1]:1\nlistener.security.protocol.map=A:PLAINTEXT\n",
    ]


def _toml_seeds() -> list[bytes]:
    return [
        b'log.retention.ms = 1000\n"node.id" = 3\n',
        b'[log]\nsegment.bytes = 1048576\n[log.cleanup]\npolicy = ["compact", "delete"]\n',
        b'listeners = """PLAINTEXT://127.0.0.1:9092"""\n[a.b.c]\nd = 1979-05-27\n[[t]]\nx={y=1.5e3}\n',
    ]
