"""The compaction scenario: tables that are written, cleaned and read at the same time, through kills and power cuts."""

from collections.abc import Sequence
from typing import ClassVar

from headrace.model.errors import ErrorCode
from headrace.sim.audit import Auditor
from headrace.sim.checkers.history import PartitionHistory
from headrace.sim.checkers.keys import LATEST_STAYS, KeyHistory
from headrace.sim.checkers.violation import Violation
from headrace.sim.context import RunContext, TopicPlan
from headrace.sim.entropy import SeededEntropy
from headrace.sim.scenarios.log import drawn_settings
from headrace.sim.scenarios.scenario import UNSYNCED, Scenario, one_of
from headrace.sim.spawner import CLEANED
from headrace.sim.workloads import requests
from headrace.sim.workloads.administrator import Administrator
from headrace.sim.workloads.client import Client
from headrace.sim.workloads.keyed import KeyedProducer, Scan, TableReader
from headrace.wire.apis import ApiKey

ATTEMPTS_MAX = 2_000
SCANS_MAX = 5


class CompactionScenario(Scenario):
    name: ClassVar[str] = "compaction"
    options: ClassVar[str] = " --scenario compaction"
    met: ClassVar[tuple[str, ...]] = (CLEANED, UNSYNCED)
    needed: ClassVar[tuple[str, ...]] = (CLEANED,)
    torn: ClassVar[str] = "unsynced page dropped"
    unmet: ClassVar[tuple[str, ...]] = (
        *("disk full", "metadata commit lost"),
        *(f"{kind} {fate}" for kind in ("read of cold pages", "offset by time") for fate in ("delayed", "lost")),
    )
    losses_factor: ClassVar[int] = 40
    progress_unit: ClassVar[str] = "batches acknowledged"
    progress_min: ClassVar[int] = 200

    def __init__(self) -> None:
        self._keys: dict[PartitionHistory, KeyHistory] = {}
        self._producers: list[KeyedProducer] = []

    def must_meet(self) -> tuple[str, ...]:
        return super().must_meet() if self.is_synced else (UNSYNCED, *self.needed)

    def settings(self, entropy: SeededEntropy) -> dict[str, str]:
        self.draw_syncs(entropy)
        return drawn_settings(entropy) | {
            "log.cleaner.backoff.ms": one_of(entropy, "200", "2000"),
            "log.cleaner.min.cleanable.ratio": one_of(entropy, "0.01", "0.3"),
            "log.cleaner.delete.retention.ms": one_of(entropy, "0", "3000", "86400000"),
        }

    def plans(self, entropy: SeededEntropy) -> list[TopicPlan]:
        configs = [
            ("cleanup.policy", "compact"),
            *([("flush.messages", "1")] if self.is_synced else []),
            ("segment.bytes", one_of(entropy, "2048", "8192")),
        ]
        return [TopicPlan("table", partitions=1 + entropy.below(3), configs=configs)]

    def clients(self, context: RunContext, entropy: SeededEntropy) -> Sequence[Client]:
        def histories() -> list[KeyHistory]:
            return [self._keys.setdefault(target, KeyHistory(target)) for target in context.targets]

        self._producers = [KeyedProducer(context, f"keeper {number}", histories) for number in range(3)]
        readers = [TableReader(context, f"reader {number}", histories) for number in range(2)]
        return [*self._producers, *readers, Administrator(context)]

    def progress(self, context: RunContext) -> int:
        return sum(producer.acknowledged for producer in self._producers)

    def audit(self, context: RunContext) -> None:
        self.audit_again(context)

    def audit_again(self, context: RunContext) -> None:
        """Check that every table is what its writers wrote."""
        auditor = Auditor(context)
        for history in self._keys.values():
            for scans_left in reversed(range(SCANS_MAX)):
                try:
                    self._scan(auditor, history)
                    break
                except Violation:
                    if not scans_left:
                        raise  # no compaction that continued meanwhile is to blame

    def _scan(self, auditor: Auditor, history: KeyHistory) -> None:
        partition, scan = history.partition, Scan(history, at_rest=True)
        for _ in range(ATTEMPTS_MAX):
            wanted = requests.wanted_topic(partition.topic.name, [(partition.index, scan.offset)])
            message = requests.fetched([wanted], wait_ms=0)
            part = auditor.ask(ApiKey.FETCH, requests.FETCH_BY_NAME, message).responses[0].partitions[0]
            if part.error_code:
                raise Violation(LATEST_STAYS, f"{ErrorCode(part.error_code).name} for {partition}")
            if scan.take(part):
                return
        raise Violation(LATEST_STAYS, f"{partition} is readable only up to {scan.offset}")
