"""Cluster metadata of the client: brokers, topics and leaders, and when to refresh it.

Metadata responses replace it as a whole. It is refreshed when it is old, when an error shows that it is wrong, and to
find unknown topics, but no more often than a back-off allows.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from headrace.client.core.calls import ANY_BROKER, Call, Operation, Pause, ask
from headrace.client.errors import BrokerError
from headrace.client.types import Broker, PartitionDescription, TopicDescription
from headrace.model.errors import ErrorCode, error_code
from headrace.model.ids import NO_TOPIC_ID, TopicId, TopicPartition
from headrace.wire.messages import metadata

if TYPE_CHECKING:
    from headrace.wire.messages.describe_topic_partitions import (
        DescribeTopicPartitionsResponsePartition,
        DescribeTopicPartitionsResponseTopic,
    )

AGE_MS_MAX = 300_000
METADATA_BACKOFF_MS = 100
UNKNOWN_TOPIC_BACKOFF_MS_MAX = 1_000
QUICK_LOOKS_MAX = 5
"""Lookups of a missing topic at the usual interval; after them the interval grows."""

_DOUBLINGS_MAX = 10
REBOOTSTRAPS_MAX = 5
"""Limit on restarts of one request from the bootstrap servers."""


class NodeEndpoint(Protocol):
    """The address of a node, as several responses contain it."""

    @property
    def node_id(self) -> int: ...
    @property
    def host(self) -> str: ...
    @property
    def port(self) -> int: ...


class Cluster:
    """`want` adds topics of interest; without any, only the brokers are requested."""

    def __init__(self, *, age_ms_max: float = AGE_MS_MAX, backoff_ms: float = METADATA_BACKOFF_MS) -> None:
        self.cluster_id: str | None = None
        self.controller_id = ANY_BROKER
        self.brokers: dict[int, Broker] = {}
        self.topics: dict[str, TopicDescription] = {}
        self.topic_errors: dict[str, ErrorCode] = {}
        """The error of each requested topic that is not among the topics."""
        self._names: dict[TopicId, str] = {}
        self._partitions: dict[TopicPartition, PartitionDescription] = {}
        self._features: dict[str, int] = {}
        self._features_epoch = -1
        self._wanted: set[str] = set()
        self._wants_all = False
        self._age_ms_max = age_ms_max
        self._backoff_ms = backoff_ms
        self._asked_ms: float | None = None
        self._learned_ms: float | None = None
        self._is_wrong = True
        self._is_asking = False
        self._misses = 0
        """Consecutive responses that lacked a topic of interest."""

    def want(self, topics: Iterable[str]) -> None:
        """Keep the metadata of these topics up to date."""
        new = set(topics) - self._wanted
        if new:
            self._wanted |= new
            self._is_wrong = True
            self._misses = 0

    def want_all(self) -> None:
        """Keep the metadata of every topic up to date, for subscriptions by pattern."""
        if not self._wants_all:
            self._wants_all = self._is_wrong = True

    def has_wanted(self) -> bool:
        return self._wants_all or bool(self._wanted)

    def mark_wrong(self) -> None:
        """Note that a response contradicted the metadata, so that it is refreshed soon."""
        self._is_wrong = True

    def next_refresh_ms(self) -> float:
        """Return the time at which `refresh` has a call to make."""
        if self._is_asking:
            return float("inf")
        if self._asked_ms is None:
            return 0.0
        if self._is_wrong or self._learned_ms is None:
            return self._asked_ms + self._backoff_ms
        if self._misses:
            doublings = min(max(0, self._misses - QUICK_LOOKS_MAX), _DOUBLINGS_MAX)
            slowest_ms = max(UNKNOWN_TOPIC_BACKOFF_MS_MAX, self._backoff_ms)
            return self._asked_ms + min(self._backoff_ms * (1 << doublings), slowest_ms)
        return max(self._learned_ms + self._age_ms_max, self._asked_ms + self._backoff_ms)

    def refresh(self, now_ms: float, *, create_topics: bool = False) -> Call | None:
        """Return the Metadata call that is due, if any; its reply goes to `refreshed` or `refresh_failed`."""
        if now_ms < self.next_refresh_ms():
            return None
        self._asked_ms = now_ms
        self._is_asking = True
        self._is_wrong = False
        return metadata_call(None if self._wants_all else sorted(self._wanted), create_topics=create_topics)

    def refresh_failed(self) -> None:
        self._is_asking = False
        self._is_wrong = True

    def forget(self) -> None:
        """Forget the metadata of a cluster that no longer exists; only the bootstrap servers remain (KIP-1102)."""
        self.cluster_id, self.controller_id = None, ANY_BROKER
        self.brokers, self.topics, self.topic_errors = {}, {}, {}
        self._names, self._partitions, self._features = {}, {}, {}
        self._features_epoch = -1
        self._is_wrong = True

    def refreshed(self, response: metadata.MetadataResponse, now_ms: float) -> None:
        if is_foreign(response):
            self.refresh_failed()
            return
        self._is_asking = False
        self._learned_ms = now_ms
        if self._wants_all:
            told = {topic.name for topic in response.topics}
            for topic in [topic for name, topic in self.topics.items() if name not in told]:
                self._forget_topic(topic)
        self.learn(response)

    def learn(self, response: metadata.MetadataResponse) -> None:
        """Apply a Metadata response; for a partition that moves, the newer leader epoch is kept (KIP-320)."""
        self.cluster_id = response.cluster_id
        self.controller_id = response.controller_id
        self.brokers = {b.node_id: Broker(b.node_id, b.host, b.port, b.rack) for b in response.brokers}
        for topic in describe_topics(response):
            self._learn_topic(topic)
        is_missed = any(topic not in self.topics for topic in self._wanted)
        self._misses = self._misses + 1 if is_missed else 0

    def learn_features(self, epoch: int, features: Mapping[str, int]) -> None:
        """Apply the finalized feature levels; a broker that lags behind does not revert them."""
        if epoch >= self._features_epoch:
            self._features_epoch, self._features = epoch, dict(features)

    def feature(self, name: str) -> int:
        """Return the level of a feature; 0 if the cluster does not have it or no broker was asked yet."""
        return self._features.get(name, 0)

    def learn_endpoints(self, endpoints: Iterable[NodeEndpoint]) -> None:
        """Apply broker addresses from responses other than Metadata (KIP-951)."""
        for each in endpoints:
            rack = self.brokers[each.node_id].rack if each.node_id in self.brokers else None
            self.brokers[each.node_id] = Broker(each.node_id, each.host, each.port, rack)

    def learn_leader(self, partition: TopicPartition, leader: int, leader_epoch: int) -> bool:
        """Apply the leader that an error response names; return whether it is new and usable (KIP-951)."""
        known = self._partitions.get(partition)
        if known is None or leader not in self.brokers or leader_epoch <= known.leader_epoch:
            return False
        self._partitions[partition] = replace(known, leader=leader, leader_epoch=leader_epoch)
        self._is_wrong = True
        return True

    def _learn_topic(self, topic: TopicDescription) -> None:
        known = self.topics.get(topic.name)
        if known is not None and (topic.topic_id != known.topic_id or topic.error):
            self._forget_topic(known)
            known = None
        is_absent = topic.error == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if (topic.error and not is_absent) or any(partition.error for partition in topic.partitions):
            self._is_wrong = True
        if topic.error:
            self.topic_errors[topic.name] = topic.error
            return
        self.topic_errors.pop(topic.name, None)
        self.topics[topic.name] = topic
        if topic.topic_id != NO_TOPIC_ID:
            self._names[topic.topic_id] = topic.name
        for partition in topic.partitions:
            key = TopicPartition(topic.name, partition.partition)
            before = self._partitions.get(key)
            if before is None or partition.leader_epoch >= before.leader_epoch or partition.leader_epoch < 0:
                self._partitions[key] = partition

    def _forget_topic(self, topic: TopicDescription) -> None:
        del self.topics[topic.name]
        self._names.pop(topic.topic_id, None)
        for partition in topic.partitions:
            self._partitions.pop(TopicPartition(topic.name, partition.partition), None)

    def partition_count(self, topic: str) -> int | None:
        known = self.topics.get(topic)
        return len(known.partitions) if known is not None else None

    def leader(self, partition: TopicPartition) -> int | None:
        """Return the node that leads the partition, if there is one and its address is known."""
        known = self._partitions.get(partition)
        return known.leader if known is not None and known.leader in self.brokers else None

    def leader_epoch(self, partition: TopicPartition) -> int:
        known = self._partitions.get(partition)
        return known.leader_epoch if known is not None else -1

    def topic_id(self, topic: str) -> TopicId:
        known = self.topics.get(topic)
        return known.topic_id if known is not None else NO_TOPIC_ID

    def topic_name(self, topic_id: bytes) -> str | None:
        return self._names.get(TopicId(topic_id))


def is_foreign(response: metadata.MetadataResponse) -> bool:
    """Return whether the broker reports that it belongs to another cluster."""
    return response.error_code == ErrorCode.REBOOTSTRAP_REQUIRED


def metadata_call(topics: Iterable[str] | None, *, create_topics: bool = False) -> Call:
    """Build a Metadata call for these topics; None requests all of them."""
    wanted = None if topics is None else tuple(metadata.MetadataRequestTopic(name=name) for name in topics)
    request = metadata.MetadataRequest(topics=wanted, allow_auto_topic_creation=create_topics)
    return Call(metadata, request, min_version=1)


def describe_topics(response: metadata.MetadataResponse) -> tuple[TopicDescription, ...]:
    return tuple(describe_topic(topic) for topic in response.topics)


def describe_topic(topic: "metadata.MetadataResponseTopic | DescribeTopicPartitionsResponseTopic") -> TopicDescription:
    """Describe a topic from a Metadata response, or from a page of partitions, which includes eligible leader
    replicas.
    """
    return TopicDescription(
        name=topic.name or "",
        topic_id=TopicId(topic.topic_id),
        internal=topic.is_internal,
        error=error_code(topic.error_code),
        partitions=tuple(sorted(map(_describe_partition, topic.partitions), key=lambda described: described.partition)),
    )


def _describe_partition(
    partition: "metadata.MetadataResponsePartition | DescribeTopicPartitionsResponsePartition",
) -> PartitionDescription:
    return PartitionDescription(
        partition=partition.partition_index,
        leader=partition.leader_id,
        leader_epoch=partition.leader_epoch,
        replicas=partition.replica_nodes,
        isr=partition.isr_nodes,
        offline=partition.offline_replicas,
        error=error_code(partition.error_code),
        eligible=getattr(partition, "eligible_leader_replicas", None) or (),
        last_known=getattr(partition, "last_known_elr", None) or (),
    )


def fetch_metadata(topics: Iterable[str] | None, *, target: int = ANY_BROKER) -> Operation[metadata.MetadataResponse]:
    """Run one Metadata exchange as an operation; None requests all topics."""
    call = metadata_call(topics)
    response: metadata.MetadataResponse = yield from ask(call.api, call.message, target=target, min_version=1)
    for _ in range(REBOOTSTRAPS_MAX):
        if not is_foreign(response):
            break
        yield Pause(METADATA_BACKOFF_MS)
        response = yield from ask(call.api, call.message, min_version=1)
    if response.error_code:
        raise BrokerError(response.error_code, "the cluster could not be described")
    return response
