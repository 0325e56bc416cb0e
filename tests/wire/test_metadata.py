"""Metadata from kept pieces is that of the generated codec, byte for byte; a long request reads the same."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.wire import metadata
from headrace.wire.errors import ProtocolError
from headrace.wire.messages.metadata import (
    MAX_VERSION,
    MetadataRequest,
    MetadataResponse,
    MetadataResponseTopic,
    decode_request,
)
from headrace.wire.messages.metadata import encode_response as generated
from tests.wire import samples

REQUEST = samples.MESSAGES["MetadataRequest"]
MESSAGE = samples.MESSAGES["MetadataResponse"]
SEEDS = st.integers(0, 2**32 - 1)


def piece(topic: MetadataResponseTopic, version: int) -> bytes:
    return metadata.encode_topic(
        version,
        error_code=topic.error_code,
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=topic.is_internal,
        partitions=[
            metadata.PartitionMetadata(
                error_code=partition.error_code,
                partition_index=partition.partition_index,
                leader_id=partition.leader_id,
                leader_epoch=partition.leader_epoch,
                replica_nodes=partition.replica_nodes,
                isr_nodes=partition.isr_nodes,
                offline_replicas=partition.offline_replicas,
            )
            for partition in topic.partitions
        ],
        authorized_operations=topic.topic_authorized_operations,
    )


def whole(response: MetadataResponse, version: int) -> bytes:
    return metadata.encode_response(
        version,
        throttle_time_ms=response.throttle_time_ms,
        brokers=[
            metadata.BrokerMetadata(broker.node_id, broker.host, broker.port, broker.rack)
            for broker in response.brokers
        ],
        cluster_id=response.cluster_id,
        controller_id=response.controller_id,
        topics=[piece(topic, version) for topic in response.topics],
        cluster_authorized_operations=response.cluster_authorized_operations,
        error_code=response.error_code,
    )


@given(seed=SEEDS)
def test_bytes_are_those_of_the_generated_codec(seed: int) -> None:
    for version in range(MAX_VERSION + 1):
        response = samples.sample(MESSAGE, version, Random(seed))
        assert whole(response, version) == generated(response, version)


@pytest.mark.parametrize("count", [0, 1, 126, 127, 128, 200])
def test_many_replicas(count: int) -> None:
    nodes = tuple(range(count))
    response = MetadataResponse(
        topics=(
            MetadataResponseTopic(
                name="t",
                partitions=(
                    samples.codec_of(MESSAGE).MetadataResponsePartition(
                        replica_nodes=nodes, isr_nodes=nodes[:1], offline_replicas=nodes[1:]
                    ),
                ),
            ),
        )
    )
    for version in range(MAX_VERSION + 1):
        assert whole(response, version) == generated(response, version)


@given(seed=SEEDS)
def test_versions_with_one_layout_share_the_piece(seed: int) -> None:
    topic = samples.sample(MESSAGE, 11, Random(seed), width=2)
    for version in range(MAX_VERSION + 1):
        layout = metadata.topic_layout(version)
        assert [piece(each, version) for each in topic.topics] == [piece(each, layout) for each in topic.topics]


def test_a_topic_needs_its_name_before_version_12() -> None:
    nameless = MetadataResponseTopic(name=None, topic_id=bytes(range(16)))
    assert piece(nameless, 12)
    with pytest.raises(ProtocolError, match="name"):
        piece(nameless, 11)


@pytest.mark.parametrize("version", [-1, MAX_VERSION + 1])
def test_unknown_versions_are_refused(version: int) -> None:
    with pytest.raises(ProtocolError, match="version"):
        metadata.topic_layout(version)


def scanned(body: bytes, version: int, at_once: int) -> tuple[list[tuple[bytes, str | None]], list[bool]]:
    scan = metadata.TopicsScan(body, version)
    topics: list[tuple[bytes, str | None]] = []
    while scan.left:
        topics += scan.take(at_once)
    rest = scan.rest()
    assert rest.topics == ()
    return topics, flags_of(rest)


def flags_of(request: MetadataRequest) -> list[bool]:
    return [
        request.allow_auto_topic_creation,
        request.include_cluster_authorized_operations,
        request.include_topic_authorized_operations,
    ]


@given(seed=SEEDS, at_once=st.integers(1, 5))
def test_a_request_read_in_slices_is_that_of_the_generated_codec(seed: int, at_once: int) -> None:
    for version in range(MAX_VERSION + 1):
        request = samples.sample(REQUEST, version, Random(seed), 9)
        if request.topics is None:
            continue
        body = samples.encode(REQUEST, request, version)
        topics, flags = scanned(body, version, at_once)
        assert topics == [(topic.topic_id, topic.name) for topic in request.topics]
        assert flags == flags_of(request)


@given(seed=SEEDS, data=st.data())
def test_a_damaged_request_read_in_slices_is_refused_or_read_as_by_the_generated_codec(
    seed: int, data: st.DataObject
) -> None:
    version = data.draw(st.integers(0, MAX_VERSION))
    request = samples.sample(REQUEST, version, Random(seed), 4)
    body = bytearray(samples.encode(REQUEST, request, version))
    if data.draw(st.booleans()):
        del body[data.draw(st.integers(0, len(body))) :]
    elif body:
        body[data.draw(st.integers(0, len(body) - 1))] = data.draw(st.integers(0, 255))
    try:
        if not metadata.TopicsScan(bytes(body), version).left:
            return  # nothing to read in slices: the generated codec does it
    except ProtocolError:
        pass
    try:
        whole_request = decode_request(body, 0, len(body), version)
    except ProtocolError:
        with pytest.raises(ProtocolError):
            scanned(bytes(body), version, 2)
        return
    topics, flags = scanned(bytes(body), version, 2)
    assert topics == [(topic.topic_id, topic.name) for topic in whole_request.topics or ()]
    assert flags == flags_of(whole_request)
