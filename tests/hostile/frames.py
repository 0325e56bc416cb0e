"""Frames that hostile clients send: whole requests of a few APIs, and batches that lie."""

from struct import Struct

from headrace.wire.apis import ApiKey, codec
from headrace.wire.frames import request_frame
from headrace.wire.messages.api_versions import ApiVersionsRequest
from headrace.wire.messages.fetch import FetchRequest, FetchRequestPartition, FetchRequestTopic
from headrace.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from headrace.wire.messages.produce import ProduceRequest, ProduceRequestPartition, ProduceRequestTopic
from headrace.wire.records.builder import NewRecord, build_batch
from headrace.wire.records.compression import Compression, compress
from headrace.wire.records.header import CRC_AT, HEADER_SIZE, LENGTH_AT, LOG_OVERHEAD, checksum

SIZE = Struct(">i")
_CRC = Struct(">I")
_INT32 = Struct(">i")
ATTRIBUTES_LOW_BYTE_AT = 22
LAST_OFFSET_DELTA_AT = 23
RECORD_COUNT_AT = 57
PRODUCE_VERSION, FETCH_VERSION, METADATA_VERSION = 9, 12, 12
FOR_EVER_MS = 2**31 - 1
NOW_MS = 1_700_000_000_000


def frame(key: ApiKey, version: int, request: object, correlation_id: int = 1) -> bytes:
    return request_frame(key, version, correlation_id, "hostile", codec(key).encode_request(request, version))


def api_versions(correlation_id: int = 1) -> bytes:
    return frame(ApiKey.API_VERSIONS, 0, ApiVersionsRequest(), correlation_id)


def metadata(names: list[str] | None, correlation_id: int = 1) -> bytes:
    topics = None if names is None else tuple(MetadataRequestTopic(name=name) for name in names)
    request = MetadataRequest(topics=topics, allow_auto_topic_creation=False)
    return frame(ApiKey.METADATA, METADATA_VERSION, request, correlation_id)


def fetch(
    topic: str, partitions: range, *, wait_ms: int, bytes_min: int, offset: int = 0, correlation_id: int = 1
) -> bytes:
    wanted = tuple(
        FetchRequestPartition(partition=index, fetch_offset=offset, partition_max_bytes=1 << 20) for index in partitions
    )
    request = FetchRequest(
        max_wait_ms=wait_ms,
        min_bytes=bytes_min,
        max_bytes=1 << 20,
        session_id=0,
        session_epoch=-1,
        topics=(FetchRequestTopic(topic=topic, partitions=wanted),),
    )
    return frame(ApiKey.FETCH, FETCH_VERSION, request, correlation_id)


def produce_request(topic: str, batch: bytes) -> ProduceRequest:
    data = (ProduceRequestPartition(index=0, records=batch),)
    return ProduceRequest(acks=1, timeout_ms=1000, topic_data=(ProduceRequestTopic(name=topic, partition_data=data),))


def good_batch(records: int = 3, value: bytes = b"value") -> bytearray:
    return build_batch([NewRecord(NOW_MS, b"key %d" % number, value) for number in range(records)])


def mended(batch: bytearray) -> bytes:
    """With length and checksum made true."""
    _INT32.pack_into(batch, LENGTH_AT, len(batch) - LOG_OVERHEAD)
    _CRC.pack_into(batch, CRC_AT, checksum(batch))
    return bytes(batch)


def with_wrong_checksum() -> bytes:
    batch = good_batch()
    batch[CRC_AT] ^= 0x01
    return bytes(batch)


def with_number(position: int, number: int, *, mend: bool) -> bytes:
    batch = good_batch()
    _INT32.pack_into(batch, position, number)
    return mended(batch) if mend else bytes(batch)


def with_attributes(attributes: int) -> bytes:
    batch = good_batch()
    batch[ATTRIBUTES_LOW_BYTE_AT] = attributes
    return mended(batch)


def with_count(count: int) -> bytes:
    """As many records as that by count and offsets, with the bytes of a few."""
    batch = good_batch()
    _INT32.pack_into(batch, LAST_OFFSET_DELTA_AT, count - 1)
    _INT32.pack_into(batch, RECORD_COUNT_AT, count)
    return mended(batch)


def with_lying_length() -> bytes:
    """The first record declares to be longer than it is."""
    batch = good_batch()
    batch[HEADER_SIZE] += 2
    return mended(batch)


def with_body(codec_id: Compression, body: bytes) -> bytes:
    """The header of a good batch of that codec before other bytes."""
    batch = bytearray(good_batch()[:HEADER_SIZE]) + body
    batch[ATTRIBUTES_LOW_BYTE_AT] = codec_id
    return mended(batch)


def nested(codec_id: Compression) -> bytes:
    """Records that are compressed twice."""
    plain = bytes(good_batch()[HEADER_SIZE:])
    return with_body(codec_id, compress(codec_id, compress(codec_id, plain)))


def bomb(codec_id: Compression, inflated_bytes: int) -> bytes:
    """One record, declared with a true checksum, whose bytes inflate to `inflated_bytes` of zeros."""
    batch = bytearray(good_batch(records=1)[:HEADER_SIZE]) + compress(codec_id, bytes(inflated_bytes))
    batch[ATTRIBUTES_LOW_BYTE_AT] = codec_id
    return mended(batch)
