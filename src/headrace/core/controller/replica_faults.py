"""Decide on replicas that their brokers cannot use as they should, although the brokers run.

Such a replica leaves the in-sync set, and another one leads. While no other replica has every record it keeps its
place: its broker serves what it can. A report names the leader epoch. If records may be missing, the decision begins
another one: no fetch that the replica sent before makes it in sync again, and the report counts once.
"""

from collections.abc import Iterator, Sequence
from enum import IntEnum
from typing import NamedTuple

from headrace.core.controller.commands import BrokerResult, ControllerDecision
from headrace.core.controller.image import MetadataImage
from headrace.core.controller.partition_changes import NO_NODES, ElectionRules, change, change_record
from headrace.core.controller.partition_states import PartitionState
from headrace.core.controller.records import PartitionChangeRecord
from headrace.core.controller.settings import ControllerSettings
from headrace.core.controller.topic_rules import TopicRules
from headrace.model.errors import ErrorCode
from headrace.model.ids import NO_NODE, LeaderEpoch, NodeId, TopicId

FAULTS_PER_REQUEST_MAX = 10_000
"""Replicas in one report; a broker reports further ones when it sees the first decided."""


class ReplicaFault(IntEnum):
    """The values of ReportReplicaFaults."""

    FULL = 0
    """Its directory takes no records for now. It has everything that it had."""
    FAILED = 1
    """Its log cannot be used at all: the directory failed, or the folder is missing or damaged."""
    DAMAGED = 2
    """A part of its log is damaged; the rest can be read."""


class FaultyReplica(NamedTuple):
    """A replica of the broker that reports it."""

    topic_id: TopicId
    partition: int
    leader_epoch: int
    """The leader epoch of the partition in the broker's metadata."""
    fault: ReplicaFault


def exclude_faulty(
    image: MetadataImage,
    settings: ControllerSettings,
    node_id: NodeId,
    broker_epoch: int,
    faulty: Sequence[FaultyReplica],
) -> ControllerDecision[BrokerResult]:
    """Take replicas out of the in-sync sets and the leadership; what was reported in another epoch is ignored."""
    broker = image.brokers.get(node_id)
    if broker is None or broker.broker_epoch != broker_epoch:
        message = f"broker {node_id} is not registered with epoch {broker_epoch}"
        return ControllerDecision((), BrokerResult(ErrorCode.STALE_BROKER_EPOCH, message))
    return ControllerDecision(tuple(_changes(image, settings, node_id, faulty)), BrokerResult())


def _changes(
    image: MetadataImage, settings: ControllerSettings, node_id: NodeId, faulty: Sequence[FaultyReplica]
) -> Iterator[PartitionChangeRecord]:
    rules = TopicRules(image, settings, without=node_id)
    seen: set[tuple[TopicId, int]] = set()
    for each in faulty:
        topic = image.topics_by_id.get(each.topic_id)
        key = (each.topic_id, each.partition)
        if topic is None or not 0 <= each.partition < len(topic.partitions) or key in seen:
            continue
        seen.add(key)
        state = topic.partitions[each.partition]
        if each.leader_epoch != state.leader_epoch or node_id not in state.replicas:
            continue
        new = _without(state, node_id, each.fault, rules.of(topic))
        record = change_record(each.topic_id, each.partition, state, new)
        if record is not None:
            yield record


def may_be_replaced(state: PartitionState, node_id: NodeId, fault: ReplicaFault) -> bool:
    """Return whether another replica has every record.

    For a full one it must be in sync: eligible replicas may be full too, and would pass the leadership around.
    """
    known = state.isr if fault is ReplicaFault.FULL else (*state.isr, *state.elr)
    return any(node != node_id for node in known)


def _without(state: PartitionState, node_id: NodeId, fault: ReplicaFault, rules: ElectionRules) -> PartitionState:
    if not may_be_replaced(state, node_id, fault):
        return state
    gone = frozenset((node_id,))
    may_lack = fault is not ReplicaFault.FULL
    new = change(state, rules, gone=gone, lost=gone if may_lack else NO_NODES)
    if new.leader == NO_NODE and state.leader == node_id and fault is not ReplicaFault.FAILED:
        return state  # what it has can be read
    if may_lack and new.leader_epoch == state.leader_epoch:
        new = new._replace(leader_epoch=LeaderEpoch(state.leader_epoch + 1))
    return new
