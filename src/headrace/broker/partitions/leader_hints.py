"""Leaders in Produce responses that were encoded before the leadership moved (KIP-951).

A response that waits for a commit has its final size, so it is decoded and encoded again. That happens once per request
that waits when this node stops leading a partition.
"""

from dataclasses import replace
from struct import Struct

from headrace.broker.missed_leaders import MISSED, MissedLeaders
from headrace.broker.net.connection import ResponseSlot
from headrace.core.controller.image import MetadataImage
from headrace.model.ids import TopicId
from headrace.wire.produce import CURRENT_LEADER_FROM, TOPIC_IDS_FROM

_LENGTH = Struct(">i")
_HEADER_BYTES = 9
"""Length, correlation id, and no tagged fields."""


def name_leaders(slot: ResponseSlot, image: MetadataImage) -> None:
    """Add the leaders that it missed to the complete response of a Produce request."""
    version, frame = slot.connection.produce_version, slot.parts
    if version < CURRENT_LEADER_FROM or type(slot) is not ResponseSlot or not isinstance(frame, bytes | bytearray):
        return
    from headrace.wire.messages import produce  # most nodes never need the message

    response = produce.decode_response(frame, _HEADER_BYTES, len(frame), version)
    missed = MissedLeaders(image, slot.connection.listener_name)

    def with_leader(name: str, partition: produce.ProduceResponsePartition) -> produce.ProduceResponsePartition:
        leader = missed.find(name, partition.index) if partition.error_code in MISSED else None
        if leader is None:
            return partition
        named = produce.ProduceResponseCurrentLeader(leader_id=leader.leader_id, leader_epoch=leader.leader_epoch)
        return replace(partition, current_leader=named)

    topics = []
    for topic in response.responses:
        known = (
            image.topics_by_id.get(TopicId(topic.topic_id))
            if version >= TOPIC_IDS_FROM
            else image.topics.get(topic.name)
        )
        if known is not None:
            partitions = tuple(with_leader(known.name, partition) for partition in topic.partition_responses)
            topic = replace(topic, partition_responses=partitions)
        topics.append(topic)
    endpoints = tuple(
        produce.ProduceResponseNodeEndpoint(node_id=each.node_id, host=each.host, port=each.port, rack=each.rack)
        for each in missed.endpoints()
    )
    if endpoints:
        body = produce.encode_response(replace(response, responses=tuple(topics), node_endpoints=endpoints), version)
        head = bytes(frame[_LENGTH.size : _HEADER_BYTES])
        slot.parts = _LENGTH.pack(len(head) + len(body)) + head + body
