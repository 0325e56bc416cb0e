"""Decide on topics: create, delete and extend them."""

from collections import Counter
from collections.abc import Iterator, Sequence

from headrace.core.controller.commands import (
    CONFIGS_PER_REQUEST_MAX,
    PARTITIONS_PER_REQUEST_MAX,
    RESOURCES_PER_REQUEST_MAX,
    USE_DEFAULT,
    ControllerDecision,
    CreatableTopic,
    PartitionGrowth,
    Refused,
    TopicResult,
    TopicToDelete,
)
from headrace.core.controller.configs import check_new_topic_configs
from headrace.core.controller.image import MetadataImage
from headrace.core.controller.names import CLUSTER_METADATA_TOPIC, CollisionIndex, check_topic_name
from headrace.core.controller.partition_changes import UNASSIGNED_DIRECTORY
from headrace.core.controller.placement import DEFAULT_REPLICATION_FACTOR, Placement, failure_domains
from headrace.core.controller.records import (
    METADATA_VERSION,
    REPLICATION_LEVEL,
    ConfigRecord,
    PartitionRecord,
    Record,
    RemoveTopicRecord,
    ResourceKind,
    TopicRecord,
)
from headrace.core.controller.settings import ControllerSettings
from headrace.core.controller.topic_image import TopicImage
from headrace.model.errors import ErrorCode
from headrace.model.ids import NO_TOPIC_ID, LeaderEpoch, NodeId, TopicId

TopicDecision = ControllerDecision[tuple[TopicResult, ...]]


def create_topics(
    image: MetadataImage,
    settings: ControllerSettings,
    topics: Sequence[CreatableTopic],
    *,
    topic_ids: Sequence[TopicId],
    validate_only: bool,
) -> TopicDecision:
    """Create topics; `topic_ids` holds one new id for each requested topic."""
    assert len(topic_ids) >= len(topics)
    asked = Counter(topic.name for topic in topics)
    collisions = CollisionIndex(image.topics)
    too_large = _too_large(image, topics, settings)
    placement = Placement(image.brokers.values(), image.preferred_leaders)
    records: list[Record] = []
    results: dict[str, TopicResult] = {}
    for topic, topic_id in zip(topics, topic_ids, strict=False):
        if topic.name in results:
            continue  # a name that is requested twice gets one response, with its error
        try:
            if too_large:
                raise Refused(ErrorCode.POLICY_VIOLATION, too_large)
            if asked[topic.name] > 1:
                raise Refused(ErrorCode.INVALID_REQUEST, f'topic "{topic.name}" is listed more than once')
            _check_new_name(image, collisions, topic.name)
            configs = check_new_topic_configs(topic.name, topic.configs)
            replicas = _new_topic_replicas(image, settings, placement, topic)
        except Refused as refusal:
            results[topic.name] = TopicResult(topic.name, error=refusal.code, message=refusal.message)
            continue
        collisions.add(topic.name)
        records.extend(_creation_records(image, topic.name, topic_id, replicas, configs))
        results[topic.name] = TopicResult(
            topic.name,
            NO_TOPIC_ID if validate_only else topic_id,
            partition_count=len(replicas),
            replication_factor=len(replicas[0]),
        )
    return ControllerDecision(() if validate_only else tuple(records), tuple(results.values()))


