"""The small text files of a log directory: the offsets of its partitions, their topic ids, and its own identity."""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error as Base64Error
from collections.abc import Mapping

from headrace.model.ids import TopicId, TopicPartition

from .errors import CorruptFile

CHECKPOINT_BYTES_MAX = 256 << 20
PROPERTIES_BYTES_MAX = 1 << 20
UUID_BYTES = 16

_VERSION = "0"


def encode_offsets(offsets: Mapping[TopicPartition, int]) -> bytes:
    """Version, count, then `topic partition offset` lines."""
    rows = sorted((tp.topic, tp.partition, offset) for tp, offset in offsets.items())
    lines = [_VERSION, str(len(rows)), *(f"{topic} {partition} {offset}" for topic, partition, offset in rows), ""]
    return "\n".join(lines).encode()


def decode_offsets(content: bytes) -> dict[TopicPartition, int]:
    try:
        lines = content.decode("ascii").split("\n")
        offsets: dict[TopicPartition, int] = {}
        for line in lines[2:]:
            if line:
                topic, partition, offset = line.split()
                offsets[TopicPartition(topic, int(partition))] = int(offset)
        if lines[0] != _VERSION or int(lines[1]) != len(offsets):
            raise CorruptFile("an offset checkpoint declares another version or count than it has")
    except (ValueError, IndexError) as error:
        raise CorruptFile("an offset checkpoint cannot be read") from error
    return offsets


def encode_uuid(value: bytes) -> str:
    """A UUID as Kafka prints it: URL-safe base64 without padding."""
    return urlsafe_b64encode(value).decode().rstrip("=")


def decode_uuid(text: str) -> bytes:
    try:
        value = urlsafe_b64decode(text + "==")
    except (Base64Error, ValueError) as error:
        raise CorruptFile(f"{text!r} is not a UUID in base64") from error
    if len(value) != UUID_BYTES:
        raise CorruptFile(f"{text!r} is not a UUID of {UUID_BYTES} bytes")
    return value


def encode_partition_metadata(topic_id: TopicId) -> bytes:
    return f"version: 0\ntopic_id: {encode_uuid(topic_id)}\n".encode()


def decode_partition_metadata(content: bytes) -> TopicId:
    pairs = _pairs(content, ":")
    if pairs.get("version") != "0" or "topic_id" not in pairs:
        raise CorruptFile("partition.metadata has no topic_id of version 0")
    return TopicId(decode_uuid(pairs["topic_id"]))


def encode_properties(properties: Mapping[str, str]) -> bytes:
    return "".join(f"{key}={value}\n" for key, value in properties.items()).encode()


def decode_properties(content: bytes) -> dict[str, str]:
    return _pairs(content, "=")


def _pairs(content: bytes, separator: str) -> dict[str, str]:
    try:
        lines = content.decode("utf-8").splitlines()
    except UnicodeDecodeError as error:
        raise CorruptFile("a file that should be text is not") from error
    pairs: dict[str, str] = {}
    for line in lines:
        if line.strip() and not line.startswith("#"):
            key, found, value = line.partition(separator)
            if not found:
                raise CorruptFile(f"the line {line!r} has no {separator!r}")
            pairs[key.strip()] = value.strip()
    return pairs
