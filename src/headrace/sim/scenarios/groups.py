"""The groups scenario: members of both protocols that join, commit, leave, stall and send late requests."""

from collections.abc import Sequence
from typing import ClassVar

from headrace.broker.node import Node
from headrace.model.errors import ErrorCode
from headrace.sim.audit import Auditor
from headrace.sim.checkers.coordinators import COMMIT_DELAYED, CoordinatorChecks
from headrace.sim.checkers.groups import GroupHistory
from headrace.sim.checkers.violation import Violation
from headrace.sim.context import RunContext, Targets, TopicPlan
from headrace.sim.entropy import SeededEntropy
from headrace.sim.scenarios.log import drawn_settings
from headrace.sim.scenarios.scenario import OPENS, UNSYNCED, Scenario, one_of
from headrace.sim.workloads import group_requests as requests
from headrace.sim.workloads.administrator import Administrator
from headrace.sim.workloads.classic_members import ClassicGroupClient
from headrace.sim.workloads.client import Client
from headrace.sim.workloads.consumer_members import ConsumerGroupClient
from headrace.sim.workloads.members import COMMIT_LOST, RETRIED_ERRORS
from headrace.sim.workloads.producers import SimulatedProducer
from headrace.wire.apis import ApiKey

ATTEMPTS_MAX = 500

OFFSETS_KEPT_MINUTES = str((1 << 31) - 1)
"""Retention of offsets follows the wall clock, which jumps by weeks."""


class GroupsScenario(Scenario):
    name: ClassVar[str] = "groups"
    options: ClassVar[str] = " --scenario groups"
    met: ClassVar[tuple[str, ...]] = (COMMIT_DELAYED, COMMIT_LOST, UNSYNCED)
    torn: ClassVar[str] = "unsynced page dropped"
    """Commits are synced, so there is little to tear."""
    needed: ClassVar[tuple[str, ...]] = (COMMIT_DELAYED,)
    unmet: ClassVar[tuple[str, ...]] = (
        "disk full",
        "cold read",
        *(f"{kind} {fate}" for kind in ("read of cold pages", "offset by time") for fate in ("delayed", "lost")),
        "metadata commit lost",
    )
    habits: ClassVar[tuple[str, ...]] = ("delays", "losses")
    losses_factor: ClassVar[int] = 40
    """Every commit is a sync here, and a sync that never ends blocks its partition until the next start."""
    progress_unit: ClassVar[str] = "offsets committed"
    progress_min: ClassVar[int] = 200

    def __init__(self) -> None:
        self._groups: list[GroupHistory] = []
        self._checks: CoordinatorChecks | None = None

    def must_meet(self) -> tuple[str, ...]:
        return super().must_meet() if self.is_synced else (UNSYNCED,)

    def settings(self, entropy: SeededEntropy) -> dict[str, str]:
        self.draw_syncs(entropy)
        return drawn_settings(entropy) | {
            **flushes(is_synced=self.is_synced),
            "offsets.topic.num.partitions": one_of(entropy, "1", "2", "3"),
            "offsets.topic.segment.bytes": one_of(entropy, "4096", "16384", "1048576"),
            "offsets.retention.minutes": OFFSETS_KEPT_MINUTES,
            "group.initial.rebalance.delay.ms": one_of(entropy, "0", "300"),
            "group.min.session.timeout.ms": "1000",
            "group.consumer.session.timeout.ms": str(requests.SESSION_TIMEOUT_MS),
            "group.consumer.heartbeat.interval.ms": "500",
            "log.cleaner.backoff.ms": one_of(entropy, "500", "5000"),
            "log.cleaner.min.cleanable.ratio": one_of(entropy, "0.01", "0.3"),
        }

    def plans(self, entropy: SeededEntropy) -> list[TopicPlan]:
        forever = ("retention.ms", "-1")
        return [
            TopicPlan("read", partitions=2 + entropy.below(2), configs=[forever]),
            TopicPlan("more", partitions=1 + entropy.below(2), configs=[forever]),
        ]

    def clients(self, context: RunContext, entropy: SeededEntropy) -> Sequence[Client]:
        self._checks = CoordinatorChecks(context)
        classic, static, consumers = self._groups = [GroupHistory(name) for name in ("classic", "static", "consumers")]
        topics = [plan.name for plan in context.plans]
        return [
            *(
                ClassicGroupClient(context, f"classic {number}", classic, context.targets, instance_id=None)
                for number in range(2 + entropy.below(3))
            ),
            *(
                ClassicGroupClient(
                    context, f"static {number}", static, context.targets, instance_id=f"instance {number}"
                )
                for number in range(2 + entropy.below(2))
            ),
            *(
                ConsumerGroupClient(context, f"consumer {number}", consumers, context.targets, topics)
                for number in range(2 + entropy.below(3))
            ),
            SimulatedProducer(
                context, "anna", Targets(*context.plans), idempotent=True, acks=-1, in_flight_max=2, pause_ms_max=4_000
            ),
            Administrator(context),
        ]

    def progress(self, context: RunContext) -> int:
        return sum(group.commits for group in self._groups)

    def open(self, context: RunContext) -> None:
        super().open(context)
        find_coordinator(context, "classic", requests.GROUP_KEY)

    def check(self, context: RunContext, node: Node) -> None:
        assert self._checks is not None
        self._checks.check(node)

    def audit(self, context: RunContext) -> None:
        super().audit(context)
        assert self._checks is not None
        self._checks.check_replays(context.virtual.running)
        self.audit_again(context)

    def audit_again(self, context: RunContext) -> None:
        """Check that everything committed is still there."""
        check_committed(context, self._groups)


def flushes(*, is_synced: bool) -> dict[str, str]:
    """Return the flush setting of topics, including internal ones, that do not set it themselves."""
    return {"log.flush.interval.messages": "1"} if is_synced else {}


def find_coordinator(context: RunContext, key: str, key_type: int) -> None:
    """Look up the coordinator, which creates the internal topic."""
    auditor = Auditor(context)
    request = requests.coordinator_of(key, key_type)
    for _ in range(ATTEMPTS_MAX):
        found = auditor.ask(ApiKey.FIND_COORDINATOR, requests.FIND_COORDINATOR, request).coordinators[0]
        if not found.error_code:
            return
    raise Violation(OPENS, f"no coordinator: {ErrorCode(found.error_code).name}")


def check_committed(context: RunContext, groups: Sequence[GroupHistory]) -> None:
    auditor = Auditor(context)
    for group in groups:
        for partition, truth in group.offsets():
            message = requests.committed(group.group_id, [(partition.topic.name, partition.index)])
            asked = truth.moment
            for _ in range(ATTEMPTS_MAX):
                result = auditor.ask(ApiKey.OFFSET_FETCH, requests.OFFSET_FETCH, message).groups[0]
                if ErrorCode(result.error_code) not in RETRIED_ERRORS:
                    break
            truth.shown(result.topics[0].partitions[0].committed_offset, asked=asked)
