"""One run of a cluster: brokers and applications work under faults; then everything heals and is compared."""

from collections.abc import Callable, Sequence
from typing import ClassVar

from headrace.client.types import NewTopic
from headrace.model.ids import TopicPartition
from headrace.sim.checkers.violation import Violation
from headrace.sim.cluster.administrator import ClusterAdministrator, new_registers
from headrace.sim.cluster.applications import Application
from headrace.sim.cluster.audit import ClusterAuditor
from headrace.sim.cluster.brokers import VirtualCluster
from headrace.sim.cluster.context import ClusterContext
from headrace.sim.cluster.membership_invariants import MembershipInvariants
from headrace.sim.cluster.nemesis import MET, ClusterNemesis
from headrace.sim.cluster.power_losses import PowerLosses
from headrace.sim.cluster.producers import ProducerApplication
from headrace.sim.cluster.quorum_invariants import QuorumInvariants
from headrace.sim.cluster.readers import HEARTBEAT_MS, SESSION_MS, MemberApplication, ReaderApplication
from headrace.sim.cluster.replica_invariants import ReplicaInvariants
from headrace.sim.cluster.transactions import TransactionalApplication
from headrace.sim.context import RunContext
from headrace.sim.entropy import SeededEntropy
from headrace.sim.facts import ScenarioFacts
from headrace.sim.node import VirtualNode
from headrace.sim.operator import Operator
from headrace.sim.scenarios.groups import flushes
from headrace.sim.scenarios.scenario import UNSYNCED_ONE_IN, one_of
from headrace.sim.trace import Trace
from headrace.sim.world import VirtualMachine, World

STEP_MS_MAX = 60
PROGRESS_MS_MAX = 30_000
TOPICS = ("left", "right")
PARTITIONS_MAX = 4
REPLICAS = ((3, 2), (3, 1), (2, 1), (1, 1), (1, 1))
"""Replication factors of topics, and the minimum of replicas in sync of each."""
REPLICAS_MAX = 3

PROGRESS = "once everything is healed, every partition has a leader and every client makes progress within 30 s"


class ClusterScenario(ScenarioFacts):
    name: ClassVar[str] = "cluster"
    options: ClassVar[str] = " --brokers {brokers}"
    common_faults: ClassVar[tuple[str, ...]] = MET
    brokers: ClassVar[int] = 3
    progress_unit: ClassVar[str] = "records acknowledged"
    progress_min: ClassVar[int] = 100


