"""A scenario: what a seed draws its run from, how much progress counts as enough, and additional checks."""

from collections.abc import Sequence
from typing import ClassVar

from headrace.broker.node import Node
from headrace.sim.audit import Auditor
from headrace.sim.checkers.violation import require
from headrace.sim.context import RunContext, TopicPlan
from headrace.sim.entropy import SeededEntropy
from headrace.sim.facts import ScenarioFacts
from headrace.sim.nemesis import MET
from headrace.sim.workloads import requests
from headrace.sim.workloads.client import Client
from headrace.wire.apis import ApiKey

OPENS = "a healthy node accepts the requests of clients"
UNSYNCED = "answers before a sync"
"""A run in which acknowledged records need not be on disk: its processes are killed, but its power stays on."""
UNSYNCED_ONE_IN = 3


class Scenario(ScenarioFacts):
    """One object per run. A subclass draws; the defaults here hold for every scenario of one broker."""

    common_faults: ClassVar[tuple[str, ...]] = MET
    torn: ClassVar[str] = "unsynced page torn"
    """The power is cut until this was met."""
    needed: ClassVar[tuple[str, ...]] = ()
    """Additional faults that a seed must meet in order to count."""
    habits: ClassVar[tuple[str, ...]] = ()
    """Habits of the nemesis that every run of it has."""
    losses_factor: ClassVar[int] = 2
    """Factor by which a loss is rarer than a delay."""
    is_synced = True
    """True if a power cut is promised to lose nothing; if not, there is none."""

    @property
    def with_power_cuts(self) -> bool:
        """Return whether the nemesis cuts the power; otherwise it kills the node instead."""
        return self.is_synced

    def must_meet(self) -> tuple[str, ...]:
        """Return the faults that this run must have met in order to count."""
        return (self.torn, *self.needed)

    def draw_syncs(self, entropy: SeededEntropy) -> None:
        """Draw the syncs, for a scenario that omits them in some of its runs."""
        self.is_synced = not entropy.branch("syncs").one_in(UNSYNCED_ONE_IN)

    def settings(self, entropy: SeededEntropy) -> dict[str, str]:
        raise NotImplementedError

    def plans(self, entropy: SeededEntropy) -> list[TopicPlan]:
        raise NotImplementedError

    def clients(self, context: RunContext, entropy: SeededEntropy) -> Sequence[Client]:
        """Return the clients that the nemesis affects, in the order of their turns."""
        raise NotImplementedError

    def progress(self, context: RunContext) -> int:
        """Return the progress so far: the number of stored batches."""
        return context.histories.stored()

    def open(self, context: RunContext) -> None:
        """Create the topics when the node serves for the first time."""
        if not self.is_synced:
            context.world.trace.count_fault(UNSYNCED)
        auditor = Auditor(context)
        for plan in context.plans:
            request = requests.new_topic(plan.name, plan.partitions, plan.configs)
            topic = auditor.ask(ApiKey.CREATE_TOPICS, requests.CREATE_TOPICS, request).topics[0]
            require(topic.error_code == 0, OPENS, f"{plan.name} cannot be created: {topic.error_message}")
            context.histories.add(plan.created(topic.topic_id, plan.partitions))

    def check(self, context: RunContext, node: Node) -> None:
        """Check a serving node after every turn."""

    def audit(self, context: RunContext) -> None:
        """Audit the healed and idle node."""
        Auditor(context).check()

    def audit_again(self, context: RunContext) -> None:
        """Audit again after one more power cut."""


def one_of(entropy: SeededEntropy, *choices: str) -> str:
    return choices[entropy.below(len(choices))]
