"""Decide on the in-sync sets that leaders ask for (AlterPartition).

A change counts only for the state on which its leader decided: it names the leader epoch and the partition epoch. It
also names the broker epoch of every member, so that a replica that restarted since its last fetch, perhaps without the
records that it had, does not become in sync because of what its former process had fetched (KIP-903).
"""

from headrace.core.controller.commands import (
    PARTITIONS_PER_REQUEST_MAX,
    Decision,
    IsrAlteration,
    IsrChange,
    IsrResult,
    IsrResults,
    Refused,
)
from headrace.core.controller.image import MetadataImage
from headrace.core.controller.partition_states import PartitionState
from headrace.core.controller.records import PartitionChangeRecord, Record
from headrace.model.errors import ErrorCode
from headrace.model.ids import NodeId, TopicId


def alter_isrs(image: MetadataImage, alteration: IsrAlteration) -> Decision[IsrResults]:
    """Change the in-sync sets of partitions independently: a refused change does not stop the others."""
    leader = image.brokers.get(alteration.node_id)
    if leader is None or leader.broker_epoch != alteration.broker_epoch:
        message = f"broker {alteration.node_id} is not registered with epoch {alteration.broker_epoch}"
        return Decision((), IsrResults(ErrorCode.STALE_BROKER_EPOCH, message))
    if len(alteration.changes) > PARTITIONS_PER_REQUEST_MAX:
        message = f"one request may change at most {PARTITIONS_PER_REQUEST_MAX} partitions: send several requests"
        return Decision((), IsrResults(ErrorCode.INVALID_REQUEST, message))
    records: list[Record] = []
    results: list[IsrResult] = []
    seen: set[tuple[TopicId, int]] = set()
    for change in alteration.changes:
        try:
            if (change.topic_id, change.partition) in seen:
                raise Refused(ErrorCode.INVALID_REQUEST, f"partition {change.partition} is listed more than once")
            seen.add((change.topic_id, change.partition))
            state = _current(image, change)
            _check_leader(alteration.node_id, change, state)
            _check_members(image, alteration.node_id, change, state)
        except Refused as refusal:
            results.append(IsrResult(change.topic_id, change.partition, refusal.code, refusal.message))
            continue
        record, result = _decide(change, state)
        records += record
        results.append(result)
    return Decision(tuple(records), IsrResults(results=tuple(results)))


def _current(image: MetadataImage, change: IsrChange) -> PartitionState:
    topic = image.topics_by_id.get(change.topic_id)
    if topic is None:
        raise Refused(ErrorCode.UNKNOWN_TOPIC_ID, f"no topic has the id {change.topic_id.hex()}")
    if not 0 <= change.partition < len(topic.partitions):
        message = f'topic "{topic.name}" has {len(topic.partitions)} partitions, none has the number {change.partition}'
        raise Refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, message)
    return topic.partitions[change.partition]


def _check_leader(node_id: NodeId, change: IsrChange, state: PartitionState) -> None:
    """Refuse a change that was decided on another state than the current one."""
    if change.leader_epoch > state.leader_epoch or change.partition_epoch > state.partition_epoch:
        raise Refused(
            ErrorCode.NOT_CONTROLLER,
            f"the broker knows leader epoch {change.leader_epoch} and partition epoch {change.partition_epoch}, "
            f"this controller only {state.leader_epoch} and {state.partition_epoch}",
        )
    if change.leader_epoch < state.leader_epoch:
        raise Refused(
            ErrorCode.FENCED_LEADER_EPOCH,
            f"leader epoch {change.leader_epoch} is over: the current one is {state.leader_epoch}",
        )
    if node_id != state.leader:
        raise Refused(ErrorCode.INVALID_REQUEST, f"broker {node_id} is not the leader, {state.leader} is")
    if change.partition_epoch < state.partition_epoch:
        raise Refused(
            ErrorCode.INVALID_UPDATE_VERSION,
            f"partition epoch {change.partition_epoch} is over: the current one is {state.partition_epoch}",
        )


def _check_members(image: MetadataImage, node_id: NodeId, change: IsrChange, state: PartitionState) -> None:
    members = [member.node_id for member in change.isr]
    if len(set(members)) != len(members) or not set(members) <= set(state.replicas):
        raise Refused(
            ErrorCode.INVALID_REQUEST, f"in-sync set {members} is not a part of the replicas {list(state.replicas)}"
        )
    if node_id not in members:
        raise Refused(ErrorCode.INVALID_REQUEST, f"in-sync set {members} is without its leader {node_id}")
    for member in change.isr:
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


def _decide(change: IsrChange, state: PartitionState) -> tuple[list[PartitionChangeRecord], IsrResult]:
    wanted = {member.node_id for member in change.isr}
    # In the order of the replicas, so that equal sets are equal lists.
    isr = tuple(node for node in state.replicas if node in wanted)
    changed = set(isr) != set(state.isr)
    result = IsrResult(
        change.topic_id,
        change.partition,
        leader=state.leader,
        leader_epoch=state.leader_epoch,
        isr=isr if changed else state.isr,
        partition_epoch=state.partition_epoch + changed,
    )
    return [PartitionChangeRecord(change.topic_id, change.partition, isr=isr)] if changed else [], result