def delete_topics(image: MetadataImage, settings: ControllerSettings, topics: Sequence[TopicToDelete]) -> TopicDecision:
    asked_names = Counter(topic.name for topic in topics)
    asked_ids = Counter(topic.topic_id for topic in topics)
    records: dict[TopicId, Record] = {}
    results: dict[tuple[str | None, TopicId], TopicResult] = {}
    for topic in topics:
        key = (topic.name, topic.topic_id)
        if key in results:
            continue
        try:
            if len(topics) > RESOURCES_PER_REQUEST_MAX:
                raise Refused(ErrorCode.POLICY_VIOLATION, _too_many("topics", len(topics), RESOURCES_PER_REQUEST_MAX))
            if topic.name is not None and asked_names[topic.name] > 1:
                raise Refused(ErrorCode.INVALID_REQUEST, f'topic "{topic.name}" is listed more than once')
            if topic.topic_id != NO_TOPIC_ID and asked_ids[topic.topic_id] > 1:
                raise Refused(ErrorCode.INVALID_REQUEST, f"topic id {topic.topic_id.hex()} is listed more than once")
            found = _topic_to_delete(image, settings, topic)
            if found.topic_id in records:
                raise Refused(ErrorCode.INVALID_REQUEST, f'topic "{found.name}" is listed by name and by id')
        except Refused as refusal:
            results[key] = TopicResult(topic.name, topic.topic_id, refusal.code, refusal.message)
            continue
        records[found.topic_id] = RemoveTopicRecord(found.topic_id)
        results[key] = TopicResult(found.name, found.topic_id)
    return ControllerDecision(tuple(records.values()), tuple(results.values()))


def create_partitions(
    image: MetadataImage, settings: ControllerSettings, growths: Sequence[PartitionGrowth], *, validate_only: bool
) -> TopicDecision:
    asked = Counter(growth.name for growth in growths)
    too_large = _growth_too_large(image, settings, growths)
    placement = Placement(image.brokers.values(), image.preferred_leaders)
    records: list[Record] = []
    results: dict[str, TopicResult] = {}
    for growth in growths:
        if growth.name in results:
            continue
        try:
            if too_large:
                raise Refused(ErrorCode.POLICY_VIOLATION, too_large)
            if asked[growth.name] > 1:
                raise Refused(ErrorCode.INVALID_REQUEST, f'topic "{growth.name}" is listed more than once')
            topic = _existing(image, growth.name)
            replicas = _grown_replicas(image, placement, topic, growth)
        except Refused as refusal:
            results[growth.name] = TopicResult(growth.name, error=refusal.code, message=refusal.message)
            continue
        records.extend(_partition_records(image, topic.topic_id, len(topic.partitions), replicas))
        results[growth.name] = TopicResult(growth.name, topic.topic_id, partition_count=growth.partition_count)
    return ControllerDecision(() if validate_only else tuple(records), tuple(results.values()))


# Creation


def _too_large(image: MetadataImage, topics: Sequence[CreatableTopic], settings: ControllerSettings) -> str | None:
    partitions = sum(
        len(topic.assignments)
        or (settings.default_partition_count if topic.partition_count < 0 else topic.partition_count)
        for topic in topics
    )
    configs = sum(len(topic.configs) for topic in topics)
    if len(topics) > RESOURCES_PER_REQUEST_MAX:
        return _too_many("topics", len(topics), RESOURCES_PER_REQUEST_MAX)
    if partitions > PARTITIONS_PER_REQUEST_MAX:
        return _too_many("partitions", partitions, PARTITIONS_PER_REQUEST_MAX)
    if configs > CONFIGS_PER_REQUEST_MAX:
        return _too_many("configs", configs, CONFIGS_PER_REQUEST_MAX)
    if len(image.topics) + len(topics) > settings.topics_max:
        return f"the cluster may have at most {settings.topics_max} topics (headrace.topics.max)"
    return _cluster_full(image, partitions, settings)


def _cluster_full(image: MetadataImage, added: int, settings: ControllerSettings) -> str | None:
    if image.partition_count + added <= settings.partitions_max:
        return None
    return (
        f"{added} more partitions than the existing {image.partition_count} would exceed the limit of "
        f"{settings.partitions_max} (headrace.partitions.max)"
    )


def _too_many(what: str, count: int, count_max: int) -> str:
    return f"{count} {what} in one request: at most {count_max} are allowed, send several requests"


def _check_new_name(image: MetadataImage, collisions: CollisionIndex, name: str) -> None:
    check_topic_name(name)
    if name == CLUSTER_METADATA_TOPIC:
        raise Refused(
            ErrorCode.TOPIC_AUTHORIZATION_FAILED, f'"{name}" is the cluster\'s metadata log: choose another name'
        )
    if name in image.topics:
        raise Refused(ErrorCode.TOPIC_ALREADY_EXISTS, f'topic "{name}" already exists')
    collisions.check(name)