class ClusterRun:
    def __init__(self, seed: int, *, brokers: int, duration_ms: float) -> None:
        self.world = World(seed)
        self.world.step_ms_max = STEP_MS_MAX
        self._duration_ms = duration_ms
        draws = self.world.entropy.branch("run")
        self.is_synced = not draws.one_in(UNSYNCED_ONE_IN)
        """True if a power cut loses nothing that was acknowledged; if not, it may lose what other replicas have."""
        counts = {topic: brokers + draws.below(PARTITIONS_MAX) for topic in TOPICS}
        places = [TopicPartition(topic, index) for topic, count in counts.items() for index in range(count)]
        choices = _replicas(draws, brokers, is_synced=self.is_synced)
        self._new_topics = [_new_topic(draws, topic, count, choices) for topic, count in counts.items()]
        self._new_topics += new_registers()
        cluster = VirtualCluster(self.world, brokers, _drawn_settings(draws, is_synced=self.is_synced))
        self.context = ClusterContext(self.world, cluster, places)
        self._operators = {virtual.machine: self._operator(virtual) for virtual in cluster.nodes}
        self._is_replicated = all(is_replicated(new) for new in self._new_topics if new.name in TOPICS)
        self._losses = PowerLosses(cluster, TOPICS)
        self._auditor = ClusterAuditor(self.context, self._run_until)
        self._protocol = one_of(draws, "classic", "consumer")
        self._group_values: set[bytes] = set()
        self._applications: Sequence[Application] = ()
        self._administrator: ClusterAdministrator | None = None
        self._healing = False
        self._quorum = QuorumInvariants()
        MembershipInvariants(cluster.nodes)
        self._replicas = ReplicaInvariants(cluster.nodes, places)
        self._started: list[VirtualMachine] = []

    def _operator(self, virtual: VirtualNode) -> tuple[RunContext, Operator]:
        own = RunContext(self.world, virtual)
        operator = Operator(own, self.world.entropy.branch(f"operator of {virtual.machine.name}"))
        operator.may_start_late = lambda: not self._healing
        return own, operator

    @property
    def trace(self) -> Trace:
        return self.world.trace

    @property
    def steps(self) -> int:
        return self.world.steps

    def must_meet(self) -> tuple[str, ...]:
        """Return the faults that this run must have met in order to count."""
        return ("frame cut in the middle",)

    @property
    def progress(self) -> int:
        return self.context.history.acknowledged

    @property
    def restarts(self) -> int:
        return sum(operator.restarts for _, operator in self._operators.values())

    def carry_out(self) -> None:
        self._found()
        self._begin_work()
        nemesis = ClusterNemesis(
            self.context,
            list(self._operators.values()),
            self._applications,
            self.world.entropy.branch("nemesis"),
            duration_ms=self._duration_ms,
            may_cut_power=self._may_cut_power,
            kills_are_cuts=not self.is_synced,
        )
        end_ms = self.world.time.now_ms + self._duration_ms
        while self.world.time.now_ms < end_ms:
            nemesis.step()
            self._step()
        nemesis.heal()
        self._healing = True
        self._await_recovery()
        self._settle()
        self._auditor.check()
        self._end_all_at_once()
        self._auditor.check()

    # Phases

    def _found(self) -> None:
        """Start the first broker alone, then the others with its key, without faults; create the topics."""
        cluster = self.context.cluster
        founder, *others = cluster.nodes
        self._started = [founder.machine]
        self._run_until(lambda: founder.serves, "the cluster is not founded")
        if others:
            cluster.hand_out_key()
            self._started += [virtual.machine for virtual in others]
            self._run_until(lambda: cluster.all_serve, "a broker does not join")
        self._auditor.create(self._new_topics)

    def _begin_work(self) -> None:
        context = self.context
        self._applications = [
            *(ProducerApplication(context, name) for name in ("anna", "bert", "carl")),
            *(TransactionalApplication(context, name) for name in ("dora", "emil")),
            ReaderApplication(context, "fred", committed_only=False),
            ReaderApplication(context, "gina", committed_only=True),
            *(
                MemberApplication(context, name, self._group_values, protocol=self._protocol)
                for name in ("hans", "inge")
            ),
        ]
        self._administrator = ClusterAdministrator(context)

    def _await_recovery(self) -> None:
        """Wait until every broker serves, every partition has a leader and every client has made progress."""
        for client in self._clients():
            client.hurry()
        waiting = self._clients()

        def trouble() -> str:
            waiting[:] = [client for client in waiting if not client.has_progressed()]
            if waiting:
                return f"{', '.join(client.name for client in waiting)} got nowhere"
            return self.context.cluster.trouble()

        self._run_until(lambda: not trouble(), trouble)

    def _settle(self) -> None:
        """Let clients begin nothing new and wait until their requests have ended."""
        for client in self._clients():
            client.stopped = True
        self._run_until(lambda: all(client.settled for client in self._clients()), "requests do not end")
        history, values = self.context.history, self._group_values
        self._run_until(
            lambda: not history.unread(values), lambda: f"the group has not read {history.unread(values)[:3]}"
        )

    def _end_all_at_once(self) -> None:
        """End every broker in the same moment; their starts must find everything that was promised."""
        for _, operator in self._operators.values():
            if self.is_synced:
                operator.cut_power()
            else:
                operator.kill()
        self._run_until(lambda: self.context.cluster.all_serve, "a broker does not serve after the last start")

    def _may_cut_power(self, virtual: VirtualNode) -> bool:
        return self.is_synced or (self._is_replicated and self._losses.may_cut(virtual))

    # Turns

    def _clients(self) -> list[Application | ClusterAdministrator]:
        return [*self._applications, *([self._administrator] if self._administrator is not None else [])]

    def _step(self) -> None:
        for machine in self._started:
            self._operators[machine][1].step()
        if self._administrator is not None:
            self._administrator.step()
        for machine in self.world.begin_step():
            self._take_turn(machine)
        for machine in self._started:
            self._operators[machine][1].check()
        self._quorum.check(self.context.cluster.nodes)
        self._replicas.check()

    def _take_turn(self, machine: VirtualMachine) -> None:
        try:
            machine.take_turn()
        except OSError as error:
            own, operator = self._operators[machine]
            node = own.virtual.node
            if node is None or node.ready:
                raise
            operator.start_refused(error)

    def _run_until(self, reached: Callable[[], bool], otherwise: str | Callable[[], str]) -> None:
        """Run turns until the condition holds; `otherwise` is the violation if it does not in time."""
        deadline_ms = self.world.time.now_ms + PROGRESS_MS_MAX
        while not reached():
            if self.world.time.now_ms >= deadline_ms:
                raise Violation(PROGRESS, otherwise if isinstance(otherwise, str) else otherwise())
            self._step()


def _replicas(entropy: SeededEntropy, brokers: int, *, is_synced: bool) -> Sequence[tuple[int, int]]:
    """Return the choices of replication factors and minimums. Half of the clusters that sync nothing are fit for power
    cuts.
    """
    if brokers < REPLICAS_MAX:
        return ((1, 1),)
    return REPLICAS if is_synced or entropy.one_in(2) else REPLICAS[:1]


def _new_topic(entropy: SeededEntropy, name: str, partitions: int, choices: Sequence[tuple[int, int]]) -> NewTopic:
    """Draw the number of replicas and how many of them a write waits for."""
    replicas, minimum = choices[entropy.below(len(choices))]
    configs = {"min.insync.replicas": str(minimum)}
    return NewTopic(name, partitions=partitions, replication_factor=replicas, configs=configs)


def is_replicated(new: NewTopic) -> bool:
    """Return whether each acknowledged record is on two machines, so that one of them may lose it."""
    return new.replication_factor == REPLICAS_MAX and new.configs["min.insync.replicas"] == "2"


def _drawn_settings(entropy: SeededEntropy, *, is_synced: bool) -> dict[str, str]:
    return flushes(is_synced=is_synced) | {
        "log.retention.ms": "-1",
        "log.retention.check.interval.ms": "1500",
        "log.message.timestamp.after.max.ms": str((1 << 63) - 1),
        "log.segment.delete.delay.ms": one_of(entropy, "0", "500", "5000"),
        "offsets.topic.num.partitions": one_of(entropy, "1", "2", "3"),
        "transaction.state.log.num.partitions": one_of(entropy, "1", "2", "3"),
        "transaction.abort.timed.out.transaction.cleanup.interval.ms": one_of(entropy, "500", "2000"),
        "group.consumer.session.timeout.ms": str(SESSION_MS),
        "group.consumer.heartbeat.interval.ms": str(HEARTBEAT_MS),
        "group.initial.rebalance.delay.ms": one_of(entropy, "0", "1000"),
        "headrace.shutdown.timeout.ms": "5000",
    }
