"""Encode and decode the small text files of a log directory: offset checkpoints, topic ids and meta.properties.

The formats are Kafka's, which have no checksum. Headrace adds one where Kafka ignores it: as an entry of a topic that
cannot exist, as a comment, or as a line after the last one that Kafka reads. Files without a checksum are accepted.
"""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error as Base64Error
from collections.abc import Iterator, Mapping

from headrace.model.ids import TopicId, TopicPartition
from headrace.wire.checksum import crc32c

from .errors import CorruptFile

CHECKPOINT_BYTES_MAX = 256 << 20
PROPERTIES_BYTES_MAX = 1 << 20
UUID_BYTES = 16

_VERSION = "0"
_NO_TOPIC = "@"
"""A character that no topic name contains: an entry whose topic contains it is not an offset."""
_CHECKSUM_ENTRY = f"{_NO_TOPIC}crc32c 0 "
_CHECKSUM_COMMENT = "# crc32c="
_CHECKSUM_KEY = "headrace_crc32c"
_NO_IDS: Mapping[str, TopicId] = {}


def encode_offsets(offsets: Mapping[TopicPartition, int], topic_ids: Mapping[str, TopicId] = _NO_IDS) -> bytes:
    """Encode the version, the count and `topic partition offset` lines, plus the topic ids, because topic names are
    reused.
    """
    rows = sorted((tp.topic, tp.partition, offset) for tp, offset in offsets.items())
    lines = [f"{topic} {partition} {offset}" for topic, partition, offset in rows]
    lines += [f"{topic}{_NO_TOPIC}{encode_uuid(topic_id)} 0 0" for topic, topic_id in sorted(topic_ids.items())]
    text = "\n".join([_VERSION, str(len(lines) + 1), *lines, ""]).encode()
    return text + f"{_CHECKSUM_ENTRY}{crc32c(text)}\n".encode()


def decode_offsets(content: bytes) -> dict[TopicPartition, int]:
    return {
        TopicPartition(topic, partition): offset
        for topic, partition, offset in _entries(content)
        if _NO_TOPIC not in topic
    }


def decode_topic_ids(content: bytes) -> dict[str, TopicId]:
    """Decode the ids of the topics in a checkpoint; topics without a recorded id are left out."""
    named = (topic.split(_NO_TOPIC) for topic, _, _ in _entries(content) if _NO_TOPIC in topic)
    return {parts[0]: TopicId(decode_uuid(parts[1])) for parts in named if len(parts) == 2 and parts[0]}


def _entries(content: bytes) -> list[tuple[str, int, int]]:
    text, found, checksum = content.rpartition(_CHECKSUM_ENTRY.encode())
    try:
        if found and int(checksum) != crc32c(text):
            raise CorruptFile("the offset checkpoint has a wrong checksum")
        lines = content.decode("ascii").split("\n")
        entries = [(topic, int(at), int(offset)) for topic, at, offset in (line.split() for line in lines[2:] if line)]
        if lines[0] != _VERSION or int(lines[1]) != len(entries):
            raise CorruptFile("the offset checkpoint's version or entry count does not match its contents")
    except (ValueError, IndexError) as error:
        raise CorruptFile("the offset checkpoint cannot be parsed") from error
    return entries


def encode_uuid(value: bytes) -> str:
    """Encode a UUID as Kafka prints it: URL-safe base64 without padding."""
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
    text = f"version: 0\ntopic_id: {encode_uuid(topic_id)}\n".encode()
    return text + f"{_CHECKSUM_KEY}: {crc32c(text)}\n".encode()


def decode_partition_metadata(content: bytes) -> TopicId:
    pairs = dict(_pairs(content, ":"))
    if pairs.get("version") != "0" or "topic_id" not in pairs:
        raise CorruptFile("partition.metadata has no topic_id in format version 0")
    text, found, _ = content.rpartition(_CHECKSUM_KEY.encode())
    if found and pairs.get(_CHECKSUM_KEY) != str(crc32c(text)):
        raise CorruptFile("partition.metadata has a wrong checksum")
    return TopicId(decode_uuid(pairs["topic_id"]))


def encode_properties(properties: Mapping[str, str]) -> bytes:
    text = "".join(f"{key}={value}\n" for key, value in properties.items()).encode()
    return text + f"{_CHECKSUM_COMMENT}{crc32c(text)}\n".encode()


def decode_properties(content: bytes) -> dict[str, str]:
    text, found, checksum = content.rpartition(_CHECKSUM_COMMENT.encode())
    if found and checksum.strip() != str(crc32c(text)).encode():
        raise CorruptFile(
            "the properties file has a wrong checksum; after editing the file by hand, delete "
            "its last line, which holds the checksum"
        )
    return dict(_pairs(content, "="))


def _pairs(content: bytes, separator: str) -> Iterator[tuple[str, str]]:
    try:
        lines = content.decode("utf-8").splitlines()
    except UnicodeDecodeError as error:
        raise CorruptFile("the file is not valid text") from error
    for line in lines:
        if line.strip() and not line.startswith("#"):
            key, found, value = line.partition(separator)
            if not found:
                raise CorruptFile(f"the line {line!r} has no {separator!r}")
            yield key.strip(), value.strip()
