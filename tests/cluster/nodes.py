"""A controller host on a virtual machine, without the rest of a node."""

from headrace.broker.cluster.controller_host import ControllerHost
from headrace.broker.cluster.metadata_log import SNAPSHOT_INTERVAL_BYTES, MetadataLog
from headrace.broker.cluster.proposal import Proposal, ProposalFailed
from headrace.core.controller.commands import BrokerHeartbeat, BrokerRegistration, NewTopic, TopicResult
from headrace.core.controller.delta import MetadataDelta
from headrace.core.controller.image import MetadataImage
from headrace.core.controller.settings import ControllerSettings
from headrace.model.ids import NodeId
from headrace.sim.world import VirtualMachine, World
from tests.core.controllers import CLUSTER_ID, new_broker

FOLDER = "data"
METADATA_FOLDER = "data/__cluster_metadata-0"
NODE = NodeId(1)
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
            wall_ms=machine.clock.wall_ms(),
            clean_shutdown=clean_shutdown,
            recovery_point=recovery_point,
            snapshot_interval_bytes=snapshot_interval_bytes,
        )
        self.notices: list[str] = []
        self.deltas: list[MetadataDelta] = []
        self.host = ControllerHost(
            log,
            self.replay,
            settings=ControllerSettings(),
            spawner=machine.spawner,
            clock=machine.clock,
            entropy=machine.entropy,
            notice=self.notices.append,
        )
        self.host.subscribe(self.deltas.append)
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
        self.machine.spawner.run_completions()

    def settle(self, proposal: object = None) -> None:
        """Turn until the proposal is answered, or until nothing is under way."""
        for _ in range(TURNS_MAX):
            if isinstance(proposal, Proposal) and proposal.outcome is not None:
                return
            if not self.machine.spawner.in_flight():
                assert proposal is None, "nothing is under way and the proposal is not answered"
                return
            self.turn()
        raise AssertionError("it does not settle")

    def create(self, *names: str) -> Proposal[tuple[TopicResult, ...]]:
        return self.host.create_topics([NewTopic(name=name, partition_count=2) for name in names])

    def created(self, *names: str) -> tuple[TopicResult, ...]:
        proposal = self.create(*names)
        self.settle(proposal)
        assert proposal.outcome is not None
        assert not isinstance(proposal.outcome, ProposalFailed), proposal.outcome
        return proposal.outcome

    def files(self) -> list[str]:
        return self.machine.disk.list_directory(METADATA_FOLDER)


def new_machine(seed: int = 1) -> VirtualMachine:
    return World(seed).machine()


def topic_names(image: MetadataImage) -> list[str]:
    return list(image.topics)
