"""Decide on the brokers of the cluster: register, fence, unfence, shut down and unregister them.

A registered broker is fenced until it has caught up with the metadata log. A fenced broker leads nothing: other
replicas lead its partitions, or none until it is unfenced. The broker epoch, which is the offset of the registration,
tells the registrations of one node id apart.
"""

from collections.abc import Callable, Iterator, Set

import msgspec

from headrace.core.controller.broker_image import BrokerImage
from headrace.core.controller.commands import (
    BrokerHeartbeat,
    BrokerRegistration,
    BrokerResult,
    BrokerState,
    ControllerDecision,
    NewBroker,
    Refused,
)
from headrace.core.controller.features import unsupported_feature
from headrace.core.controller.image import MetadataImage
from headrace.core.controller.partition_changes import NO_NODES, change, change_record
from headrace.core.controller.records import (
    BrokerRegistrationChangeRecord,
    PartitionChangeRecord,
    Record,
    RegisterBrokerRecord,
    UnregisterBrokerRecord,
)
from headrace.core.controller.settings import ControllerSettings
from headrace.core.controller.topic_rules import TopicRules
from headrace.model.errors import ErrorCode
from headrace.model.ids import NO_NODE, NodeId

BROKERS_MAX = 1_000
ENDPOINTS_PER_BROKER_MAX = 16
NO_EPOCH_YET = -1


def register_broker(
    image: MetadataImage, settings: ControllerSettings, new: NewBroker, *, cluster_id: str, session_is_live: bool
) -> ControllerDecision[BrokerRegistration]:
    """Register a process as a broker, fenced; `session_is_live` tells whether the registered one still has a session.

    The former process of this node led and replicated for the last time, which separates the runs of the two in the
    logs. If the machine may have lost records with it, its replicas are not eligible leaders either.
    """
    registered = image.brokers.get(new.node_id)
    try:
        _check_cluster(new, cluster_id)
        _check_endpoints(new)
        reason = unsupported_feature(image.features, new.features)
        if reason is not None:
            raise Refused(ErrorCode.UNSUPPORTED_VERSION, reason)
        if registered is None and len(image.brokers) >= BROKERS_MAX:
            raise Refused(ErrorCode.POLICY_VIOLATION, f"a cluster has at most {BROKERS_MAX} brokers")
        if registered is not None and session_is_live and not _replaces(new, registered):
            raise Refused(ErrorCode.DUPLICATE_BROKER_REGISTRATION, _duplicate(registered))
    except Refused as refusal:
        return ControllerDecision((), BrokerRegistration(error=refusal.code, message=refusal.message))
    epoch = image.version
    registration = RegisterBrokerRecord(
        new.node_id,
        new.incarnation,
        epoch,
        tuple(new.endpoints),
        new.rack,
        new.host,
        True,
        tuple(new.features),
        tuple(new.directories),
        new.is_controller,
        new.metadata_directory,
        boot_id=new.boot_id if image.replicates else "",
    )
    has_lost = image.replicates and may_have_lost_records(new, registered)
    losses = _losses(image, settings, new.node_id, lost=frozenset((new.node_id,)) if has_lost else NO_NODES)
    # The registration comes first, because its offset is the broker epoch.
    return ControllerDecision((registration, *losses), BrokerRegistration(epoch))


def may_have_lost_records(new: NewBroker, registered: BrokerImage | None) -> bool:
    """Return whether records that the former process had written may be gone.

    They are not if it closed its logs, or if only the process ended: the system still had what was not on the disk.
    They may be if the machine was restarted, if its boot cannot be read, or if a directory is another one.
    """
    if registered is None:
        return True
    if new.incarnation == registered.incarnation:
        return False
    if new.metadata_directory != registered.metadata_directory or set(registered.directories) - set(new.directories):
        return True
    return not new.closed_cleanly and (not new.boot_id or new.boot_id != registered.boot_id)


def fence_broker(
    image: MetadataImage, settings: ControllerSettings, node_id: NodeId, broker_epoch: int
) -> ControllerDecision[BrokerResult]:
    """Fence a broker whose session is over; a broker that registered again since is left alone."""
    broker = image.brokers.get(node_id)
    if broker is None or broker.broker_epoch != broker_epoch:
        return ControllerDecision((), _stale(node_id, broker_epoch))
    if broker.fenced:
        return ControllerDecision((), BrokerResult())
    fencing = BrokerRegistrationChangeRecord(node_id, broker_epoch, fenced=True)
    return ControllerDecision((fencing, *_losses(image, settings, node_id)), BrokerResult())


