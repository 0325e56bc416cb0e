"""A node with two topics, and clients that work on them until the test does something else."""

from headrace.sim.audit import Auditor
from headrace.sim.checkers.turns import TurnInvariants
from headrace.sim.context import RunContext, Targets, TopicPlan
from headrace.sim.node import VirtualNode
from headrace.sim.workloads import requests
from headrace.sim.workloads.consumers import SimulatedConsumer
from headrace.sim.workloads.producers import SimulatedProducer
from headrace.sim.world import World
from headrace.wire.apis import ApiKey

SYNCED, LOOSE = "synced", "loose"
SYNC_BEFORE_ACK = [("flush.messages", "1"), ("segment.bytes", "16384")]


class Scene:
    """The disk writes short and its pages go cold now and then; nothing else goes wrong by itself."""

    def __init__(self, seed):
        self.world = World(seed)
        self.virtual = VirtualNode(self.world)
        self.machine = self.virtual.machine
        self.machine.disk.faults.short_writes_one_in = 7
        self.machine.disk.faults.cold_reads_one_in = 5
        self.synced = TopicPlan(SYNCED, partitions=2, configs=SYNC_BEFORE_ACK)
        self.loose = TopicPlan(LOOSE, partitions=1, configs=())
        self.context = RunContext(self.world, self.virtual, [self.synced, self.loose])
        self.context.may_send = lambda: True  # type: ignore[method-assign]
        self.boot()
        auditor = Auditor(self.context)
        for plan in self.context.plans:
            request = requests.new_topic(plan.name, plan.partitions, plan.configs)
            topic = auditor.ask(ApiKey.CREATE_TOPICS, requests.CREATE_TOPICS, request).topics[0]
            assert topic.error_code == 0
            self.context.histories.add(plan.created(topic.topic_id, plan.partitions))

    def boot(self):
        self.virtual.boot()
        self.invariants = TurnInvariants(self.context, self.virtual.running)
        self.invariants.ready()
        self.invariants.check()

    def clients(self, *plans, idempotent=False):
        targets = Targets(*plans)
        producers = [
            SimulatedProducer(
                self.context,
                f"{name}-{self.world.steps}",
                targets,
                idempotent=idempotent,
                acks=-1,
                in_flight_max=3,
                pause_ms_max=10,
            )
            for name in ("anna", "bert", "carl")
        ]
        return [*producers, SimulatedConsumer(self.context, f"dora-{self.world.steps}", targets, sessions=True)]

    def work(self, *plans, batches, clients=None):
        """Produce and read at once until this many more batches are acknowledged."""
        clients = clients if clients is not None else self.clients(*plans)
        goal = self.context.histories.acknowledged + batches

        def worked():
            for client in clients:
                client.step()
            if self.virtual.node is not None:
                self.invariants.check()
            return self.context.histories.acknowledged >= goal or self.virtual.node is None

        self.world.run_until(worked)

    def check(self):
        """Everything that was promised is there."""
        self.invariants.check()
        Auditor(self.context).check()
