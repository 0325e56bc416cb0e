"""One run of the simulator: from a seed to a trace hash, or to the promise that was broken.

The seed draws the settings, the topics, the clients and the faults. Under faults the clients work for the asked time;
then everything is healed, all must make progress, and what is there is held against what was promised.
"""

import traceback
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from headrace.sim.audit import Auditor
from headrace.sim.checkers.violation import Violation, require
from headrace.sim.entropy import SeededEntropy
from headrace.sim.nemesis import Nemesis
from headrace.sim.node import VirtualNode
from headrace.sim.operator import NO_CRASH, Operator
from headrace.sim.stage import Stage, Targets, TopicPlan
from headrace.sim.workloads import requests
from headrace.sim.workloads.administrator import Administrator
from headrace.sim.workloads.canary import Canary
from headrace.sim.workloads.client import Client
from headrace.sim.workloads.consumers import Consumer
from headrace.sim.workloads.producers import Producer
from headrace.sim.world import RunTooLong, World
from headrace.wire.apis import ApiKey

MINUTE_MS = 60_000
MINUTES = 1.0
STEP_MS_MAX = 50
"""Turns of a run are rarer than real ones, so that minutes of timers, pauses and retention fit into few of them."""
PROGRESS_MS_MAX = 30_000
BATCHES_MIN = 1_000
TAIL_LINES = 50

PROGRESS = "once everything is healed, every client makes progress within 30 s"


@dataclass(frozen=True, slots=True, kw_only=True)
class SeedResult:
    seed: int
    minutes: float
    trace_hash: str
    events: int
    steps: int
    batches: int
    restarts: int
    met: Counter[str] = field(default_factory=Counter)
    violation: str = ""
    """The promise that was broken and how, or nothing."""
    tail: tuple[str, ...] = ()
    """The last events of a run that failed."""

    @property
    def ok(self) -> bool:
        return not self.violation

    @property
    def counts(self) -> bool:
        """Whether the run was hard enough to prove anything."""
        hard = self.met["unsynced page torn"] and self.met["frame cut in the middle"]
        return bool(self.restarts > 1 and hard and self.batches >= BATCHES_MIN)

    @property
    def last_line(self) -> str:
        outcome = f"FAILED invariant: {self.violation}" if self.violation else "ok"
        return f"seed {self.seed} trace {self.trace_hash} {outcome}"

    @property
    def command(self) -> str:
        return f"headrace sim --seed {self.seed} --minutes {self.minutes:g} --trace"


def run_seed(seed: int, *, minutes: float = MINUTES, show: Callable[[str], object] | None = None) -> SeedResult:
    """Carry out the run of one seed; `show` gets every event as it happens."""
    run = Run(seed, duration_ms=minutes * MINUTE_MS)
    run.world.trace.show = show
    violation = ""
    try:
        run.carry_out()
    except (Violation, RunTooLong) as broken:
        violation = str(broken).partition("\n")[0]
    except Exception as error:
        place = traceback.extract_tb(error.__traceback__)[-1]
        name = place.filename.rpartition("/headrace/")[2]
        violation = f"{NO_CRASH}: {type(error).__name__}: {error} in {place.name}, {name}:{place.lineno}"
    return SeedResult(
        seed=seed,
        minutes=minutes,
        trace_hash=run.world.trace.hash,
        events=run.world.trace.events,
        steps=run.world.steps,
        batches=run.stage.histories.stored(),
        restarts=run.operator.restarts,
        met=run.world.trace.met,
        violation=violation,
        tail=tuple(run.world.trace.tail)[-TAIL_LINES:] if violation else (),
    )