def set_impaired(
    image: MetadataImage, settings: ControllerSettings, node_id: NodeId, broker_epoch: int, *, impaired: bool
) -> ControllerDecision[bool]:
    """Take the leadership from an impaired broker where others can lead; return whether its state changes.

    At most half of the brokers are impaired, so that leaders are not moved away from the few that are left.
    """
    broker = image.brokers.get(node_id)
    if broker is None or broker.broker_epoch != broker_epoch or broker.impaired == impaired or not image.replicates:
        return ControllerDecision((), False)
    known = frozenset(each.node_id for each in image.brokers.values() if each.impaired and each.takes_partitions)
    running = sum(each.takes_partitions for each in image.brokers.values())
    if impaired and len(known) >= running // 2:
        return ControllerDecision((), False)
    changed = BrokerRegistrationChangeRecord(node_id, broker_epoch, impaired=impaired)
    if not impaired:
        return ControllerDecision((changed,), True)
    rules = TopicRules(image, settings, impaired=known | {node_id})
    return ControllerDecision((changed, *_handed_over(image, node_id, rules)), True)


def _handed_over(image: MetadataImage, node_id: NodeId, rules: TopicRules) -> Iterator[PartitionChangeRecord]:
    """Yield the changes of the partitions that an impaired broker leads."""
    for topic, partitions in image.partitions_of_member(node_id):
        of_topic = rules.of(topic)
        for partition in partitions:
            state = topic.partitions[partition]
            if state.leader == node_id:
                record = change_record(topic.topic_id, partition, state, change(state, of_topic))
                if record is not None:
                    yield record


def unregister_broker(image: MetadataImage, node_id: NodeId) -> ControllerDecision[BrokerResult]:
    """Remove a broker for good; its partitions stay without a leader until it registers again."""
    broker = image.brokers.get(node_id)
    if broker is None:
        message = f"broker {node_id} is not registered: `headrace cluster brokers` lists the registered ones"
        return ControllerDecision((), BrokerResult(ErrorCode.BROKER_ID_NOT_REGISTERED, message))
    if not broker.fenced:
        message = f"broker {node_id} is running and would register again: stop it first"
        return ControllerDecision((), BrokerResult(ErrorCode.INVALID_REQUEST, message))
    return ControllerDecision((UnregisterBrokerRecord(node_id, broker.broker_epoch),), BrokerResult())


def heartbeat(
    image: MetadataImage, settings: ControllerSettings, beat: BrokerHeartbeat, *, moves_are_seen: Callable[[], bool]
) -> ControllerDecision[BrokerState]:
    """Decide on the state that a broker asks for: unfenced once it has caught up, fenced, or stopped.

    `moves_are_seen` tells whether all other brokers know of the leaders that took over from one that shuts down.
    """
    broker = image.brokers.get(beat.node_id)
    if broker is None or broker.broker_epoch != beat.broker_epoch:
        stale = _stale(beat.node_id, beat.broker_epoch)
        return ControllerDecision((), BrokerState(error=stale.error, message=stale.message))
    is_caught_up = beat.metadata_offset >= broker.broker_epoch
    if beat.wants_shut_down:
        records, is_over = _shutdown(image, settings, broker, moves_are_seen)
        is_fenced = is_over or broker.fenced
        state = BrokerState(is_caught_up=is_caught_up, is_fenced=is_fenced, should_shut_down=is_over)
        return ControllerDecision(records, state)
    if beat.wants_fence:
        fenced = fence_broker(image, settings, broker.node_id, broker.broker_epoch)
        return ControllerDecision(fenced.records, BrokerState(is_caught_up=is_caught_up, is_fenced=True))
    if broker.fenced and is_caught_up and not broker.in_controlled_shutdown:
        return ControllerDecision(
            tuple(_unfencing(image, settings, broker)), BrokerState(is_caught_up=True, is_fenced=False)
        )
    return ControllerDecision((), BrokerState(is_caught_up=is_caught_up, is_fenced=broker.fenced))


# Records


def _unfencing(image: MetadataImage, settings: ControllerSettings, broker: BrokerImage) -> Iterator[Record]:
    """Yield the records that unfence a broker and elect leaders for the partitions that wait for it."""
    yield BrokerRegistrationChangeRecord(broker.node_id, broker.broker_epoch, fenced=False)
    rules = TopicRules(image, settings, including=broker.node_id)
    for topic, partitions in image.leaderless_partitions_on(broker.node_id):
        for partition in partitions:
            state = topic.partitions[partition]
            record = change_record(topic.topic_id, partition, state, change(state, rules.of(topic)))
            if record is not None:
                yield record