def _new_topic_replicas(
    image: MetadataImage, settings: ControllerSettings, placement: Placement, topic: CreatableTopic
) -> list[tuple[NodeId, ...]]:
    if topic.assignments:
        return _assigned_by_hand(image, settings, topic)
    partition_count = (
        settings.default_partition_count if topic.partition_count == USE_DEFAULT else topic.partition_count
    )
    replication_factor = topic.replication_factor
    if replication_factor == USE_DEFAULT:
        replication_factor = default_replication_factor(image, settings)
    if partition_count < 1:
        raise Refused(
            ErrorCode.INVALID_PARTITIONS,
            f'topic "{topic.name}" cannot have {partition_count} partitions: request 1 or more, or -1 for the default',
        )
    if replication_factor < 1:
        raise Refused(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f'topic "{topic.name}" cannot have replication factor {replication_factor}: request 1 or more, or '
            "-1 for the default",
        )
    _check_replication_factor(image, settings, replication_factor, ErrorCode.INVALID_REPLICATION_FACTOR)
    return placement.place(partition_count, replication_factor)


def default_replication_factor(image: MetadataImage, settings: ControllerSettings) -> int:
    """Return the replicas of a topic that asks for the default."""
    if settings.default_replication_factor is not None:
        return settings.default_replication_factor
    if not image.replicates:
        return 1
    domains = failure_domains(image.brokers.values())
    return max(1, min(DEFAULT_REPLICATION_FACTOR, domains, settings.replication_factor_max))


def _check_replication_factor(
    image: MetadataImage, settings: ControllerSettings, replication_factor: int, code: ErrorCode
) -> None:
    if replication_factor > settings.replication_factor_max:
        raise Refused(
            code,
            f"replication factor {replication_factor} is not supported: a partition has at most "
            f"{settings.replication_factor_max} replicas",
        )
    if replication_factor > 1 and not image.replicates:
        raise Refused(
            code,
            f"replication factor {replication_factor} needs {METADATA_VERSION} {REPLICATION_LEVEL}, the cluster is at "
            f"{image.metadata_version}: raise it by UpdateFeatures once every broker runs this release",
        )


def _assigned_by_hand(
    image: MetadataImage, settings: ControllerSettings, topic: CreatableTopic
) -> list[tuple[NodeId, ...]]:
    if topic.replication_factor != USE_DEFAULT or topic.partition_count != USE_DEFAULT:
        raise Refused(
            ErrorCode.INVALID_REQUEST,
            f'topic "{topic.name}" has manually assigned replicas: set partition count and replication factor to -1',
        )
    by_partition = {index: tuple(replicas) for index, replicas in topic.assignments}
    if len(by_partition) != len(topic.assignments) or set(by_partition) != set(range(len(by_partition))):
        raise Refused(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f'the assigned partitions of topic "{topic.name}" must be numbered from 0 without gap or repetition',
        )
    replicas = [by_partition[index] for index in range(len(by_partition))]
    _check_replication_factor(image, settings, len(replicas[0]), ErrorCode.INVALID_REPLICA_ASSIGNMENT)
    _check_assignment(image, replicas, replication_factor=len(replicas[0]))
    return replicas


def _check_assignment(image: MetadataImage, replicas: Sequence[tuple[NodeId, ...]], *, replication_factor: int) -> None:
    for nodes in replicas:
        unknown = [node for node in nodes if node not in image.brokers]
        if not nodes:
            reason = "a partition needs at least one replica"
        elif len(set(nodes)) != len(nodes):
            reason = f"replicas {list(nodes)} name a broker twice"
        elif unknown:
            reason = f"replicas {list(nodes)} name broker {unknown[0]}, which is not registered"
        elif len(nodes) != replication_factor:
            reason = f"replicas {list(nodes)} are not {replication_factor}, as the topic's other partitions have"
        elif not any(image.brokers[node].takes_partitions for node in nodes):
            reason = f"replicas {list(nodes)} are on brokers that are fenced or shutting down: name one that runs"
        else:
            continue
        raise Refused(ErrorCode.INVALID_REPLICA_ASSIGNMENT, reason)


