"""A scenario: what a seed draws its run from, what counts as enough of it, and what more is checked."""

from collections.abc import Sequence
from typing import ClassVar

from headrace.broker.node import Node
from headrace.sim.audit import Auditor
from headrace.sim.checkers.violation import require
from headrace.sim.context import RunContext, TopicPlan
from headrace.sim.entropy import SeededEntropy
from headrace.sim.workloads import requests
from headrace.sim.workloads.client import Client
from headrace.wire.apis import ApiKey

OPENS = "a healthy node takes what clients ask for"
UNSYNCED = "answers before a sync"
"""A run in which what was answered need not be on the device: its processes are killed, its power stays on."""
UNSYNCED_ONE_IN = 3


class Scenario:
    """One object a run. A subclass draws; what is here holds for every scenario."""

    name: ClassVar[str]
    met: ClassVar[tuple[str, ...]] = ()
    """Faults that only this scenario meets."""
    torn: ClassVar[str] = "unsynced page torn"
    """The power is cut until this was met."""
    needed: ClassVar[tuple[str, ...]] = ()
    """What a seed must meet too in order to count."""
    unmet: ClassVar[tuple[str, ...]] = ()
    """Faults of other scenarios that are not to be expected here."""
    habits: ClassVar[tuple[str, ...]] = ()
    """Habits of the nemesis that every run of it has."""
    losses_factor: ClassVar[int] = 2
    """How much rarer than a delay is a loss."""
    progress_unit: ClassVar[str] = "batches stored"
    progress_min: ClassVar[int] = 1_000
    """Of a minute; a seed with fewer proves nothing."""

    is_synced = True
    """Whether a power cut is promised to take nothing; if not, there is none."""

    @property
    def with_power_cuts(self) -> bool:
        """Whether the nemesis cuts the power; otherwise it kills the node instead."""
        return self.is_synced

    def must_meet(self) -> tuple[str, ...]:
        """What this run must have met in order to count."""
        return (self.torn, *self.needed)

    def draw_syncs(self, entropy: SeededEntropy) -> None:
        """For a scenario that goes without syncs in some of its runs."""
        self.is_synced = not entropy.branch("syncs").one_in(UNSYNCED_ONE_IN)

    def settings(self, entropy: SeededEntropy) -> dict[str, str]:
        raise NotImplementedError

    def plans(self, entropy: SeededEntropy) -> list[TopicPlan]:
        raise NotImplementedError

    def cast(self, context: RunContext, entropy: SeededEntropy) -> Sequence[Client]:
        """Those who suffer from the nemesis, in the order of their turns."""
        raise NotImplementedError

    def progress(self, context: RunContext) -> int:
        """What has been done so far: batches that were stored."""
        return context.histories.stored()

    def open(self, context: RunContext) -> None:
        """The node serves for the first time: the topics are created."""
        if not self.is_synced:
            context.world.trace.meet(UNSYNCED)
        auditor = Auditor(context)
        for plan in context.plans:
            request = requests.new_topic(plan.name, plan.partitions, plan.configs)
            topic = auditor.ask(ApiKey.CREATE_TOPICS, requests.CREATE_TOPICS, request).topics[0]
            require(topic.error_code == 0, OPENS, f"{plan.name} cannot be created: {topic.error_message}")
            context.histories.add(plan.created(topic.topic_id, plan.partitions))

    def check(self, context: RunContext, node: Node) -> None:
        """After every turn of a node that serves."""

    def audit(self, context: RunContext) -> None:
        """Everything is healed and rests: the last look."""
        Auditor(context).check()

    def audit_again(self, context: RunContext) -> None:
        """After one more power cut."""


def one_of(entropy: SeededEntropy, *choices: str) -> str:
    return choices[entropy.below(len(choices))]
