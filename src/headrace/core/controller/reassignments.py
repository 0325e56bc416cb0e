"""Decide on reassignments: move partitions to other replicas, and raise internal topics to several replicas.

While a partition moves, its replicas are the target and, behind it, those that will be removed. The in-sync set with
every added replica completes the move (`partition_changes.change`).
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from headrace.core.controller.broker_image import BrokerImage
from headrace.core.controller.commands import PARTITIONS_PER_REQUEST_MAX, ControllerDecision, Refused
from headrace.core.controller.elections import eligible_no_more
from headrace.core.controller.image import MetadataImage
from headrace.core.controller.partition_changes import change, change_record, directories_of
from headrace.core.controller.partition_states import PartitionState
from headrace.core.controller.placement import failure_domains
from headrace.core.controller.records import METADATA_VERSION, REPLICATION_LEVEL, PartitionChangeRecord
from headrace.core.controller.settings import ControllerSettings
from headrace.core.controller.topic_image import TopicImage
from headrace.core.controller.topic_rules import TopicRules
from headrace.model.errors import ErrorCode
from headrace.model.ids import LeaderEpoch, NodeId

INTERNAL_RAISED_PER_DECISION_MAX = 1_000
"""Partitions of internal topics that get further replicas in one decision."""


class WantedReplicas(NamedTuple):
    topic: str
    partition: int
    replicas: tuple[NodeId, ...] | None
    """None stops a reassignment that is under way."""


class ReassignmentResult(NamedTuple):
    topic: str
    partition: int
    error: ErrorCode = ErrorCode.NONE
    message: str | None = None


ReassignmentDecision = ControllerDecision[tuple[ReassignmentResult, ...]]


def reassign(
    image: MetadataImage,
    settings: ControllerSettings,
    wanted: Sequence[WantedReplicas],
    *,
    allow_factor_change: bool,
) -> ReassignmentDecision:
    """Begin, replace or stop reassignments, each for itself."""
    rules = TopicRules(image, settings)
    asked = Counter((each.topic, each.partition) for each in wanted)
    records: list[PartitionChangeRecord] = []
    further: list[PartitionChangeRecord] = []
    results: dict[tuple[str, int], ReassignmentResult] = {}
    for each in wanted:
        key = (each.topic, each.partition)
        if key in results:
            continue  # a partition that is listed twice gets one result, with its error
        try:
            if len(wanted) > PARTITIONS_PER_REQUEST_MAX:
                message = f"one request may move at most {PARTITIONS_PER_REQUEST_MAX} partitions: send several requests"
                raise Refused(ErrorCode.POLICY_VIOLATION, message)
            if asked[key] > 1:
                raise Refused(ErrorCode.INVALID_REQUEST, f"partition {each.partition} is listed more than once")
            topic, state = _existing(image, each)
            if each.replicas is None:
                new = _stopped(state, topic, rules)
            else:
                _check_target(image, settings, state, each.replicas, allow_factor_change=allow_factor_change)
                new = _moved(state, each.replicas, topic, rules)
        except Refused as refusal:
            results[key] = ReassignmentResult(*key, refusal.code, refusal.message)
            continue
        record = change_record(topic.topic_id, each.partition, state, new)
        records += [] if record is None else [record]
        if each.partition == 0 and len(new.replicas) != len(state.replicas):
            further += eligible_no_more(topic, new, rules)
        results[key] = ReassignmentResult(*key)
    return ControllerDecision((*records, *further), tuple(results.values()))


def _existing(image: MetadataImage, wanted: WantedReplicas) -> tuple[TopicImage, PartitionState]:
    topic = image.topics.get(wanted.topic)
    if topic is None or not 0 <= wanted.partition < len(topic.partitions):
        message = f'topic "{wanted.topic}" has no partition {wanted.partition}'
        raise Refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, message)
    return topic, topic.partitions[wanted.partition]


def _check_target(
    image: MetadataImage,
    settings: ControllerSettings,
    state: PartitionState,
    target: tuple[NodeId, ...],
    *,
    allow_factor_change: bool,
) -> None:
    unknown = [node for node in target if node not in image.brokers]
    current = len(state.replicas) - len(state.adding)
    code = ErrorCode.INVALID_REPLICA_ASSIGNMENT
    if not target:
        reason = "a partition needs at least one replica"
    elif len(set(target)) != len(target):
        reason = f"replicas {list(target)} name a broker twice"
    elif unknown:
        reason = f"replicas {list(target)} name broker {unknown[0]}, which is not registered"
    elif len(target) > settings.replication_factor_max:
        reason = f"a partition has at most {settings.replication_factor_max} replicas in this release"
    elif not image.replicates:
        reason = f"replicas can be moved from {METADATA_VERSION} {REPLICATION_LEVEL} on: raise it by UpdateFeatures"
    elif not allow_factor_change and len(target) != current:
        code = ErrorCode.INVALID_REPLICATION_FACTOR
        reason = f"replicas {list(target)} are not {current}, as the partition has, and the request forbids a change"
    else:
        return
    raise Refused(code, reason)


def _moved(state: PartitionState, target: tuple[NodeId, ...], topic: TopicImage, rules: TopicRules) -> PartitionState:
    """Return the state in which the partition moves to its target, or has moved already.

    A leader that gets further replicas begins an epoch in which it knows them.
    """
    original = [node for node in state.replicas if node not in state.adding]
    replicas = (*target, *(node for node in original if node not in target))
    adding = tuple(node for node in target if node not in original)
    removing = tuple(node for node in original if node not in target)
    if replicas == state.replicas and (adding, removing) == (state.adding, state.removing):
        return state
    complete = [node for node in state.replicas if node in (*state.isr, *state.elr)]
    if complete and not set(complete) & set(replicas):
        raise Refused(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"of replicas {complete}, which have every record, none stays: add one of them, or wait",
        )
    return _begun(state, replicas, adding, removing, topic, rules)


def _stopped(state: PartitionState, topic: TopicImage, rules: TopicRules) -> PartitionState:
    if not state.adding and not state.removing:
        raise Refused(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, "the partition is not being reassigned")
    original = tuple(node for node in state.replicas if node not in state.adding)
    if not set(original) & {*state.isr, *state.elr}:
        raise Refused(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"none of the former replicas {list(original)} is in sync any more: let the reassignment end",
        )
    return _begun(state, original, (), (), topic, rules)


def _begun(
    state: PartitionState,
    replicas: tuple[NodeId, ...],
    adding: tuple[NodeId, ...],
    removing: tuple[NodeId, ...],
    topic: TopicImage,
    rules: TopicRules,
) -> PartitionState:
    begun = state._replace(
        replicas=replicas,
        isr=tuple(node for node in replicas if node in state.isr),
        elr=tuple(node for node in state.elr if node in replicas),
        last_known_elr=tuple(node for node in state.last_known_elr if node in replicas),
        directories=directories_of(state, replicas),
        adding=adding,
        removing=removing,
    )
    new = change(begun, rules.of(topic))
    if new.leader_epoch == state.leader_epoch and set(new.replicas) != set(state.replicas):
        new = new._replace(leader_epoch=LeaderEpoch(state.leader_epoch + 1))
    return new


class Reassignment(NamedTuple):
    topic: str
    partition: int
    replicas: tuple[NodeId, ...]
    adding: tuple[NodeId, ...]
    removing: tuple[NodeId, ...]


def reassignments(image: MetadataImage, wanted: Sequence[tuple[str, Sequence[int]]] | None) -> Iterator[Reassignment]:
    """Iterate over the partitions that move, of all of them or of these."""
    names = None if wanted is None else {(name, index) for name, partitions in wanted for index in partitions}
    for topic_id, partition in image.reassignments:
        topic = image.topics_by_id[topic_id]
        if names is None or (topic.name, partition) in names:
            state = topic.partitions[partition]
            yield Reassignment(topic.name, partition, state.replicas, state.adding, state.removing)


def raise_internal_topics(image: MetadataImage, settings: ControllerSettings) -> ControllerDecision[int]:
    """Add replicas to internal topics that were created when there were fewer brokers; return for how many partitions.

    New replicas are on hosts that have none yet.
    """
    rules = TopicRules(image, settings)
    records: list[PartitionChangeRecord] = []
    load: Counter[NodeId] = Counter()
    for name, factor in topics_to_raise(image, settings).items():
        topic = image.topics[name]
        for partition, state in enumerate(topic.partitions):
            if state.adding or state.removing or len(records) >= INTERNAL_RAISED_PER_DECISION_MAX:
                continue
            target = _with_more(image, state.replicas, factor, load)
            record = change_record(topic.topic_id, partition, state, _moved(state, target, topic, rules))
            records += [] if record is None else [record]
    return ControllerDecision(tuple(records), len(records))


def topics_to_raise(image: MetadataImage, settings: ControllerSettings) -> dict[str, int]:
    """Return the internal topics that can have more replicas than they have, and how many."""
    if not image.replicates:
        return {}
    domains = failure_domains(broker for broker in image.brokers.values() if broker.takes_partitions)
    wanted = {
        name: min(factor, domains, settings.replication_factor_max)
        for name, factor in settings.internal_replication.items()
    }
    return {
        name: factor
        for name, factor in wanted.items()
        if factor > 1
        and (topic := image.topics.get(name)) is not None
        and any(len(state.replicas) < factor and not state.adding for state in topic.partitions)
    }


def _with_more(
    image: MetadataImage, replicas: tuple[NodeId, ...], factor: int, load: Counter[NodeId]
) -> tuple[NodeId, ...]:
    """Return the replicas and further ones on available brokers of other hosts, those with the fewest first."""
    chosen = list(replicas)
    hosts = {image.brokers[node].host for node in replicas if node in image.brokers}
    while len(chosen) < factor:
        candidates: list[BrokerImage] = [
            broker
            for broker in image.brokers.values()
            if broker.takes_partitions and broker.node_id not in chosen and broker.host not in hosts
        ]
        if not candidates:
            break
        best = min(candidates, key=lambda broker: (load[broker.node_id], broker.node_id))
        chosen.append(best.node_id)
        hosts.add(best.host)
        load[best.node_id] += 1
    return tuple(chosen)
