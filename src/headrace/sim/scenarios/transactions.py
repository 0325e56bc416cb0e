"""The transactions scenario: producers that write to many partitions atomically, and their readers."""

from collections.abc import Sequence
from typing import ClassVar

from headrace.broker.node import Node
from headrace.model.errors import ErrorCode
from headrace.sim.audit import Auditor
from headrace.sim.checkers.coordinators import COMMIT_DELAYED, CoordinatorChecks
from headrace.sim.checkers.groups import GroupHistory
from headrace.sim.checkers.history import PartitionHistory
from headrace.sim.checkers.transactions import ALL_OR_NOTHING
from headrace.sim.checkers.violation import Violation
from headrace.sim.context import RunContext, TopicPlan
from headrace.sim.entropy import SeededEntropy
from headrace.sim.messages import CHECK, MARKER, MARKER_TWICE, TROUBLED
from headrace.sim.scenarios.groups import OFFSETS_KEPT_MINUTES, check_committed, find_coordinator, flushes
from headrace.sim.scenarios.log import drawn_settings
from headrace.sim.scenarios.scenario import UNSYNCED, Scenario, one_of
from headrace.sim.workloads import group_requests
from headrace.sim.workloads import transaction_requests as requests
from headrace.sim.workloads.administrator import Administrator
from headrace.sim.workloads.client import Client
from headrace.sim.workloads.committed_readers import CommittedReader, committed_batches
from headrace.sim.workloads.consumers import SimulatedConsumer
from headrace.sim.workloads.transactional import TransactionalProducer
from headrace.wire.apis import ApiKey

ATTEMPTS_MAX = 2_000
MESSAGES = (f"{CHECK} delayed", f"{CHECK} lost", f"{MARKER} delayed", f"{MARKER} lost", MARKER_TWICE)


class TransactionsScenario(Scenario):
    name: ClassVar[str] = "transactions"
    options: ClassVar[str] = " --scenario transactions"
    met: ClassVar[tuple[str, ...]] = (COMMIT_DELAYED, *MESSAGES, UNSYNCED)
    needed: ClassVar[tuple[str, ...]] = (COMMIT_DELAYED, TROUBLED)
    torn: ClassVar[str] = "unsynced page dropped"
    unmet: ClassVar[tuple[str, ...]] = (
        *("disk full", "metadata commit lost", "read of cold pages lost", "offset by time lost"),
        "read of cold pages delayed",
    )
    habits: ClassVar[tuple[str, ...]] = ("delays", "losses")
    losses_factor: ClassVar[int] = 40
    """Every commit is a sync here, and a sync that never ends blocks its partition until the next start."""
    progress_unit: ClassVar[str] = "transactions committed"
    progress_min: ClassVar[int] = 50

    def __init__(self) -> None:
        self._producers: list[TransactionalProducer] = []
        self._groups: list[GroupHistory] = []
        self._checks: CoordinatorChecks | None = None

    def must_meet(self) -> tuple[str, ...]:
        return super().must_meet() if self.is_synced else (UNSYNCED, TROUBLED)

    def settings(self, entropy: SeededEntropy) -> dict[str, str]:
        self.draw_syncs(entropy)
        return drawn_settings(entropy) | {
            **flushes(is_synced=self.is_synced),
            "offsets.topic.num.partitions": one_of(entropy, "1", "2"),
            "transaction.state.log.num.partitions": one_of(entropy, "1", "2", "3"),
            "transaction.state.log.segment.bytes": one_of(entropy, "4096", "1048576"),
            "transaction.remove.expired.transaction.cleanup.interval.ms": one_of(entropy, "500", "3600000"),
            "offsets.retention.minutes": OFFSETS_KEPT_MINUTES,
            "transaction.abort.timed.out.transaction.cleanup.interval.ms": one_of(entropy, "300", "1500"),
            "log.cleaner.backoff.ms": one_of(entropy, "500", "5000"),
            "log.cleaner.min.cleanable.ratio": one_of(entropy, "0.01", "0.3"),
        }

    def plans(self, entropy: SeededEntropy) -> list[TopicPlan]:
        configs = [
            *([("flush.messages", "1")] if self.is_synced else []),
            ("retention.ms", "-1"),
            ("segment.bytes", one_of(entropy, "4096", "16384", "1048576")),
        ]
        return [
            TopicPlan("left", partitions=1 + entropy.below(2), configs=configs),
            TopicPlan("right", partitions=1 + entropy.below(2), configs=configs),
        ]

    def clients(self, context: RunContext, entropy: SeededEntropy) -> Sequence[Client]:
        self._checks = CoordinatorChecks(context)
        for number in range(3 + entropy.below(3)):
            group = GroupHistory(f"group {number}")
            version = (requests.FIRST, requests.SECOND)[entropy.below(2)]
            self._groups.append(group)
            self._producers.append(
                TransactionalProducer(context, f"writer {number}", context.targets, group, version=version)
            )
        return [
            *self._producers,
            CommittedReader(context, "committed", context.targets),
            SimulatedConsumer(context, "uncommitted", context.targets, sessions=True),
            Administrator(context),
        ]

    def progress(self, context: RunContext) -> int:
        return sum(producer.committed for producer in self._producers)

    def open(self, context: RunContext) -> None:
        super().open(context)
        find_coordinator(context, "writer 0", group_requests.TRANSACTION_KEY)
        find_coordinator(context, "group 0", group_requests.GROUP_KEY)

    def check(self, context: RunContext, node: Node) -> None:
        assert self._checks is not None
        self._checks.check(node)

    def audit(self, context: RunContext) -> None:
        super().audit(context)
        assert self._checks is not None
        self._checks.check_replays(context.virtual.running)
        self.audit_again(context)

    def audit_again(self, context: RunContext) -> None:
        """Check that every transaction has ended and is visible as a whole or not at all."""
        auditor = Auditor(context)
        seen: set[int] = set()
        for partition in context.targets:
            seen |= self._read_committed(context, auditor, partition)
        self.check_ends(seen)
        check_committed(context, self._groups)

    def check_ends(self, seen: set[int]) -> None:
        """Check the ends; `seen` are the numbers of all batches that are shown in the end."""
        for producer in self._producers:
            for transaction in producer.transactions:
                transaction.check_whole(seen)

    def _read_committed(self, context: RunContext, auditor: Auditor, partition: PartitionHistory) -> set[int]:
        seen: set[int] = set()
        offset = 0
        for _ in range(ATTEMPTS_MAX):
            message = requests.fetched_committed(partition, offset, bytes_max=1 << 20, wait_ms=0)
            part = auditor.ask(ApiKey.FETCH, requests.FETCH, message).responses[0].partitions[0]
            if part.error_code:
                raise Violation(ALL_OR_NOTHING, f"{ErrorCode(part.error_code).name} for {partition}")
            if part.records:
                found, offset = committed_batches(context.histories, partition, part, offset)
                seen.update(batch.number for batch in found)
            elif offset >= max(part.high_watermark, partition.known_end):  # which a start may have to complete
                return seen
        raise Violation(ALL_OR_NOTHING, f"{partition}: a transaction does not end; {offset} is the last stable offset")