def _shutdown(
    image: MetadataImage, settings: ControllerSettings, broker: BrokerImage, moves_are_seen: Callable[[], bool]
) -> tuple[tuple[Record, ...], bool]:
    """Return the records of a controlled shutdown, and whether the broker may stop.

    First other replicas take over what they can. When all brokers know that, the broker is fenced; until then it
    leads the partitions that no other broker can lead.
    """
    if broker.in_controlled_shutdown and broker.fenced:
        return (), True
    if broker.in_controlled_shutdown and not moves_are_seen():
        return (), False
    losses = tuple(_losses(image, settings, broker.node_id))
    if not broker.fenced and any(record.leader not in (None, NO_NODE) for record in losses):
        begin = BrokerRegistrationChangeRecord(broker.node_id, broker.broker_epoch, in_controlled_shutdown=True)
        return (begin, *(record for record in losses if record.leader != NO_NODE)), False
    end = BrokerRegistrationChangeRecord(broker.node_id, broker.broker_epoch, fenced=True, in_controlled_shutdown=True)
    return (end, *losses), True


def _losses(
    image: MetadataImage, settings: ControllerSettings, node_id: NodeId, *, lost: Set[NodeId] = NO_NODES
) -> Iterator[PartitionChangeRecord]:
    """Yield the changes of the partitions that a broker leads or has in sync, because it is out of service."""
    rules = TopicRules(image, settings, without=node_id)
    gone = frozenset((node_id,))
    decided: dict[tuple[object, ...], tuple[object, ...] | None] = {}
    """The fields that change, by the fields that decide: most partitions of a broker are like others."""
    for topic, partitions in image.partitions_of_member(node_id):
        of_topic = rules.of(topic)
        states = topic.partitions
        for partition in partitions:
            state = states[partition]
            key = (of_topic.min_insync_replicas, of_topic.unclean, *state[:3], *state[5:])
            if key in decided:
                fields = decided[key]
            else:
                record = change_record(topic.topic_id, partition, state, change(state, of_topic, gone=gone, lost=lost))
                fields = decided[key] = None if record is None else msgspec.structs.astuple(record)[2:]
            if fields is not None:
                yield PartitionChangeRecord(topic.topic_id, partition, *fields)  # type: ignore[arg-type]


# Checks of a registration


def _check_cluster(new: NewBroker, cluster_id: str) -> None:
    if new.cluster_id != cluster_id:
        raise Refused(
            ErrorCode.INCONSISTENT_CLUSTER_ID,
            f"broker {new.node_id} belongs to cluster {new.cluster_id}, this is cluster {cluster_id}: correct "
            "controller.quorum.bootstrap.servers, or start the broker with an empty data folder",
        )


def _check_endpoints(new: NewBroker) -> None:
    listeners = {endpoint.listener for endpoint in new.endpoints}
    if not 1 <= len(new.endpoints) <= ENDPOINTS_PER_BROKER_MAX or len(listeners) < len(new.endpoints):
        raise Refused(
            ErrorCode.INVALID_REGISTRATION,
            f"broker {new.node_id} must have 1 to {ENDPOINTS_PER_BROKER_MAX} listeners with different names",
        )
    for endpoint in new.endpoints:
        if not endpoint.host or not 0 < endpoint.port <= 65_535:
            raise Refused(
                ErrorCode.INVALID_REGISTRATION,
                f'listener {endpoint.listener} of broker {new.node_id} has no address: "{endpoint.host}" '
                f"port {endpoint.port}",
            )


def _replaces(new: NewBroker, registered: BrokerImage) -> bool:
    """Return whether the registered process is this one or is known to be dead.

    The same incarnation is the same process. A process that registers with the same directory holds the lock of that
    directory, so the former process is dead. A process of an earlier release registered no directory and counts as dead
    too. A process that has lost its registration to another one has no such proof: two processes on copies of one
    directory would take the node id from each other for ever.
    """
    if new.incarnation == registered.incarnation:
        return True
    return new.previous_epoch == NO_EPOCH_YET and registered.metadata_directory in (b"", new.metadata_directory)


def _duplicate(registered: BrokerImage) -> str:
    addresses = ", ".join(f"{endpoint.host}:{endpoint.port}" for endpoint in registered.endpoints.values())
    return (
        f"broker {registered.node_id} is registered by a running process on host {registered.host} ({addresses}): "
        "give this broker another node.id, or stop the other one"
    )


def _stale(node_id: NodeId, broker_epoch: int) -> BrokerResult:
    return BrokerResult(
        ErrorCode.STALE_BROKER_EPOCH, f"broker {node_id} is not registered with epoch {broker_epoch}: register again"
    )
