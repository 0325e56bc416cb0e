"""The groups that this node coordinates, and the topic that keeps them."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Protocol

from headrace.broker.cluster.proposal import Proposal, ProposalFailed
from headrace.broker.coordinators.host import CoordinatorHost, Decide, Runtime
from headrace.broker.coordinators.topic import CoordinatedTopic, failed
from headrace.broker.coordinators.transactions import Transactions
from headrace.broker.metrics import Family
from headrace.broker.partitions.leader import LedPartition
from headrace.broker.partitions.verification import CHECK_WAIT_MS_MAX
from headrace.broker.services import CoordinatorServices, MetadataSource
from headrace.core.controller.commands import NewTopic
from headrace.core.coordination.machine import Producer
from headrace.core.groups.coordinator import GroupCoordinator
from headrace.core.groups.records import GroupRecords, Record
from headrace.core.groups.settings import GROUPS_PER_SLICE, GroupSettings
from headrace.log.producers import NO_SEQUENCE
from headrace.model.errors import ErrorCode
from headrace.model.ids import TopicId

OFFSETS_TOPIC = "__consumer_offsets"

_VERIFICATION_ERRORS = {
    ErrorCode.PRODUCER_FENCED: ErrorCode.INVALID_PRODUCER_EPOCH,
    ErrorCode.NETWORK_EXCEPTION: ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.NOT_COORDINATOR: ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE: ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
}
"""What the coordinator of a transaction says, as clients understand it from that of a group: to come again, here."""

GroupHost = CoordinatorHost[GroupCoordinator, Record]
GroupDecide = Decide[GroupCoordinator, Record]


class GroupServices(CoordinatorServices, Protocol):
    @property
    def transactions(self) -> Transactions:
        """The transaction coordinators, which verify offsets that are committed in a transaction."""


class ImageCatalog:
    """The committed metadata as groups see it."""

    def __init__(self, metadata: MetadataSource) -> None:
        self._metadata = metadata

    @property
    def version(self) -> int:
        return self._metadata.image.version

    def find(self, name: str) -> tuple[bytes, int] | None:
        topic = self._metadata.image.topics.get(name)
        return None if topic is None else (topic.topic_id, len(topic.partitions))

    def name_of(self, topic_id: bytes) -> str | None:
        topic = self._metadata.image.topics_by_id.get(TopicId(topic_id))
        return None if topic is None else topic.name

    def names(self) -> Iterable[str]:
        return tuple(self._metadata.image.topics)


class Groups:
    def __init__(self, services: GroupServices, runtime: Runtime) -> None:
        self._services = services
        self._timers = runtime.timers
        self._settings = GroupSettings.of(services.config)
        self.topic: CoordinatedTopic[GroupCoordinator, Record] = CoordinatedTopic(
            OFFSETS_TOPIC,
            services,
            new_machine=lambda: GroupCoordinator(self._settings, ImageCatalog(services)),
            record_format=GroupRecords(),
            new_topic=self._new_topic,
            runtime=runtime,
            commit_wait_ms_max=services.config.groups.commit_timeout_ms,
            on_loaded=self._loaded,
        )

    def _new_topic(self) -> NewTopic:
        config = self._services.config.groups
        return NewTopic(
            name=OFFSETS_TOPIC,
            partition_count=config.offsets_partitions,
            replication_factor=min(config.offsets_replication_factor, len(self._services.image.brokers)),
            configs=(
                ("cleanup.policy", "compact"),
                ("compression.type", "producer"),
                ("segment.bytes", str(config.offsets_segment_bytes)),
            ),
        )

    def propose(self, group_id: str, decide: GroupDecide) -> Proposal[Any]:
        return self.topic.propose(group_id, decide)

    def propose_in_transaction(
        self, group_id: str, transactional_id: str, producer: Producer, decide: GroupDecide, *, add: bool
    ) -> Proposal[Any]:
        """Ask the group once the coordinator of the transaction has said that the group's partition is part of it.

        `add` makes it one. What the group decides is written into the producer's transaction.
        """
        host = self.topic.host_of(group_id)
        if host is None:
            return self.propose(group_id, decide)
        error = host.producer_error(producer)
        if error is not ErrorCode.NONE:
            return failed(error, "a newer producer has taken over")
        verifications, partition = host.partition.verifications, (OFFSETS_TOPIC, host.partition.index)
        verification = verifications.begin(*producer, NO_SEQUENCE, add=add)
        if verification is None:
            return host.propose(decide)
        decided: Proposal[Any] = Proposal()
        no_answer = ProposalFailed(ErrorCode.NETWORK_EXCEPTION, "the coordinator of the transaction did not answer")
        timer = self._timers.after(CHECK_WAIT_MS_MAX, lambda: verified(no_answer))

        def verified(outcome: Mapping[tuple[str, int], ErrorCode] | ProposalFailed) -> None:
            if timer.call is None and outcome is not no_answer:
                return  # it came too late
            self._timers.cancel(timer)
            error = outcome.code if isinstance(outcome, ProposalFailed) else outcome[partition]
            verification.is_asked = False
            if error is ErrorCode.NONE and not verifications.still_counts(producer.producer_id, verification):
                error = ErrorCode.INVALID_TXN_STATE  # it ended while it was looked up
            if error is ErrorCode.NONE:
                error = host.producer_error(producer)
            if error is ErrorCode.NONE:
                host.propose(decide).then(decided.complete)
            else:
                decided.complete(ProposalFailed(_VERIFICATION_ERRORS.get(error, error), "not in an open transaction"))

        self._services.transactions.check(
            transactional_id, producer.producer_id, producer.producer_epoch, [partition], add=add
        ).then(verified)
        return decided

    def partition_led(self, partition: LedPartition) -> None:
        self.topic.partition_led(partition)

    def begin_stop(self) -> None:
        self.topic.begin_stop()

    # All groups

    def listing(self) -> Iterator[tuple[GroupHost, list[str]]]:
        """The groups of every coordinator here, in slices of a named size."""
        for host in self.topic:
            if host.machine is not None:
                yield from in_slices(host, host.machine.group_ids())

    def topics_deleted(self, names: Iterable[str]) -> None:
        """Offsets of topics that are gone go too, some groups a turn."""
        deleted = sorted(set(names) - {OFFSETS_TOPIC})
        if not deleted:
            return
        slices = iter(
            [
                each
                for host in self.topic
                if host.machine
                for each in in_slices(host, host.machine.groups_with_offsets())
            ]
        )

        def forget(host: GroupHost, group_ids: list[str]) -> None:
            host.propose(lambda groups, ticket, _now: groups.forget_topics(deleted, group_ids, ticket))

        def step() -> None:
            for host, group_ids in slices:
                forget(host, group_ids)
                self._timers.next_turn(step)
                return

        self._timers.next_turn(step)

    def _loaded(self, machine: GroupCoordinator) -> None:
        """Topics may have been deleted while nobody looked."""
        known = self._services.image.topics
        self.topics_deleted(machine.topics_with_offsets() - known.keys())

    # Metrics

    def families(self) -> Iterator[Family]:
        yield Family("headrace_groups", "gauge", "Groups by state.", _states(self.topic))
        yield Family(
            "headrace_group_lag",
            "gauge",
            "Records of a partition that a group has not committed yet.",
            _lags(self.topic, self._end_offset),
        )

    def _end_offset(self, topic: str, partition: int) -> int | None:
        partitions = self._services.partitions
        led = partitions.partition_of(partitions.by_name.get(topic.encode()), partition)
        return None if isinstance(led, ErrorCode) else int(led.leader.high_watermark)


def in_slices(host: GroupHost, group_ids: Iterable[str]) -> Iterator[tuple[GroupHost, list[str]]]:
    known = list(group_ids)
    for first in range(0, len(known), GROUPS_PER_SLICE):
        yield host, known[first : first + GROUPS_PER_SLICE]


Labels = tuple[tuple[str, str], ...]


def _states(hosts: Iterable[GroupHost]) -> Iterator[tuple[Labels, float]]:
    counts: dict[str, int] = {}
    for host in hosts:
        machine = host.machine
        if machine is not None:
            states = [group.state.value for group in machine.groups.values()]
            for state in (*states, *(group.state.value for group in machine.consumers.values())):
                counts[state] = counts.get(state, 0) + 1
    for state, count in counts.items():
        yield (("state", state),), count


def _lags(hosts: Iterable[GroupHost], end_offset: Callable[[str, int], int | None]) -> Iterator[tuple[Labels, float]]:
    for host in hosts:
        machine = host.machine
        for group_id, offsets in tuple(machine.offsets.items()) if machine is not None else ():
            for topic, partition, committed in tuple(offsets):
                end = end_offset(topic, partition)
                if end is not None:
                    labels = (("group", group_id), ("topic", topic), ("partition", str(partition)))
                    yield labels, max(end - committed.offset, 0)
