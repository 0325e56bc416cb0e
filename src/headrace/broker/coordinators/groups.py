"""The groups that this node coordinates, and the topic that keeps them."""

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from headrace.broker.cluster.proposal import Proposal
from headrace.broker.coordinators.host import CoordinatorHost, Decide, Runtime
from headrace.broker.coordinators.topic import CoordinatedTopic
from headrace.broker.metrics import Family
from headrace.broker.partitions.leader import LedPartition
from headrace.core.controller.commands import NewTopic
from headrace.core.groups.coordinator import GroupCoordinator
from headrace.core.groups.records import GroupRecords, Record
from headrace.core.groups.settings import GROUPS_PER_SLICE, GroupSettings
from headrace.model.errors import ErrorCode

if TYPE_CHECKING:
    from headrace.broker.broker import Broker

OFFSETS_TOPIC = "__consumer_offsets"

GroupHost = CoordinatorHost[GroupCoordinator, Record]
GroupDecide = Decide[GroupCoordinator, Record]


class Groups:
    def __init__(self, broker: "Broker", runtime: Runtime) -> None:
        self._broker = broker
        self._timers = runtime.timers
        self._settings = GroupSettings.of(broker.config)
        self.topic: CoordinatedTopic[GroupCoordinator, Record] = CoordinatedTopic(
            OFFSETS_TOPIC,
            broker,
            new_machine=lambda: GroupCoordinator(self._settings),
            record_format=GroupRecords(),
            new_topic=self._new_topic,
            runtime=runtime,
            commit_wait_ms_max=broker.config.groups.commit_timeout_ms,
            on_loaded=self._loaded,
        )

    def _new_topic(self) -> NewTopic:
        config = self._broker.config.groups
        return NewTopic(
            name=OFFSETS_TOPIC,
            partition_count=config.offsets_partitions,
            replication_factor=min(config.offsets_replication_factor, len(self._broker.image.brokers)),
            configs=(
                ("cleanup.policy", "compact"),
                ("compression.type", "producer"),
                ("segment.bytes", str(config.offsets_segment_bytes)),
            ),
        )

    def propose(self, group_id: str, decide: GroupDecide) -> Proposal[Any]:
        return self.topic.propose(group_id, decide)

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
        slices = iter([each for host in self.topic if host.machine for each in in_slices(host, host.machine.offsets)])

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
        known = self._broker.image.topics
        self.topics_deleted(
            {topic for offsets in machine.offsets.values() for topic in offsets.by_topic} - known.keys()
        )

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
        partitions = self._broker.partitions
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