def _creation_records(
    image: MetadataImage, name: str, topic_id: TopicId, replicas: Sequence[tuple[NodeId, ...]], configs: dict[str, str]
) -> Iterator[Record]:
    yield TopicRecord(name, topic_id)
    yield from _partition_records(image, topic_id, 0, replicas)
    for config, value in configs.items():
        yield ConfigRecord(ResourceKind.TOPIC, name, config, value)


def _partition_records(
    image: MetadataImage, topic_id: TopicId, first: int, replicas: Sequence[tuple[NodeId, ...]]
) -> Iterator[PartitionRecord]:
    for index, nodes in enumerate(replicas, first):
        in_sync = tuple(node for node in nodes if image.brokers[node].takes_partitions)
        directories = (UNASSIGNED_DIRECTORY,) * len(nodes)
        yield PartitionRecord(topic_id, index, nodes, in_sync, in_sync[0], LeaderEpoch(0), 0, directories)


# Deletion and growth


def _topic_to_delete(image: MetadataImage, settings: ControllerSettings, topic: TopicToDelete) -> TopicImage:
    if (topic.name is None) == (topic.topic_id == NO_TOPIC_ID):
        raise Refused(ErrorCode.INVALID_REQUEST, "name the topic to delete either by its name or by its id")
    if not settings.topic_deletion_enabled:
        raise Refused(ErrorCode.TOPIC_DELETION_DISABLED, "topics cannot be deleted: delete.topic.enable is false")
    if topic.name is not None:
        return _existing(image, topic.name)
    found = image.topics_by_id.get(topic.topic_id)
    if found is None:
        raise Refused(ErrorCode.UNKNOWN_TOPIC_ID, f"no topic has the id {topic.topic_id.hex()}")
    return found


def _existing(image: MetadataImage, name: str) -> TopicImage:
    topic = image.topics.get(name)
    if topic is None:
        raise Refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f'topic "{name}" does not exist')
    return topic


def _growth_too_large(
    image: MetadataImage, settings: ControllerSettings, growths: Sequence[PartitionGrowth]
) -> str | None:
    if len(growths) > RESOURCES_PER_REQUEST_MAX:
        return _too_many("topics", len(growths), RESOURCES_PER_REQUEST_MAX)
    added = sum(
        max(0, growth.partition_count - len(image.topics[growth.name].partitions))
        for growth in growths
        if growth.name in image.topics
    )
    if added > PARTITIONS_PER_REQUEST_MAX:
        return _too_many("partitions", added, PARTITIONS_PER_REQUEST_MAX)
    return _cluster_full(image, added, settings)


def _grown_replicas(
    image: MetadataImage, placement: Placement, topic: TopicImage, growth: PartitionGrowth
) -> list[tuple[NodeId, ...]]:
    existing = len(topic.partitions)
    if growth.partition_count == existing:
        raise Refused(ErrorCode.INVALID_PARTITIONS, f'topic "{topic.name}" already has {existing} partitions')
    if growth.partition_count < existing:
        raise Refused(
            ErrorCode.INVALID_PARTITIONS,
            f'topic "{topic.name}" has {existing} partitions, but {growth.partition_count} were requested: '
            "partitions can only grow",
        )
    replication_factor = len(topic.partitions[0].replicas)
    added = growth.partition_count - existing
    if not growth.assignments:
        return placement.place(added, replication_factor, existing=topic.partitions.preferred_leaders())
    if len(growth.assignments) != added:
        raise Refused(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f'topic "{topic.name}" grows by {added} partitions, but replicas are assigned to {len(growth.assignments)}',
        )
    replicas = [tuple(nodes) for nodes in growth.assignments]
    _check_assignment(image, replicas, replication_factor=replication_factor)
    return replicas
