"""Requests encoded before a load starts: one frame per connection, all of the same length.

The replay client patches the fields that change from request to request; each set of frames has their positions.
"""

import os
import time
from collections.abc import Sequence
from typing import NamedTuple

from headrace.bench.links import CLIENT_ID
from headrace.bench.topics import ProducerIdentity
from headrace.wire.apis import ApiKey
from headrace.wire.frames import request_frame
from headrace.wire.messages import fetch, metadata, produce
from headrace.wire.records.builder import BatchBuilder

PRODUCE_VERSION = 9
FETCH_VERSION = 12
METADATA_VERSION = 12
"""Flexible versions with topic names, which librdkafka uses and both brokers serve."""

PRODUCE_TIMEOUT_MS = 30_000
FETCH_BYTES_MAX = 50 << 20
_PLACEHOLDER_OFFSET = 0x0102030405060708


class ReplayFrames(NamedTuple):
    content: bytes
    frame_bytes: int
    batch_at: int = 0
    """Position of the batch whose sequence and checksum are updated; 0 for requests without a batch."""

    batch_bytes: int = 0
    records: int = 0
    error_at: int = 0
    """Position of the error code in a response, including the size field; 0 if it is not checked."""


class FetchFrames(NamedTuple):
    content: bytes
    frame_bytes: int
    offset_at: int


def produce_frames(
    topic: str,
    identities: Sequence[ProducerIdentity],
    *,
    partitions: int,
    records: int,
    record_bytes: int,
    acks: int,
) -> ReplayFrames:
    """Return frames in which connection i is producer i and writes to partition i modulo `partitions`."""
    value = os.urandom(record_bytes)
    frames, batch_at, batch_bytes = [], 0, 0
    for index, identity in enumerate(identities):
        batch = _batch(value, records, identity)
        frame = _produce_frame(topic, index % partitions, batch, acks)
        batch_at, batch_bytes = frame.index(batch), len(batch)
        frames.append(frame)
    frame_head = 4 + 4 + 1 + 1  # size, correlation id, no tags, one topic
    error_at = frame_head + 1 + len(topic) + 1 + 4  # length and text of the name, one partition, its number
    return ReplayFrames(b"".join(frames), len(frames[0]), batch_at, batch_bytes, records, error_at)


def fetch_frames(
    topic: str, partitions: Sequence[int], *, bytes_max: int, wait_ms_max: int, bytes_min: int = 1
) -> FetchFrames:
    """Return one fetch request per partition."""
    frames, offset_at = [], 0
    for partition in partitions:
        wanted = fetch.FetchRequestPartition(
            partition=partition, fetch_offset=_PLACEHOLDER_OFFSET, partition_max_bytes=bytes_max
        )
        request = fetch.FetchRequest(
            max_wait_ms=wait_ms_max,
            min_bytes=bytes_min,
            max_bytes=FETCH_BYTES_MAX,
            topics=(fetch.FetchRequestTopic(topic=topic, partitions=(wanted,)),),
        )
        body = fetch.encode_request(request, FETCH_VERSION)
        frame = request_frame(ApiKey.FETCH, FETCH_VERSION, 0, CLIENT_ID, body)
        offset_at = frame.index(_PLACEHOLDER_OFFSET.to_bytes(8, "big"))
        frames.append(frame)
    return FetchFrames(b"".join(frames), len(frames[0]), offset_at)


def metadata_frames(connections: int) -> ReplayFrames:
    """Return Metadata requests for all topics."""
    request = metadata.MetadataRequest(topics=None, allow_auto_topic_creation=False)
    body = metadata.encode_request(request, METADATA_VERSION)
    frame = request_frame(ApiKey.METADATA, METADATA_VERSION, 0, CLIENT_ID, body)
    return ReplayFrames(frame * connections, len(frame))


def _batch(value: bytes, records: int, identity: ProducerIdentity) -> bytes:
    builder = BatchBuilder()
    now_ms = int(time.time() * 1000)
    for _ in range(records):
        builder.append(now_ms, None, value)
    return bytes(builder.build(producer_id=identity.producer_id, producer_epoch=identity.epoch, base_sequence=0))


def _produce_frame(topic: str, partition: int, batch: bytes, acks: int) -> bytes:
    request = produce.ProduceRequest(
        acks=acks,
        timeout_ms=PRODUCE_TIMEOUT_MS,
        topic_data=(
            produce.ProduceRequestTopic(
                name=topic, partition_data=(produce.ProduceRequestPartition(index=partition, records=batch),)
            ),
        ),
    )
    return request_frame(
        ApiKey.PRODUCE, PRODUCE_VERSION, 0, CLIENT_ID, produce.encode_request(request, PRODUCE_VERSION)
    )
