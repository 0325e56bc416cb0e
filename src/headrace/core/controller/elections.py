"""Decide on elections that are requested (ElectLeaders), due for balance, or follow from changed configs."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from headrace.core.controller.commands import PARTITIONS_PER_REQUEST_MAX, ControllerDecision
from headrace.core.controller.image import ConfigResource, MetadataImage
from headrace.core.controller.partition_changes import Election, change, change_record
from headrace.core.controller.partition_states import PartitionState
from headrace.core.controller.records import PartitionChangeRecord, ResourceKind
from headrace.core.controller.settings import ControllerSettings
from headrace.core.controller.topic_image import TopicImage
from headrace.core.controller.topic_rules import TopicRules
from headrace.model.errors import ErrorCode
from headrace.model.ids import NO_NODE

ELECTION_CONFIGS = frozenset(("min.insync.replicas", "unclean.leader.election.enable"))
"""Topic configs that decide who can be elected."""

BALANCED_PER_DECISION_MAX = 1_000
"""Partitions that get their preferred leaders in one decision."""


class ElectionResult(NamedTuple):
    topic: str
    partition: int
    error: ErrorCode = ErrorCode.NONE
    message: str | None = None


ElectionDecision = ControllerDecision[tuple[ElectionResult, ...]]


def elect_leaders(
    image: MetadataImage,
    settings: ControllerSettings,
    election: Election,
    wanted: Sequence[tuple[str, Sequence[int]]] | None,
) -> ElectionDecision:
    """Elect the preferred or, for partitions without a leader, any live replica; of all partitions if None is given.

    Partitions that need no election are left out of the results for all partitions, as in Kafka.
    """
    rules = TopicRules(image, settings)
    records: list[PartitionChangeRecord] = []
    results: dict[tuple[str, int], ElectionResult] = {}
    for name, partition in _candidates(image, election) if wanted is None else _named(wanted):
        if (name, partition) in results:
            continue
        if len(results) >= PARTITIONS_PER_REQUEST_MAX:
            message = f"one request may elect at most {PARTITIONS_PER_REQUEST_MAX} leaders: send several requests"
            results[name, partition] = ElectionResult(name, partition, ErrorCode.POLICY_VIOLATION, message)
            break
        topic = image.topics.get(name)
        if topic is None or not 0 <= partition < len(topic.partitions):
            message = f'topic "{name}" has no partition {partition}'
            code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            results[name, partition] = ElectionResult(name, partition, code, message)
            continue
        record, result = _elect(topic, partition, rules, election)
        records += record
        results[name, partition] = result
    return ControllerDecision(tuple(records), tuple(results.values()))


def _named(wanted: Sequence[tuple[str, Sequence[int]]]) -> Iterator[tuple[str, int]]:
    return ((name, partition) for name, partitions in wanted for partition in partitions)


def _candidates(image: MetadataImage, election: Election) -> Iterator[tuple[str, int]]:
    """Iterate over the partitions that may need an election of this kind."""
    for topic in image.topics.values():
        states = topic.partitions
        for partition in states.led_by(NO_NODE) if election is Election.UNCLEAN else states.led_by_others():
            yield topic.name, partition


def _elect(
    topic: TopicImage, partition: int, rules: TopicRules, election: Election
) -> tuple[list[PartitionChangeRecord], ElectionResult]:
    state = topic.partitions[partition]
    is_needed = state.leader != state.replicas[0] if election is Election.PREFERRED else state.leader == NO_NODE
    if not is_needed:
        message = f"broker {state.leader} leads the partition already"
        return [], ElectionResult(topic.name, partition, ErrorCode.ELECTION_NOT_NEEDED, message)
    new = change(state, rules.of(topic), election=election)
    if election is Election.PREFERRED and new.leader != state.replicas[0]:
        message = f"the preferred leader, broker {state.replicas[0]}, is not in sync, not running or impaired"
        return [], ElectionResult(topic.name, partition, ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE, message)
    record = change_record(topic.topic_id, partition, state, new)
    if record is None:
        message = f"no replica is on a broker that runs: start one of {', '.join(map(str, state.replicas))}"
        return [], ElectionResult(topic.name, partition, ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE, message)
    return [record], ElectionResult(topic.name, partition)


def balance_leaders(
    image: MetadataImage, settings: ControllerSettings, topics: Iterable[str]
) -> ControllerDecision[int]:
    """Elect the preferred leaders of these topics where they are in sync; return how many were elected."""
    rules = TopicRules(image, settings)
    records: list[PartitionChangeRecord] = []
    for name in topics:
        topic = image.topics.get(name)
        for partition in topic.partitions.led_by_others() if topic is not None else ():
            assert topic is not None
            records += _elect(topic, partition, rules, Election.PREFERRED)[0]
            if len(records) >= BALANCED_PER_DECISION_MAX:
                return ControllerDecision(tuple(records), len(records))
    return ControllerDecision(tuple(records), len(records))


def elections_after(
    image: MetadataImage, settings: ControllerSettings, changed: Mapping[ConfigResource, Mapping[str, str]]
) -> Iterator[PartitionChangeRecord]:
    """Yield the changes of partitions that follow from changed configs, which are given with all configs of a resource.

    Replicas that are eligible because nothing is committed below the former min.insync.replicas may not be eligible
    with a lower one, and a leader that was not allowed may be now.
    """
    every_broker = changed.get((ResourceKind.BROKER, ""))
    if every_broker is None:
        names = [name for kind, name in changed if kind == ResourceKind.TOPIC]
    else:
        names = list(image.topics)
    rules = TopicRules(image, settings, cluster_configs=every_broker)
    for name in names:
        topic = image.topics[name]
        of_topic = rules.of(topic, changed.get((ResourceKind.TOPIC, name)))
        for partition in topic.partitions.unsettled():
            state = topic.partitions[partition]
            record = change_record(topic.topic_id, partition, state, change(state, of_topic))
            if record is not None:
                yield record


def eligible_no_more(topic: TopicImage, first: PartitionState, rules: TopicRules) -> Iterator[PartitionChangeRecord]:
    """Yield the changes that follow from another number of replicas of the first partition, whose next state is given.

    The default of min.insync.replicas depends on it: with a lower one, the leaders of other partitions may commit what
    their eligible replicas lack, and these must not be eligible when the minimum is raised again.
    """
    minimum = rules.of(topic, replicas=len(first.replicas)).min_insync_replicas
    for partition in sorted({0, *topic.partitions.unsettled()}):
        state = topic.partitions[partition] if partition else first
        if state.elr and len(state.isr) >= min(minimum, len(state.replicas)):
            yield PartitionChangeRecord(topic.topic_id, partition, elr=())
