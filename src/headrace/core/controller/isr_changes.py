"""Decide on the in-sync sets that leaders ask for (AlterPartition).

A change counts only for the state on which its leader decided: it names the leader epoch and the partition epoch. It
also names the broker epoch of every member, so that a replica that restarted since its last fetch, perhaps without the
records that it had, does not become in sync because of what its former process had fetched (KIP-903).
"""

from headrace.core.controller.commands import (
    PARTITIONS_PER_REQUEST_MAX,
    ControllerDecision,
    IsrAlteration,
    IsrChange,
    IsrResult,
    IsrResults,
    Refused,
)
from headrace.core.controller.elections import eligible_no_more
from headrace.core.controller.image import MetadataImage
from headrace.core.controller.partition_changes import change, change_record
from headrace.core.controller.partition_states import PartitionState
from headrace.core.controller.records import PartitionChangeRecord, Record
from headrace.core.controller.settings import ControllerSettings
from headrace.core.controller.topic_image import TopicImage
from headrace.core.controller.topic_rules import TopicRules
from headrace.model.errors import ErrorCode
from headrace.model.ids import NodeId, TopicId


def alter_isrs(
    image: MetadataImage, settings: ControllerSettings, alteration: IsrAlteration
) -> ControllerDecision[IsrResults]:
    """Change the in-sync sets of partitions, each for itself: a refused one does not hinder the others."""
    leader = image.brokers.get(alteration.node_id)
    if leader is None or leader.broker_epoch != alteration.broker_epoch:
        message = f"broker {alteration.node_id} is not registered with epoch {alteration.broker_epoch}"
        return ControllerDecision((), IsrResults(ErrorCode.STALE_BROKER_EPOCH, message))
    if len(alteration.changes) > PARTITIONS_PER_REQUEST_MAX:
        message = f"one request may change at most {PARTITIONS_PER_REQUEST_MAX} partitions: send several requests"
        return ControllerDecision((), IsrResults(ErrorCode.INVALID_REQUEST, message))
    records: list[Record] = []
    further: list[Record] = []
    results: list[IsrResult] = []
    seen: set[tuple[TopicId, int]] = set()
    rules = TopicRules(image, settings)
    for asked in alteration.changes:
        try:
            if (asked.topic_id, asked.partition) in seen:
                raise Refused(ErrorCode.INVALID_REQUEST, f"partition {asked.partition} is listed more than once")
            seen.add((asked.topic_id, asked.partition))
            topic = _topic(image, asked)
            state = topic.partitions[asked.partition]
            _check_leader(alteration.node_id, asked, state)
            _check_members(image, alteration.node_id, asked, state)
        except Refused as refusal:
            results.append(IsrResult(asked.topic_id, asked.partition, refusal.code, refusal.message))
            continue
        new = change(state, rules.of(topic), isr={member.node_id for member in asked.isr})
        record, result = _decided(asked, state, new)
        records += record
        results.append(result)
        if asked.partition == 0 and len(new.replicas) != len(state.replicas):
            further += eligible_no_more(topic, new, rules)
    return ControllerDecision((*records, *further), IsrResults(results=tuple(results)))


def _topic(image: MetadataImage, asked: IsrChange) -> TopicImage:
    topic = image.topics_by_id.get(asked.topic_id)
    if topic is None:
        raise Refused(ErrorCode.UNKNOWN_TOPIC_ID, f"no topic has the id {asked.topic_id.hex()}")
    if not 0 <= asked.partition < len(topic.partitions):
        message = f'topic "{topic.name}" has {len(topic.partitions)} partitions, none has the number {asked.partition}'
        raise Refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, message)
    return topic


def _check_leader(node_id: NodeId, asked: IsrChange, state: PartitionState) -> None:
    """Refuse a change that was decided on another state than the current one."""
    if asked.leader_epoch > state.leader_epoch or asked.partition_epoch > state.partition_epoch:
        raise Refused(
            ErrorCode.NOT_CONTROLLER,
            f"the broker knows leader epoch {asked.leader_epoch} and partition epoch {asked.partition_epoch}, "
            f"this controller only {state.leader_epoch} and {state.partition_epoch}",
        )
    if asked.leader_epoch < state.leader_epoch:
        raise Refused(
            ErrorCode.FENCED_LEADER_EPOCH,
            f"leader epoch {asked.leader_epoch} is over: the current one is {state.leader_epoch}",
        )
    if node_id != state.leader:
        raise Refused(ErrorCode.INVALID_REQUEST, f"broker {node_id} is not the leader, {state.leader} is")
    if asked.partition_epoch < state.partition_epoch:
        raise Refused(
            ErrorCode.INVALID_UPDATE_VERSION,
            f"partition epoch {asked.partition_epoch} is over: the current one is {state.partition_epoch}",
        )


def _check_members(image: MetadataImage, node_id: NodeId, asked: IsrChange, state: PartitionState) -> None:
    members = [member.node_id for member in asked.isr]
    if len(set(members)) != len(members) or not set(members) <= set(state.replicas):
        raise Refused(
            ErrorCode.INVALID_REQUEST, f"in-sync set {members} is not a part of the replicas {list(state.replicas)}"
        )
    if node_id not in members:
        raise Refused(ErrorCode.INVALID_REQUEST, f"in-sync set {members} is without its leader {node_id}")
    for member in asked.isr:
        broker = image.brokers.get(member.node_id)
        if broker is None:
            reason = "is not registered"
        elif broker.broker_epoch != member.broker_epoch:
            reason = f"is registered with epoch {broker.broker_epoch}, not {member.broker_epoch}"
        elif not broker.takes_partitions:
            reason = "is fenced or shuts down"
        else:
            continue
        raise Refused(ErrorCode.INELIGIBLE_REPLICA, f"broker {member.node_id} {reason}: it cannot be in sync now")


def _decided(
    asked: IsrChange, state: PartitionState, new: PartitionState
) -> tuple[list[PartitionChangeRecord], IsrResult]:
    """Return the record of a change and its result.

    A change that completes a reassignment may also change the leader. Then it is committed, and the broker that asked
    for it gets an error because it does not lead the partition any more.
    """
    record = change_record(asked.topic_id, asked.partition, state, new)
    if new.leader != state.leader:
        message = f"broker {new.leader} leads the partition now"
        result = IsrResult(asked.topic_id, asked.partition, ErrorCode.NEW_LEADER_ELECTED, message)
    else:
        result = IsrResult(
            asked.topic_id,
            asked.partition,
            leader=new.leader,
            leader_epoch=new.leader_epoch,
            isr=new.isr,
            partition_epoch=state.partition_epoch + (record is not None),
        )
    return [] if record is None else [record], result
