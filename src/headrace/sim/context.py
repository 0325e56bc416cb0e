"""State that the parts of a run share: the world, its node, the topics and their histories, and accepted errors."""

from collections.abc import Iterator, Sequence
from typing import overload

from headrace.model.ids import TopicId
from headrace.sim.checkers.history import Histories, PartitionHistory, TopicHistory
from headrace.sim.checkers.topics import TopicTruth
from headrace.sim.node import VirtualNode
from headrace.sim.world import World

FLUSH_MESSAGES = "flush.messages"
OFFSET_MAX = (1 << 63) - 1
BATCHES_PER_SECOND = 24
"""Of all producers together: enough to count, but not more than is worth the time."""


class TopicPlan:
    """A topic name in a run and its settings; `targets` are the partitions of the topic that has the name now."""

    def __init__(
        self,
        name: str,
        *,
        partitions: int,
        configs: Sequence[tuple[str, str]],
        keeps_all: bool = True,
        mortal: bool = False,
    ) -> None:
        self.name = name
        self.partitions = partitions
        self.configs = tuple(configs)
        self.keeps_all = keeps_all
        self.mortal = mortal
        self.truth = TopicTruth(name)
        self.topic: TopicHistory | None = None
        self.targets: list[PartitionHistory] = []

    def created(self, topic_id: TopicId, partitions: int) -> TopicHistory:
        """Begin the history of a topic of this name."""
        configs = dict(self.configs)
        topic = TopicHistory(
            self.name,
            topic_id,
            partitions=partitions,
            synced=configs.get(FLUSH_MESSAGES) == "1",
            keeps_all=self.keeps_all,
            append_time=configs.get("message.timestamp.type") == "LogAppendTime",
            mortal=self.mortal,
        )
        truth = self.truth
        truth.topic_id, truth.partitions, truth.certain = topic_id, partitions, True
        truth.configs = configs
        truth.open_configs.clear()
        self.topic = topic
        self.targets[:] = topic.partitions
        return topic

    def grown(self, partitions: int) -> None:
        assert self.topic is not None
        self.truth.partitions = partitions
        self.topic.grow(partitions)
        self.targets[:] = self.topic.partitions

    def deleted(self) -> TopicHistory | None:
        """Note that no topic has this name any more; return the history that ended."""
        gone, self.topic = self.topic, None
        self.truth.topic_id, self.truth.certain = None, True
        self.targets.clear()
        return gone


class Targets(Sequence[PartitionHistory]):
    """The current partitions of some plans."""

    def __init__(self, *plans: TopicPlan) -> None:
        self._plans = plans

    def _now(self) -> list[PartitionHistory]:
        return [target for plan in self._plans for target in plan.targets]

    def __len__(self) -> int:
        return sum(len(plan.targets) for plan in self._plans)

    @overload
    def __getitem__(self, place: int) -> PartitionHistory: ...
    @overload
    def __getitem__(self, place: slice) -> list[PartitionHistory]: ...
    def __getitem__(self, place: int | slice) -> PartitionHistory | list[PartitionHistory]:
        return self._now()[place]

    def __iter__(self) -> Iterator[PartitionHistory]:
        return iter(self._now())


class RunContext:
    def __init__(self, world: World, virtual: VirtualNode, plans: Sequence[TopicPlan] = ()) -> None:
        self.world = world
        self.virtual = virtual
        self.plans = list(plans)
        self.histories = Histories()
        self.disk_trouble = False
        """The disk has failed, or may fail, since the node was started: storage errors are valid responses."""
        self.targets = Targets(*plans)

    def log_end(self, partition: PartitionHistory) -> int:
        """Return the log end of the running node; infinity if there is none."""
        node = self.virtual.node
        local = node.broker.partitions.by_id.get(partition.topic.topic_id) if node is not None else None
        found = local.replicas.get(partition.index) if local is not None else None
        return OFFSET_MAX if found is None else found.log.staged_end_offset

    def may_send(self) -> bool:
        """Return whether producers are behind the pace of a run; after an outage they have to catch up."""
        return len(self.histories.sent) < self.world.time.now_ms * BATCHES_PER_SECOND / 1_000
