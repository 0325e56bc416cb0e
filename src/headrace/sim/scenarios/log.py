"""The log scenario: producers and consumers of every kind, and an administrator, on topics of every kind."""

from collections.abc import Sequence
from typing import ClassVar

from headrace.sim.context import RunContext, Targets, TopicPlan
from headrace.sim.entropy import SeededEntropy
from headrace.sim.scenarios.scenario import Scenario, one_of
from headrace.sim.workloads.administrator import Administrator
from headrace.sim.workloads.client import Client
from headrace.sim.workloads.consumers import SimulatedConsumer
from headrace.sim.workloads.producers import SimulatedProducer


class LogScenario(Scenario):
    name: ClassVar[str] = "log"

    def settings(self, entropy: SeededEntropy) -> dict[str, str]:
        return drawn_settings(entropy)

    def plans(self, entropy: SeededEntropy) -> list[TopicPlan]:
        return _drawn_plans(entropy)

    def clients(self, context: RunContext, entropy: SeededEntropy) -> Sequence[Client]:
        return [
            *_drawn_producers(context, entropy),
            SimulatedConsumer(context, "session", context.targets, sessions=True),
            SimulatedConsumer(context, "reader", context.targets, sessions=False),
            Administrator(context),
        ]


def drawn_settings(entropy: SeededEntropy) -> dict[str, str]:
    return {
        "log.dirs": one_of(entropy, "data", "data,more", "data,more,most"),
        "log.retention.check.interval.ms": "1500",
        "log.segment.delete.delay.ms": one_of(entropy, "0", "500", "5000"),
        "log.message.timestamp.after.max.ms": str((1 << 63) - 1),
        "log.index.interval.bytes": one_of(entropy, "0", "400", "4096"),
        "replica.high.watermark.checkpoint.interval.ms": one_of(entropy, "700", "5000", "60000"),
        "headrace.preallocate.bytes": one_of(entropy, "0", "16384", "65536"),
        "headrace.open.files.max": one_of(entropy, "16", "4096"),
        "headrace.shutdown.timeout.ms": "5000",
        "headrace.slow.client.timeout.ms": one_of(entropy, "5000", "60000"),
        "connections.max.idle.ms": one_of(entropy, "3000", "600000"),
        "max.incremental.fetch.session.cache.slots": one_of(entropy, "2", "1000"),
    }


def _drawn_plans(entropy: SeededEntropy) -> list[TopicPlan]:
    forever = ("retention.ms", "-1")
    segments = ("segment.bytes", one_of(entropy, "4096", "16384", "1048576"))
    times = ("message.timestamp.type", one_of(entropy, "CreateTime", "CreateTime", "LogAppendTime"))
    retention = (
        ("retention.bytes", str(10_000 + entropy.below(50_000))),
        ("retention.ms", str(5_000 + entropy.below(20_000))),
    )[entropy.below(2)]
    return [
        TopicPlan("synced", partitions=1 + entropy.below(2), configs=[("flush.messages", "1"), forever, segments]),
        TopicPlan("loose", partitions=1 + entropy.below(3), configs=[forever, times]),
        TopicPlan(
            "kept",
            partitions=1 + entropy.below(2),
            configs=[("segment.bytes", one_of(entropy, "2048", "8192")), retention],
            keeps_all=False,
        ),
        TopicPlan("reborn", partitions=1 + entropy.below(2), configs=[forever], mortal=True),
    ]


def _drawn_producers(context: RunContext, entropy: SeededEntropy) -> list[SimulatedProducer]:
    synced, loose, kept, reborn = context.plans

    def producer(name: str, *plans: TopicPlan, acks: int = -1, idempotent: bool = False) -> SimulatedProducer:
        return SimulatedProducer(
            context,
            name,
            Targets(*plans),
            idempotent=idempotent,
            acks=acks,
            in_flight_max=1 + entropy.below(5),
            pause_ms_max=100 + entropy.below(1_500),
        )

    return [
        producer("anna", synced, idempotent=True),
        producer("bert", synced, loose, kept, idempotent=True),
        producer("carl", loose, idempotent=True),
        producer("dora", synced, loose, acks=1),
        producer("emil", loose, kept, acks=0),
        producer("fred", kept, reborn),
    ]