class Run:
    def __init__(self, seed: int, *, duration_ms: float) -> None:
        self.world = World(seed)
        self.world.step_ms_max = STEP_MS_MAX
        self._duration_ms = duration_ms
        draws = self.world.entropy.branch("run")
        self._virtual = VirtualNode(self.world, _drawn_settings(draws))
        self.stage = Stage(self.world, self._virtual, _drawn_plans(draws))
        self.operator = Operator(self.stage, self.world.entropy.branch("operator"))
        self._producers = _drawn_producers(self.stage, draws)
        self._consumers = [
            Consumer(self.stage, "session", self.stage.targets, sessions=True),
            Consumer(self.stage, "reader", self.stage.targets, sessions=False),
        ]
        self._administrator = Administrator(self.stage)
        self._canary = Canary(self.stage)
        victims: list[Client] = [*self._producers, *self._consumers, self._administrator]
        self._clients = [*victims, self._canary]
        self._victims = victims

    def carry_out(self) -> None:
        self._open()
        nemesis = Nemesis(
            self.stage,
            self.operator,
            self._victims,
            self.world.entropy.branch("nemesis"),
            duration_ms=self._duration_ms,
        )
        end_ms = self.world.time.now_ms + self._duration_ms
        while self.world.time.now_ms < end_ms:
            nemesis.step()
            self._step()
        nemesis.heal()
        self._make_up_for_outages()
        self._await_progress()
        self._settle()
        Auditor(self.stage).check()
        self._cut_once_more()

    # Phases

    def _open(self) -> None:
        """A first start without faults, and the topics."""
        self._run_until(lambda: self._virtual.serves, "the first start fails")
        auditor = Auditor(self.stage)
        for plan in self.stage.plans:
            request = requests.new_topic(plan.name, plan.partitions, plan.configs)
            topic = auditor.ask(ApiKey.CREATE_TOPICS, requests.CREATE_TOPICS, request).topics[0]
            require(topic.error_code == 0, PROGRESS, f"{plan.name} cannot be created: {topic.error_message}")
            self.stage.histories.add(plan.created(topic.topic_id, plan.partitions))

    def _make_up_for_outages(self) -> None:
        """Go on until there are enough batches to prove anything, if the faults left too few."""
        self._run_until(lambda: self._virtual.serves, "the node does not serve")
        batches_min = BATCHES_MIN * min(1.0, self._duration_ms / MINUTE_MS)
        end_ms = self.world.time.now_ms + self._duration_ms
        while self.world.time.now_ms < end_ms and self.stage.histories.stored() < batches_min:
            self._step()

    def _await_progress(self) -> None:
        answered, canary = self._administrator.answered, self._canary.answers
        self._administrator.cautious = True
        for producer in self._producers:
            producer.hurry()
        for consumer in self._consumers:
            consumer.hurry()
        ends = {target: target.known_end for target in self.stage.targets}
        waiting: dict[str, Callable[[], bool]] = {
            "the administrator": lambda: self._administrator.answered > answered,
            "the canary": lambda: self._canary.answers > canary,
            **{f"producer {producer.name}": producer.has_progressed for producer in self._producers},
            **{f"consumer {consumer.name}": partial(consumer.has_reached, ends) for consumer in self._consumers},
        }

        def progressed() -> bool:
            for name in [name for name, reached in waiting.items() if reached()]:
                del waiting[name]
            return not waiting

        self._run_until(progressed, lambda: f"{', '.join(waiting)} got nowhere")

    def _settle(self) -> None:
        """Nobody begins anything new; what is under way ends."""
        for producer in self._producers:
            producer.stopped = True
        self._administrator.stopped = True

        def settled() -> bool:
            return self._administrator.settled and all(producer.settled for producer in self._producers)

        self._run_until(settled, "what is under way does not end")
        for client in self._clients:
            client.drop()

    def _cut_once_more(self) -> None:
        """The last power cut comes without warning; the start after it must find everything that was synced."""
        self.operator.cut_power()
        self._run_until(lambda: self._virtual.serves, "the last start fails")

    # Turns

    def _step(self) -> None:
        self.operator.step()
        for client in self._clients:
            client.step()
        try:
            self.world.step()
        except OSError as error:
            node = self._virtual.node
            if node is None or node.ready:
                raise
            self.operator.start_refused(error)
        self.operator.check()

    def _run_until(self, reached: Callable[[], bool], otherwise: str | Callable[[], str]) -> None:
        """`otherwise` says what is so when it was not reached in time."""
        deadline_ms = self.world.time.now_ms + PROGRESS_MS_MAX
        while not reached():
            if self.world.time.now_ms >= deadline_ms:
                raise Violation(PROGRESS, otherwise if isinstance(otherwise, str) else otherwise())
            self._step()


# --- what the seed draws ---------------------------------------------------------------------------------------------


def _one_of(entropy: SeededEntropy, *choices: str) -> str:
    return choices[entropy.below(len(choices))]


def _drawn_settings(entropy: SeededEntropy) -> dict[str, str]:
    return {
        "log.dirs": _one_of(entropy, "data", "data,more", "data,more,most"),
        "log.retention.check.interval.ms": "1500",
        "log.segment.delete.delay.ms": _one_of(entropy, "0", "500", "5000"),
        "log.message.timestamp.after.max.ms": str((1 << 63) - 1),
        "log.index.interval.bytes": _one_of(entropy, "0", "400", "4096"),
        "replica.high.watermark.checkpoint.interval.ms": _one_of(entropy, "700", "5000", "60000"),
        "headrace.preallocate.bytes": _one_of(entropy, "0", "16384", "65536"),
        "headrace.open.files.max": _one_of(entropy, "16", "4096"),
        "headrace.shutdown.timeout.ms": "5000",
        "headrace.slow.client.timeout.ms": _one_of(entropy, "5000", "60000"),
        "connections.max.idle.ms": _one_of(entropy, "3000", "600000"),
        "max.incremental.fetch.session.cache.slots": _one_of(entropy, "2", "1000"),
    }


def _drawn_plans(entropy: SeededEntropy) -> list[TopicPlan]:
    forever = ("retention.ms", "-1")
    segments = ("segment.bytes", _one_of(entropy, "4096", "16384", "1048576"))
    times = ("message.timestamp.type", _one_of(entropy, "CreateTime", "CreateTime", "LogAppendTime"))
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
            configs=[("segment.bytes", _one_of(entropy, "2048", "8192")), retention],
            keeps_all=False,
        ),
        TopicPlan("reborn", partitions=1 + entropy.below(2), configs=[forever], mortal=True),
    ]


def _drawn_producers(stage: Stage, entropy: SeededEntropy) -> list[Producer]:
    synced, loose, kept, reborn = stage.plans

    def producer(name: str, *plans: TopicPlan, acks: int = -1, idempotent: bool = False) -> Producer:
        return Producer(
            stage,
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
