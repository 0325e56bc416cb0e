"""Fetch (1), versions 4 to 18.

Generated from wire/schemas/fetch.py by `python -m headrace.wire.generator`.
Change the table, not this file.
"""

from dataclasses import dataclass
from struct import Struct

from headrace.wire.codec import Encoding, begin_encoding, decode, decode_view, encode
from headrace.wire.primitives.layouts import INT32, INT64, UUID, ZERO_UUID, Buffer
from headrace.wire.primitives.readers import (
    end_tag,
    read_array,
    read_compact_array,
    read_compact_nullable_array,
    read_compact_nullable_records,
    read_compact_nullable_string,
    read_compact_numbers,
    read_compact_string,
    read_nullable_array,
    read_nullable_records,
    read_number,
    read_numbers,
    read_string,
    read_tag,
    read_tag_count,
    read_uuid,
    skip_tags,
)
from headrace.wire.primitives.writers import (
    NO_TAGS,
    Write,
    uuid,
    write_array,
    write_compact_array,
    write_compact_nullable_array,
    write_compact_nullable_bytes,
    write_compact_nullable_string,
    write_compact_numbers,
    write_compact_string,
    write_nullable_array,
    write_nullable_bytes,
    write_numbers,
    write_string,
    write_tags,
)

API_KEY = 1
MIN_VERSION = 4
MAX_VERSION = 18
FLEXIBLE_FROM = 12

_IHI = Struct(">ihi")
_IHQQ = Struct(">ihqq")
_IHQQQ = Struct(">ihqqq")
_II = Struct(">ii")
_IIIBII = Struct(">iiibii")
_IIIIB = Struct(">iiiib")
_IIIIBII = Struct(">iiiibii")
_IIQIQI = Struct(">iiqiqi")
_IIQIQIX = Struct(">iiqiqix")
_IIQQI = Struct(">iiqqi")
_IIX = Struct(">iix")
_IQ = Struct(">iq")
_IQI = Struct(">iqi")
_IQQI = Struct(">iqqi")
_IQX = Struct(">iqx")
_QI = Struct(">qi")
_QIX = Struct(">qix")
_QQ = Struct(">qq")
_QQX = Struct(">qqx")


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchRequestReplicaState:
    replica_id: int = -1
    replica_epoch: int = -1


