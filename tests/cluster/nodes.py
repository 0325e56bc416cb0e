"""A controller host on a virtual machine, without the rest of a node."""

from headrace.broker.cluster.controller_host import ControllerHost
from headrace.broker.cluster.metadata_log import SNAPSHOT_INTERVAL_BYTES, MetadataLog
from headrace.broker.cluster.proposal import Proposal, ProposalFailed
from headrace.broker.cluster.quorum import MetadataQuorum
from headrace.broker.timers import Timers
from headrace.core.controller.commands import BrokerHeartbeat, BrokerRegistration, CreatableTopic, TopicResult
from headrace.core.controller.delta import MetadataDelta
from headrace.core.controller.image import MetadataImage
from headrace.core.controller.settings import ControllerSettings
from headrace.core.raft.ids import DirectoryId, ReplicaKey, Term
from headrace.core.raft.messages import VoteResponse
from headrace.model.ids import NodeId
from headrace.sim.world import VirtualMachine, World
from tests.core.controllers import CLUSTER_ID, new_broker

FOLDER = "data"
METADATA_FOLDER = "data/__cluster_metadata-0"
NODE = NodeId(1)
ME = ReplicaKey(NODE, DirectoryId("first-directory"))
TURNS_MAX = 200


class ClusterNode:
    """The part of `broker/node.py` that runs the controller: open, register, turn."""

    def __init__(
        self,
        machine: VirtualMachine,
        *,
        register: bool = True,
        clean_shutdown: bool = False,
        recovery_point: int = 0,
        snapshot_interval_bytes: int = SNAPSHOT_INTERVAL_BYTES,
    ) -> None:
        self.machine = machine
        machine.disk.make_directory(FOLDER)
        machine.disk.sync_directory(".")
        log, self.replay = MetadataLog.open(
            machine.disk,
            FOLDER,
            me=ME,
            wall_ms=machine.clock.wall_ms(),
            clean_shutdown=clean_shutdown,
            recovery_point=recovery_point,
            snapshot_interval_bytes=snapshot_interval_bytes,
        )
        self.notices: list[str] = []
        self.deltas: list[MetadataDelta] = []
        self.timers = Timers(machine.clock)
        self.quorum = MetadataQuorum(
            log,
            self.replay,
            me=ME,
            spawner=machine.spawner,
            timers=self.timers,
            clock=machine.clock,
            entropy=machine.entropy,
            notice=self.notices.append,
        )
        self.host = ControllerHost(
            self.quorum,
            self.replay,
            settings=ControllerSettings(),
            spawner=machine.spawner,
            clock=machine.clock,
            entropy=machine.entropy,
            notice=self.notices.append,
        )
        self.host.subscribe(self.deltas.append)
        self.host.start()
        self.settle()
        if register:
            self.register()

    def register(self) -> None:
        """Found the cluster, register the broker and unfence it."""
        self.host.found_cluster()
        new = new_broker(NODE, incarnation=self.machine.entropy.random_bytes(16))
        registration = self.host.register_broker(new, cluster_id=CLUSTER_ID)
        self.settle(registration)
        assert isinstance(registration.outcome, BrokerRegistration)
        epoch = registration.outcome.broker_epoch
        self.settle(
            self.host.heartbeat(
                BrokerHeartbeat(node_id=NODE, broker_epoch=epoch, metadata_offset=self.host.image.version - 1)
            )
        )

    def turn(self, timeout_ms: float = 0.0) -> None:
        self.timers.run_due(self.machine.clock.monotonic_ms())
        self.machine.spawner.run_completions()

    def settle(self, proposal: object = None) -> None:
        """Turn until the proposal is answered, or until nothing is under way."""
        for _ in range(TURNS_MAX):
            if isinstance(proposal, Proposal) and proposal.outcome is not None:
                return
            if not self.machine.spawner.in_flight() and self.timers.wait_ms(self.machine.clock.monotonic_ms()) != 0:
                assert proposal is None, "nothing is under way and the proposal is not answered"
                return
            self.turn()
        raise AssertionError("it does not settle")

    def create(self, *names: str) -> Proposal[tuple[TopicResult, ...]]:
        return self.host.create_topics([CreatableTopic(name=name, partition_count=2) for name in names])

    def created(self, *names: str) -> tuple[TopicResult, ...]:
        proposal = self.create(*names)
        self.settle(proposal)
        assert proposal.outcome is not None
        assert not isinstance(proposal.outcome, ProposalFailed), proposal.outcome
        return proposal.outcome

    def lose_leadership(self) -> None:
        """Let the node learn of a higher term, as it would from a voter that another one leads."""
        voter = ReplicaKey(NodeId(9), DirectoryId("other-directory"))
        self.quorum.deliver(VoteResponse(source=voter, to=ME, term=Term(self.quorum.term + 5), granted=False))
        assert not self.host.is_active

    def pass_time(self, duration_ms: float) -> None:
        self.machine._world.time.advance(duration_ms)
        self.turn()

    def files(self) -> list[str]:
        return self.machine.disk.list_directory(METADATA_FOLDER)


def new_machine(seed: int = 1) -> VirtualMachine:
    return World(seed).machine()


def topic_names(image: MetadataImage) -> list[str]:
    return list(image.topics)
