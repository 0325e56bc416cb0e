"""The group coordinators of this node: typed commands for the handlers, and the topic that stores their records."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple, Protocol

from headrace.broker.cluster.proposal import Proposal, ProposalFailed
from headrace.broker.coordinators.host import CoordinatorHost, Decide, Runtime
from headrace.broker.coordinators.topic import CoordinatedTopic, failed
from headrace.broker.coordinators.transactions import Transactions
from headrace.broker.metrics import Family
from headrace.broker.partitions.replica import Replica
from headrace.broker.partitions.verification import CHECK_WAIT_MS_MAX
from headrace.broker.services import AccessControl, CoordinatorServices, MetadataSource
from headrace.core.controller.commands import CreatableTopic
from headrace.core.controller.placement import internal_replication_factor
from headrace.core.groups.commands import (
    Commit,
    ConsumerHeartbeat,
    ConsumerHeartbeatResult,
    DeleteOffsets,
    DeleteOffsetsResult,
    DescribedClassicGroup,
    DescribedConsumerGroup,
    FetchedOffset,
    FetchOffsets,
    GroupListing,
    Join,
    JoinResult,
    Leave,
    LeaveResult,
    MemberClaim,
    Sync,
    SyncResult,
)
from headrace.core.groups.coordinator import GroupCoordinator
from headrace.core.groups.records import GroupRecords, Record
from headrace.core.groups.settings import GROUPS_PER_SLICE, GroupCoordinatorSettings
from headrace.log.producers import NO_SEQUENCE
from headrace.model.access import AclResourceType, Operation, Requester
from headrace.model.errors import ErrorCode
from headrace.model.ids import TopicId

OFFSETS_TOPIC = "__consumer_offsets"

_VERIFICATION_ERRORS = {
    ErrorCode.PRODUCER_FENCED: ErrorCode.INVALID_PRODUCER_EPOCH,
    ErrorCode.NETWORK_EXCEPTION: ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.NOT_COORDINATOR: ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE: ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
}
"""Errors of the transaction coordinator, translated so that clients of a group coordinator retry at this broker."""

GroupHost = CoordinatorHost[GroupCoordinator, Record]


class GroupSlice(NamedTuple):
    """Groups of one coordinator, few enough for one turn."""

    host: GroupHost
    group_ids: list[str]


class GroupServices(CoordinatorServices, Protocol):
    @property
    def access(self) -> AccessControl:
        """Decides which topics a member may describe."""

    @property
    def transactions(self) -> Transactions:
        """The transaction coordinators, which verify offsets that are committed in a transaction."""


class ImageCatalog:
    """The topics of the committed metadata image, for the group coordinators."""

    def __init__(self, metadata: MetadataSource, access: AccessControl) -> None:
        self._metadata = metadata
        self._access = access

    @property
    def version(self) -> int:
        return self._metadata.image.version

    def find(self, name: str) -> tuple[bytes, int] | None:
        topic = self._metadata.image.topics.get(name)
        return None if topic is None else (topic.topic_id, len(topic.partitions))

    def name_of(self, topic_id: bytes) -> str | None:
        topic = self._metadata.image.topics_by_id.get(TopicId(topic_id))
        return None if topic is None else topic.name

    def names(self, requester: Requester) -> Iterable[str]:
        names = self._metadata.image.topics
        if self._access.open_to_all:
            return tuple(names)
        describe, topic = Operation.DESCRIBE, AclResourceType.TOPIC
        return tuple(name for name in names if self._access.authorize(*requester, describe, topic, name))


class Groups:
    def __init__(self, services: GroupServices, runtime: Runtime) -> None:
        self._services = services
        self._timers = runtime.timers
        self._settings = GroupCoordinatorSettings.of(services.config)
        self.topic: CoordinatedTopic[GroupCoordinator, Record] = CoordinatedTopic(
            OFFSETS_TOPIC,
            services,
            new_machine=lambda: GroupCoordinator(self._settings, ImageCatalog(services, services.access)),
            record_format=GroupRecords(),
            new_topic=self._new_topic,
            runtime=runtime,
            commit_wait_ms_max=services.config.groups.commit_timeout_ms,
            on_loaded=self._loaded,
        )

    def _new_topic(self) -> CreatableTopic:
        config = self._services.config.groups
        return CreatableTopic(
            name=OFFSETS_TOPIC,
            partition_count=config.offsets_partitions,
            replication_factor=internal_replication_factor(self._services.image, config.offsets_replication_factor),
            configs=(
                ("cleanup.policy", "compact"),
                ("compression.type", "producer"),
                ("segment.bytes", str(config.offsets_segment_bytes)),
            ),
        )

    def partition_led(self, partition: Replica) -> None:
        self.topic.partition_led(partition)

    def begin_stop(self) -> None:
        self.topic.begin_stop()

    # Membership

    def join(self, command: Join) -> Proposal[JoinResult]:
        return self._decide(command.group, lambda machine, ticket, now: machine.join(command, ticket, now))

    def sync(self, command: Sync) -> Proposal[SyncResult]:
        return self._decide(command.member.group, lambda machine, ticket, now: machine.sync(command, ticket, now))

    def heartbeat(self, member: MemberClaim) -> Proposal[ErrorCode]:
        return self._decide(member.group, lambda machine, ticket, now: machine.heartbeat(member, ticket, now))

    def leave(self, command: Leave) -> Proposal[list[LeaveResult]]:
        return self._decide(command.group, lambda machine, ticket, now: machine.leave(command, ticket, now))

    def consumer_heartbeat(self, command: ConsumerHeartbeat) -> Proposal[ConsumerHeartbeatResult]:
        return self._decide(
            command.group, lambda machine, ticket, now: machine.consumer_heartbeat(command, ticket, now)
        )

    # Offsets

    def commit_offsets(self, command: Commit) -> Proposal[list[ErrorCode]]:
        """Commit offsets outside of a transaction. The result has one error for each offset."""
        return self._decide(command.member.group, _committing(command))

    def commit_offsets_in_transaction(
        self, transactional_id: str, command: Commit, *, add_partition: bool
    ) -> Proposal[list[ErrorCode]]:
        """Commit offsets in the transaction of the command's producer.

        The transaction coordinator must first confirm that the group's partition of `__consumer_offsets` is part of
        the transaction; with `add_partition` it adds the partition.
        """
        producer = command.producer
        assert producer is not None
        host = self.topic.host_of(command.member.group)
        if host is None:
            return self.commit_offsets(command)
        error = host.producer_error(producer)
        if error is not ErrorCode.NONE:
            return failed(error, "a newer producer with the same transactional id exists")
        verifications, partition = host.partition.verifications, (OFFSETS_TOPIC, host.partition.index)
        verification = verifications.begin(*producer, NO_SEQUENCE, add=add_partition)
        if verification is None:
            return host.propose(_committing(command))
        committed: Proposal[list[ErrorCode]] = Proposal()
        timed_out = ProposalFailed(ErrorCode.NETWORK_EXCEPTION, "the transaction coordinator did not respond in time")
        timer = self._timers.after(CHECK_WAIT_MS_MAX, lambda: verified(timed_out))

        def verified(outcome: Mapping[tuple[str, int], ErrorCode] | ProposalFailed) -> None:
            if timer.call is None and outcome is not timed_out:
                return  # the response came after the timeout
            self._timers.cancel(timer)
            error = outcome.code if isinstance(outcome, ProposalFailed) else outcome[partition]
            verification.is_asked = False
            if error is ErrorCode.NONE and not verifications.still_counts(producer.producer_id, verification):
                error = ErrorCode.INVALID_TXN_STATE  # the transaction ended during the verification
            if error is ErrorCode.NONE:
                error = host.producer_error(producer)
            if error is ErrorCode.NONE:
                host.propose(_committing(command)).then(committed.complete)
            else:
                translated = _VERIFICATION_ERRORS.get(error, error)
                committed.complete(ProposalFailed(translated, "the group is not part of an open transaction"))

        self._services.transactions.check(
            transactional_id, producer.producer_id, producer.producer_epoch, [partition], add=add_partition
        ).then(verified)
        return committed

    def fetch_offsets(self, command: FetchOffsets) -> Proposal[list[FetchedOffset] | ErrorCode]:
        return self._decide(command.group, lambda machine, ticket, _now: machine.offset_requests.fetch(command, ticket))

    def delete_offsets(self, command: DeleteOffsets) -> Proposal[DeleteOffsetsResult]:
        return self._decide(
            command.group, lambda machine, ticket, _now: machine.offset_requests.delete(command, ticket)
        )

    def topics_deleted(self, names: Iterable[str]) -> None:
        """Delete the offsets of deleted topics, a slice of groups per turn."""
        deleted = sorted(set(names) - {OFFSETS_TOPIC})
        if not deleted:
            return
        slices = iter(
            [
                each
                for host in self.topic
                if host.machine
                for each in _slices(host, host.machine.tables.groups_with_offsets())
            ]
        )

        def forget(part: GroupSlice) -> None:
            part.host.propose(
                lambda machine, ticket, _now: machine.offset_requests.forget_topics(deleted, part.group_ids, ticket)
            )

        def step() -> None:
            for part in slices:
                forget(part)
                self._timers.next_turn(step)
                return

        self._timers.next_turn(step)

    def _loaded(self, machine: GroupCoordinator) -> None:
        """Delete the offsets of topics that were deleted while the coordinator was not loaded."""
        known = self._services.image.topics
        self.topics_deleted(machine.tables.topics_with_offsets() - known.keys())

    # Administration

    def delete_group(self, group_id: str) -> Proposal[ErrorCode]:
        return self._decide(group_id, lambda machine, ticket, _now: machine.delete_group(group_id, ticket))

    def describe_classic_group(self, group_id: str) -> Proposal[DescribedClassicGroup]:
        return self._decide(group_id, lambda machine, ticket, _now: machine.describe_classic_group(group_id, ticket))

    def describe_consumer_group(self, group_id: str) -> Proposal[DescribedConsumerGroup | ErrorCode]:
        return self._decide(group_id, lambda machine, ticket, _now: machine.describe_consumer_group(group_id, ticket))

    @property
    def is_loading(self) -> bool:
        """Return whether a coordinator of this node is still being loaded."""
        return any(host.machine is None for host in self.topic)

    def slices(self) -> Iterator[GroupSlice]:
        """Yield all groups of this node in slices for `list_groups`."""
        for host in self.topic:
            if host.machine is not None:
                yield from _slices(host, host.machine.tables.group_ids())

    def list_groups(self, part: GroupSlice) -> Proposal[list[GroupListing]]:
        return part.host.propose(lambda machine, ticket, _now: machine.list_groups(part.group_ids, ticket))

    def _decide(self, group_id: str, decide: Decide[GroupCoordinator, Record]) -> Proposal[Any]:
        return self.topic.propose(group_id, decide)

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
        return None if isinstance(led, ErrorCode) else int(led.role.high_watermark)


def _committing(command: Commit) -> Decide[GroupCoordinator, Record]:
    return lambda machine, ticket, now: machine.offset_requests.commit(command, ticket, now)


def _slices(host: GroupHost, group_ids: Iterable[str]) -> Iterator[GroupSlice]:
    known = list(group_ids)
    for first in range(0, len(known), GROUPS_PER_SLICE):
        yield GroupSlice(host, known[first : first + GROUPS_PER_SLICE])


Labels = tuple[tuple[str, str], ...]


def _states(hosts: Iterable[GroupHost]) -> Iterator[tuple[Labels, float]]:
    counts: dict[str, int] = {}
    for host in hosts:
        machine = host.machine
        if machine is not None:
            states = [group.state.value for group in machine.tables.classic_groups.values()]
            for state in (*states, *(group.state.value for group in machine.tables.consumer_groups.values())):
                counts[state] = counts.get(state, 0) + 1
    for state, count in counts.items():
        yield (("state", state),), count


def _lags(hosts: Iterable[GroupHost], end_offset: Callable[[str, int], int | None]) -> Iterator[tuple[Labels, float]]:
    for host in hosts:
        machine = host.machine
        for group_id, offsets in tuple(machine.tables.offsets.items()) if machine is not None else ():
            for topic, partition, committed in tuple(offsets):
                end = end_offset(topic, partition)
                if end is not None:
                    labels = (("group", group_id), ("topic", topic), ("partition", str(partition)))
                    yield labels, max(end - committed.offset, 0)