_DEFAULT_FetchRequestReplicaState = FetchRequestReplicaState()


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchRequestPartition:
    partition: int = 0
    current_leader_epoch: int = -1
    fetch_offset: int = 0
    last_fetched_epoch: int = -1
    log_start_offset: int = -1
    partition_max_bytes: int = 0
    replica_directory_id: bytes = ZERO_UUID
    high_watermark: int = 9223372036854775807


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchRequestTopic:
    topic: str = ""
    topic_id: bytes = ZERO_UUID
    partitions: tuple[FetchRequestPartition, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchRequestForgottenTopic:
    topic: str = ""
    topic_id: bytes = ZERO_UUID
    partitions: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchRequest:
    cluster_id: str | None = None
    replica_id: int = -1
    replica_state: FetchRequestReplicaState = _DEFAULT_FetchRequestReplicaState
    max_wait_ms: int = 0
    min_bytes: int = 0
    max_bytes: int = 2147483647
    isolation_level: int = 0
    session_id: int = 0
    session_epoch: int = -1
    topics: tuple[FetchRequestTopic, ...] = ()
    forgotten_topics_data: tuple[FetchRequestForgottenTopic, ...] = ()
    rack_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchResponseDivergingEpoch:
    epoch: int = -1
    end_offset: int = -1


_DEFAULT_FetchResponseDivergingEpoch = FetchResponseDivergingEpoch()


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchResponseCurrentLeader:
    leader_id: int = -1
    leader_epoch: int = -1


_DEFAULT_FetchResponseCurrentLeader = FetchResponseCurrentLeader()


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchResponseSnapshotId:
    end_offset: int = -1
    epoch: int = -1


_DEFAULT_FetchResponseSnapshotId = FetchResponseSnapshotId()


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchResponseAbortedTransaction:
    producer_id: int = 0
    first_offset: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchResponsePartition:
    partition_index: int = 0
    error_code: int = 0
    high_watermark: int = 0
    last_stable_offset: int = -1
    log_start_offset: int = -1
    diverging_epoch: FetchResponseDivergingEpoch = _DEFAULT_FetchResponseDivergingEpoch
    current_leader: FetchResponseCurrentLeader = _DEFAULT_FetchResponseCurrentLeader
    snapshot_id: FetchResponseSnapshotId = _DEFAULT_FetchResponseSnapshotId
    aborted_transactions: tuple[FetchResponseAbortedTransaction, ...] | None = ()
    preferred_read_replica: int = -1
    records: Buffer | None = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchResponseTopic:
    topic: str = ""
    topic_id: bytes = ZERO_UUID
    partitions: tuple[FetchResponsePartition, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchResponseNodeEndpoint:
    node_id: int = 0
    host: str = ""
    port: int = 0
    rack: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchResponse:
    throttle_time_ms: int = 0
    error_code: int = 0
    session_id: int = 0
    responses: tuple[FetchResponseTopic, ...] = ()
    node_endpoints: tuple[FetchResponseNodeEndpoint, ...] = ()


def _read_request_partition_v4(body: Buffer, position: int) -> tuple[FetchRequestPartition, int]:
    partition, fetch_offset, partition_max_bytes = _IQI.unpack_from(body, position)
    position += 16
    message = FetchRequestPartition(
        partition=partition,
        fetch_offset=fetch_offset,
        partition_max_bytes=partition_max_bytes,
    )
    return message, position


def _write_request_partition_v4(write: Write, message: FetchRequestPartition) -> None:
    write(_IQI.pack(message.partition, message.fetch_offset, message.partition_max_bytes))


def _read_request_topic_v4(body: Buffer, position: int) -> tuple[FetchRequestTopic, int]:
    topic, position = read_string(body, position)
    partitions, position = read_array(body, position, 16, _read_request_partition_v4)
    message = FetchRequestTopic(topic=topic, partitions=partitions)
    return message, position


def _write_request_topic_v4(write: Write, message: FetchRequestTopic) -> None:
    write_string(write, message.topic)
    write_array(write, message.partitions, _write_request_partition_v4)


def _read_request_v4(body: Buffer, position: int) -> tuple[FetchRequest, int]:
    replica_id, max_wait_ms, min_bytes, max_bytes, isolation_level = _IIIIB.unpack_from(body, position)
    position += 17
    topics, position = read_array(body, position, 6, _read_request_topic_v4)
    message = FetchRequest(
        replica_id=replica_id,
        max_wait_ms=max_wait_ms,
        min_bytes=min_bytes,
        max_bytes=max_bytes,
        isolation_level=isolation_level,
        topics=topics,
    )
    return message, position


def _write_request_v4(write: Write, message: FetchRequest) -> None:
    write(
        _IIIIB.pack(
            message.replica_id,
            message.max_wait_ms,
            message.min_bytes,
            message.max_bytes,
            message.isolation_level,
        )
    )
    write_array(write, message.topics, _write_request_topic_v4)


def _read_request_partition_v5(body: Buffer, position: int) -> tuple[FetchRequestPartition, int]:
    partition, fetch_offset, log_start_offset, partition_max_bytes = _IQQI.unpack_from(body, position)
    position += 24
    message = FetchRequestPartition(
        partition=partition,
        fetch_offset=fetch_offset,
        log_start_offset=log_start_offset,
        partition_max_bytes=partition_max_bytes,
    )
    return message, position


def _write_request_partition_v5(write: Write, message: FetchRequestPartition) -> None:
    write(_IQQI.pack(message.partition, message.fetch_offset, message.log_start_offset, message.partition_max_bytes))


def _read_request_topic_v5(body: Buffer, position: int) -> tuple[FetchRequestTopic, int]:
    topic, position = read_string(body, position)
    partitions, position = read_array(body, position, 24, _read_request_partition_v5)
    message = FetchRequestTopic(topic=topic, partitions=partitions)
    return message, position


def _write_request_topic_v5(write: Write, message: FetchRequestTopic) -> None:
    write_string(write, message.topic)
    write_array(write, message.partitions, _write_request_partition_v5)


def _read_request_v5(body: Buffer, position: int) -> tuple[FetchRequest, int]:
    replica_id, max_wait_ms, min_bytes, max_bytes, isolation_level = _IIIIB.unpack_from(body, position)
    position += 17
    topics, position = read_array(body, position, 6, _read_request_topic_v5)
    message = FetchRequest(
        replica_id=replica_id,
        max_wait_ms=max_wait_ms,
        min_bytes=min_bytes,
        max_bytes=max_bytes,
        isolation_level=isolation_level,
        topics=topics,
    )
    return message, position


def _write_request_v5(write: Write, message: FetchRequest) -> None:
    write(
        _IIIIB.pack(
            message.replica_id,
            message.max_wait_ms,
            message.min_bytes,
            message.max_bytes,
            message.isolation_level,
        )
    )
    write_array(write, message.topics, _write_request_topic_v5)


def _read_request_forgotten_topic_v7(body: Buffer, position: int) -> tuple[FetchRequestForgottenTopic, int]:
    topic, position = read_string(body, position)
    partitions, position = read_numbers(body, position, INT32)
    message = FetchRequestForgottenTopic(topic=topic, partitions=partitions)
    return message, position


def _write_request_forgotten_topic_v7(write: Write, message: FetchRequestForgottenTopic) -> None:
    write_string(write, message.topic)
    write_numbers(write, message.partitions, INT32)


def _read_request_v7(body: Buffer, position: int) -> tuple[FetchRequest, int]:
    (
        replica_id,
        max_wait_ms,
        min_bytes,
        max_bytes,
        isolation_level,
        session_id,
        session_epoch,
    ) = _IIIIBII.unpack_from(body, position)
    position += 25
    topics, position = read_array(body, position, 6, _read_request_topic_v5)
    forgotten_topics_data, position = read_array(body, position, 6, _read_request_forgotten_topic_v7)
    message = FetchRequest(
        replica_id=replica_id,
        max_wait_ms=max_wait_ms,
        min_bytes=min_bytes,
        max_bytes=max_bytes,
        isolation_level=isolation_level,
        session_id=session_id,
        session_epoch=session_epoch,
        topics=topics,
        forgotten_topics_data=forgotten_topics_data,
    )
    return message, position


def _write_request_v7(write: Write, message: FetchRequest) -> None:
    write(
        _IIIIBII.pack(
            message.replica_id,
            message.max_wait_ms,
            message.min_bytes,
            message.max_bytes,
            message.isolation_level,
            message.session_id,
            message.session_epoch,
        )
    )
    write_array(write, message.topics, _write_request_topic_v5)
    write_array(write, message.forgotten_topics_data, _write_request_forgotten_topic_v7)


def _read_request_partition_v9(body: Buffer, position: int) -> tuple[FetchRequestPartition, int]:
    (
        partition,
        current_leader_epoch,
        fetch_offset,
        log_start_offset,
        partition_max_bytes,
    ) = _IIQQI.unpack_from(body, position)
    position += 28
    message = FetchRequestPartition(
        partition=partition,
        current_leader_epoch=current_leader_epoch,
        fetch_offset=fetch_offset,
        log_start_offset=log_start_offset,
        partition_max_bytes=partition_max_bytes,
    )
    return message, position


def _write_request_partition_v9(write: Write, message: FetchRequestPartition) -> None:
    write(
        _IIQQI.pack(
            message.partition,
            message.current_leader_epoch,
            message.fetch_offset,
            message.log_start_offset,
            message.partition_max_bytes,
        )
    )


def _read_request_topic_v9(body: Buffer, position: int) -> tuple[FetchRequestTopic, int]:
    topic, position = read_string(body, position)
    partitions, position = read_array(body, position, 28, _read_request_partition_v9)
    message = FetchRequestTopic(topic=topic, partitions=partitions)
    return message, position


def _write_request_topic_v9(write: Write, message: FetchRequestTopic) -> None:
    write_string(write, message.topic)
    write_array(write, message.partitions, _write_request_partition_v9)


def _read_request_v9(body: Buffer, position: int) -> tuple[FetchRequest, int]:
    (
        replica_id,
        max_wait_ms,
        min_bytes,
        max_bytes,
        isolation_level,
        session_id,
        session_epoch,
    ) = _IIIIBII.unpack_from(body, position)
    position += 25
    topics, position = read_array(body, position, 6, _read_request_topic_v9)
    forgotten_topics_data, position = read_array(body, position, 6, _read_request_forgotten_topic_v7)
    message = FetchRequest(
        replica_id=replica_id,
        max_wait_ms=max_wait_ms,
        min_bytes=min_bytes,
        max_bytes=max_bytes,
        isolation_level=isolation_level,
        session_id=session_id,
        session_epoch=session_epoch,
        topics=topics,
        forgotten_topics_data=forgotten_topics_data,
    )
    return message, position


def _write_request_v9(write: Write, message: FetchRequest) -> None:
    write(
        _IIIIBII.pack(
            message.replica_id,
            message.max_wait_ms,
            message.min_bytes,
            message.max_bytes,
            message.isolation_level,
            message.session_id,
            message.session_epoch,
        )
    )
    write_array(write, message.topics, _write_request_topic_v9)
    write_array(write, message.forgotten_topics_data, _write_request_forgotten_topic_v7)


def _read_request_v11(body: Buffer, position: int) -> tuple[FetchRequest, int]:
    (
        replica_id,
        max_wait_ms,
        min_bytes,
        max_bytes,
        isolation_level,
        session_id,
        session_epoch,
    ) = _IIIIBII.unpack_from(body, position)
    position += 25
    topics, position = read_array(body, position, 6, _read_request_topic_v9)
    forgotten_topics_data, position = read_array(body, position, 6, _read_request_forgotten_topic_v7)
    rack_id, position = read_string(body, position)
    message = FetchRequest(
        replica_id=replica_id,
        max_wait_ms=max_wait_ms,
        min_bytes=min_bytes,
        max_bytes=max_bytes,
        isolation_level=isolation_level,
        session_id=session_id,
        session_epoch=session_epoch,
        topics=topics,
        forgotten_topics_data=forgotten_topics_data,
        rack_id=rack_id,
    )
    return message, position


def _write_request_v11(write: Write, message: FetchRequest) -> None:
    write(
        _IIIIBII.pack(
            message.replica_id,
            message.max_wait_ms,
            message.min_bytes,
            message.max_bytes,
            message.isolation_level,
            message.session_id,
            message.session_epoch,
        )
    )
    write_array(write, message.topics, _write_request_topic_v9)
    write_array(write, message.forgotten_topics_data, _write_request_forgotten_topic_v7)
    write_string(write, message.rack_id)


def _read_request_partition_v12(body: Buffer, position: int) -> tuple[FetchRequestPartition, int]:
    (
        partition,
        current_leader_epoch,
        fetch_offset,
        last_fetched_epoch,
        log_start_offset,
        partition_max_bytes,
    ) = _IIQIQI.unpack_from(body, position)
    position += 32
    position = skip_tags(body, position) if body[position] else position + 1
    message = FetchRequestPartition(
        partition=partition,
        current_leader_epoch=current_leader_epoch,
        fetch_offset=fetch_offset,
        last_fetched_epoch=last_fetched_epoch,
        log_start_offset=log_start_offset,
        partition_max_bytes=partition_max_bytes,
    )
    return message, position


def _write_request_partition_v12(write: Write, message: FetchRequestPartition) -> None:
    write(
        _IIQIQIX.pack(
            message.partition,
            message.current_leader_epoch,
            message.fetch_offset,
            message.last_fetched_epoch,
            message.log_start_offset,
            message.partition_max_bytes,
        )
    )


def _read_request_topic_v12(body: Buffer, position: int) -> tuple[FetchRequestTopic, int]:
    topic, position = read_compact_string(body, position)
    partitions, position = read_compact_array(body, position, 33, _read_request_partition_v12)
    position = skip_tags(body, position) if body[position] else position + 1
    message = FetchRequestTopic(topic=topic, partitions=partitions)
    return message, position


def _write_request_topic_v12(write: Write, message: FetchRequestTopic) -> None:
    write_compact_string(write, message.topic)
    write_compact_array(write, message.partitions, _write_request_partition_v12)
    write(NO_TAGS)


def _read_request_forgotten_topic_v12(body: Buffer, position: int) -> tuple[FetchRequestForgottenTopic, int]:
    topic, position = read_compact_string(body, position)
    partitions, position = read_compact_numbers(body, position, INT32)
    position = skip_tags(body, position) if body[position] else position + 1
    message = FetchRequestForgottenTopic(topic=topic, partitions=partitions)
    return message, position


def _write_request_forgotten_topic_v12(write: Write, message: FetchRequestForgottenTopic) -> None:
    write_compact_string(write, message.topic)
    write_compact_numbers(write, message.partitions, INT32)
    write(NO_TAGS)


def _read_request_v12(body: Buffer, position: int) -> tuple[FetchRequest, int]:
    (
        replica_id,
        max_wait_ms,
        min_bytes,
        max_bytes,
        isolation_level,
        session_id,
        session_epoch,
    ) = _IIIIBII.unpack_from(body, position)
    position += 25
    topics, position = read_compact_array(body, position, 3, _read_request_topic_v12)
    forgotten_topics_data, position = read_compact_array(body, position, 3, _read_request_forgotten_topic_v12)
    rack_id, position = read_compact_string(body, position)
    cluster_id: str | None = None
    tag_count, position = read_tag_count(body, position)
    for _ in range(tag_count):
        tag, position, stop = read_tag(body, position)
        if tag == 0:
            cluster_id, position = read_compact_nullable_string(body, position)
        else:
            position = stop
        end_tag(position, stop)
    message = FetchRequest(
        replica_id=replica_id,
        max_wait_ms=max_wait_ms,
        min_bytes=min_bytes,
        max_bytes=max_bytes,
        isolation_level=isolation_level,
        session_id=session_id,
        session_epoch=session_epoch,
        topics=topics,
        forgotten_topics_data=forgotten_topics_data,
        rack_id=rack_id,
        cluster_id=cluster_id,
    )
    return message, position


def _write_request_v12(write: Write, message: FetchRequest) -> None:
    write(
        _IIIIBII.pack(
            message.replica_id,
            message.max_wait_ms,
            message.min_bytes,
            message.max_bytes,
            message.isolation_level,
            message.session_id,
            message.session_epoch,
        )
    )
    write_compact_array(write, message.topics, _write_request_topic_v12)
    write_compact_array(write, message.forgotten_topics_data, _write_request_forgotten_topic_v12)
    write_compact_string(write, message.rack_id)
    tagged: list[tuple[int, bytes]] = []
    if message.cluster_id is not None:
        parts: list[Buffer] = []
        write_compact_nullable_string(parts.append, message.cluster_id)
        tagged.append((0, b"".join(parts)))
    write_tags(write, tagged)


def _read_request_topic_v13(body: Buffer, position: int) -> tuple[FetchRequestTopic, int]:
    (topic_id,) = UUID.unpack_from(body, position)
    position += 16
    partitions, position = read_compact_array(body, position, 33, _read_request_partition_v12)
    position = skip_tags(body, position) if body[position] else position + 1
    message = FetchRequestTopic(topic_id=topic_id, partitions=partitions)
    return message, position


def _write_request_topic_v13(write: Write, message: FetchRequestTopic) -> None:
    write(UUID.pack(uuid(message.topic_id)))
    write_compact_array(write, message.partitions, _write_request_partition_v12)
    write(NO_TAGS)


def _read_request_forgotten_topic_v13(body: Buffer, position: int) -> tuple[FetchRequestForgottenTopic, int]:
    (topic_id,) = UUID.unpack_from(body, position)
    position += 16
    partitions, position = read_compact_numbers(body, position, INT32)
    position = skip_tags(body, position) if body[position] else position + 1
    message = FetchRequestForgottenTopic(topic_id=topic_id, partitions=partitions)
    return message, position


def _write_request_forgotten_topic_v13(write: Write, message: FetchRequestForgottenTopic) -> None:
    write(UUID.pack(uuid(message.topic_id)))
    write_compact_numbers(write, message.partitions, INT32)
    write(NO_TAGS)


def _read_request_v13(body: Buffer, position: int) -> tuple[FetchRequest, int]:
    (
        replica_id,
        max_wait_ms,
        min_bytes,
        max_bytes,
        isolation_level,
        session_id,
        session_epoch,
    ) = _IIIIBII.unpack_from(body, position)
    position += 25
    topics, position = read_compact_array(body, position, 18, _read_request_topic_v13)
    forgotten_topics_data, position = read_compact_array(body, position, 18, _read_request_forgotten_topic_v13)
    rack_id, position = read_compact_string(body, position)
    cluster_id: str | None = None
    tag_count, position = read_tag_count(body, position)
    for _ in range(tag_count):
        tag, position, stop = read_tag(body, position)
        if tag == 0:
            cluster_id, position = read_compact_nullable_string(body, position)
        else:
            position = stop
        end_tag(position, stop)
    message = FetchRequest(
        replica_id=replica_id,
        max_wait_ms=max_wait_ms,
        min_bytes=min_bytes,
        max_bytes=max_bytes,
        isolation_level=isolation_level,
        session_id=session_id,
        session_epoch=session_epoch,
        topics=topics,
        forgotten_topics_data=forgotten_topics_data,
        rack_id=rack_id,
        cluster_id=cluster_id,
    )
    return message, position


def _write_request_v13(write: Write, message: FetchRequest) -> None:
    write(
        _IIIIBII.pack(
            message.replica_id,
            message.max_wait_ms,
            message.min_bytes,
            message.max_bytes,
            message.isolation_level,
            message.session_id,
            message.session_epoch,
        )
    )
    write_compact_array(write, message.topics, _write_request_topic_v13)
    write_compact_array(write, message.forgotten_topics_data, _write_request_forgotten_topic_v13)
    write_compact_string(write, message.rack_id)
    tagged: list[tuple[int, bytes]] = []
    if message.cluster_id is not None:
        parts: list[Buffer] = []
        write_compact_nullable_string(parts.append, message.cluster_id)
        tagged.append((0, b"".join(parts)))
    write_tags(write, tagged)


def _read_request_replica_state_v15(body: Buffer, position: int) -> tuple[FetchRequestReplicaState, int]:
    replica_id, replica_epoch = _IQ.unpack_from(body, position)
    position += 12
    position = skip_tags(body, position) if body[position] else position + 1
    message = FetchRequestReplicaState(replica_id=replica_id, replica_epoch=replica_epoch)
    return message, position


def _write_request_replica_state_v15(write: Write, message: FetchRequestReplicaState) -> None:
    write(_IQX.pack(message.replica_id, message.replica_epoch))


def _read_request_v15(body: Buffer, position: int) -> tuple[FetchRequest, int]:
    max_wait_ms, min_bytes, max_bytes, isolation_level, session_id, session_epoch = _IIIBII.unpack_from(body, position)
    position += 21
    topics, position = read_compact_array(body, position, 18, _read_request_topic_v13)
    forgotten_topics_data, position = read_compact_array(body, position, 18, _read_request_forgotten_topic_v13)
    rack_id, position = read_compact_string(body, position)
    cluster_id: str | None = None
    replica_state = _DEFAULT_FetchRequestReplicaState
    tag_count, position = read_tag_count(body, position)
    for _ in range(tag_count):
        tag, position, stop = read_tag(body, position)
        if tag == 0:
            cluster_id, position = read_compact_nullable_string(body, position)
        elif tag == 1:
            replica_state, position = _read_request_replica_state_v15(body, position)
        else:
            position = stop
        end_tag(position, stop)
    message = FetchRequest(
        max_wait_ms=max_wait_ms,
        min_bytes=min_bytes,
        max_bytes=max_bytes,
        isolation_level=isolation_level,
        session_id=session_id,
        session_epoch=session_epoch,
        topics=topics,
        forgotten_topics_data=forgotten_topics_data,
        rack_id=rack_id,
        cluster_id=cluster_id,
        replica_state=replica_state,
    )
    return message, position


def _write_request_v15(write: Write, message: FetchRequest) -> None:
    write(
        _IIIBII.pack(
            message.max_wait_ms,
            message.min_bytes,
            message.max_bytes,
            message.isolation_level,
            message.session_id,
            message.session_epoch,
        )
    )
    write_compact_array(write, message.topics, _write_request_topic_v13)
    write_compact_array(write, message.forgotten_topics_data, _write_request_forgotten_topic_v13)
    write_compact_string(write, message.rack_id)
    tagged: list[tuple[int, bytes]] = []
    if message.cluster_id is not None:
        parts: list[Buffer] = []
        write_compact_nullable_string(parts.append, message.cluster_id)
        tagged.append((0, b"".join(parts)))
    if message.replica_state != _DEFAULT_FetchRequestReplicaState:
        parts = []
        _write_request_replica_state_v15(parts.append, message.replica_state)
        tagged.append((1, b"".join(parts)))
    write_tags(write, tagged)


def _read_request_partition_v17(body: Buffer, position: int) -> tuple[FetchRequestPartition, int]:
    (
        partition,
        current_leader_epoch,
        fetch_offset,
        last_fetched_epoch,
        log_start_offset,
        partition_max_bytes,
    ) = _IIQIQI.unpack_from(body, position)
    position += 32
    replica_directory_id: bytes = ZERO_UUID
    tag_count, position = read_tag_count(body, position)
    for _ in range(tag_count):
        tag, position, stop = read_tag(body, position)
        if tag == 0:
            replica_directory_id, position = read_uuid(body, position)
        else:
            position = stop
        end_tag(position, stop)
    message = FetchRequestPartition(
        partition=partition,
        current_leader_epoch=current_leader_epoch,
        fetch_offset=fetch_offset,
        last_fetched_epoch=last_fetched_epoch,
        log_start_offset=log_start_offset,
        partition_max_bytes=partition_max_bytes,
        replica_directory_id=replica_directory_id,
    )
    return message, position


def _write_request_partition_v17(write: Write, message: FetchRequestPartition) -> None:
    write(
        _IIQIQI.pack(
            message.partition,
            message.current_leader_epoch,
            message.fetch_offset,
            message.last_fetched_epoch,
            message.log_start_offset,
            message.partition_max_bytes,
        )
    )
    tagged: list[tuple[int, bytes]] = []
    if message.replica_directory_id != ZERO_UUID:
        parts: list[Buffer] = []
        parts.append(UUID.pack(uuid(message.replica_directory_id)))
        tagged.append((0, b"".join(parts)))
    write_tags(write, tagged)


def _read_request_topic_v17(body: Buffer, position: int) -> tuple[FetchRequestTopic, int]:
    (topic_id,) = UUID.unpack_from(body, position)
    position += 16
    partitions, position = read_compact_array(body, position, 33, _read_request_partition_v17)
    position = skip_tags(body, position) if body[position] else position + 1
    message = FetchRequestTopic(topic_id=topic_id, partitions=partitions)
    return message, position


def _write_request_topic_v17(write: Write, message: FetchRequestTopic) -> None:
    write(UUID.pack(uuid(message.topic_id)))
    write_compact_array(write, message.partitions, _write_request_partition_v17)
    write(NO_TAGS)


def _read_request_v17(body: Buffer, position: int) -> tuple[FetchRequest, int]:
    max_wait_ms, min_bytes, max_bytes, isolation_level, session_id, session_epoch = _IIIBII.unpack_from(body, position)
    position += 21
    topics, position = read_compact_array(body, position, 18, _read_request_topic_v17)
    forgotten_topics_data, position = read_compact_array(body, position, 18, _read_request_forgotten_topic_v13)
    rack_id, position = read_compact_string(body, position)
    cluster_id: str | None = None
    replica_state = _DEFAULT_FetchRequestReplicaState
    tag_count, position = read_tag_count(body, position)
    for _ in range(tag_count):
        tag, position, stop = read_tag(body, position)
        if tag == 0:
            cluster_id, position = read_compact_nullable_string(body, position)
        elif tag == 1:
            replica_state, position = _read_request_replica_state_v15(body, position)
        else:
            position = stop
        end_tag(position, stop)
    message = FetchRequest(
        max_wait_ms=max_wait_ms,
        min_bytes=min_bytes,
        max_bytes=max_bytes,
        isolation_level=isolation_level,
        session_id=session_id,
        session_epoch=session_epoch,
        topics=topics,
        forgotten_topics_data=forgotten_topics_data,
        rack_id=rack_id,
        cluster_id=cluster_id,
        replica_state=replica_state,
    )
    return message, position


def _write_request_v17(write: Write, message: FetchRequest) -> None:
    write(
        _IIIBII.pack(
            message.max_wait_ms,
            message.min_bytes,
            message.max_bytes,
            message.isolation_level,
            message.session_id,
            message.session_epoch,
        )
    )
    write_compact_array(write, message.topics, _write_request_topic_v17)
    write_compact_array(write, message.forgotten_topics_data, _write_request_forgotten_topic_v13)
    write_compact_string(write, message.rack_id)
    tagged: list[tuple[int, bytes]] = []
    if message.cluster_id is not None:
        parts: list[Buffer] = []
        write_compact_nullable_string(parts.append, message.cluster_id)
        tagged.append((0, b"".join(parts)))
    if message.replica_state != _DEFAULT_FetchRequestReplicaState:
        parts = []
        _write_request_replica_state_v15(parts.append, message.replica_state)
        tagged.append((1, b"".join(parts)))
    write_tags(write, tagged)


def _read_request_partition_v18(body: Buffer, position: int) -> tuple[FetchRequestPartition, int]:
    (
        partition,
        current_leader_epoch,
        fetch_offset,
        last_fetched_epoch,
        log_start_offset,
        partition_max_bytes,
    ) = _IIQIQI.unpack_from(body, position)
    position += 32
    replica_directory_id: bytes = ZERO_UUID
    high_watermark: int = 9223372036854775807
    tag_count, position = read_tag_count(body, position)
    for _ in range(tag_count):
        tag, position, stop = read_tag(body, position)
        if tag == 0:
            replica_directory_id, position = read_uuid(body, position)
        elif tag == 1:
            high_watermark, position = read_number(body, position, INT64)
        else:
            position = stop
        end_tag(position, stop)
    message = FetchRequestPartition(
        partition=partition,
        current_leader_epoch=current_leader_epoch,
        fetch_offset=fetch_offset,
        last_fetched_epoch=last_fetched_epoch,
        log_start_offset=log_start_offset,
        partition_max_bytes=partition_max_bytes,
        replica_directory_id=replica_directory_id,
        high_watermark=high_watermark,
    )
    return message, position


def _write_request_partition_v18(write: Write, message: FetchRequestPartition) -> None:
    write(
        _IIQIQI.pack(
            message.partition,
            message.current_leader_epoch,
            message.fetch_offset,
            message.last_fetched_epoch,
            message.log_start_offset,
            message.partition_max_bytes,
        )
    )
    tagged: list[tuple[int, bytes]] = []
    if message.replica_directory_id != ZERO_UUID:
        parts: list[Buffer] = []
        parts.append(UUID.pack(uuid(message.replica_directory_id)))
        tagged.append((0, b"".join(parts)))
    if message.high_watermark != 9223372036854775807:
        parts = []
        parts.append(INT64.pack(message.high_watermark))
        tagged.append((1, b"".join(parts)))
    write_tags(write, tagged)


def _read_request_topic_v18(body: Buffer, position: int) -> tuple[FetchRequestTopic, int]:
    (topic_id,) = UUID.unpack_from(body, position)
    position += 16
    partitions, position = read_compact_array(body, position, 33, _read_request_partition_v18)
    position = skip_tags(body, position) if body[position] else position + 1
    message = FetchRequestTopic(topic_id=topic_id, partitions=partitions)
    return message, position


def _write_request_topic_v18(write: Write, message: FetchRequestTopic) -> None:
    write(UUID.pack(uuid(message.topic_id)))
    write_compact_array(write, message.partitions, _write_request_partition_v18)
    write(NO_TAGS)


def _read_request_v18(body: Buffer, position: int) -> tuple[FetchRequest, int]:
    max_wait_ms, min_bytes, max_bytes, isolation_level, session_id, session_epoch = _IIIBII.unpack_from(body, position)
    position += 21
    topics, position = read_compact_array(body, position, 18, _read_request_topic_v18)
    forgotten_topics_data, position = read_compact_array(body, position, 18, _read_request_forgotten_topic_v13)
    rack_id, position = read_compact_string(body, position)
    cluster_id: str | None = None
    replica_state = _DEFAULT_FetchRequestReplicaState
    tag_count, position = read_tag_count(body, position)
    for _ in range(tag_count):
        tag, position, stop = read_tag(body, position)
        if tag == 0:
            cluster_id, position = read_compact_nullable_string(body, position)
        elif tag == 1:
            replica_state, position = _read_request_replica_state_v15(body, position)
        else:
            position = stop
        end_tag(position, stop)
    message = FetchRequest(
        max_wait_ms=max_wait_ms,
        min_bytes=min_bytes,
        max_bytes=max_bytes,
        isolation_level=isolation_level,
        session_id=session_id,
        session_epoch=session_epoch,
        topics=topics,
        forgotten_topics_data=forgotten_topics_data,
        rack_id=rack_id,
        cluster_id=cluster_id,
        replica_state=replica_state,
    )
    return message, position


def _write_request_v18(write: Write, message: FetchRequest) -> None:
    write(
        _IIIBII.pack(
            message.max_wait_ms,
            message.min_bytes,
            message.max_bytes,
            message.isolation_level,
            message.session_id,
            message.session_epoch,
        )
    )
    write_compact_array(write, message.topics, _write_request_topic_v18)
    write_compact_array(write, message.forgotten_topics_data, _write_request_forgotten_topic_v13)
    write_compact_string(write, message.rack_id)
    tagged: list[tuple[int, bytes]] = []
    if message.cluster_id is not None:
        parts: list[Buffer] = []
        write_compact_nullable_string(parts.append, message.cluster_id)
        tagged.append((0, b"".join(parts)))
    if message.replica_state != _DEFAULT_FetchRequestReplicaState:
        parts = []
        _write_request_replica_state_v15(parts.append, message.replica_state)
        tagged.append((1, b"".join(parts)))
    write_tags(write, tagged)


def _read_response_aborted_transaction_v4(body: Buffer, position: int) -> tuple[FetchResponseAbortedTransaction, int]:
    producer_id, first_offset = _QQ.unpack_from(body, position)
    position += 16
    message = FetchResponseAbortedTransaction(producer_id=producer_id, first_offset=first_offset)
    return message, position


def _write_response_aborted_transaction_v4(write: Write, message: FetchResponseAbortedTransaction) -> None:
    write(_QQ.pack(message.producer_id, message.first_offset))


def _read_response_partition_v4(body: Buffer, position: int) -> tuple[FetchResponsePartition, int]:
    partition_index, error_code, high_watermark, last_stable_offset = _IHQQ.unpack_from(body, position)
    position += 22
    aborted_transactions, position = read_nullable_array(body, position, 16, _read_response_aborted_transaction_v4)
    records, position = read_nullable_records(body, position)
    message = FetchResponsePartition(
        partition_index=partition_index,
        error_code=error_code,
        high_watermark=high_watermark,
        last_stable_offset=last_stable_offset,
        aborted_transactions=aborted_transactions,
        records=records,
    )
    return message, position


def _write_response_partition_v4(write: Write, message: FetchResponsePartition) -> None:
    write(_IHQQ.pack(message.partition_index, message.error_code, message.high_watermark, message.last_stable_offset))
    write_nullable_array(write, message.aborted_transactions, _write_response_aborted_transaction_v4)
    write_nullable_bytes(write, message.records)


def _read_response_topic_v4(body: Buffer, position: int) -> tuple[FetchResponseTopic, int]:
    topic, position = read_string(body, position)
    partitions, position = read_array(body, position, 30, _read_response_partition_v4)
    message = FetchResponseTopic(topic=topic, partitions=partitions)
    return message, position


def _write_response_topic_v4(write: Write, message: FetchResponseTopic) -> None:
    write_string(write, message.topic)
    write_array(write, message.partitions, _write_response_partition_v4)


def _read_response_v4(body: Buffer, position: int) -> tuple[FetchResponse, int]:
    (throttle_time_ms,) = INT32.unpack_from(body, position)
    position += 4
    responses, position = read_array(body, position, 6, _read_response_topic_v4)
    message = FetchResponse(throttle_time_ms=throttle_time_ms, responses=responses)
    return message, position


def _write_response_v4(write: Write, message: FetchResponse) -> None:
    write(INT32.pack(message.throttle_time_ms))
    write_array(write, message.responses, _write_response_topic_v4)


def _read_response_partition_v5(body: Buffer, position: int) -> tuple[FetchResponsePartition, int]:
    (
        partition_index,
        error_code,
        high_watermark,
        last_stable_offset,
        log_start_offset,
    ) = _IHQQQ.unpack_from(body, position)
    position += 30
    aborted_transactions, position = read_nullable_array(body, position, 16, _read_response_aborted_transaction_v4)
    records, position = read_nullable_records(body, position)
    message = FetchResponsePartition(
        partition_index=partition_index,
        error_code=error_code,
        high_watermark=high_watermark,
        last_stable_offset=last_stable_offset,
        log_start_offset=log_start_offset,
        aborted_transactions=aborted_transactions,
        records=records,
    )
    return message, position


def _write_response_partition_v5(write: Write, message: FetchResponsePartition) -> None:
    write(
        _IHQQQ.pack(
            message.partition_index,
            message.error_code,
            message.high_watermark,
            message.last_stable_offset,
            message.log_start_offset,
        )
    )
    write_nullable_array(write, message.aborted_transactions, _write_response_aborted_transaction_v4)
    write_nullable_bytes(write, message.records)


def _read_response_topic_v5(body: Buffer, position: int) -> tuple[FetchResponseTopic, int]:
    topic, position = read_string(body, position)
    partitions, position = read_array(body, position, 38, _read_response_partition_v5)
    message = FetchResponseTopic(topic=topic, partitions=partitions)
    return message, position


def _write_response_topic_v5(write: Write, message: FetchResponseTopic) -> None:
    write_string(write, message.topic)
    write_array(write, message.partitions, _write_response_partition_v5)


def _read_response_v5(body: Buffer, position: int) -> tuple[FetchResponse, int]:
    (throttle_time_ms,) = INT32.unpack_from(body, position)
    position += 4
    responses, position = read_array(body, position, 6, _read_response_topic_v5)
    message = FetchResponse(throttle_time_ms=throttle_time_ms, responses=responses)
    return message, position


def _write_response_v5(write: Write, message: FetchResponse) -> None:
    write(INT32.pack(message.throttle_time_ms))
    write_array(write, message.responses, _write_response_topic_v5)


def _read_response_v7(body: Buffer, position: int) -> tuple[FetchResponse, int]:
    throttle_time_ms, error_code, session_id = _IHI.unpack_from(body, position)
    position += 10
    responses, position = read_array(body, position, 6, _read_response_topic_v5)
    message = FetchResponse(
        throttle_time_ms=throttle_time_ms,
        error_code=error_code,
        session_id=session_id,
        responses=responses,
    )
    return message, position


def _write_response_v7(write: Write, message: FetchResponse) -> None:
    write(_IHI.pack(message.throttle_time_ms, message.error_code, message.session_id))
    write_array(write, message.responses, _write_response_topic_v5)


def _read_response_partition_v11(body: Buffer, position: int) -> tuple[FetchResponsePartition, int]:
    (
        partition_index,
        error_code,
        high_watermark,
        last_stable_offset,
        log_start_offset,
    ) = _IHQQQ.unpack_from(body, position)
    position += 30
    aborted_transactions, position = read_nullable_array(body, position, 16, _read_response_aborted_transaction_v4)
    (preferred_read_replica,) = INT32.unpack_from(body, position)
    position += 4
    records, position = read_nullable_records(body, position)
    message = FetchResponsePartition(
        partition_index=partition_index,
        error_code=error_code,
        high_watermark=high_watermark,
        last_stable_offset=last_stable_offset,
        log_start_offset=log_start_offset,
        aborted_transactions=aborted_transactions,
        preferred_read_replica=preferred_read_replica,
        records=records,
    )
    return message, position


def _write_response_partition_v11(write: Write, message: FetchResponsePartition) -> None:
    write(
        _IHQQQ.pack(
            message.partition_index,
            message.error_code,
            message.high_watermark,
            message.last_stable_offset,
            message.log_start_offset,
        )
    )
    write_nullable_array(write, message.aborted_transactions, _write_response_aborted_transaction_v4)
    write(INT32.pack(message.preferred_read_replica))
    write_nullable_bytes(write, message.records)


def _read_response_topic_v11(body: Buffer, position: int) -> tuple[FetchResponseTopic, int]:
    topic, position = read_string(body, position)
    partitions, position = read_array(body, position, 42, _read_response_partition_v11)
    message = FetchResponseTopic(topic=topic, partitions=partitions)
    return message, position


def _write_response_topic_v11(write: Write, message: FetchResponseTopic) -> None:
    write_string(write, message.topic)
    write_array(write, message.partitions, _write_response_partition_v11)


def _read_response_v11(body: Buffer, position: int) -> tuple[FetchResponse, int]:
    throttle_time_ms, error_code, session_id = _IHI.unpack_from(body, position)
    position += 10
    responses, position = read_array(body, position, 6, _read_response_topic_v11)
    message = FetchResponse(
        throttle_time_ms=throttle_time_ms,
        error_code=error_code,
        session_id=session_id,
        responses=responses,
    )
    return message, position


def _write_response_v11(write: Write, message: FetchResponse) -> None:
    write(_IHI.pack(message.throttle_time_ms, message.error_code, message.session_id))
    write_array(write, message.responses, _write_response_topic_v11)


def _read_response_aborted_transaction_v12(body: Buffer, position: int) -> tuple[FetchResponseAbortedTransaction, int]:
    producer_id, first_offset = _QQ.unpack_from(body, position)
    position += 16
    position = skip_tags(body, position) if body[position] else position + 1
    message = FetchResponseAbortedTransaction(producer_id=producer_id, first_offset=first_offset)
    return message, position


def _write_response_aborted_transaction_v12(write: Write, message: FetchResponseAbortedTransaction) -> None:
    write(_QQX.pack(message.producer_id, message.first_offset))


def _read_response_diverging_epoch_v12(body: Buffer, position: int) -> tuple[FetchResponseDivergingEpoch, int]:
    epoch, end_offset = _IQ.unpack_from(body, position)
    position += 12
    position = skip_tags(body, position) if body[position] else position + 1
    message = FetchResponseDivergingEpoch(epoch=epoch, end_offset=end_offset)
    return message, position


def _write_response_diverging_epoch_v12(write: Write, message: FetchResponseDivergingEpoch) -> None:
    write(_IQX.pack(message.epoch, message.end_offset))


def _read_response_current_leader_v12(body: Buffer, position: int) -> tuple[FetchResponseCurrentLeader, int]:
    leader_id, leader_epoch = _II.unpack_from(body, position)
    position += 8
    position = skip_tags(body, position) if body[position] else position + 1
    message = FetchResponseCurrentLeader(leader_id=leader_id, leader_epoch=leader_epoch)
    return message, position


def _write_response_current_leader_v12(write: Write, message: FetchResponseCurrentLeader) -> None:
    write(_IIX.pack(message.leader_id, message.leader_epoch))


def _read_response_snapshot_id_v12(body: Buffer, position: int) -> tuple[FetchResponseSnapshotId, int]:
    end_offset, epoch = _QI.unpack_from(body, position)
    position += 12
    position = skip_tags(body, position) if body[position] else position + 1
    message = FetchResponseSnapshotId(end_offset=end_offset, epoch=epoch)
    return message, position


def _write_response_snapshot_id_v12(write: Write, message: FetchResponseSnapshotId) -> None:
    write(_QIX.pack(message.end_offset, message.epoch))


def _read_response_partition_v12(body: Buffer, position: int) -> tuple[FetchResponsePartition, int]:
    (
        partition_index,
        error_code,
        high_watermark,
        last_stable_offset,
        log_start_offset,
    ) = _IHQQQ.unpack_from(body, position)
    position += 30
    aborted_transactions, position = read_compact_nullable_array(
        body,
        position,
        17,
        _read_response_aborted_transaction_v12,
    )
    (preferred_read_replica,) = INT32.unpack_from(body, position)
    position += 4
    records, position = read_compact_nullable_records(body, position)
    diverging_epoch = _DEFAULT_FetchResponseDivergingEpoch
    current_leader = _DEFAULT_FetchResponseCurrentLeader
    snapshot_id = _DEFAULT_FetchResponseSnapshotId
    tag_count, position = read_tag_count(body, position)
    for _ in range(tag_count):
        tag, position, stop = read_tag(body, position)
        if tag == 0:
            diverging_epoch, position = _read_response_diverging_epoch_v12(body, position)
        elif tag == 1:
            current_leader, position = _read_response_current_leader_v12(body, position)
        elif tag == 2:
            snapshot_id, position = _read_response_snapshot_id_v12(body, position)
        else:
            position = stop
        end_tag(position, stop)
    message = FetchResponsePartition(
        partition_index=partition_index,
        error_code=error_code,
        high_watermark=high_watermark,
        last_stable_offset=last_stable_offset,
        log_start_offset=log_start_offset,
        aborted_transactions=aborted_transactions,
        preferred_read_replica=preferred_read_replica,
        records=records,
        diverging_epoch=diverging_epoch,
        current_leader=current_leader,
        snapshot_id=snapshot_id,
    )
    return message, position


def _write_response_partition_v12(write: Write, message: FetchResponsePartition) -> None:
    write(
        _IHQQQ.pack(
            message.partition_index,
            message.error_code,
            message.high_watermark,
            message.last_stable_offset,
            message.log_start_offset,
        )
    )
    write_compact_nullable_array(write, message.aborted_transactions, _write_response_aborted_transaction_v12)
    write(INT32.pack(message.preferred_read_replica))
    write_compact_nullable_bytes(write, message.records)
    tagged: list[tuple[int, bytes]] = []
    if message.diverging_epoch != _DEFAULT_FetchResponseDivergingEpoch:
        parts: list[Buffer] = []
        _write_response_diverging_epoch_v12(parts.append, message.diverging_epoch)
        tagged.append((0, b"".join(parts)))
    if message.current_leader != _DEFAULT_FetchResponseCurrentLeader:
        parts = []
        _write_response_current_leader_v12(parts.append, message.current_leader)
        tagged.append((1, b"".join(parts)))
    if message.snapshot_id != _DEFAULT_FetchResponseSnapshotId:
        parts = []
        _write_response_snapshot_id_v12(parts.append, message.snapshot_id)
        tagged.append((2, b"".join(parts)))
    write_tags(write, tagged)


def _read_response_topic_v12(body: Buffer, position: int) -> tuple[FetchResponseTopic, int]:
    topic, position = read_compact_string(body, position)
    partitions, position = read_compact_array(body, position, 37, _read_response_partition_v12)
    position = skip_tags(body, position) if body[position] else position + 1
    message = FetchResponseTopic(topic=topic, partitions=partitions)
    return message, position


def _write_response_topic_v12(write: Write, message: FetchResponseTopic) -> None:
    write_compact_string(write, message.topic)
    write_compact_array(write, message.partitions, _write_response_partition_v12)
    write(NO_TAGS)


def _read_response_v12(body: Buffer, position: int) -> tuple[FetchResponse, int]:
    throttle_time_ms, error_code, session_id = _IHI.unpack_from(body, position)
    position += 10
    responses, position = read_compact_array(body, position, 3, _read_response_topic_v12)
    position = skip_tags(body, position) if body[position] else position + 1
    message = FetchResponse(
        throttle_time_ms=throttle_time_ms,
        error_code=error_code,
        session_id=session_id,
        responses=responses,
    )
    return message, position


def _write_response_v12(write: Write, message: FetchResponse) -> None:
    write(_IHI.pack(message.throttle_time_ms, message.error_code, message.session_id))
    write_compact_array(write, message.responses, _write_response_topic_v12)
    write(NO_TAGS)


def _read_response_topic_v13(body: Buffer, position: int) -> tuple[FetchResponseTopic, int]:
    (topic_id,) = UUID.unpack_from(body, position)
    position += 16
    partitions, position = read_compact_array(body, position, 37, _read_response_partition_v12)
    position = skip_tags(body, position) if body[position] else position + 1
    message = FetchResponseTopic(topic_id=topic_id, partitions=partitions)
    return message, position


def _write_response_topic_v13(write: Write, message: FetchResponseTopic) -> None:
    write(UUID.pack(uuid(message.topic_id)))
    write_compact_array(write, message.partitions, _write_response_partition_v12)
    write(NO_TAGS)


def _read_response_v13(body: Buffer, position: int) -> tuple[FetchResponse, int]:
    throttle_time_ms, error_code, session_id = _IHI.unpack_from(body, position)
    position += 10
    responses, position = read_compact_array(body, position, 18, _read_response_topic_v13)
    position = skip_tags(body, position) if body[position] else position + 1
    message = FetchResponse(
        throttle_time_ms=throttle_time_ms,
        error_code=error_code,
        session_id=session_id,
        responses=responses,
    )
    return message, position


def _write_response_v13(write: Write, message: FetchResponse) -> None:
    write(_IHI.pack(message.throttle_time_ms, message.error_code, message.session_id))
    write_compact_array(write, message.responses, _write_response_topic_v13)
    write(NO_TAGS)


def _read_response_node_endpoint_v16(body: Buffer, position: int) -> tuple[FetchResponseNodeEndpoint, int]:
    (node_id,) = INT32.unpack_from(body, position)
    position += 4
    host, position = read_compact_string(body, position)
    (port,) = INT32.unpack_from(body, position)
    position += 4
    rack, position = read_compact_nullable_string(body, position)
    position = skip_tags(body, position) if body[position] else position + 1
    message = FetchResponseNodeEndpoint(node_id=node_id, host=host, port=port, rack=rack)
    return message, position


def _write_response_node_endpoint_v16(write: Write, message: FetchResponseNodeEndpoint) -> None:
    write(INT32.pack(message.node_id))
    write_compact_string(write, message.host)
    write(INT32.pack(message.port))
    write_compact_nullable_string(write, message.rack)
    write(NO_TAGS)


def _read_response_v16(body: Buffer, position: int) -> tuple[FetchResponse, int]:
    throttle_time_ms, error_code, session_id = _IHI.unpack_from(body, position)
    position += 10
    responses, position = read_compact_array(body, position, 18, _read_response_topic_v13)
    node_endpoints: tuple[FetchResponseNodeEndpoint, ...] = ()
    tag_count, position = read_tag_count(body, position)
    for _ in range(tag_count):
        tag, position, stop = read_tag(body, position)
        if tag == 0:
            node_endpoints, position = read_compact_array(body, position, 11, _read_response_node_endpoint_v16)
        else:
            position = stop
        end_tag(position, stop)
    message = FetchResponse(
        throttle_time_ms=throttle_time_ms,
        error_code=error_code,
        session_id=session_id,
        responses=responses,
        node_endpoints=node_endpoints,
    )
    return message, position


def _write_response_v16(write: Write, message: FetchResponse) -> None:
    write(_IHI.pack(message.throttle_time_ms, message.error_code, message.session_id))
    write_compact_array(write, message.responses, _write_response_topic_v13)
    tagged: list[tuple[int, bytes]] = []
    if message.node_endpoints:
        parts: list[Buffer] = []
        write_compact_array(parts.append, message.node_endpoints, _write_response_node_endpoint_v16)
        tagged.append((0, b"".join(parts)))
    write_tags(write, tagged)


_REQUEST_READERS = (
    None,
    None,
    None,
    None,
    _read_request_v4,
    _read_request_v5,
    _read_request_v5,
    _read_request_v7,
    _read_request_v7,
    _read_request_v9,
    _read_request_v9,
    _read_request_v11,
    _read_request_v12,
    _read_request_v13,
    _read_request_v13,
    _read_request_v15,
    _read_request_v15,
    _read_request_v17,
    _read_request_v18,
)
_REQUEST_WRITERS = (
    None,
    None,
    None,
    None,
    _write_request_v4,
    _write_request_v5,
    _write_request_v5,
    _write_request_v7,
    _write_request_v7,
    _write_request_v9,
    _write_request_v9,
    _write_request_v11,
    _write_request_v12,
    _write_request_v13,
    _write_request_v13,
    _write_request_v15,
    _write_request_v15,
    _write_request_v17,
    _write_request_v18,
)


def decode_request(buffer: Buffer, position: int, end: int, version: int) -> FetchRequest:
    return decode(_REQUEST_READERS, "FetchRequest", buffer, position, end, version)


def encode_request(message: FetchRequest, version: int) -> bytes:
    return encode(_REQUEST_WRITERS, "FetchRequest", message, version)


_RESPONSE_READERS = (
    None,
    None,
    None,
    None,
    _read_response_v4,
    _read_response_v5,
    _read_response_v5,
    _read_response_v7,
    _read_response_v7,
    _read_response_v7,
    _read_response_v7,
    _read_response_v11,
    _read_response_v12,
    _read_response_v13,
    _read_response_v13,
    _read_response_v13,
    _read_response_v16,
    _read_response_v16,
    _read_response_v16,
)
_RESPONSE_WRITERS = (
    None,
    None,
    None,
    None,
    _write_response_v4,
    _write_response_v5,
    _write_response_v5,
    _write_response_v7,
    _write_response_v7,
    _write_response_v7,
    _write_response_v7,
    _write_response_v11,
    _write_response_v12,
    _write_response_v13,
    _write_response_v13,
    _write_response_v13,
    _write_response_v16,
    _write_response_v16,
    _write_response_v16,
)


def decode_response(buffer: Buffer, position: int, end: int, version: int) -> FetchResponse:
    return decode_view(_RESPONSE_READERS, "FetchResponse", buffer, position, end, version)


def encode_response(message: FetchResponse, version: int) -> bytes:
    return encode(_RESPONSE_WRITERS, "FetchResponse", message, version)


def begin_response(message: FetchResponse, version: int) -> bytes | Encoding:
    return begin_encoding(_RESPONSE_WRITERS, "FetchResponse", message, version)
